# SPDX-License-Identifier: Apache-2.0
"""Worlds that might be: the scenarios of spec/beyond.md 4.4, by hand on a drawn world."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tests.brute_question import matches, provider, root_of, tree_of
from tests.worlds import Stock, World, WorldProvider, consumer_uuid


def what_if(fleet: World, scenario: Mapping[str, Any]) -> World:
    """The world with the assumed changes, in the order of the specification."""
    if scenario.get("nothing_used"):
        fleet = _without_use_of(fleet, {each.name for each in fleet.providers})
    holding = {each.name: consumer_uuid(each.name) for each in fleet.providers}
    gone = set(scenario.get("without_consumers", ()))
    fleet = _without_use_of(fleet, {name for name, uuid in holding.items() if uuid in gone})
    for ratio in scenario.get("allocation_ratio", ()):
        fleet = _with_ratio(fleet, ratio)
    fleet = fleet.tolerating(scenario.get("undrain", ()))
    fleet = _drained(fleet, scenario.get("drain", ()))
    whole = fleet
    fleet = _without_hosts(fleet, scenario.get("without_hosts", ()))
    for added in scenario.get("add_hosts", ()):
        fleet = _with_copies(fleet, whole, added["like"], added["count"])
    return fleet


def _without_use_of(fleet: World, names: set[str]) -> World:
    return _with_providers(
        fleet, (_idle(each) if each.name in names else each for each in fleet.providers)
    )


def _idle(each: WorldProvider) -> WorldProvider:
    return replace(
        each, stocks={name: replace(stock, used=0) for name, stock in each.stocks.items()}
    )


def _with_ratio(fleet: World, ratio: Mapping[str, Any]) -> World:
    """Another ratio for a class, on the hosts whose root is in some aggregates, or on all."""
    members = {"member_of": ratio.get("member_of", [])}

    def changed(each: WorldProvider) -> WorldProvider:
        if not matches(fleet, members, fleet.by_name[root_of(fleet, each.name)]):
            return each
        stocks: dict[str, Stock] = {**each.stocks}
        if (name := ratio["resource_class"]) in stocks:
            stocks[name] = replace(stocks[name], allocation_ratio=ratio["ratio"])
        return replace(each, stocks=stocks)

    return _with_providers(fleet, map(changed, fleet.providers))


def _drained(fleet: World, references: Iterable[str]) -> World:
    """The world with a drain of some providers, which has a name that no other has."""
    named = {provider(fleet, reference) for reference in references}
    return _with_providers(
        fleet,
        (
            replace(each, drains=each.drains | {"(assumed)"}) if each.name in named else each
            for each in fleet.providers
        ),
    )


def _without_hosts(fleet: World, references: Iterable[str]) -> World:
    named = (provider(fleet, reference) for reference in references)
    gone = {root_of(fleet, name) for name in named if name is not None}
    kept = (each for each in fleet.providers if root_of(fleet, each.name) not in gone)
    return _with_providers(fleet, kept)


def _with_copies(fleet: World, whole: World, like: str, count: int) -> World:
    """The world with copies of a tree of the whole one, `NAME#1` and so on, with nothing used,
    which no drain names; further copies are numbered on."""
    name = provider(whole, like)
    if name is None:
        return fleet
    root = root_of(whole, name)
    tree = tree_of(whole, root)
    there = sum(each.name.startswith(f"{root}#") for each in fleet.providers)
    copies = (
        replace(
            _idle(each),
            name=f"{each.name}#{number}",
            parent=None if each.parent is None else f"{each.parent}#{number}",
            drains=frozenset(),
        )
        for number in range(there + 1, there + count + 1)
        for each in tree
    )
    return _with_providers(fleet, (*fleet.providers, *copies))


def _with_providers(fleet: World, providers: Iterable[WorldProvider]) -> World:
    return replace(fleet, providers=tuple(providers))
