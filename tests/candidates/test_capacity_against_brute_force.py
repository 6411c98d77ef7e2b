# SPDX-License-Identifier: Apache-2.0
"""Every count is at most the truth and every bound at least, by trying everything in small worlds.

`BERTH_SEED` repeats a run, `BERTH_EFFORT=10` draws ten times as many worlds.

Source: spec/beyond.md 4.1 to 4.4 and 4.7.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, note, seed, settings

from berth.candidates import Budget, assignments, search
from berth.candidates.batch import Batch
from berth.candidates.capacity import Capacity, Counting, largest
from berth.candidates.capacity import hosts as capacity_hosts
from berth.candidates.capacity.by import Partition, best_hosts
from berth.candidates.capacity.preserving import Preserving
from berth.candidates.hosts import hosts_of
from berth.candidates.plan import Plan
from berth.candidates.references import References, request_of
from berth.candidates.resolve import NothingFits, resolve
from berth.index import Snapshot
from berth.index.memory import Memory
from berth.store.engine.database import Database
from tests.brute_capacity import Counted, TooManyStates, with_use
from tests.brute_order import loss
from tests.brute_question import Request, aggregates, fitting
from tests.brute_scenario import what_if
from tests.candidates.engine import PLAIN, only
from tests.candidates.question_strategies import (
    Dice,
    extreme_scenario,
    fleet,
    request,
    scenario,
    seeded,
)
from tests.candidates.test_questions_against_brute_force import tell
from tests.candidates.test_scenarios_against_brute_force import imagined_as
from tests.candidates.wire_questions import candidates_of, question_of
from tests.effort import SEED, scaled
from tests.worlds import Stock, World, provider_uuid

#: A world, what is assumed of it, and requests.
Asked = tuple[World, dict[str, Any], list[Request]]

MEMORY_BYTES: Final = 1 << 24

#: The greatest capacity: trying everything takes a multiple of the time for each unit.
TOTAL_MAX: Final = 8


def small_fleet_with_requests(dice: Dice) -> Asked:
    """A world of small amounts, and requests that take something, most of them for little."""
    world = fleet(dice)
    providers = (
        replace(each, stocks={name: _small(stock) for name, stock in each.stocks.items()})
        for each in world.providers
    )
    world = replace(world, providers=tuple(providers))
    assumed: dict[str, Any] = {}
    if dice.sometimes():
        assumed = dice.one((scenario, extreme_scenario))(dice, world)
        assumed.pop("without_consumers", None)
    # What an amount beyond all bounds is divided into has no end.
    splits = not assumed.get("allocation_ratio")
    return world, assumed, list(_requests(dice, world, splits=splits))


def _small(stock: Stock) -> Stock:
    return replace(stock, total=min(stock.total, TOTAL_MAX), used=min(stock.used, 2))


def _requests(dice: Dice, world: World, *, splits: bool) -> Iterator[Request]:
    for _ in range(4):
        asked = request(dice, world, splits=splits)
        if any(group.get("resources") for group in asked["groups"].values()):
            yield _modest(asked) if dice.half() else asked


def _modest(asked: Request) -> Request:
    """The same for a unit or two of each class, so that it fits several times."""
    groups = {}
    for name, group in asked["groups"].items():
        resources = {each: min(n, 2) for each, n in group.get("resources", {}).items()}
        groups[name] = {**group, **({"resources": resources} if resources else {})}
    return {**asked, "groups": groups}


@seed(SEED)
@settings(max_examples=scaled(100))
@given(seeded(small_fleet_with_requests))
def test_a_count_is_never_above_the_truth_and_a_bound_never_below(
    scratch: Database, asked: Asked
) -> None:
    """For each host and for all of them; equal where it is said to be exact, and exact where the
    structure is simple and nothing is shared."""
    world, assumed, requests = asked
    tell(world)
    note(json.dumps(assumed))
    with only(world, scratch) as index:
        snapshot = imagined_as(index.snapshot(), assumed, scratch)
        # All requests of one question share what they count.
        counting = Counting(replace(snapshot, memory=Memory(MEMORY_BYTES)), Budget())
        for sent in requests:
            note(json.dumps(sent))
            _check(counting, what_if(world, assumed), sent)


@seed(SEED)
@settings(max_examples=scaled(60))
@given(seeded(small_fleet_with_requests))
def test_the_same_holds_whichever_way_is_taken(scratch: Database, asked: Asked) -> None:
    """With walks in place of assignments, and with hosts that have too many ways to list."""
    world, assumed, requests = asked
    tell(world)
    note(json.dumps(assumed))
    with only(world, scratch) as index, pytest.MonkeyPatch.context() as patched:
        patched.setattr(assignments, "ASSIGNMENTS_MAX", 1)
        snapshot = imagined_as(index.snapshot(), assumed, scratch)
        for ways_max in (64, 1):
            for module in (capacity_hosts, largest):
                patched.setattr(module, "WAYS_MAX", ways_max)
            for sent in requests:
                note(json.dumps(sent))
                # With a memory of its own: an assignment that is kept is not searched again.
                counting = Counting(replace(snapshot, memory=Memory(MEMORY_BYTES)), Budget())
                _check(counting, what_if(world, assumed), sent, is_listed=ways_max > 1)


def _check(counting: Counting, world: World, sent: Request, *, is_listed: bool = True) -> None:
    got = counting.capacity([question_of(sent, counting.snapshot)])
    due = Counted(world, sent)
    names = _names(counting)
    assert sorted(names) == sorted(due.roots)
    counts = dict(zip(names, got.count.tolist(), strict=True))
    bounds = dict(zip(names, got.at_most.tolist(), strict=True))
    assert {name for name, count in counts.items() if count} == fitting(world, sent)
    assert got.hosts() == len(fitting(world, sent))
    try:
        for name in names:
            truth = due.one(name)
            assert counts[name] <= truth <= bounds[name], name
            if is_listed and due.is_simple(name):
                assert counts[name] == bounds[name], name
        total = got.total()
        assert total.count <= due.total(names) <= total.at_most
        if not due.has_pools() and counts == bounds:
            assert total.count == total.at_most
        some = names[::2]
        part = got.total(_mask(counting, some))
        assert part.count <= due.total(some) <= part.at_most
        _check_best(counting, got, counts)
        _check_parts(counting, got, due)
        _check_left(counting, got, due)
    except TooManyStates:
        note("too many states")


def _check_best(counting: Counting, got: Capacity, counts: dict[str, int]) -> None:
    """The hosts with the highest counts, of equal ones the first by uuid."""
    best = best_hosts(counting, got, 3)
    order = sorted(filter(counts.get, counts), key=lambda n: (-counts[n], provider_uuid(n)))
    assert [(each.host.name, each.total.count) for each in best] == [
        (name, counts[name]) for name in order[:3]
    ]


def _check_parts(counting: Counting, got: Capacity, due: Counted) -> None:
    """The hosts of each value of a label, and of each aggregate, together."""
    for key in ("zone", None):
        for value, line in Partition(counting, key).lines(got).items():
            wanted = value if key is None else f"{key}={value}"
            names = [
                root
                for root in due.roots
                if due.fleet.by_name[root].aggregates & aggregates(due.fleet, wanted)
            ]
            assert line.total.count <= due.total(names) <= line.total.at_most, value
            assert line.hosts == len(fitting(due.fleet, due.request) & {*names}), value


def _check_left(counting: Counting, got: Capacity, due: Counted) -> None:
    count = got.total().count
    left = due.left(count)
    fragments = counting.fragments(got)
    assert {
        name: (each.free, each.usable, each.largest) for name, each in fragments.items()
    } == left
    assert all(each.stranded == each.free - each.usable >= 0 for each in fragments.values())


def _mask(counting: Counting, names: list[str]) -> Any:
    mask = counting.fleet.none()
    for number, name in enumerate(_names(counting)):
        mask[number] = name in names
    return mask


def _names(counting: Counting) -> list[str]:
    return [
        json.loads(span.block.names.item(0, row))
        for span in counting.fleet.spans
        for row in range(span.block.rows)
    ]


def fleet_with_flavors(dice: Dice) -> tuple[World, Request, list[Request]]:
    """A world, a request, and others that have a simple structure on every host."""
    world, _, requests = small_fleet_with_requests(dice)
    small: Request = {"groups": {"": {"resources": {"VCPU": 1}}}}
    asked, *others = [*requests, small]
    roots = [each.name for each in world.providers if each.parent is None]
    simple = [
        other for other in others if all(Counted(world, other).is_simple(root) for root in roots)
    ]
    return world, asked, simple


@seed(SEED)
@settings(max_examples=scaled(100))
@given(seeded(fleet_with_flavors))
def test_a_candidate_loses_what_it_takes_from_flavors(
    scratch: Database, asked: tuple[World, Request, list[Request]]
) -> None:
    """The loss of every candidate on its host is that of the true maxima, also when something was
    taken before."""
    world, sent, others = asked
    tell(world)
    note(json.dumps([sent, *others]))
    with only(world, scratch) as index:
        snapshot = index.snapshot()
        plan = _plan(snapshot, sent)
        plans = [_plan(snapshot, other) for other in others]
        flavors = [(each, number + 1.0) for number, each in enumerate(plans) if each is not None]
        weighed = [
            (other, number + 1.0)
            for number, other in enumerate(others)
            if plans[number] is not None
        ]
        if plan is None:
            return
        preserving = Preserving(snapshot, plan, flavors, Budget())
        batches = list(search(snapshot, plan, PLAIN, None, rng=Random(0), budget=Budget()))[:20]
        _check_losses(snapshot, plan, preserving, batches, world, weighed)
        for batch in batches[:1]:
            (taken, *_) = candidates_of(snapshot, plan, batch)
            for (name, class_name), amount in taken.amounts:
                at = snapshot.locate_uuid(provider_uuid(name))
                assert at is not None
                preserving.take(at, snapshot.names.class_ids[class_name], amount)
            fuller = with_use(world, dict(taken.amounts))
            _check_losses(snapshot, plan, preserving, batches, fuller, weighed)


def _check_losses(
    snapshot: Snapshot,
    plan: Plan,
    preserving: Preserving,
    batches: list[Batch],
    world: World,
    weighed: list[tuple[Request, float]],
) -> None:
    for batch in batches:
        losses = preserving.losses(batch).tolist()
        candidates = list(candidates_of(snapshot, plan, batch))
        hosts = hosts_by_name(snapshot, batch)
        for candidate, host, got in zip(candidates, hosts, losses, strict=True):
            try:
                assert got == loss(world, candidate, host, weighed)
            except TooManyStates:
                note("too many states")


def _plan(snapshot: Snapshot, sent: Request) -> Plan | None:
    request = request_of(question_of(sent, snapshot), References(snapshot))
    try:
        return resolve(snapshot, request, one_per_tree=False)
    except NothingFits:
        return None


def hosts_by_name(snapshot: Snapshot, batch: Batch) -> list[str]:
    """The host of each candidate of a batch."""
    names = [""] * len(batch.positions)
    for hosts in hosts_of(snapshot, batch):
        places = range(len(names))[hosts.at] if isinstance(hosts.at, slice) else hosts.at.tolist()
        for place, row in zip(places, hosts.rows.tolist(), strict=True):
            names[place] = json.loads(hosts.block.names.item(0, row))
    return names
