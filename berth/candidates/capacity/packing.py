# SPDX-License-Identifier: Apache-2.0
"""How often the ways of one factor fit, in all rows of some trees at once.

With one way, the least quotient decides. Where the ways that take of each cell are nested or
disjoint, and all take the same amount, the innermost sets decide first (case 2). Other structures
have a construction below and cuts above; the rows in which these differ are searched by branch and
bound.

Source: spec/beyond.md 4.1 and 4.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from msgspec import Struct

from berth.candidates.capacity.ways import TOGETHER_MAX, WAYS_MAX, Cell, Cut, Factor, Way
from berth.index.block import Ints
from berth.model.budget import Budget

#: As often as anybody likes; `WAYS_MAX` of these still are an int64.
_ENDLESS: Final = 1 << 55

#: How often an amount goes into what a cell has left, in each row.
Times = Callable[[Cell, int], Ints]


class Bounds(Struct, frozen=True):
    """How often something fits in each row: so often at least, and so often at most."""

    count: Ints
    at_most: Ints

    @property
    def is_exact(self) -> bool:
        """Whether the two are equal in all rows."""
        return self.count is self.at_most or bool((self.count == self.at_most).all())


def pack(factor: Factor, times: Times, rows: int, steps: Steps) -> Bounds:
    """How often the ways of a factor fit in each of some rows."""
    ways = factor.ways
    if len(ways) == 1:
        return _exactly(_of_one(ways[0], times, rows))
    if factor.nested is not None:
        return _exactly(_nested(ways, factor.nested, times, rows))
    return _searched(factor, times, rows, None if len(ways) > WAYS_MAX else steps)


def least_of(several: Iterable[Bounds]) -> Bounds:
    """The least of some bounds, row by row."""
    listed = list(several)
    count = np.minimum.reduce([bounds.count for bounds in listed])
    if all(bounds.is_exact for bounds in listed):
        return Bounds(count, count)
    return Bounds(count, np.minimum.reduce([bounds.at_most for bounds in listed]))


def _exactly(count: Ints) -> Bounds:
    return Bounds(count, count)


def _of_one(way: Way, times: Times, rows: int) -> Ints:
    least = _least(way.takes, times)
    if way.rows is None:
        return least
    return np.where(way.rows, least, 0)


def _least(takes: Iterable[tuple[Cell, int]], times: Times) -> Ints:
    several = [times(cell, amount) for cell, amount in takes]
    least = several[0]
    for each in several[1:]:
        least = np.minimum(least, each)
    return least


def _nested(
    ways: Sequence[Way], sets: Sequence[tuple[int, Cell, int]], times: Times, rows: int
) -> Ints:
    """From the innermost set outwards: its own quotient, or the sum of its parts if that is
    less."""
    parts: dict[int, Ints] = {1 << number: _alone(way, rows) for number, way in enumerate(ways)}
    for together, cell, amount in sets:
        inside = [part for part in parts if part & together]
        total = parts.pop(inside[0])
        for part in inside[1:]:
            total = total + parts.pop(part)
        parts[together] = np.minimum(times(cell, amount), total)
    return _sum(parts.values(), rows)


def _alone(way: Way, rows: int) -> Ints:
    """How often a way fits, what it takes aside."""
    if way.rows is None:
        return np.full(rows, _ENDLESS, dtype=np.int64)
    return np.where(way.rows, _ENDLESS, 0)


def _sum(several: Iterable[Ints], rows: int) -> Ints:
    total = np.zeros(rows, dtype=np.int64)
    for each in several:
        total = total + each
    return total


# --- Other structures


def _searched(factor: Factor, times: Times, rows: int, steps: Steps | None) -> Bounds:
    """A construction below, cuts above, and a search where they differ.

    Args:
        steps: of the search; None not to search.
    """
    count = _constructed(factor.ways, times, rows)
    at_most = np.full(rows, TOGETHER_MAX, dtype=np.int64)
    for cut in factor.cuts:
        at_most = np.minimum(at_most, _of_cut(cut, factor, times, rows))
    open_rows = np.flatnonzero(count < at_most)
    if not len(open_rows) or steps is None:
        return Bounds(count, at_most)
    cells = sorted(factor.cells)
    free = np.array([times(cell, 1)[open_rows] for cell in cells])
    having = np.array(
        [way.rows[open_rows] if way.rows is not None else free[0] >= 0 for way in factor.ways]
    )
    keys = np.ascontiguousarray(np.concatenate((free, having.astype(np.int64))).T)
    distinct, which = _distinct(keys)
    bounds = np.array(
        [_solved(factor, cells, tuple(each), steps) for each in distinct.tolist()],
        dtype=np.int64,
    )[which]
    count[open_rows] = np.maximum(count[open_rows], bounds[:, 0])
    at_most[open_rows] = np.minimum(at_most[open_rows], bounds[:, 1])
    return Bounds(count, at_most)


def _distinct(keys: Ints) -> tuple[Ints, Ints]:
    """The different rows, and for each row which of them it is."""
    if (keys == keys[0]).all():
        # PERF bench, capacity: in an empty fleet, and sorting takes longer than all the rest.
        return keys[:1], np.zeros(len(keys), dtype=np.int64)
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    return distinct, which.ravel()


def _solved(
    factor: Factor, cells: Sequence[Cell], key: tuple[int, ...], steps: Steps
) -> tuple[int, int]:
    """The least and the most of one row, given what its cells have and which ways it has."""
    bounds = factor.solved.get(key)
    if bounds is None:
        free = key[: len(cells)]
        ways = [way for way, has in zip(factor.ways, key[len(cells) :], strict=True) if has]
        bounds = Branching(replace(factor, ways=tuple(ways)), cells, steps).solve(free)
        factor.solved[key] = bounds
    return bounds


def _constructed(ways: Sequence[Way], times: Times, rows: int) -> Ints:
    """One way after another, each as often as it still fits."""
    free: dict[Cell, Ints] = {}
    for way in ways:
        for cell, _ in way.takes:
            if cell not in free:
                free[cell] = times(cell, 1).copy()
    count = np.zeros(rows, dtype=np.int64)
    for way in ways:
        often = _alone(way, rows)
        for cell, amount in way.takes:
            often = np.minimum(often, free[cell] // amount)
        for cell, amount in way.takes:
            free[cell] -= often * amount
        count += often
    return count


def _of_cut(cut: Cut, factor: Factor, times: Times, rows: int) -> Ints:
    total = np.zeros(rows, dtype=np.int64)
    for quotient in cut.quotients:
        least = _least(quotient, times)
        mask = factor.having[quotient[0][0]]
        total += least if mask is None else np.where(mask, least, 0)
    return total // cut.divisor


#: The steps of one answer.
STEPS_MAX: Final = 10_000


class Steps:
    """The steps that all searches of one answer may take together, within its time."""

    def __init__(self, budget: Budget, left: int = STEPS_MAX) -> None:
        self.left = left
        self.budget = budget

    def take(self) -> bool:
        """Take one step, if there is one left."""
        if self.left <= 0 or self.budget.is_spent():
            return False
        self.left -= 1
        return True


class Branching:
    """The search on one host: it takes the first way as often as it fits, then once less, and so
    on, and so each further way of what is left."""

    def __init__(self, factor: Factor, cells: Sequence[Cell], steps: Steps) -> None:
        """A search.

        Args:
            factor: with the ways that the host has.
            cells: those of the factor, in the order in which `solve` is told what they have.
        """
        self._steps = steps
        place = {cell: number for number, cell in enumerate(cells)}
        self._ways = [[(place[cell], amount) for cell, amount in way.takes] for way in factor.ways]
        #: For each way: the cuts of it and of those behind it.
        self._cuts = [
            _cuts(replace(factor, ways=factor.ways[number:]), place)
            for number in range(len(factor.ways))
        ]
        self._best = 0
        self._is_cut_short = False

    def solve(self, free: Sequence[int]) -> tuple[int, int]:
        """The least and the most, equal unless the steps end; `free` is what each cell has."""
        if not self._ways:
            return 0, 0
        most = self._bound(0, free)
        self._search(0, list(free), 0)
        return self._best, most if self._is_cut_short else self._best

    def _search(self, number: int, free: list[int], placed: int) -> None:
        if placed > self._best:
            self._best = placed
        if number == len(self._ways):
            return
        if not self._steps.take():
            self._is_cut_short = True
            return
        if placed + self._bound(number, free) <= self._best:
            return
        way = self._ways[number]
        often = min(free[cell] // amount for cell, amount in way)
        for cell, amount in way:
            free[cell] -= often * amount
        while True:
            self._search(number + 1, free, placed + often)
            # The last way less often is never more, and to try all of it takes no steps.
            if not often or self._is_cut_short or number + 1 == len(self._ways):
                break
            often -= 1
            for cell, amount in way:
                free[cell] += amount
        for cell, amount in way:
            free[cell] += often * amount

    def _bound(self, number: int, free: Sequence[int]) -> int:
        """No more placements fit with the ways from one on."""
        return min(
            sum(
                [min([free[cell] // amount for cell, amount in quotient]) for quotient in quotients]
            )
            // divisor
            for quotients, divisor in self._cuts[number]
        )


def _cuts(factor: Factor, place: dict[Cell, int]) -> list[tuple[list[list[tuple[int, int]]], int]]:
    return [
        (
            [[(place[cell], amount) for cell, amount in quotient] for quotient in cut.quotients],
            cut.divisor,
        )
        for cut in factor.cuts
    ]
