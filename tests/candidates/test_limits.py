# SPDX-License-Identifier: Apache-2.0
"""How many candidates are returned, and which: limit, cap, generation strategy, randomisation; and
how little work that is.

The API leaves open which candidates are chosen, so these tests check subsets and counts. One rule
is berth's own: below 1.29, candidates that an old client cannot use are dropped before the cap is
applied, so a capped request does not come back empty if there is a usable candidate.

Source: spec/allocation-candidates.md 6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
from hypothesis import given, note, seed, settings
from hypothesis import strategies as st

from berth.candidates import assign, filter, walk
from berth.candidates.walk import distinct_choices_exist
from tests.answers import providers_of
from tests.brute_force import answer
from tests.candidates.engine import Stand
from tests.candidates.strategies import Dice, seeded
from tests.effort import SEED, scaled
from tests.queries import Query, parse_query, query_text
from tests.worlds import World, world

RANDOM = {"randomize_allocation_candidates": True}


def capped(most: int = -1, strategy: str = "depth-first") -> dict[str, Any]:
    """The settings of a service with a cap and a strategy."""
    return {
        "max_allocation_candidates": most,
        "allocation_candidates_generation_strategy": strategy,
    }


BREADTH_FIRST = capped(strategy="breadth-first")
#: Ways in which not all candidates are wanted, and two in which they are.
WAYS: tuple[dict[str, Any], ...] = ({}, capped(50), capped(50, "breadth-first"), RANDOM)
#: All combinations are tried, or the search walks.
IN_BOTH_WAYS = pytest.mark.parametrize("combinations", [1, 64])

#: Two trees, each of which can serve one group in three ways.
TWO_TREES = "".join(
    f"{n}\n" + "".join(f"  {n}_{p}  VGPU=1\n" for p in "abc") for n in ("one", "two")
)
#: The first device of one tree is taken, and another tree has another shape.
FOUR_TREES = """
    one
      one_a  VGPU=1
      one_b  VGPU=1
    two
      two_a  VGPU=1(used:1)
      two_b  VGPU=1
    three
      three_a  VGPU=1
      three_b  VGPU=1
    four
      four_a  VGPU=1
      four_b  VGPU=1
      four_c  VGPU=1
"""


def trees_of(standing: Any, text: str, **options: Any) -> list[str]:
    """The trees of the candidates of an answer, in their order."""
    response = standing.with_settings(**options).get(f"/allocation_candidates?{text}")
    uuids = [next(iter(each["allocations"])) for each in response.json["allocation_requests"]]
    return [standing.fleet.names[uuid].partition("_")[0] for uuid in uuids]


@pytest.mark.parametrize(("strategy", "due"), [("depth-first", [1, 3]), ("breadth-first", [2, 2])])
def test_a_capped_search_goes_deep_or_wide(stand: Stand, strategy: str, due: list[int]) -> None:
    """A cap of four takes 3 + 1 candidates of two trees depth first, 2 + 2 breadth first."""
    trees = trees_of(stand(TWO_TREES), "resources=VGPU:1", **capped(4, strategy))
    assert sorted(Counter(trees).values()) == due


@IN_BOTH_WAYS
def test_every_tree_comes_before_any_comes_again(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, combinations: int
) -> None:
    """With a cap or only a limit, which takes the first places of a tree; and one that is not
    reached leaves nothing out."""
    monkeypatch.setattr(assign, "ASSIGNMENTS_MAX", combinations)
    standing = stand(FOUR_TREES)
    for options, limit in ((capped(9, "breadth-first"), ""), ({}, "&limit=9")):
        trees = trees_of(standing, f"resources=VGPU:1{limit}", **options)
        assert (len(trees), {*trees[:4]}) == (8, {"one", "two", "three", "four"})
    tree = "resources=VGPU:1&limit=2&in_tree=<rp:four>"
    for options in ({}, BREADTH_FIRST):
        assert providers_of(standing.queried(tree, **options).candidates) == {"four_a", "four_b"}
        whole = answer(standing.fleet, parse_query("resources=VGPU:1", 39), 39)
        assert standing.queried("resources=VGPU:1", **options) == whole
        assert standing.queried("resources=VGPU:1&limit=10", **options) == whole


def test_breadth_first_gives_each_tree_all_of_its_candidates(stand: Stand) -> None:
    """A tree that is walked alone takes its demands in another order than in a block: group A has
    three devices in the first host and two in the second, which decides whether its demand comes
    before that of group B."""
    standing = stand("""
        one
          one0  VGPU=1  CUSTOM_X
          one1  VGPU=1  CUSTOM_X
          one2  VGPU=1
        two
          two0  VGPU=1  CUSTOM_X
          two1  VGPU=1  CUSTOM_X
          two2  VGPU=1(used:1)
    """)
    text = "resources_A=VGPU:1&resources_B=VGPU:1&required_B=CUSTOM_X&group_policy=isolate"
    got = standing.queried(f"{text}&limit=50", **BREADTH_FIRST)
    assert got == answer(standing.fleet, parse_query(text, 39), 39)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_hosts_are_found_in_every_window_of_a_block(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Hosts of one shape are filtered in windows of some rows; full hosts in any window are left
    out."""
    for name in ("ROWS_MAX", "WINDOW_MIN", "SHARED_WINDOW_MIN"):
        monkeypatch.setattr(filter, name, rows)
    standing = stand(
        "\n".join(
            f"host{number}\n"
            f"  a{number}  VCPU=8(used:{8 if number in (0, 1, 4) else 0})\n"
            f"  b{number}  VCPU=8(used:{8 if number in (0, 1, 5) else 0})\n"
            f"flat{number}  VCPU=8(used:{8 * (number != 5)})"
            for number in range(8)
        )
    )
    whole = answer(standing.fleet, parse_query("resources=VCPU:1", 39), 39)
    assert standing.queried("resources=VCPU:1") == whole
    for limit in (1, 2, 8):
        some = standing.queried(f"resources=VCPU:1&limit={limit}").candidates
        assert {*some} <= {*whole.candidates}
        assert len(some) == limit


