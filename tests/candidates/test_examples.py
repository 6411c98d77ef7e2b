# SPDX-License-Identifier: Apache-2.0
"""Candidates by example: one row a rule, or a mistake that was made once.

Each is asked in both ways, with all combinations tried and by walking, and of the brute-force twins
too. A request is in the short form of `tests.candidates.engine.wants`.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from berth.candidates import assign
from tests.brute_force import answer
from tests.brute_question import answers
from tests.candidates.engine import Request, Stand, wants
from tests.candidates.test_questions_against_brute_force import check
from tests.queries import parse_query
from tests.worlds import MAX_INT, world


class Row(NamedTuple):
    """A world, a question (a query of 1.39, or a request), and the candidates or their number."""

    drawing: str
    asked: str | Request
    due: list[str] | int


UNITS = "plain  VCPU=8\nother  VCPU=8({})"
BOTH = ["other:VCPU={0} <=other>", "plain:VCPU={0} <=plain>"]


def units(fields: str, amount: int, *, both: bool = False) -> Row:
    """Whether a host with such units is among those that offer an amount."""
    due = [each.format(amount) for each in (BOTH if both else BOTH[1:])]
    return Row(UNITS.format(fields), f"resources=VCPU:{amount}", due)


TWO_NODES = """
    cn1       MEMORY_MB=1024
      a1      VCPU=8(used:2)  HW_NUMA_ROOT
      b1      VCPU=8(used:4)  CUSTOM_SLOW
    cn2       MEMORY_MB=1024
      a2      VCPU=8(used:4)
      b2      VCPU=8(used:5)
"""
#: Two hosts that differ in their pool only, and the pools in their place and a trait.
RACKS = """
    host1  VCPU=8  @A
    host2  VCPU=8  @B
    pool1  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
    pool2  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  CUSTOM_X  @B
"""
FOUR_POOLS = """
    flat1  VCPU=8  @A
    flat2  VCPU=8  @B
    fast1  VCPU=8  HW_CPU_X86_AVX2  @C
    fast2  VCPU=8  HW_CPU_X86_AVX2  @D
    pool1  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
    pool2  DISK_GB=50   MISC_SHARES_VIA_AGGREGATE  @B
    pool3  DISK_GB=50   MISC_SHARES_VIA_AGGREGATE  @C
    pool4  DISK_GB=130  MISC_SHARES_VIA_AGGREGATE  @D
