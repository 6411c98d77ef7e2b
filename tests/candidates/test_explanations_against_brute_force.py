# SPDX-License-Identifier: Apache-2.0
"""Every figure of an explanation is what the slow twin says to the same derived request.

Source: spec/beyond.md 3.
"""

from __future__ import annotations

import json

from hypothesis import given, note, seed, settings

from berth.candidates import Budget
from berth.candidates.explain import Explanation, Wanted, explain
from berth.candidates.explain.explanation import NearHost, Shortage
from berth.index import Snapshot
from berth.store.engine.database import Database
from tests.brute_explain import Explained
from tests.brute_question import Request, capacity
from tests.candidates.engine import only
from tests.candidates.question_strategies import (
    Dice,
    fleet,
    hopeless_request,
    request,
    seeded,
    tolerant,
    with_flavors,
)
from tests.candidates.test_questions_against_brute_force import tell
from tests.candidates.wire_questions import question_of
from tests.effort import SEED, scaled
from tests.worlds import World

Asked = tuple[World, list[Request]]


def fleet_with_hopeless_requests(dice: Dice) -> Asked:
    """A world, and requests of which most do not fit."""
    world = fleet(dice)
    make = (hopeless_request, hopeless_request, request)
    requests = [tolerant(dice, world, dice.one(make)(dice, world)) for _ in range(3)]
    return with_flavors(dice, world, requests)


@seed(SEED)
@settings(max_examples=scaled(80))
@given(seeded(fleet_with_hopeless_requests))
def test_an_explanation_says_what_brute_force_finds(scratch: Database, asked: Asked) -> None:
    """All figures are equal."""
    world, requests = asked
    tell(world)
    with only(world, scratch) as index:
        snapshot = index.snapshot()
        for sent in requests:
            note(json.dumps(sent))
            due = Explained(world, sent)
            got = _explained(snapshot, sent)
            _check_counts(due, got)
            _check_stages(due, got)
            assert got.paint is not None
            assert [*got.paint] == due.paint()
            if due.all:
                assert (got.binding, got.relaxations, got.nearest) == ((), None, None)
            else:
                _check_relaxations(due, got)
                _check_nearest(due, got, most=2)


def _explained(snapshot: Snapshot, sent: Request) -> Explanation:
    wanted = Wanted(nearest_max=2, paint=True)
    return explain(snapshot, question_of(sent, snapshot), wanted=wanted, budget=Budget())


def _check_counts(due: Explained, got: Explanation) -> None:
    assert got.is_complete
    assert got.verdict.value == due.verdict()
    counts = got.hosts
    assert counts.total == len(due.roots)
    assert counts.pools == sum(map(due.is_pool, due.roots))
    assert counts.fit == (len(due.all), False)
    assert counts.fit_if_undrained == (len(due.fit(due.without_drains)), False)
    assert counts.fit_if_empty == (len(due.hosts_if_empty), False)


def _check_stages(due: Explained, got: Explanation) -> None:
    assert [stage.at for stage in got.stages] == [*due.atoms]
    for stage, left in zip(got.stages, due.left(), strict=True):
        assert (stage.at, stage.left) == (stage.at, len(left))
        is_relation = stage.at.startswith(("/together", "/apart"))
        alone = None if is_relation else len(due.alone(stage.at))
        assert (stage.at, stage.alone) == (stage.at, alone)
        if due.is_class(stage.at):
            assert (stage.at, stage.has) == (stage.at, len(due.has(stage.at)))
            assert (stage.at, stage.if_empty) == (stage.at, len(due.if_empty.alone(stage.at)))
        else:
            assert (stage.has, stage.if_empty) == (None, None)


def _check_relaxations(due: Explained, got: Explanation) -> None:
    relaxations = due.relaxations()
    assert got.relaxations is not None
    found = {each.drop: each.hosts for each in got.relaxations}
    assert found == {drop: len(hosts) for drop, hosts in relaxations.items()}
    counts = [each.hosts for each in got.relaxations]
    assert counts == sorted(counts, reverse=True)
    singles = [each for each in got.relaxations if len(each.drop) == 1]
    assert sorted(got.binding) == sorted(each.drop[0] for each in singles)
    for each in singles:
        reduced: tuple[int, int] | tuple[None, None] = (None, None)
        if due.is_class(each.drop[0]):
            amount, hosts = due.largest(each.drop[0], due.atoms, frozenset(due.roots))
            reduced = (amount, len(hosts)) if amount else (None, None)
        assert (each.drop, each.reduce_to, each.hosts_reduced) == (each.drop, *reduced)
    split = due.split_would_fit()
    assert got.split_would_fit == (None if split is None else (len(split), False))


def _check_nearest(due: Explained, got: Explanation, *, most: int) -> None:
    assert got.nearest is not None
    names = [due.fleet.names[each.host.uuid] for each in got.nearest]
    assert names == [each.host.name for each in got.nearest]
    assert len(set(names)) == len(names)
    relaxations = due.relaxations()
    if all(len(drop) == 1 for drop in relaxations) and relaxations:
        nearest = due.nearest_by_one(most)
        assert names == [name for name, _ in nearest]
        for near, (name, missing) in zip(got.nearest, nearest, strict=True):
            assert len(near.lacks) == 1
            assert due.missing(name, near.lacks[0].at) == missing
    elif relaxations:
        able = frozenset().union(*relaxations.values())
        assert len(names) == min(most, len(able))
        assert all(len(near.lacks) == 2 for near in got.nearest)
    else:
        assert len(names) == min(most, len(due.fit([])))
    for name, near in zip(names, got.nearest, strict=True):
        _check_lacks(due, name, near)


def _check_lacks(due: Explained, name: str, near: NearHost) -> None:
    lacks = [lack.at for lack in near.lacks]
    assert due.is_minimal(name, lacks), (name, lacks)
    for lack in near.lacks:
        assert (lack.shortage is not None) == due.is_class(lack.at)
        if lack.shortage is None:
            continue
        kept = [at for at in due.atoms if at not in lacks or at == lack.at]
        possible, _ = due.largest(lack.at, kept, frozenset({name}))
        assert (lack.shortage.asked, lack.shortage.possible) == (due.asked(lack.at), possible)
        _check_shortage(due, name, lack.at, lack.shortage)


def _check_shortage(due: Explained, name: str, at: str, shortage: Shortage) -> None:
    """The best provider is one of those that might have served, and what is said of it is so."""
    of_class = at.rpartition("/")[2]
    able = {each.name: each for each in due.reachable(name) if of_class in each.stocks}
    assert (shortage.reason == "no_inventory") == (shortage.best is None) == (not able)
    if shortage.best is None:
        return
    best = able[due.fleet.names[shortage.best.provider.uuid]]
    stock = best.stocks[of_class]
    assert best.name == shortage.best.provider.name
    assert shortage.best.capacity == capacity(stock)
    assert shortage.best.free == max(0, capacity(stock) - stock.used)
    assert shortage.best.max_unit == stock.max_unit
    reasons = {
        "capacity": shortage.asked > capacity(stock),
        "max_unit": shortage.asked > stock.max_unit,
        "min_unit": shortage.asked < stock.min_unit,
        "step_size": shortage.asked % stock.step_size > 0,
    }
    assert reasons.get(shortage.reason, not any(reasons.values())), (shortage, reasons)
