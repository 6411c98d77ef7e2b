# SPDX-License-Identifier: Apache-2.0
"""Branch and bound: how often some ways fit on one host, whatever their structure.

Source: spec/beyond.md 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from berth.candidates.capacity.factors import Factor
from berth.candidates.capacity.free import Cell

if TYPE_CHECKING:
    from berth.model.budget import Budget

#: The steps of one answer.
STEPS_MAX: Final = 10_000


class Steps:
    """The steps that all searches of one answer may take together, within its time."""

    def __init__(self, budget: Budget, left: int = STEPS_MAX) -> None:
        self.left = left
        self._budget = budget

    def take(self) -> bool:
        """Take one step, if there is one left."""
        if self.left <= 0 or self._budget.is_spent():
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