def test_randomisation_gives_every_candidate_its_turn(stand: Stand) -> None:
    """Of several hosts, and of several places in one; and what it need not choose from, it
    shuffles."""
    for drawing, asked in (
        ("\n".join(f"host{number}  VCPU=8" for number in range(8)), "VCPU:1"),
        (TWO_TREES, "VGPU:1"),
    ):
        standing = stand(drawing)
        text = f"resources={asked}"
        whole = standing.queried(text).candidates
        for limit in (1, 3):
            picks = [
                tuple(standing.queried(f"{text}&limit={limit}", **RANDOM).candidates)
                for _ in range(80)
            ]
            assert {len(pick) for pick in picks} == {limit}
            assert {each for pick in picks for each in pick} == {*whole}
        client = standing.with_settings(**RANDOM)
        assert standing.queried(f"{text}&limit=100", **RANDOM).candidates == whole
        assert len({client.get(f"/allocation_candidates?{text}").body for _ in range(20)}) > 1


@IN_BOTH_WAYS
def test_old_clients_lose_nothing_to_the_cap(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, combinations: int
) -> None:
    """Below 1.29, a cap of one still returns the one candidate that needs no second provider."""
    monkeypatch.setattr(assign, "ASSIGNMENTS_MAX", combinations - 1)
    standing = stand("""
        nested    VCPU=4
          child1  VGPU=1
          child2  VGPU=1
        flat      VCPU=4  VGPU=1
    """)
    got = standing.queried("resources=VCPU:1,VGPU:1", 28, **capped(1))
    assert got.candidates == ["flat:VCPU=1,VGPU=1"]


def test_a_pool_that_no_candidate_names_is_not_described(stand: Stand) -> None:
    """With a limit, only one of several similar hosts is returned, and only its pool is
    described."""
    standing = stand("""
        host1  VCPU=8  @A
        host2  VCPU=8  @B
        pool1  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
        pool2  DISK_GB=200  MISC_SHARES_VIA_AGGREGATE  @B
    """)
    got = standing.queried("resources=VCPU:1,DISK_GB:10&limit=1")
    assert len(got.candidates) == 1
    assert got.summaries.keys() in ({"host1", "pool1"}, {"host2", "pool2"})


