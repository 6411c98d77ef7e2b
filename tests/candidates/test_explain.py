# SPDX-License-Identifier: Apache-2.0
"""Why nothing fits, and what would help: one row a rule (spec/beyond.md 3).

What brute force says to figures is in `test_explanations_against_brute_force`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import pytest

from berth.api import request as searching
from tests.candidates.engine import Request, Stand, wants
from tests.worlds import provider_uuid, world

#: cn1 is small, cn2 is in use, cn3 lacks the trait; the pool has the disk of all.
FLEET = """
    cn1     VCPU=4  MEMORY_MB=4096  CUSTOM_FAST  @A
    cn2     VCPU=16(used:12)  MEMORY_MB=8192  CUSTOM_FAST  @A
    cn3     VCPU=16  MEMORY_MB=8192  @A
    pool    DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
"""
DEVICES = """
    gpu1      VCPU=64  @A
      gpu1_0  PGPU=1(used:1)  CUSTOM_FABRIC
      gpu1_1  PGPU=1(used:1)
      gpu1_2  PGPU=1(used:1)
    nic1      VCPU=64
      nic1_0  CUSTOM_VF=8(used:8)
"""
NODES = """
    cn1      DISK_GB=10
      numa0  VCPU=4  MEMORY_MB=8
      numa1  VCPU=4  MEMORY_MB=8
    cn2      DISK_GB=10  VCPU=6  MEMORY_MB=16
