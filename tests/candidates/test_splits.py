# SPDX-License-Identifier: Apache-2.0
"""Amounts that may come from several providers (spec/beyond.md 2.5)."""

from __future__ import annotations

from pathlib import Path

from berth.candidates import Budget
from berth.candidates.capacity import Counting
from berth.candidates.question import Question, QuestionRelation, Split
from tests.candidates.questions import asked, group, items, question
from tests.worlds import world

HOSTS = world("""
    cn1       MEMORY_MB=1024
      cn1_a   VCPU=8(used:2)  FAST
      cn1_b   VCPU=8(used:4)  SLOW
    cn2       MEMORY_MB=1024
      cn2_a   VCPU=8(used:4)
      cn2_b   VCPU=8(used:5)
""")


def wants(amount: int, split: Split, **members: object) -> Question:
    """A question for some VCPU that may be split."""
    asking = group(f"VCPU={amount}", split=(("VCPU", split),), **members)
    return question(groups={"": asking})


def test_one_provider_gives_all_if_it_can(prepared: Path) -> None:
    """A set of which a part would do is no candidate."""
    with asked(HOSTS, prepared) as fleet:
        assert fleet.candidates(wants(4, Split())) == [
            "cn1_a:VCPU=4",
            "cn1_b:VCPU=4",
            "cn2_a:VCPU=4",
        ]


def test_two_providers_give_what_one_cannot(prepared: Path) -> None:
    """Each gives the least, and the one with most room gives the rest."""
    with asked(HOSTS, prepared) as fleet:
        assert fleet.candidates(wants(7, Split())) == [
            "cn1_a:VCPU=6 cn1_b:VCPU=1",
            "cn2_a:VCPU=4 cn2_b:VCPU=3",
        ]
        assert fleet.hosts(wants(8, Split())) == ["cn1"]


def test_each_part_is_a_multiple_of_the_step(prepared: Path) -> None:
    """Nothing is taken from three free VCPU but two."""
    with asked(HOSTS, prepared) as fleet:
        assert fleet.candidates(wants(8, Split(min=2, step=2))) == ["cn1_a:VCPU=6 cn1_b:VCPU=2"]
        assert fleet.candidates(wants(8, Split(min=4, step=4))) == ["cn1_a:VCPU=4 cn1_b:VCPU=4"]
        assert fleet.candidates(wants(7, Split(step=2))) == []


def test_each_part_has_the_least_although_the_step_is_finer(prepared: Path) -> None:
    """Two of a part would be a multiple of the step, and less than three."""
    with asked(HOSTS, prepared) as fleet:
        assert fleet.candidates(wants(8, Split(min=3, step=2))) == ["cn1_a:VCPU=4 cn1_b:VCPU=4"]


def test_no_more_providers_share_an_amount_than_it_has_parts(prepared: Path) -> None:
    """Three nodes have together what two have not."""
    three = world("cn1\n  a  VCPU=4\n  b  VCPU=4\n  c  VCPU=4")
    with asked(three, prepared) as fleet:
        assert fleet.candidates(wants(9, Split())) == []
        assert len(fleet.candidates(wants(9, Split(parts=3)))) == 1


def test_the_parts_are_those_of_the_host_itself(prepared: Path) -> None:
    """The host before it has enough in total, but not in multiples of the step."""
    two = world("""
        cn1
          a   VCPU=5
          b   VCPU=5
        cn2
          c   VCPU=3
          d   VCPU=6
    """)
    with asked(two, prepared) as fleet:
        assert fleet.candidates(wants(9, Split(step=3))) == ["c:VCPU=3 d:VCPU=6"]


def test_a_larger_set_may_be_needed_for_its_traits(prepared: Path) -> None:
    """The unsuffixed group has its traits together."""
    with asked(HOSTS, prepared) as fleet:
        assert fleet.candidates(wants(5, Split(), required=items("FAST"))) == ["cn1_a:VCPU=5"]
        assert fleet.candidates(wants(5, Split(), required=items("SLOW"))) == [
            "cn1_a:VCPU=4 cn1_b:VCPU=1"
        ]