@contextmanager
def choices_tried() -> Iterator[list[int]]:
    """The number of choices that walks make in the block."""
    tried: list[int] = []
    take = walk.Path.take

    def counted(self, depth, choice, level, alive):  # type: ignore[no-untyped-def]
        tried.append(choice)
        assert len(tried) < 60_000, "the walk explodes"
        return take(self, depth, choice, level, alive)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(walk.Path, "take", counted)
        yield tried


def devices(count: int, what: str, *, first: int = 0) -> str:
    """Identical children of a host."""
    return "\n".join(f"  device{number}  {what}" for number in range(first, first + count))


def groups(count: int, what: str, prefix: str, more: str = "") -> str:
    """Identical suffixed groups; `more` has a placeholder for the suffix."""
    return "&".join(
        f"resources_{prefix}{number}={what}" + more.format(f"_{prefix}{number}")
        for number in range(count)
    )


def subtree(of_a: int, of_b: int) -> str:
    """Groups of two kinds that are in one subtree."""
    named = ",".join([*(f"_A{n}" for n in range(of_a)), *(f"_B{n}" for n in range(of_b))])
    return (
        f"required_N=HW_NUMA_ROOT&in_tree_N=<rp:host>&{groups(of_a, 'VGPU:1', 'A')}"
        f"&{groups(of_b, 'FPGA:1,VGPU:1', 'B')}&group_policy=isolate&same_subtree=_N,{named}"
    )


EIGHT = "host\n" + devices(8, "VGPU=1  FPGA=1")
TWO_SIDES = (
    "host\n  left  HW_NUMA_ROOT\n"
    + "\n".join(f"    left{n}  VGPU=1  FPGA=1" for n in range(12))
    + "\n  right  HW_NUMA_ROOT\n"
    + "\n".join(f"    right{n}  VGPU=1" for n in range(12))
)
#: Requests of so many assignments that a walk that tried them all would not end, and the candidates
#: with a limit of 20.
EXPLOSIVE = {
    "two asks for the same devices": (
        EIGHT,
        f"{groups(8, 'VGPU:1', 'A')}&{groups(8, 'VGPU:1,FPGA:1', 'B')}&group_policy=none",
        0,
    ),
    "two asks for the same devices, isolated": (
        EIGHT,
        f"{groups(8, 'VGPU:1', 'A')}&{groups(8, 'FPGA:1', 'B')}&group_policy=isolate",
        0,
    ),
    "a narrow ask among wide ones, isolated": (
        "host\n" + devices(9, "VGPU=1") + "\n" + devices(3, "VGPU=1  CUSTOM_X", first=9),
        groups(8, "VGPU:1", "A", "&required{0}=!CUSTOM_X")
        + "&"
        + groups(4, "VGPU:1", "B", "&required{0}=CUSTOM_X")
        + "&group_policy=isolate",
        0,
    ),
    "amounts that leave a rest": (
        "host\n" + devices(12, "VCPU=4"),
        f"{groups(11, 'VCPU:3', 'A')}&{groups(3, 'VCPU:2', 'B')}&group_policy=none",
        0,
    ),
    "a subtree whose second half is elsewhere": (TWO_SIDES, subtree(7, 6), 0),
    "a subtree with just enough": (TWO_SIDES, subtree(6, 6), 20),
    "traits that nobody brings together": (
        "host\n"
        + devices(8, "VCPU=4  MEMORY_MB=4  DISK_GB=4  VGPU=4  FPGA=4  PCPU=4  SRIOV_NET_VF=4")
        + "\n  one  IPV4_ADDRESS=4  CUSTOM_X\n  two  IPV4_ADDRESS=4  CUSTOM_Y",
        "resources=IPV4_ADDRESS:1,VCPU:1,MEMORY_MB:1,DISK_GB:1,VGPU:1,FPGA:1,PCPU:1,SRIOV_NET_VF:1"
        "&required=CUSTOM_X,CUSTOM_Y",
        0,
    ),
    "sixty groups on as many devices": (
        "host\n" + devices(60, "VGPU=1"),
        groups(60, "VGPU:1", "A") + "&group_policy=isolate",
        20,
    ),
    "sixteen of sixty-four devices": (
        "host\n" + devices(64, "VGPU=1"),
        groups(16, "VGPU:1", "A") + "&group_policy=none",
        20,
    ),
    "twelve of eleven devices": (
        "host\n" + devices(11, "VGPU=4"),
        groups(12, "VGPU:1", "A") + "&group_policy=isolate",
        0,
    ),
}


