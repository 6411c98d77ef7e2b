# SPDX-License-Identifier: Apache-2.0
"""Every figure of an explanation is what the slow twin says to the same derived request.

Source: spec/beyond.md 3.
"""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

from hypothesis import given, note, seed, settings

from tests.brute_explain import Explained
from tests.brute_question import Request, capacity
from tests.candidates.engine import Stand
from tests.candidates.strategies import (
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
from tests.effort import SEED, scaled
from tests.worlds import Stock, World, provider_uuid


def fleet_with_hopeless_requests(dice: Dice) -> tuple[World, list[Request]]:
    """A world, and requests of which most do not fit."""
    world = fleet(dice)
    make = (hopeless_request, hopeless_request, conditional_request, related_split_request, request)
    requests = [tolerant(dice, world, dice.one(make)(dice, world)) for _ in range(6)]
    return with_flavors(dice, world, requests)


@seed(SEED)
@settings(max_examples=scaled(60))
@given(seeded(fleet_with_hopeless_requests))
def test_an_explanation_says_what_brute_force_finds(
    stand: Stand, asked: tuple[World, list[Request]]
) -> None:
    """All figures are equal."""
    world, requests = asked
    standing = stand(world)
    standing.note()
    for sent in requests:
        note(json.dumps(sent))
        due = Explained(world, sent)
        got = standing.ask("explain", request=sent, nearest_max=2, paint=True)
        _check_counts(due, got)
        _check_stages(due, got)
        _check_impossible(due, got)
        _check_instead(world, sent, got)
        assert [*b64decode(got["paint"])] == due.paint()
        if due.all:
            assert got["binding"] == []
            assert not {"relaxations", "nearest"} & got.keys()
        else:
            _check_relaxations(due, got)
            never = due.verdict() == "never"
            _check_nearest(due.if_empty if never else due, got, most=2)


def _check_counts(due: Explained, got: Any) -> None:
    assert got["complete"]
    assert got["verdict"] == due.verdict()
    assert got["hosts"] == {
        "total": len(due.roots),
        "pools": sum(map(due.is_pool, due.roots)),
        "fit": len(due.all),
        "fit_if_undrained": len(due.fit(due.without_drains)),
        "fit_if_empty": len(due.hosts_if_empty),
    }


def _check_stages(due: Explained, got: Any) -> None:
    stages = []
    for at, left in zip(due.atoms, due.left(), strict=True):
        is_relation = at.startswith(("/together", "/apart"))
        alone = None if is_relation else len(due.alone(at))
        stage = {"at": at, "left": len(left), "alone": alone}
        if due.is_class(at):
            stage |= {"has": len(due.has(at)), "if_empty": len(due.if_empty.alone(at))}
        stages.append(stage)
    for each in got["stages"]:
        assert each.pop("text")
    assert got["stages"] == stages


def _check_impossible(due: Explained, got: Any) -> None:
    """If no host could hold it: sets that no host meets with nothing used, each atom of which is
    needed, and none of which is in two sets; and as many as there are."""
    empty, impossible = due.if_empty, got.get("impossible", [])
    assert bool(impossible) == (got["verdict"] == "never" and bool(due.roots))
    rest = set(due.without_drains)
    for each in impossible:
        (first, *others) = atoms = each["at"]
        assert not empty.fit(atoms)
        assert all(empty.fit({*atoms} - {at}) for at in atoms)
        assert rest.issuperset(atoms)
        rest -= {*atoms}
        is_amount = not others and due.is_class(first)
        assert (each["kind"] in {"amount", "no_inventory"}) == is_amount
        if is_amount:
            assert (each["kind"] == "no_inventory") == (not due.has(first))
            if each["kind"] == "amount":
                assert each["most"] == empty.largest(first, [first], frozenset(due.roots))[0]
    if impossible and len(impossible) < 4:
        assert empty.fit(rest)


def _check_instead(world: World, sent: Request, got: Any) -> None:
    """With a suggestion instead of the unknown name, so many hosts fit."""
    for unknown in got["unknown"]:
        for name, hosts in unknown["hosts"].items():
            asked = Explained(world, json.loads(json.dumps(sent).replace(unknown["name"], name)))
            assert hosts == len(asked.all)


def _check_relaxations(due: Explained, got: Any) -> None:
    drops = {tuple(each["drop"]): each for each in got["relaxations"]}
    assert {drop: each["hosts"] for drop, each in drops.items()} == {
        drop: len(hosts) for drop, hosts in due.relaxations().items()
    }
    counts = [each["hosts"] for each in got["relaxations"]]
    assert counts == sorted(counts, reverse=True)
    singles = {drop[0]: each for drop, each in drops.items() if len(drop) == 1}
    assert sorted(got["binding"]) == sorted(singles)
    for at, each in singles.items():
        amount, hosts = 0, frozenset[str]()
        if due.is_class(at):
            amount, hosts = due.largest(at, due.atoms, frozenset(due.roots))
        assert (at, each.get("reduce_to", 0)) == (at, amount)
        assert (at, each.get("hosts_reduced", 0)) == (at, len(hosts))
    split = due.split_would_fit()
    assert got.get("split_would_fit") == (None if split is None else len(split))


def _check_nearest(due: Explained, got: Any, *, most: int) -> None:
    """Named hosts come first; then those at which one atom is missing, or else two, or more."""
    names = [due.fleet.names[each["host"]["uuid"]] for each in got["nearest"]]
    assert names == [each["host"]["name"] for each in got["nearest"]]
    assert len(set(names)) == len(names)
    named = [name for name, near in zip(names, got["nearest"], strict=True) if "named" in near]
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
    for name, near in zip(names, got["nearest"], strict=True):
        lacks = [lack["at"] for lack in near["lacks"]]
        if name in ranked:
            (at,) = lacks
            assert (due.missing(name, at), due.is_class(at)) == ranked[name]
        elif name in others and relaxations:
            assert len(lacks) == 2
        assert due.is_minimal(name, lacks), (name, lacks)
        for lack in near["lacks"]:
            _check_lack(
                due, name, lack, [a for a in due.atoms if a not in lacks or a == lack["at"]]
            )


def _check_lack(due: Explained, name: str, lack: Any, kept: list[str]) -> None:
    """The best provider is the one with most to give of those that meet the conditions, or else of
    all; and the reason is the first that is true of it."""
    at = lack["at"]
    assert ("asked" in lack) == due.is_class(at)
    if "asked" not in lack:
        return
    possible, _ = due.largest(at, kept, frozenset({name}))
    assert (lack["asked"], lack["possible"]) == (due.asked(at), possible)
    of_class = at.rpartition("/")[2]
    having = [each for each in due.reachable(name) if of_class in each.stocks]
    if not having:
        assert (lack["reason"], lack.get("provider")) == ("no_inventory", None)
        return
    unmet = {each.name: due.unmet(name, at, kept, each) for each in having}
    able = [each for each in having if not unmet[each.name]] or having
    (best,) = (each for each in able if provider_uuid(each.name) == lack["provider"]["uuid"])
    stock = best.stocks[of_class]
    assert _most(stock) == max(_most(each.stocks[of_class]) for each in able)
    free, asked = max(0, capacity(stock) - stock.used), lack["asked"]
    shown = lack["free"], lack["capacity"], lack["max_unit"]
    assert shown == (free, capacity(stock), stock.max_unit)
    reasons = {
        "conditions": bool(unmet[best.name]),
        "capacity": asked > capacity(stock),
        "max_unit": asked > stock.max_unit,
        "min_unit": asked < stock.min_unit,
        "step_size": asked % stock.step_size > 0,
        "used": asked > free,
    }
    first = next((reason for reason, is_so in reasons.items() if is_so), "conditions")
    assert (lack["reason"], {*lack.get("unmet", ())}) == (first, unmet[best.name])


def _most(stock: Stock) -> tuple[int, int]:
    """What a provider could give at once, and what it has."""
    return max(0, min(capacity(stock) - stock.used, stock.max_unit)), capacity(stock)
