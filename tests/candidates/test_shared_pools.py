# SPDX-License-Identifier: Apache-2.0
"""Calls that choose at once from one pool get what the consumers of one call would (spec/beyond.md
5.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from berth.candidates import Budget, place
from berth.candidates.conditions import MembershipTest, TraitTest
from berth.candidates.order import HOST, Order, Preference, Strategy
from berth.candidates.place import Chosen, SharedPools, choose, choose_from
from berth.candidates.place.bounds import Limits
from berth.candidates.place.pool import Amounts, Pool
from berth.candidates.plan import Plan
from berth.candidates.ranking import Ranked
from berth.candidates.render_ranked import candidate_texts
from berth.candidates.resolve import resolve_question
from berth.index.scenario import with_usage
from berth.index.snapshot import Snapshot
from tests.candidates.engine import question_of, snapshot_of
from tests.worlds import world

#: Trees with several candidates each, hosts that are served by a pool, and plain ones.
FLEET = world("""
    cn1       MEMORY_MB=64(used:8)  @A
      numa0   VCPU=6(used:1)
      numa1   VCPU=5
    cn2       VCPU=7(used:2)  MEMORY_MB=48  HW_NUMA_ROOT
    cn3       VCPU=3  MEMORY_MB=96
    disks     DISK_GB=40  MISC_SHARES_VIA_AGGREGATE  @A
    cn4       VCPU=9(used:3)  MEMORY_MB=32  DISK_GB=20