def test_a_part_of_a_set_may_do_although_no_set_with_one_less_does(prepared: Path) -> None:
    """Three give five each; with one that gives in steps of three, each gives three. Whether these
    or the others come first does not matter."""
    two = world("""
        cn1  MEMORY_MB=1024
          a  VCPU=5
          b  VCPU=5
          c  VCPU=5
          d  VCPU=5(step:3)
          e  VCPU=5(step:3)
        cn2  MEMORY_MB=1024
          v  VCPU=5(step:3)
          w  VCPU=5(step:3)
          x  VCPU=5
          y  VCPU=5
          z  VCPU=5
    """)
    with asked(two, prepared) as fleet:
        assert fleet.candidates(wants(15, Split(parts=5))) == [
            "a:VCPU=5 b:VCPU=5 c:VCPU=5",
            "x:VCPU=5 y:VCPU=5 z:VCPU=5",
        ]


def test_one_provider_gives_all_only_beside_what_other_groups_take(prepared: Path) -> None:
    """With one element, too, the sums of all groups count: cn1_a has six for both. Then two share
    the amount, although one could give it alone."""
    asking = question(
        groups={
            "": group("VCPU=5", split=(("VCPU", Split()),)),
            "_A": group("VCPU=2", required=items("FAST")),
        }
    )
    with asked(HOSTS, prepared) as fleet:
        assert fleet.candidates(asking) == ["cn1_a:VCPU=3 cn1_b:VCPU=4 | =cn1_a+cn1_b _A=cn1_a"]


def test_what_other_groups_take_is_left_out(prepared: Path) -> None:
    """The other group takes two of six, so all four of the other provider are needed."""
    asking = question(
        groups={
            "": group("VCPU=8", split=(("VCPU", Split()),)),
            "_A": group("VCPU=2", required=items("FAST")),
        }
    )
    with asked(HOSTS, prepared) as fleet:
        assert fleet.candidates(asking) == ["cn1_a:VCPU=6 cn1_b:VCPU=4 | =cn1_a+cn1_b _A=cn1_a"]


def test_relations_name_all_providers_of_a_split(prepared: Path) -> None:
    """A group that is apart from the split uses none of its providers."""
    three = world("""
        cn1       MEMORY_MB=1024
          a       VCPU=4
          b       VCPU=4
          c       VCPU=4
    """)
    asking = question(
        groups={
            "": group("VCPU=8", split=(("VCPU", Split()),)),
            "_A": group("VCPU=1"),
        },
        apart=(QuestionRelation(("", "_A"), "provider"),),
    )
    with asked(three, prepared) as fleet:
        assert fleet.candidates(asking) == [
            "a:VCPU=1 b:VCPU=4 c:VCPU=4 | =b+c _A=a",
            "a:VCPU=4 b:VCPU=1 c:VCPU=4 | =a+c _A=b",
            "a:VCPU=4 b:VCPU=4 c:VCPU=1 | =a+b _A=c",
        ]


def test_a_larger_set_may_be_needed_for_a_relation(prepared: Path) -> None:
    """v can give all by itself, but it is beside m; with a part of the host, the host is above all
    of them. So they are together, and every question says so."""
    host = world("""
        t1   CUSTOM_VF=3
          m  MEMORY_MB=4
          v  CUSTOM_VF=10
    """)
    asking = question(
        groups={
            "_B": group("MEMORY_MB=1"),
            "_X": group("CUSTOM_VF=8", split=(("CUSTOM_VF", Split()),)),
        },
        together=(QuestionRelation(("_X", "_B"), "subtree"),),
    )
    with asked(host, prepared) as fleet:
        assert fleet.candidates(asking) == [
            "m:MEMORY_MB=1 t1:CUSTOM_VF=1 v:CUSTOM_VF=7 | _B=m _X=t1+v"
        ]
        assert fleet.hosts(asking) == ["t1"]
        assert Counting(fleet.snapshot, Budget()).capacity([asking]).total().count == 1


def test_a_rolled_up_request_finds_its_first_candidates_at_once(prepared: Path) -> None:
    """Eight of sixty-four virtual functions have more sets than could ever be listed."""
    functions = "\n".join(f"  pf{number}  SRIOV_NET_VF=1" for number in range(64))
    nic = world(f"host  MEMORY_MB=1024\n{functions}")
    asking = question(
        groups={"": group("SRIOV_NET_VF=8", split=(("SRIOV_NET_VF", Split(parts=16)),))}
    )
    with asked(nic, prepared) as fleet:
        (first, second) = fleet.candidates(asking, wanted=2)
    assert first != second
    assert first.count("SRIOV_NET_VF=1") == 8