@pytest.mark.parametrize("story", EXPLOSIVE)
def test_a_walk_does_not_explode(stand: Stand, story: str) -> None:
    """A limit bounds the work, whether there is a candidate or not, in whichever way."""
    drawing, text, due = EXPLOSIVE[story]
    standing = stand(drawing)
    for options in WAYS:
        with choices_tried():
            candidates = standing.queried(f"{text}&limit=20", **options).candidates
        assert len({*candidates}) == due


def test_a_rolled_up_request_finds_its_first_candidates_at_once(stand: Stand) -> None:
    """Eight of sixty-four virtual functions have more sets than could ever be listed."""
    nic = "host  MEMORY_MB=1024\n" + "\n".join(f"  pf{n}  SRIOV_NET_VF=1" for n in range(64))
    split = {"SRIOV_NET_VF": {"parts": 16}}
    request = {"groups": {"": {"resources": {"SRIOV_NET_VF": 8}, "split": split}}}
    (first, second) = stand(nic).candidates(request, limit=2)
    assert first != second
    assert first.count("SRIOV_NET_VF=1") == 8


def tight_question(dice: Dice) -> tuple[World, Query]:
    """Few devices and many groups, so that the rest decides, beside identical hosts."""
    lines = ["spare  CUSTOM_X"]
    kinds = [
        dice.one(("VGPU", "VGPU VCPU", "VCPU", "VGPU VCPU CUSTOM_X")).split()
        for _ in range(dice.number(1, 4))
    ]
    depths = [dice.number(1, 2) if number else 1 for number in range(len(kinds))]
    shared = dice.half()
    for host in range(dice.number(1, 3)):
        lines.append(f"host{host}  CUSTOM_X  @A" if shared else f"host{host}")
        for number, kind in enumerate(kinds):
            words = (w if w == "CUSTOM_X" else f"{w}={dice.number(1, 4)}" for w in kind)
            lines.append(f"{'  ' * depths[number]}host{host}_{number}  {'  '.join(words)}")
    if shared:
        lines.append(f"pool  VGPU={dice.number(1, 3)}  MISC_SHARES_VIA_AGGREGATE  @A")
    asked = []
    numbers = range(1, dice.number(2, 4) + 1)
    for number in numbers:
        amounts = dice.one(("VGPU:1", "VGPU:1", "VGPU:2", "VCPU:1", "VCPU:2,VGPU:1"))
        asked.append(f"resources_{number}={amounts}")
        if dice.seldom():
            asked.append(f"required_{number}={dice.one(('CUSTOM_X', '!CUSTOM_X'))}")
    if dice.half():
        asked.append("resources=VCPU:1" + ("&required=CUSTOM_X" if dice.half() else ""))
    asked.append(f"group_policy={dice.one(('none', 'isolate'))}")
    if dice.half():
        named = dice.some(numbers, 2, len(numbers))
        asked.append("same_subtree=" + ",".join(f"_{number}" for number in sorted(named)))
    return world("\n".join(lines), traits="CUSTOM_X"), parse_query("&".join(asked), 39)


@seed(SEED)
@settings(max_examples=scaled(60))
@given(seeded(tight_question))
def test_looking_ahead_loses_no_candidate(stand: Stand, asked: tuple[World, Query]) -> None:
    """However little capacity is left, and in any order: every candidate is found once, in both
    enumerators."""
    fleet, query = asked
    standing, text = stand(fleet), query_text(query)
    standing.note()
    note(text)
    full = Counter(answer(fleet, query, 39).candidates)
    for combinations in (64, 0):
        standing.forget()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(assign, "ASSIGNMENTS_MAX", combinations)
            for options in WAYS:
                got = Counter(standing.queried(text, **options).candidates)
                most = 50 if "max_allocation_candidates" in options else full.total()
                assert got <= full
                assert got.total() == min(full.total(), most)


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