""")
GROUPS = {
    "flat": {"": {"resources": {"VCPU": 1, "MEMORY_MB": 8}}},
    "shared": {"": {"resources": {"VCPU": 1, "DISK_GB": 3}}},
    "two groups": {"_A": {"resources": {"VCPU": 1}}, "_B": {"resources": {"VCPU": 2}}},
}
COUNT = 7
SPREAD = Order("spread", seed=5)
PACK = Order("pack", seed=5)


@contextmanager
def asked(prepared: Path, groups: str) -> Iterator[tuple[Snapshot, Plan]]:
    """The fleet, and a request."""
    with snapshot_of(FLEET, prepared) as snapshot:
        yield snapshot, plan_of(snapshot, groups)


def plan_of(snapshot: Snapshot, groups: str) -> Plan:
    """The plan of a request."""
    question = question_of({"groups": GROUPS[groups]}, snapshot)
    return resolve_question(snapshot, question)


def texts(snapshot: Snapshot, plan: Plan, order: Order, ranked: Ranked) -> Sequence[bytes]:
    """The candidates as they are shown, with their scores."""
    return candidate_texts(snapshot, plan, order, ranked, Budget())


def next_from(
    pools: SharedPools,
    count: int = 1,
    limits: Limits | None = None,
    *,
    question: str = "question",
) -> Chosen | None:
    """What the next call gets."""
    shared = pools.chosen(question, count, limits or Limits(), Budget())
    if shared is None:
        return None
    pools.note(shared[1].taken)
    return shared[1]


def search(
    pools: SharedPools, question: str, fleet: Snapshot, plan: Plan, order: Order = SPREAD
) -> Chosen:
    """What a call gets from a pool of its own, which it then offers to the next."""
    pool = Pool(fleet, plan, order, Budget())
    chosen = choose_from(pool, 1, Limits(), Budget())
    assert chosen is not None
    pools.keep(question, pool)
    pools.note(chosen.taken)
    return chosen


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("by", ["any", "spread", "pack", "random"])
def test_calls_after_each_other_get_what_one_call_gets(
    prepared: Path, groups: str, by: Strategy
) -> None:
    """The same candidates, and the same scores, as if each had searched again."""
    with asked(prepared, groups) as (snapshot, plan):
        order = Order(
            by, weight=2, prefer=(Preference(3.5, HOST, TraitTest(), MembershipTest()),), seed=5
        )
        pools = SharedPools()
        pools.keep("question", Pool(snapshot, plan, order, Budget()))
        pools.note({})
        fleet = snapshot
        for _ in range(COUNT):
            alone = choose(fleet, plan, order, 1, Limits(), Budget())
            mine = next_from(pools)
            assert (mine is None) == (not isinstance(alone, Chosen))
            if mine is None or not isinstance(alone, Chosen):
                break
            assert texts(fleet, plan, order, mine.ranked) == texts(fleet, plan, order, alone.ranked)
            fleet = with_usage(fleet, mine.taken)


def test_what_others_take_counts(prepared: Path) -> None:
    """Though they chose from another pool: a host that they fill is no longer the best."""
    with asked(prepared, "flat") as (snapshot, plan):
        order = Order("spread", seed=5)
        pools = SharedPools()
        pools.keep("question", Pool(snapshot, plan, order, Budget()))
        pools.note({})
        first = choose(snapshot, plan, order, 1, Limits(), Budget())
        assert isinstance(first, Chosen)
        full: Amounts = {key: amount * 3 for key, amount in first.taken.items()}
        pools.note(full)
        mine = next_from(pools)
        alone = choose(with_usage(snapshot, full), plan, order, 1, Limits(), Budget())
        assert mine is not None and isinstance(alone, Chosen)
        assert mine.taken == alone.taken
        assert mine.taken.keys().isdisjoint(first.taken)


def test_the_limits_of_a_call_are_its_own(prepared: Path) -> None:
    """One of each host in each of two calls; what has too few is forgotten."""
    with asked(prepared, "flat") as (snapshot, plan):
        pools = SharedPools()
        pools.keep("question", Pool(snapshot, plan, Order("pack", seed=5), Budget()))
        pools.note({})
        limits = Limits({"host": 1})
        for _ in range(2):
            mine = next_from(pools, 3, limits)
            assert mine is not None
            assert len({host for host, _ in mine.taken}) >= 3
        assert next_from(pools, 5, limits) is None
        assert next_from(pools) is None


def test_the_time_of_a_call_is_its_own(prepared: Path) -> None:
    """The next call chooses from the pool of one whose time is over."""
    now = [0.0]
    with asked(prepared, "flat") as (snapshot, plan):
        pools = SharedPools()
        pools.keep("question", Pool(snapshot, plan, PACK, Budget(lambda: now[0], seconds=1)))
        pools.note({})
        now[0] = 2.0
        assert next_from(pools, 2, Limits({"host": 1})) is not None


@pytest.mark.parametrize(
    ("bound", "most"),
    [
        ("_POOLS_MAX", 1),
        ("_POOLS_MAX", 2),
        # "flat" and "shared" are kept together; "two groups" is kept alone, or not at all.
        ("CANDIDATES_MAX", 9),
        ("CANDIDATES_MAX", 6),
    ],
)
# Packing shows what counts twice, because the next call scores the same host again; spreading
# shows what does not count, because a host that is used looks empty.
@pytest.mark.parametrize("order", [SPREAD, PACK], ids=["spread", "pack"])
def test_what_was_taken_counts_once_after_pools_were_dropped(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int, order: Order
) -> None:
    """Several questions in turn: each call gets what it would if it had searched."""
    monkeypatch.setattr(place, bound, most)
    with snapshot_of(FLEET, prepared) as snapshot:
        plans = {groups: plan_of(snapshot, groups) for groups in GROUPS}
        sizes = [len(Pool(snapshot, plan, order, Budget()).fits) for plan in plans.values()]
        assert sizes == [5, 3, 7]
        pools = SharedPools()
        fleet = snapshot
        turns = "flat, flat, shared, flat, two groups, two groups, flat, shared, shared, flat, flat"
        for groups in turns.split(", "):
            plan = plans[groups]
            alone = choose(fleet, plan, order, 1, Limits(), Budget())
            mine = next_from(pools, question=groups) or search(pools, groups, fleet, plan, order)
            assert isinstance(alone, Chosen)
            assert mine.taken == alone.taken
            assert texts(fleet, plan, order, mine.ranked) == texts(fleet, plan, order, alone.ranked)
            fleet = with_usage(fleet, mine.taken)


@pytest.mark.parametrize(("bound", "most"), [("_POOLS_MAX", 2), ("CANDIDATES_MAX", 10)])
def test_few_pools_are_kept(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    """However many questions there are, and with so many candidates together; the pool of the last
    one is kept, unless it has too many alone."""
    monkeypatch.setattr(place, bound, most)
    with asked(prepared, "flat") as (snapshot, plan):
        pools = SharedPools()
        for number, question in enumerate("abcde"):
            search(pools, question, snapshot, plan)
            still = [each for each in "abcde" if next_from(pools, question=each) is not None]
            assert question in still
            assert len(still) == min(2, number + 1) or number > 1
            assert len(still) <= 2
        monkeypatch.setattr(place, "CANDIDATES_MAX", 4)
        search(pools, "f", snapshot, plan)
        assert next_from(pools, question="f") is None
