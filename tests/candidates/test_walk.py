# SPDX-License-Identifier: Apache-2.0
"""The walk through the demands: pruning loses no candidate, and the work does not explode.

Work is counted in choices (`Path.take`), not in seconds. Each of these requests has so many
assignments that a walk that tried them all would not end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, note, seed, settings
from hypothesis import strategies as st

from berth.candidates import assignments
from berth.candidates import path as path_module
from berth.candidates.path import distinct_choices_exist
from berth.candidates.request import SearchSettings
from tests.brute_force import answer
from tests.candidates.engine import ask, snapshot_of
from tests.effort import SEED, repeat_with, scaled
from tests.queries import Query, parse_query, query_text
from tests.worlds import World, world

#: Ways in which not all candidates are wanted, and one in which they are.
WAYS = (
    SearchSettings(),
    SearchSettings(candidates_max=50),
    SearchSettings(candidates_max=50, strategy="breadth-first"),
    SearchSettings(randomize=True),
)


@contextmanager
def choices_tried() -> Iterator[list[int]]:
    """The number of choices that walks make in the block."""
    tried: list[int] = []
    take = path_module.Path.take

    def counted(self, depth, choice, level, alive):  # type: ignore[no-untyped-def]
        tried.append(choice)
        assert len(tried) < 100_000, "the walk explodes"
        return take(self, depth, choice, level, alive)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(path_module.Path, "take", counted)
        yield tried


def devices(count: int, what: str, *, first: int = 0) -> str:
    """Identical children of a host."""
    return "\n".join(f"  device{number}  {what}" for number in range(first, first + count))


def groups(count: int, what: str, *, prefix: str, more: str = "") -> str:
    """Identical suffixed groups; `more` has a placeholder for the suffix."""
    return "&".join(
        f"resources_{prefix}{number}={what}" + more.format(f"_{prefix}{number}")
        for number in range(count)
    )


def named(prefix: str, count: int) -> str:
    """The suffixes of `groups`."""
    return ",".join(f"_{prefix}{number}" for number in range(count))


EIGHT = "host\n" + devices(8, "VGPU=1  FPGA=1")
TWO_SIDES = (
    "host\n  left  HW_NUMA_ROOT\n"
    + "\n".join(f"    left{n}  VGPU=1  FPGA=1" for n in range(12))
    + "\n  right  HW_NUMA_ROOT\n"
    + "\n".join(f"    right{n}  VGPU=1" for n in range(12))
)
CELLS = "host\n" + devices(12, "VCPU=4")

EXPLOSIVE = {
    "two asks for the same devices": (
        EIGHT,
        groups(8, "VGPU:1", prefix="A")
        + "&"
        + groups(8, "VGPU:1,FPGA:1", prefix="B")
        + "&group_policy=none",
        0,
    ),
    "two asks for the same devices, isolated": (
        EIGHT,
        groups(8, "VGPU:1", prefix="A")
        + "&"
        + groups(8, "FPGA:1", prefix="B")
        + "&group_policy=isolate",
        0,
    ),
    "a narrow ask among wide ones, isolated": (
        "host\n" + devices(9, "VGPU=1") + "\n" + devices(3, "VGPU=1  CUSTOM_X", first=9),
        groups(8, "VGPU:1", prefix="A", more="&required{0}=!CUSTOM_X")
        + "&"
        + groups(4, "VGPU:1", prefix="B", more="&required{0}=CUSTOM_X")
        + "&group_policy=isolate",
        0,
    ),
    "amounts that leave a rest": (
        CELLS,
        groups(11, "VCPU:3", prefix="A")
        + "&"
        + groups(3, "VCPU:2", prefix="B")
        + "&group_policy=none",
        0,
    ),
    "a subtree whose second half is elsewhere": (
        TWO_SIDES,
        "required_N=HW_NUMA_ROOT&in_tree_N=<rp:host>&"
        + groups(7, "VGPU:1", prefix="A")
        + "&"
        + groups(6, "FPGA:1,VGPU:1", prefix="B")
        + "&group_policy=isolate&same_subtree=_N,"
        + named("A", 7)
        + ","
        + named("B", 6),
        0,
    ),
    "a subtree with just enough": (
        TWO_SIDES,
        "required_N=HW_NUMA_ROOT&in_tree_N=<rp:host>&"
        + groups(6, "VGPU:1", prefix="A")
        + "&"
        + groups(6, "FPGA:1,VGPU:1", prefix="B")
        + "&group_policy=isolate&same_subtree=_N,"
        + named("A", 6)
        + ","
        + named("B", 6),
        20,
    ),
    "traits that nobody brings together": (
        "host\n"
        + devices(8, "VCPU=4  MEMORY_MB=4  DISK_GB=4  VGPU=4  FPGA=4  PCPU=4  SRIOV_NET_VF=4")
        + "\n  one  IPV4_ADDRESS=4  CUSTOM_X\n  two  IPV4_ADDRESS=4  CUSTOM_Y",
        "resources=IPV4_ADDRESS:1,VCPU:1,MEMORY_MB:1,DISK_GB:1,VGPU:1,FPGA:1,PCPU:1,SRIOV_NET_VF:1"
        "&required=CUSTOM_X,CUSTOM_Y",
        0,
    ),
    "a hundred groups on as many devices": (
        "host\n" + devices(100, "VGPU=1"),
        groups(100, "VGPU:1", prefix="A") + "&group_policy=isolate",
        20,
    ),
}


@pytest.mark.parametrize("chosen", WAYS, ids=str)
@pytest.mark.parametrize("story", EXPLOSIVE)
def test_a_walk_does_not_explode(prepared: Path, story: str, chosen: SearchSettings) -> None:
    """A limit bounds the work, whether there is a candidate or not."""
    drawing, text, due = EXPLOSIVE[story]
    fleet = world(drawing)
    query = parse_query(f"{text}&limit=20", 39)
    with snapshot_of(fleet, prepared) as snapshot, choices_tried() as tried:
        candidates = ask(snapshot, fleet, query, 39, settings=chosen)
    assert len(set(candidates.candidates)) == due
    assert len(tried) < 60_000


@st.composite
def tight_questions(draw: st.DrawFn) -> tuple[World, Query]:
    """Few devices and many groups, so that the rest decides, beside identical hosts."""
    lines = ["spare  CUSTOM_X"]
    count = draw(st.integers(1, 4))
    kinds = [
        draw(st.sampled_from(("VGPU", "VGPU VCPU", "VCPU", "VGPU VCPU CUSTOM_X"))).split()
        for _ in range(count)
    ]
    depths = [draw(st.integers(1, 2)) if number else 1 for number in range(count)]
    shared = draw(st.booleans())
    for host in range(draw(st.integers(1, 3))):
        lines.append(f"host{host}  CUSTOM_X  @A" if shared else f"host{host}")
        for number, kind in enumerate(kinds):
            stocks = "  ".join(
                word if word == "CUSTOM_X" else f"{word}={draw(st.integers(1, 4))}" for word in kind
            )
            lines.append(f"{'  ' * depths[number]}host{host}_{number}  {stocks}")
    if shared:
        lines.append(f"pool  VGPU={draw(st.integers(1, 3))}  MISC_SHARES_VIA_AGGREGATE  @A")
    asked = []
    numbers = range(1, draw(st.integers(2, 4)) + 1)
    for number in numbers:
        resources = draw(st.sampled_from(("VGPU:1", "VGPU:1", "VGPU:2", "VCPU:1", "VCPU:2,VGPU:1")))
        asked.append(f"resources_{number}={resources}")
        if draw(st.integers(0, 3)) == 0:
            asked.append(f"required_{number}={draw(st.sampled_from(('CUSTOM_X', '!CUSTOM_X')))}")
    if draw(st.booleans()):
        asked.append("resources=VCPU:1")
        if draw(st.booleans()):
            asked.append("required=CUSTOM_X")
    asked.append(f"group_policy={draw(st.sampled_from(('none', 'isolate')))}")
    if draw(st.booleans()):
        some = draw(st.sets(st.sampled_from(list(numbers)), min_size=2))
        asked.append("same_subtree=" + ",".join(f"_{number}" for number in sorted(some)))
    return world("\n".join(lines)), parse_query("&".join(asked), 39)


@seed(SEED)
@settings(max_examples=scaled(40))
@given(tight_questions(), st.sampled_from(WAYS), st.integers(0, 9), st.booleans())
def test_looking_ahead_loses_no_candidate(
    prepared: Path,
    asked: tuple[World, Query],
    chosen: SearchSettings,
    dice: int,
    walked: bool,
) -> None:
    """However little capacity is left, and in any order: every candidate is found once, in both
    enumerators."""
    fleet, query = asked
    note(f"{fleet}\n{query_text(query)}\n{chosen} rng={dice} {walked=}; {repeat_with()}")
    full = Counter(answer(fleet, query, 39).candidates)
    with snapshot_of(fleet, prepared) as snapshot, pytest.MonkeyPatch.context() as patched:
        if walked:
            patched.setattr(assignments, "ASSIGNMENTS_MAX", 0)
        candidates = Counter(ask(snapshot, fleet, query, 39, settings=chosen, seed=dice).candidates)
    assert candidates <= full
    capped = chosen.candidates_max >= 0
    assert candidates.total() == min(full.total(), 50) if capped else candidates == full


def test_breadth_first_gives_each_tree_all_of_its_candidates(prepared: Path) -> None:
    """A tree that is walked alone takes its demands in another order than in a block.

    Group A has three devices in the first host and two in the second, which decides whether its
    demand comes before that of group B.
    """
    fleet = world("""
        one
          one0  VGPU=1  CUSTOM_X
          one1  VGPU=1  CUSTOM_X
          one2  VGPU=1
        two
          two0  VGPU=1  CUSTOM_X
          two1  VGPU=1  CUSTOM_X
          two2  VGPU=1(used:1)
    """)
    query = parse_query(
        "resources_A=VGPU:1&resources_B=VGPU:1&required_B=CUSTOM_X&group_policy=isolate&limit=50",
        39,
    )
    chosen = SearchSettings(strategy="breadth-first")
    with snapshot_of(fleet, prepared) as snapshot:
        candidates = ask(snapshot, fleet, query, 39, settings=chosen)
    assert candidates == answer(fleet, query, 39)


@given(st.lists(st.tuples(st.integers(0, 31), st.integers(0, 3)), max_size=4))
def test_a_matching_is_found_when_there_is_one(wanted: list[tuple[int, int]]) -> None:
    """Compared with trying all matchings."""
    domains = [
        [bit for bit in range(5) if domain >> bit & 1]
        for domain, count in wanted
        for _ in range(count)
    ]
    if len(domains) > 5:
        assert not distinct_choices_exist(wanted)
        return
    due = any(len(set(choices)) == len(domains) for choices in product(*domains))
    assert distinct_choices_exist(wanted) == due
