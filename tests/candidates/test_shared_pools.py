# SPDX-License-Identifier: Apache-2.0
"""Calls that choose at once from one pool get what the consumers of one call would (spec/beyond.md
5.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from berth.candidates import Budget, shared_pools
from berth.candidates.choosing import Chosen, Limits, choose, choose_from
from berth.candidates.listing import candidate_texts
from berth.candidates.order import HOST, Order, Preference, Strategy
from berth.candidates.plan import MembershipTest, Plan, TraitTest
from berth.candidates.pool import Pool
from berth.candidates.ranking import Ranked
from berth.candidates.references import References, request_of
from berth.candidates.resolve import resolve
from berth.candidates.shared_pools import SharedPools
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
    request = request_of(question, References(snapshot))
    return resolve(snapshot, request, one_per_tree=False)


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
    monkeypatch.setattr(shared_pools, bound, most)
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
