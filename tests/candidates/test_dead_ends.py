# SPDX-License-Identifier: Apache-2.0
"""Pruning and remembered dead ends never lose a candidate.

In each world, a dead end and a solution differ in only one thing. Which of them comes first depends
on the order of the choices, so each world is searched in several orders.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from berth.candidates import assignments
from berth.candidates.question import QuestionRelation
from berth.candidates.request import SearchSettings
from tests.brute_force import answer
from tests.candidates.engine import ask, snapshot_of
from tests.candidates.questions import asked, group, items, question
from tests.queries import parse_query
from tests.worlds import world

STORIES = {
    # Of 6 and 7, one less is 5 and 7, into which two of 4 and two of 2 do not go; or 6 and 6.
    "what was taken of each device": (
        """
        host
          six    VGPU=6
          seven  VGPU=7
        """,
        "resources_A=VGPU:1&resources_B=VGPU:4&resources_C=VGPU:4&resources_D=VGPU:2"
        "&resources_E=VGPU:2&group_policy=none",
    ),
    # The host itself is needed by C or D. So B has to be `under`, which only `right` is above.
    "where a subtree has begun": (
        """
        host       VGPU=1  CUSTOM_B  CUSTOM_CD
          left     PCPU=1
          right    PCPU=1
            under  VGPU=1  CUSTOM_B
          spare    VGPU=1  CUSTOM_CD
        """,
        "resources_A=PCPU:1&resources_B=VGPU:1&required_B=CUSTOM_B"
        "&resources_C=VGPU:1&required_C=CUSTOM_CD&resources_D=VGPU:1&required_D=CUSTOM_CD"
        "&group_policy=none&same_subtree=_A,_B",
    ),
    # The first host has PCPU for both in `a` and nowhere for the rest; the second is the reverse.
    "which of several hosts are left": (
        """
        first
          a1  PCPU=2  CUSTOM_A
          b1  PCPU=1
          c1  VGPU=5
          d1  VGPU=7
        second
          a2  PCPU=1  CUSTOM_A
          b2  PCPU=2
          c2  VGPU=6
          d2  VGPU=6
        """,
        "resources_A=PCPU:1&resources_B=PCPU:1&resources_C=VGPU:4&resources_D=VGPU:4"
        "&resources_E=VGPU:2&resources_F=VGPU:2&group_policy=none",
    ),
    "which of several hosts are left, the other way round": (
        """
        first
          a1  PCPU=1  CUSTOM_A
          b1  PCPU=2
          c1  VGPU=5
          d1  VGPU=7
        second
          a2  PCPU=2  CUSTOM_A
          b2  PCPU=1
          c2  VGPU=6
          d2  VGPU=6
        """,
        "resources_A=PCPU:1&resources_B=PCPU:1&resources_C=VGPU:4&resources_D=VGPU:4"
        "&resources_E=VGPU:2&resources_F=VGPU:2&group_policy=none",
    ),
    # `ram` with the trait is needed by A or B. So the trait has to come with the VCPU.
    "which traits are there already": (
        """
        host
          plain     VCPU=1
          special   VCPU=1       CUSTOM_X
          ram0      MEMORY_MB=1
          ram1      MEMORY_MB=1  CUSTOM_X  CUSTOM_AB
          ram2      MEMORY_MB=1  CUSTOM_AB
          disk0     DISK_GB=1
          disk1     DISK_GB=1
        """,
        "resources=VCPU:1,MEMORY_MB:1,DISK_GB:1&required=CUSTOM_X"
        "&resources_A=MEMORY_MB:1&required_A=CUSTOM_AB"
        "&resources_B=MEMORY_MB:1&required_B=CUSTOM_AB&group_policy=none",
    ),
    # A needs the one of the two that B may have as well: together they have room.
    "that groups ask for the same in several ways": (
        """
        host
          one    VGPU=1  CUSTOM_X
          other  VGPU=1
        """,
        "resources_A=VGPU:1&required_A=CUSTOM_X&resources_B=VGPU:1&group_policy=none",
    ),
    # Each device does for one of the groups only, in each host for another.
    "that a device does for one group here and for another there": (
        """
        first
          a1  VGPU=3
          b1  VGPU=1
        second
          a2  VGPU=1
          b2  VGPU=3
        third
          a3  VGPU=1(used:1)
          b3  VGPU=4
        """,
        "resources_A=VGPU:1&resources_B=VGPU:2&resources_C=VGPU:1&group_policy=none",
    ),
}


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("dice", [None, *range(8)])
def test_no_candidate_is_lost_because_two_situations_look_alike(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, story: str, dice: int | None
) -> None:
    """A walk finds all candidates, in the order of the nodes and in random orders."""
    monkeypatch.setattr(assignments, "ASSIGNMENTS_MAX", 0)
    drawing, text = STORIES[story]
    fleet, query = world(drawing), parse_query(text, 39)
    due = answer(fleet, query, 39)
    assert due.candidates, "there is something to lose"
    chosen = SearchSettings() if dice is None else SearchSettings(randomize=True)
    with snapshot_of(fleet, prepared) as snapshot:
        assert ask(snapshot, fleet, query, 39, settings=chosen, seed=dice or 0) == due


@pytest.mark.parametrize("rooms", [(2, 1), (1, 2)])
def test_where_groups_are_that_others_are_apart_from(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, rooms: tuple[int, int]
) -> None:
    """A on one side leaves the other side to B and C, and only one side has room for both."""
    monkeypatch.setattr(assignments, "ASSIGNMENTS_MAX", 0)
    left, right = rooms
    sides = world(f"""
        host
          left    CUSTOM_SIDE
            cpu0  VCPU=1
            gpu0  VGPU={left}   CUSTOM_X
          right   CUSTOM_SIDE
            cpu1  VCPU=1
            gpu1  VGPU={right}  CUSTOM_X
    """)
    asking = question(
        groups={
            "_A": group("VCPU=1"),
            "_B": group("VGPU=1"),
            "_C": group("VGPU=1", required=items("CUSTOM_X")),
        },
        apart=(
            QuestionRelation(("_A", "_B"), "CUSTOM_SIDE"),
            QuestionRelation(("_A", "_C"), "CUSTOM_SIDE"),
        ),
    )
    roomy, other = ("gpu0", "cpu1") if left > right else ("gpu1", "cpu0")
    with asked(sides, prepared) as fleet:
        assert fleet.candidates(asking) == [
            f"{other}:VCPU=1 {roomy}:VGPU=2 | _A={other} _B={roomy} _C={roomy}"
        ]


def test_classes_of_one_group_need_no_places_of_their_own(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three groups are apart on three providers, one of which gives both classes of a group."""
    monkeypatch.setattr(assignments, "ASSIGNMENTS_MAX", 0)
    three = world("""
        host
          both  VCPU=1  DISK_GB=1
          one   VCPU=1
          two   VCPU=1
    """)
    asking = question(
        groups={
            "": group("VCPU=1 DISK_GB=1"),
            "_A": group("VCPU=1"),
            "_B": group("VCPU=1"),
        },
        apart=(QuestionRelation(("", "_A", "_B"), "provider"),),
    )
    with asked(three, prepared) as fleet:
        assert fleet.candidates(asking) == [
            "both:DISK_GB=1,VCPU=1 one:VCPU=1 two:VCPU=1 | =both _A=one _B=two",
            "both:DISK_GB=1,VCPU=1 one:VCPU=1 two:VCPU=1 | =both _A=two _B=one",
        ]