"""
FROM_ONE_POOL = "resources=VCPU:1&resources_a=DISK_GB:{0}&resources_b=DISK_GB:{0}&group_policy=none"

ROWS = {
    # --- Units: of the second host, and of several groups together
    "less than min_unit": units("min:4", 3),
    "exactly min_unit": units("min:4", 4, both=True),
    "less than the min_unit of another host": Row(
        "one  VCPU=8(min:4)\ntwo  VCPU=8(min:5)", "resources=VCPU:4", ["one:VCPU=4 <=one>"]
    ),
    "no multiple of step_size": units("step:3", 4),
    "a multiple of step_size": units("step:3", 3, both=True),
    "more than max_unit": units("max:4", 5),
    "exactly max_unit": units("max:4", 4, both=True),
    "exactly what is free": units("used:5", 3, both=True),
    "more than is free": units("used:5", 4),
    "half a unit by the ratio": Row("host  VCPU=7(ratio:1.5)", "resources=VCPU:11", 0),
    "whole units by the ratio": Row("host  VCPU=7(ratio:1.5)", "resources=VCPU:10", 1),
    "the largest amount": Row(
        f"host  VCPU={MAX_INT}", f"resources=VCPU:{MAX_INT}", [f"host:VCPU={MAX_INT} <=host>"]
    ),
    "more than the largest": Row(f"host  VCPU={MAX_INT}", f"resources=VCPU:{MAX_INT + 1}", 0),
    "groups take max_unit together": Row(
        "h\n  a  VCPU=8(max:4)\n  b  VCPU=8(max:4)\nh1\n  c  VCPU=8(max:4)\n  d  VCPU=8(max:4)",
        "resources1=VCPU:3&resources2=VCPU:3&group_policy=none",
        4,
    ),
    # --- Relations (spec/beyond.md 2.4)
    "pools that are alike are trees of their own": Row(
        """
        cn1     VCPU=1  @A
        one     DISK_GB=1  MISC_SHARES_VIA_AGGREGATE  @A
        two     DISK_GB=1  MISC_SHARES_VIA_AGGREGATE  @A
        """,
        wants("VCPU=1; _A DISK_GB=1; _B DISK_GB=1", apart="_A _B at tree"),
        [
            "cn1:VCPU=1 one:DISK_GB=1 two:DISK_GB=1 <=cn1 _A=one _B=two>",
            "cn1:VCPU=1 one:DISK_GB=1 two:DISK_GB=1 <=cn1 _A=two _B=one>",
        ],
    ),
    # The device is below the first node.
    "three apart beside each other": Row(
        """
        cn1
          numa0      VCPU=1
            device0  VCPU=1
          numa1      VCPU=1
          numa2      VCPU=1
        """,
        wants("_A VCPU=1; _B VCPU=1; _C VCPU=1", apart="_A _B _C at subtree"),
        12,
    ),
    "whom no relation keeps apart may share": Row(
        "cn1\n  one  VGPU=2\n  two  VGPU=1",
        wants("_A VGPU=1; _B VGPU=1; _C VGPU=1", apart="_A _B at provider"),
        [
            "one:VGPU=2 two:VGPU=1 <_A=one _B=two _C=one>",
            "one:VGPU=2 two:VGPU=1 <_A=two _B=one _C=one>",
        ],
    ),
    "apart at a level that nothing is below": Row(
        "cn1\n  one  VGPU=2\n  two  VGPU=1",
        wants("_A VGPU=1; _B VGPU=1", apart="_A _B at HW_NUMA_ROOT"),
        0,
    ),
    # --- Places
    "not_under beside in_tree": Row(
        "cn1  VCPU=1\n  a  VCPU=1\ncn2  VCPU=1",
        {"groups": {"": {"resources": {"VCPU": 1}, "in_tree": ["cn1"], "not_under": ["a"]}}},
        ["cn1:VCPU=1 <=cn1>"],
    ),
    "not_under beside under": Row(
        "cn1  VCPU=1\n  a  VCPU=1\n    b  VCPU=1\ncn2  VCPU=1",
        {"groups": {"_A": {"resources": {"VCPU": 1}, "under": ["a"], "not_under": ["b"]}}},
        ["a:VCPU=1 <_A=a>"],
    ),
    # --- Splits (2.5): one provider gives all if it can
    "a set of which a part would do": Row(
        TWO_NODES, wants("VCPU=4/"), [f"{n}:VCPU=4 <={n}>" for n in ("a1", "a2", "b1")]
    ),
    "the least although the step is finer": Row(
        TWO_NODES, wants("VCPU=8/min:3,step:2"), ["a1:VCPU=4 b1:VCPU=4 <=a1+b1>"]
    ),
    "no more parts than two": Row(
        "cn1\n  a  VCPU=4\n  b  VCPU=4\n  c  VCPU=4", wants("VCPU=9/"), 0
    ),
    # The host before it has enough in total, but not in multiples of the step.
    "the parts of the second host": Row(
        "cn1\n  a  VCPU=5\n  b  VCPU=5\ncn2\n  c  VCPU=3\n  d  VCPU=6",
        wants("VCPU=9/step:3"),
        ["c:VCPU=3 d:VCPU=6 <=c+d>"],
    ),
    # --- Sharing providers
    "a pool without the forbidden trait": Row(
        RACKS,
        "resources=VCPU:1,DISK_GB:10&required=!CUSTOM_X",
        ["host1:VCPU=1 pool1:DISK_GB=10 <=host1+pool1>"],
    ),
    "a pool with the trait": Row(
        RACKS,
        "resources=VCPU:1,DISK_GB:10&required=CUSTOM_X",
        ["host2:VCPU=1 pool2:DISK_GB=10 <=host2+pool2>"],
    ),
    "of hosts with a disk and a pool": Row(
        "\n".join(f"host{n}  VCPU=8  @A{n % 2}\n  disk{n}  DISK_GB=9" for n in range(6))
        + "".join(f"\npool{n}  DISK_GB=99  MISC_SHARES_VIA_AGGREGATE  @A{n}" for n in (0, 1)),
        "resources=VCPU:1,DISK_GB:1",
        12,
    ),
    # Hosts of two shapes are searched one shape after the other.
    "pools that are met later have room for two": Row(FOUR_POOLS, FROM_ONE_POOL.format(30), 2),
    "pools that are met later are full": Row(FOUR_POOLS, FROM_ONE_POOL.format(60), 1),
    "a drained pool": Row(
        """
        host1  VCPU=8  @A
        host2  VCPU=8  @A @B
        pool1  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A  !d
        pool2  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @B
        """,
        "resources=VCPU:1,DISK_GB:10",
        ["host2:VCPU=1 pool2:DISK_GB=10 <=host2+pool2>"],
    ),
    # --- A dead end and a solution that differ in one thing only
    # Of 6 and 7, one less is 5 and 7, into which two of 4 and two of 2 do not go; or 6 and 6.
    "what was taken of each device": Row(
        "host\n  six    VGPU=6\n  seven  VGPU=7",
        "resources_A=VGPU:1&resources_B=VGPU:4&resources_C=VGPU:4&resources_D=VGPU:2"
        "&resources_E=VGPU:2&group_policy=none",
        4,
    ),
    # The first host has PCPU for both in `a` and nowhere for the rest; the second is the reverse.
    **{
        f"which of several hosts are left, {first}": Row(
            f"""
            first
              a1  PCPU={first}
              b1  PCPU={3 - first}
              c1  VGPU=5
              d1  VGPU=7
            second
              a2  PCPU={3 - first}
              b2  PCPU={first}
              c2  VGPU=6
              d2  VGPU=6
            """,
            "resources_A=PCPU:1&resources_B=PCPU:1&resources_C=VGPU:4&resources_D=VGPU:4"
            "&resources_E=VGPU:2&resources_F=VGPU:2&group_policy=none",
            12,
        )
        for first in (1, 2)
    },
}


@pytest.mark.parametrize("combinations", [64, 1])
@pytest.mark.parametrize("name", ROWS)
def test_these_are_the_candidates(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, name: str, combinations: int
) -> None:
    """In both ways, in the order of the nodes and in random orders, and by the twin."""
    monkeypatch.setattr(assign, "ASSIGNMENTS_MAX", combinations)
    drawing, asked, due = ROWS[name]
    standing = stand(world(drawing, traits="CUSTOM_X CUSTOM_Y", classes="CUSTOM_VF"))
    if isinstance(asked, str):
        whole = answer(standing.fleet, parse_query(asked, 39), 39)
        for is_random in (False, True, True, True):
            got = standing.queried(asked, randomize_allocation_candidates=is_random)
            assert got == whole
        candidates = whole.candidates
    else:
        several = standing.ask("candidates", request=asked, limit=10_000)["candidates"]
        check(answers(standing.fleet, asked)[1], [*map(standing.read, several)])
        candidates = sorted(map(standing.text, several))
    assert (len(candidates) if isinstance(due, int) else candidates) == due
