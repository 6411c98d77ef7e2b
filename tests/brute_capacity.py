# SPDX-License-Identifier: Apache-2.0
"""The twin of capacity: the true maxima of spec/beyond.md 4.1, by trying everything.

Candidates come from `tests.brute_question`. Hosts are names of roots.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any, Final, NamedTuple

from tests.brute_question import (
    Request,
    capacity,
    fitting,
    found_at,
    giving,
    read,
    root_of,
    tolerated,
)
from tests.worlds import MAX_INT, Stock, World, WorldProvider

#: (provider, class).
Cell = tuple[str, str]

#: What one candidate takes.
Way = frozenset[tuple[Cell, int]]

#: More than anybody asks for.
ENDLESS: Final = Stock(MAX_INT)

#: No provider counts as having more of a class left (4.1).
FREE_MAX: Final = 2**53 - 1

#: States that are tried at most.
STATES_MAX: Final = 20_000

#: Of more amounts than this only the largest is tried.
AMOUNTS_MAX: Final = 1_000

#: Greater amounts are not divided in all ways.
SPLIT_MAX: Final = 24


class TooManyStates(Exception):
    """Trying everything would take too long."""


class Left(NamedTuple):
    """What is left of a class (4.3)."""

    free: int
    usable: int
    largest: int


class Counted:
    """One request and one fleet.

    Args:
        request: with `groups`, without `query` and `alternatives`.
    """

    def __init__(self, fleet: World, request: Request) -> None:
        self.fleet = fleet.tolerating(tolerated([request]))
        self.request = request
        self._ways: dict[str, set[Way]] = {}
        self.has_splits = any(group.get("split") for group in request["groups"].values())

    @property
    def roots(self) -> list[str]:
        """All hosts."""
        return [each.name for each in self.fleet.providers if each.parent is None]

    def ways(self, root: str) -> set[Way]:
        """What the candidates at one host take."""
        if root not in self._ways:
            self._ways[root] = _ways(self.fleet, self.request, root)
        return self._ways[root]

    def one(self, root: str) -> int:
        """cap(R, q)."""
        return self.total([root])

    def total(self, roots: Iterable[str]) -> int:
        """total(F, q)."""
        if self.has_splits:
            return _in_turn(self.fleet, self.request, tuple(roots))
        ways = {way for root in roots for way in self.ways(root)}
        free = {cell: self.free(*cell) for way in ways for cell, _ in way}
        return most(ways, free)

    def free(self, name: str, class_name: str) -> int:
        """What a provider has left of a class."""
        stock = self.fleet.by_name[name].stocks[class_name]
        return min(max(capacity(stock) - stock.used, 0), FREE_MAX)

    def is_simple(self, root: str) -> bool:
        """Whether one of the first two cases holds, in which the answer is exact."""
        if self.has_splits:
            return False
        taking: dict[Cell, dict[Way, int]] = {}
        for way in self.ways(root):
            for cell, amount in way:
                taking.setdefault(cell, {})[way] = amount
        sets = [frozenset(amounts) for amounts in taking.values()]
        return all(len(set(amounts.values())) == 1 for amounts in taking.values()) and all(
            one <= other or other <= one or not one & other for one, other in combinations(sets, 2)
        )

    def has_pools(self) -> bool:
        """Whether any host may take something of another tree."""
        return any(
            root_of(self.fleet, cell[0]) != root
            for root in self.roots
            for way in self.ways(root)
            for cell, _ in way
        )

    # --- 4.3

    def left(self, count: int) -> dict[str, Left]:
        """For each class of the request what is left of it, if the request fits so often."""
        asked: dict[str, int] = {}
        for group in self.request["groups"].values():
            for name, amount in group.get("resources", {}).items():
                asked[name] = asked.get(name, 0) + amount
        suited = fitting(_endless(self.fleet), self.request)
        return {
            name: Left(
                sum(
                    self.free(each, name) for each in giving(self.fleet, self.request, name, suited)
                ),
                count * amount,
                self._largest(name),
            )
            for name, amount in asked.items()
        }

    def _largest(self, class_name: str) -> int:
        """The largest amount that any one group could ask for, all else as it is."""
        free = [
            self.free(each.name, class_name)
            for each in self.fleet.providers
            if class_name in each.stocks
        ]
        enough = sum(free) if self.has_splits else max(free, default=0)
        if self.has_splits and enough > SPLIT_MAX:
            raise TooManyStates
        most = min(enough, MAX_INT)
        for amount in range(most, 0, -1):
            if amount < most > AMOUNTS_MAX:
                raise TooManyStates
            for name, group in self.request["groups"].items():
                if class_name in group.get("resources", {}):
                    # Two groups may be one object.
                    other: dict[str, Any] = json.loads(json.dumps(self.request))
                    other["groups"][name]["resources"][class_name] = amount
                    if fitting(self.fleet, other):
                        return amount
        return 0


def most(ways: Iterable[Way], free: Mapping[Cell, int]) -> int:
    """How many of some ways can be taken together, each any number of times.

    Raises:
        TooManyStates: it would take too long to find out.
    """
    return sum(_most_of(part, free) for part in _apart(list(ways)))


def _most_of(ways: list[Way], free: Mapping[Cell, int]) -> int:
    cells = sorted({cell for way in ways for cell, _ in way})
    takes = [
        tuple(dict(way).get(cell, 0) for cell in cells)
        for way in sorted(ways, key=lambda way: sorted(way))
    ]
    states = 0

    @cache
    def best(number: int, left: tuple[int, ...]) -> int:
        nonlocal states
        states += 1
        if states > STATES_MAX:
            raise TooManyStates
        if number == len(takes):
            return 0
        way = takes[number]
        if number == len(takes) - 1:
            return min(has // taken for has, taken in zip(left, way, strict=True) if taken)
        result = 0
        placed = 0
        while True:
            states += 1
            if states > STATES_MAX:
                raise TooManyStates
            result = max(result, placed + best(number + 1, left))
            left = tuple(has - taken for has, taken in zip(left, way, strict=True))
            if min(left) < 0:
                return result
            placed += 1

    return best(0, tuple(free[cell] for cell in cells))


def _apart(ways: list[Way]) -> list[list[Way]]:
    """Ways that have no cell in common, even through others, apart."""
    parts: list[tuple[set[Cell], list[Way]]] = []
    for way in ways:
        cells = {cell for cell, _ in way}
        near = [part for part in parts if part[0] & cells]
        parts = [part for part in parts if not part[0] & cells]
        parts.append(
            (
                cells.union(*(part[0] for part in near)),
                [way, *(w for part in near for w in part[1])],
            )
        )
    return [part for _, part in parts]


def _ways(fleet: World, request: Request, root: str) -> set[Way]:
    return {
        candidate.amounts
        for _, candidates in found_at(fleet, read(fleet, request), root)
        for candidate in candidates
    }


def _in_turn(fleet: World, request: Request, roots: tuple[str, ...]) -> int:
    """How many candidates can be claimed one after another: what an amount is split into depends on
    what is left."""
    states = 0

    @cache
    def best(used: Way) -> int:
        nonlocal states
        states += 1
        if states > STATES_MAX // 100:
            raise TooManyStates
        now = with_use(fleet, dict(used))
        result = 0
        for way in {way for root in roots for way in _ways(now, request, root)}:
            after = dict(used)
            for cell, amount in way:
                after[cell] = after.get(cell, 0) + amount
            result = max(result, 1 + best(frozenset(after.items())))
        return result

    return best(frozenset())


def with_use(fleet: World, more: Mapping[Cell, int]) -> World:
    """The fleet with more used."""

    def used(each: WorldProvider) -> WorldProvider:
        stocks = {
            name: replace(stock, used=stock.used + more.get((each.name, name), 0))
            for name, stock in each.stocks.items()
        }
        return replace(each, stocks=stocks)

    return replace(fleet, providers=tuple(map(used, fleet.providers)))


def _endless(fleet: World) -> World:
    """The same fleet with more of everything than anybody asks for."""
    return replace(
        fleet,
        providers=tuple(
            replace(each, stocks=dict.fromkeys(each.stocks, ENDLESS)) for each in fleet.providers
        ),
    )