"""
SERVED = "cn1  VCPU=8({})  @A\npool  DISK_GB=60  MISC_SHARES_VIA_AGGREGATE  @A\ncn2  DISK_GB=100"
#: What a relation does where all is on one provider, or not.
FLAT = "cn1  VCPU=4  MEMORY_MB=8"
BELOW = "\n  numa0  VCPU=4\n    memory0  MEMORY_MB=8"
SUBTREE = wants("_A VCPU=1; _B MEMORY_MB=8", together="_A _B at subtree")
TWICE = wants("_A VCPU=1; _B VCPU=1", together="_A _B at subtree")

VCPU, A_VCPU = "/groups//resources/VCPU", "/groups/_A/resources/VCPU"
MEMORY = "/groups//resources/MEMORY_MB"
TRAIT, A_TRAIT = "/groups//required/0", "/groups/_A/required/0"


class Row(NamedTuple):
    """A world, a request, and what the explanation says, as `shown` has it."""

    drawing: str
    request: Request
    due: dict[str, Any]


def shown(answer: Any) -> dict[str, Any]:
    """An explanation in short."""
    stages = answer["stages"]
    lacks = [lack for near in answer.get("nearest", [])[:1] for lack in near["lacks"]]
    return {
        "verdict": answer["verdict"],
        "summary": answer["summary"],
        "fit": answer["hosts"]["fit"],
        "at": [stage["at"] for stage in stages],
        "texts": [stage["text"] for stage in stages],
        "left": [stage["left"] for stage in stages],
        "alone": [stage["alone"] for stage in stages],
        "if_empty": [(s["has"], s["if_empty"]) for s in stages if "has" in s],
        "drop": {
            " ".join(each["drop"]): (each["hosts"], each.get("reduce_to"))
            for each in answer.get("relaxations", ())
        },
        "split": answer.get("split_would_fit"),
        "nearest": {
            near["host"]["name"]: [lack["at"] for lack in near["lacks"]]
            for near in answer.get("nearest", ())
        },
        "reason": [(each["reason"], each["possible"]) for each in lacks if "reason" in each],
        "best": [(each["provider"]["name"], each["free"]) for each in lacks if "provider" in each],
        "unmet": [at for each in lacks for at in each.get("unmet", ())],
        "impossible": [each["text"] for each in answer.get("impossible", ())],
        "unknown": {each["at"]: each["name"] for each in answer["unknown"]},
        "instead": {name: n for each in answer["unknown"] for name, n in each["hosts"].items()},
        "warnings": sorted(each["at"] for each in answer["warnings"]),
    }


def impossible(request: Request, text: str, drawing: str = DEVICES) -> Row:
    """What no host could hold is named, whatever else is asked for."""
    return Row(drawing, request, {"verdict": "never", "impossible": [text]})


def shortage(inventory: str, amount: int, possible: int, reason: str) -> Row:
    """How much of a class is possible, and why no more."""
    return Row(f"cn1  {inventory}", wants(f"VCPU={amount}"), {"reason": [(reason, possible)]})


def splitting(drawing: str, request: Request, hosts: int | None) -> Row:
    """How many hosts would fit if every class could be split."""
    return Row(drawing, request, {"split": hosts})


ROWS = {
    "stages": Row(
        FLEET,
        wants("VCPU=8 MEMORY_MB=8192 CUSTOM_FAST"),
        {
            "at": [VCPU, MEMORY, TRAIT],
            "texts": ["VCPU 8", "MEMORY_MB 8192", "trait CUSTOM_FAST"],
            "alone": [1, 2, 2],
            "left": [1, 1, 0],
            "if_empty": [(3, 2), (3, 2)],
        },
    ),
    "not_under is an atom": Row(
        "cn1\n  numa0  VCPU=4  CUSTOM_FAST\n  numa1  VCPU=1",
        {
            "groups": {
                "_A": {
                    "resources": {"VCPU": 4},
                    "required": ["CUSTOM_FAST"],
                    "not_under": ["numa0"],
                }
            }
        },
        {"left": [1, 1, 0], "drop": {"/groups/_A/not_under": (1, None)}},
    ),
    "a trait of a node that gives nothing": Row(
        "cn1\n  numa0  VCPU=4(used:4)  CUSTOM_FAST\n  numa1  VCPU=4",
        wants("VCPU=1 CUSTOM_FAST"),
        {"left": [1, 0], "fit": 0},
    ),
    "pairs if no single change helps": Row(
        "cn2  VCPU=4",
        wants("_A VCPU=8 CUSTOM_FAST !CUSTOM_SLOW"),
        {
            "drop": {f"{A_VCPU} {A_TRAIT}": (1, None)},
            "nearest": {"cn2": [A_VCPU, A_TRAIT]},
            "reason": [("capacity", 4)],
        },
    ),
    # --- Verdicts, and their sentences
    "fits": Row(FLEET, wants("VCPU=8"), {"verdict": "fits", "summary": "1 host fits."}),
    "never": Row(
        FLEET,
        wants("VCPU=99"),
        {
            "verdict": "never",
            "summary": "No host could hold this, even with nothing used. No provider can give 99"
            " VCPU at once; the most is 16. With VCPU 16 instead of 99, 1 host fits.",
        },
    ),
    "fragmented": Row(
        "cn1  VCPU=8(used:4)\ncn2  VCPU=8(used:6)",
        wants("VCPU=6"),
        {
            "verdict": "fragmented",
            "summary": "No host fits now; 2 would with nothing used. Enough is free in total, but"
            " not on one host. With VCPU 4 instead of 6, 1 host fits.",
        },
    ),
    "used_up": Row(
        "cn1  VCPU=8(used:4)\ncn2  VCPU=8(used:7)",
        wants("VCPU=6"),
        {
            "verdict": "used_up",
            "summary": "No host fits now; 2 would with nothing used."
            " With VCPU 4 instead of 6, 1 host fits.",
        },
    ),
    "unknown_name": Row(
        FLEET,
        wants("VCPU=1 CUSTOM_FST"),
        {
            "verdict": "unknown_name",
            "summary": "There is no trait CUSTOM_FST; did you mean CUSTOM_FAST or CUSTOM_SLOW?",
        },
    ),
    "a pool that serves one that fits": Row(
        SERVED.format("used:5"), wants("VCPU=3 DISK_GB=50"), {"verdict": "fits"}
    ),
    "a pool that serves two": Row(
        SERVED.format("used:5") + "\ncn3  VCPU=8(used:6)  @A",
        wants("VCPU=4 DISK_GB=50"),
        {"verdict": "fragmented"},
    ),
    # --- Names
    "atoms of unknown names are left out": Row(
        FLEET,
        wants("_A VCPU=8 CUSTOM_NONE=1 CUSTOM_FST|CUSTOM_FAST"),
        {
            "unknown": {
                "/groups/_A/resources/CUSTOM_NONE": "CUSTOM_NONE",
                "/groups/_A/required/0/0": "CUSTOM_FST",
            },
            "at": [A_VCPU],
            "fit": 1,
        },
    ),
    # The eleventh, and not the second, with which its pointer begins.
    "only the atom that has an unknown name": Row(
        "cn1  VCPU=1  " + " ".join(f"CUSTOM_T{number}" for number in range(10)),
        wants("VCPU=1 " + " ".join(f"CUSTOM_T{n}" for n in range(10)) + " CUSTOM_NONE"),
        {"at": [VCPU, *(f"/groups//required/{number}" for number in range(10))]},
    ),
    **{
        f"a level that is no trait, {kind}": Row(
            "cn1\n  numa0  VCPU=2  CUSTOM_LEVEL\n  numa1  VCPU=1  CUSTOM_LEVEL",
            wants("_A VCPU=1; _B VCPU=1", **{kind: "_A _B at CUSTOM_LEVL"}),
            {"unknown": {f"/{kind}/0/at": "CUSTOM_LEVL"}, "instead": {"CUSTOM_LEVEL": 1}},
        )
        for kind in ("together", "apart")
    },
    "references that stand for nothing": Row(
        "cn1  VCPU=1",
        {
            "groups": {
                "_A": {
                    "resources": {"VCPU": 1},
                    "in_tree": ["nobody"],
                    "under": ["cn1", "nobody"],
                    "not_under": ["nobody"],
                    "member_of": ["!no-rack", ["no-rack", "no-row"]],
                }
            },
            "host": {
                "in": ["nobody"],
                "not_in": ["nobody"],
                "member_of": ["!no-rack", ["no-rack", "no-row"]],
            },
        },
        {
            "warnings": [
                *(f"/groups/_A/{at}/0" for at in ("in_tree", "member_of")),
                *("/groups/_A/member_of/1/0", "/groups/_A/member_of/1/1"),
                *("/groups/_A/not_under/0", "/groups/_A/under/1", "/host/in/0"),
                *("/host/member_of/0", "/host/member_of/1/0", "/host/member_of/1/1"),
                "/host/not_in/0",
            ]
        },
    ),
    "the host's conditions come first": Row(
        FLEET,
        wants(
            "VCPU=1",
            host={
                "required": ["CUSTOM_FAST"],
                "anywhere": ["!MISC_SHARES_VIA_AGGREGATE"],
                "member_of": ["ffffffff-ffff-ffff-ffff-ffffffffffff"],
                "in": ["cn1", "cn2", "pool", provider_uuid("cn1")],
                "not_in": ["cn1"],
            },
        ),
        {
            "texts": [
                "on cn1, cn2, pool, 1 more",
                "not on cn1",
                "trait CUSTOM_FAST on the root",
                "not trait MISC_SHARES_VIA_AGGREGATE anywhere",
                "in ffffffff-ffff-ffff-ffff-ffffffffffff",
                "VCPU 1",
            ],
            "left": [3, 2, 1, 1, 0, 0],
        },
    ),
    # --- Shortages, and the nearest hosts
    "used": shortage("VCPU=16(used:12)", 8, 4, "used"),
    "capacity": shortage("VCPU=4", 8, 4, "capacity"),
    "max_unit": shortage("VCPU=16(max:3)", 8, 3, "max_unit"),
    "min_unit": shortage("VCPU=16(min:4)", 2, 0, "min_unit"),
    "step_size": shortage("VCPU=16(step:5)", 8, 5, "step_size"),
    "min_unit before step_size": shortage("VCPU=16(step:4,min:8)", 7, 0, "min_unit"),
    "no inventory": shortage("MEMORY_MB=4", 8, 0, "no_inventory"),
    "groups share one provider": Row(
        FLEET,
        wants("_A VCPU=12; _B VCPU=8"),
        {"drop": {A_VCPU: (1, 8), "/groups/_B/resources/VCPU": (1, 4)}, "split": None},
    ),
    # There is enough for either group, and not for both.
    "exactly free is not used": Row(
        "cn1  VCPU=9(used:5)", wants("_A VCPU=4; _B VCPU=4"), {"reason": [("conditions", 0)]}
    ),
    # --- Splits
    "a split would fit": splitting(NODES, wants("VCPU=7 MEMORY_MB=12 DISK_GB=1"), 1),
    # In steps of three; one node alone may give any amount.
    "a smaller amount may be split too": Row(
        "cn1\n  numa0  VCPU=5\n  numa1  VCPU=4",
        wants("VCPU=8/min:3,step:3"),
        {"drop": {VCPU: (1, 6)}},
    ),
    "a much smaller amount may be split too": Row(
        "cn1\n  numa0  VCPU=8\n  numa1  VCPU=6",
        wants("VCPU=30/min:3,step:3"),
        {"drop": {VCPU: (1, 12)}},
    ),
    # The first two nodes of one host, the last two of the other one.
    "hosts of one shape that a split fits in different ways": Row(
        "cn1\n  a1  VCPU=3\n  b1  VCPU=3\n  c1  VCPU=3(used:3)\n"
        "cn2\n  a2  VCPU=3(used:3)\n  b2  VCPU=3\n  c2  VCPU=3",
        wants("VCPU=6/"),
        {"fit": 2},
    ),
    # --- Relations, and drains
    # One provider serves both groups on every host that fits, so "subtree" says nothing.
    "a relation without effect": Row(FLAT, SUBTREE, {"warnings": ["/together/0"]}),
    "a relation with effect": Row(
        f"{FLAT}\ncn2{BELOW}\n  memory1  MEMORY_MB=8", SUBTREE, {"warnings": []}
    ),
    "a relation of two providers": Row(f"cn1{BELOW}", SUBTREE, {"warnings": []}),
    "a drained node": Row(
        "cn1\n  numa0  VCPU=4\n  numa1  VCPU=8  !d",
        wants("VCPU=16"),
        {"best": [("numa0", 4)], "reason": [("capacity", 4)]},
    ),
    "a drained host": Row("cn1  VCPU=4  !d", wants("VCPU=16"), {"verdict": "never"}),
    "a node beside which a relation counts": Row(
        "cn1  VCPU=4\n  numa0  VCPU=4", TWICE, {"warnings": []}
    ),
    "a drained node beside which it does not": Row(
        "cn1  VCPU=4\n  numa0  VCPU=4  !d", TWICE, {"warnings": ["/together/0"]}
    ),
    "a node whose drain is announced": Row(
        "cn1  VCPU=4\n  numa0  VCPU=4  ?d", TWICE, {"warnings": []}
    ),
    "a verdict of drains is said once": Row(
        "cn1  VCPU=4  !d",
        wants("VCPU=1"),
        {
            "summary": "No host fits now; 1 would without drains.",
            "drop": {"/drains": (1, None)},
        },
    ),
    # --- What no host could hold. Everything is used, but it would be in vain to release it.
    "no provider can": impossible(
        wants("PGPU=3"),
        "No provider can give 3 PGPU at once; the most is 1. One host has 3 on 3 providers: use"
        " several groups, or split it.",
    ),
    "no provider has": impossible(wants("VGPU=1"), "No provider has VGPU."),
    "no provider has both": impossible(
        wants("_A PGPU=1 VCPU=1"),
        "No provider can give 1 PGPU for _A and 1 VCPU for _A together.",
    ),
    "no host has both": impossible(
        wants("PGPU=1 CUSTOM_VF=1"), "No host can give 1 PGPU and 1 CUSTOM_VF together."
    ),
    "no host has both in a subtree": impossible(
        wants("_A PGPU=1; _B PGPU=1", together="_A _B at subtree"),
        "No host can give 1 PGPU for _A and 1 PGPU for _B together at subtree.",
    ),
    "no host meets both": impossible(
        wants("CUSTOM_VF=1 CUSTOM_FABRIC"),
        'No host can meet 1 CUSTOM_VF and "trait CUSTOM_FABRIC" together.',
    ),
    "no such host": impossible(
        wants("VCPU=1", host={"in": ["gpu99"]}),
        'No host meets "on gpu99". There is no provider gpu99.',
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_an_explanation_says(stand: Stand, name: str) -> None:
    """What helps, in figures and in words."""
    drawing, request, due = ROWS[name]
    standing = stand(world(drawing, traits="CUSTOM_FAST CUSTOM_SLOW"))
    got = shown(standing.ask("explain", request=request))
    assert {member: got[member] for member in due} == due
    if "nearest" in due:
        assert [*got["nearest"]] == [*due["nearest"]]
    if text := "".join(due.get("impossible", ())):
        assert text in got["summary"]


def test_more_atoms_than_a_byte_has_numbers_share_the_last_one(stand: Stand) -> None:
    """The host has all traits but the last."""
    *traits, last = [f"CUSTOM_T{number}" for number in range(260)]
    standing = stand(world(f"cn1  VCPU=5  {' '.join(traits)}", traits=last))
    groups = [f"_{n} VCPU=1 " + " ".join([*traits, last][n : n + 52]) for n in range(0, 260, 52)]
    request = wants(";".join(groups))
    wanted = {"relaxations": False, "nearest_max": 0, "paint": True}
    assert b64decode(standing.ask("explain", request=request, **wanted)["paint"]) == b"\xfd"


@pytest.mark.parametrize(
    ("drawing", "request_"),
    [
        (FLEET, wants("VCPU=8 MEMORY_MB=8192 CUSTOM_FAST")),
        ("cn1  VCPU=4\ncn2\n  numa0  VCPU=4\n    device0  VGPU=1  VCPU=4", TWICE),
    ],
    ids=["nothing fits", "a relation"],
)
def test_time_that_ends_never_says_that_nothing_fits(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, drawing: str, request_: Request
) -> None:
    """Whenever the clock runs out: figures are lower bounds and marked, a verdict of the whole
    fleet is only given where the whole fleet was looked at, no host lacks what it has, and no
    relation is without effect that has one."""
    standing = stand(drawing)

    def explained() -> Any:
        return standing.ask("explain", request=request_, paint=True)

    whole, verdicts = explained(), set()
    for looks in range(1, 400):
        look = count(1.0)
        now = [0.0]

        def clock(look: Iterator[float] = look, now: list[float] = now, most: int = looks) -> float:
            now[0] = next(look) / most
            return now[0]

        monkeypatch.setattr(searching, "monotonic", clock)
        monkeypatch.setattr(searching, "thread_time", lambda now=now: now[0])
        cut = explained()
        verdicts.add(cut["verdict"])
        assert cut["verdict"] in ("gave_up", whole["verdict"])
        for part, due in zip(cut["stages"], whole["stages"], strict=True):
            assert part["left"] <= due["left"]
            assert "at_least" in part or part == due
        assert cut["hosts"]["fit"] <= whole["hosts"]["fit"]
        for member in ("nearest", "warnings"):
            assert all(each in whole.get(member, ()) for each in cut.get(member, ()))
        painted = zip(b64decode(cut["paint"]), b64decode(whole["paint"]), strict=True)
        assert all(byte in (due, 254) for byte, due in painted)
        if cut["complete"]:
            break
    assert verdicts == {"gave_up", whole["verdict"]}
    assert cut == whole
