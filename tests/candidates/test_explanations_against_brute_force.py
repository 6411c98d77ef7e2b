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
    conditional_request,
    fleet,
    hopeless_request,
    related_split_request,
    request,
    seeded,
    tolerant,
    with_flavors,
)
from tests.candidates.test_questions_against_brute_force import tell
from tests.candidates.wire_questions import question_of
from tests.effort import SEED, scaled
from tests.worlds import Stock, World, provider_uuid

Asked = tuple[World, list[Request]]


def fleet_with_hopeless_requests(dice: Dice) -> Asked:
    """A world, and requests of which most do not fit."""
    world = fleet(dice)
    make = (hopeless_request, hopeless_request, conditional_request, related_split_request, request)
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
            _check_impossible(due, got)
            _check_instead(world, sent, got)
            assert got.paint is not None
            assert [*got.paint] == due.paint()
            if due.all:
                assert (got.binding, got.relaxations, got.nearest) == ((), None, None)
            else:
                _check_relaxations(due, got)
                never = due.verdict() == "never"
                _check_nearest(due.if_empty if never else due, got, most=2)


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


def _check_impossible(due: Explained, got: Explanation) -> None:
    """If no host could hold it: sets that no host meets with nothing used, each atom of which is
    needed, and none of which is in two sets; and as many as there are."""
    empty = due.if_empty
    assert bool(got.impossible) == (got.verdict.value == "never" and bool(due.roots))
    rest = set(due.without_drains)
    for each in got.impossible:
        assert not empty.fit(each.at)
        assert all(empty.fit(set(each.at) - {at}) for at in each.at)
        assert rest.issuperset(each.at)
        rest -= set(each.at)
        (at, *others) = each.at
        is_amount = not others and due.is_class(at)
        assert (each.kind in {"amount", "no_inventory"}) == is_amount
        if is_amount:
            assert (each.kind == "no_inventory") == (not due.has(at))
            if each.kind == "amount":
                assert each.most == empty.largest(at, [at], frozenset(due.roots))[0]
    if got.impossible and len(got.impossible) < 4:
        assert empty.fit(rest)


def _check_instead(world: World, sent: Request, got: Explanation) -> None:
    """With a suggestion instead of the unknown name, so many hosts fit."""
    for unknown in got.unknown_names:
        for name in unknown.did_you_mean:
            asked = Explained(world, json.loads(json.dumps(sent).replace(unknown.name, name)))
            if (unknown.at, name) in got.instead:
                assert got.instead[unknown.at, name] == len(asked.all)


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
    """Named hosts come first; then those at which one atom is missing, or else two, or more."""
    assert got.nearest is not None
    names = [due.fleet.names[each.host.uuid] for each in got.nearest]
    assert names == [each.host.name for each in got.nearest]
    assert len(set(names)) == len(names)
    named = [name for name, near in zip(names, got.nearest, strict=True) if near.is_named]
    assert names[: len(named)] == named
    assert len(named) == min(most, len(due.named))
    assert due.named.issuperset(named)
    relaxations, ranked = due.relaxations(), due.nearest_by_one()
    of_one = [name for name in ranked if name in due.named][:most]
    assert named[: len(of_one)] == of_one
    others, wanted = names[len(named) :], most - len(named)
    if ranked:
        assert others == [name for name in ranked if name not in due.named][:wanted]
    else:
        able = frozenset().union(*relaxations.values()) if relaxations else due.fit([])
        assert len(others) == min(wanted, len(able - due.named))
    for name, near in zip(names, got.nearest, strict=True):
        if name in ranked:
            (lack,) = near.lacks
            assert (due.missing(name, lack.at), due.is_class(lack.at)) == ranked[name]
        elif name in others and relaxations:
            assert len(near.lacks) == 2
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
        _check_shortage(due, name, lack.at, kept, lack.shortage)


def _check_shortage(
    due: Explained, name: str, at: str, kept: list[str], shortage: Shortage
) -> None:
    """The best provider is the one with most to give of those that meet the conditions, or else of
    all; and the reason is the first that is true of it."""
    of_class = at.rpartition("/")[2]
    having = [each for each in due.reachable(name) if of_class in each.stocks]
    if not having:
        assert (shortage.reason, shortage.best) == ("no_inventory", None)
        return
    unmet = {each.name: due.unmet(name, at, kept, each) for each in having}
    able = [each for each in having if not unmet[each.name]] or having
    assert shortage.best is not None
    (best,) = (each for each in able if provider_uuid(each.name) == shortage.best.provider.uuid)
    assert _most(best.stocks[of_class]) == max(_most(each.stocks[of_class]) for each in able)
    stock = best.stocks[of_class]
    free = max(0, capacity(stock) - stock.used)
    assert shortage.best[1:] == (free, capacity(stock), stock.max_unit)
    reasons = {
        "conditions": bool(unmet[best.name]),
        "capacity": shortage.asked > capacity(stock),
        "max_unit": shortage.asked > stock.max_unit,
        "min_unit": shortage.asked < stock.min_unit,
        "step_size": shortage.asked % stock.step_size > 0,
        "used": shortage.asked > free,
    }
    first = next((reason for reason, is_so in reasons.items() if is_so), "conditions")
    assert (shortage.reason, {*shortage.unmet}) == (first, unmet[best.name])


def _most(stock: Stock) -> tuple[int, int]:
    """What a provider could give at once, and what it has."""
    return max(0, min(capacity(stock) - stock.used, stock.max_unit)), capacity(stock)
