# SPDX-License-Identifier: Apache-2.0
"""The largest smaller amount with which some host fits.

What one provider may give of a class, the rest of a candidate unchanged, are the multiples of its
step_size from its min_unit up to some amount. So among the multiples of one step, from one
least amount on, those that some host fits with end where the largest that such a provider can give
ends: they are bisected for each pair of step_size and min_unit that the fleet has. An amount that
may be split comes in multiples of a common step, from the sum of the least parts on.

Source: spec/beyond.md 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb, lcm
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.explain.asking import Asking
from berth.candidates.question import Split
from berth.index.aggregate_sets import Mask
from berth.index.block import Columns
from berth.model.inventory import MAX_INT

#: More pairs than this are not bisected: every amount is tried instead.
_GRIDS_MAX: Final = 256


#: The hosts among some that fit with an amount.
_Fit = Callable[[int, Mask], Mask]


class Grid(NamedTuple):
    """Amounts: the multiples of `step` from `least` on."""

    step: int
    least: int


class Largest(NamedTuple):
    """An amount, and the hosts that fit with it."""

    amount: int
    hosts: Mask


class Amount:
    """The amount of one atom, and what else may be asked for.

    Args:
        split: how it may be split, if it may.
    """

    def __init__(self, asking: Asking, number: int, split: Split | None) -> None:
        self._asking = asking
        self._number = number
        asked = asking.atoms[number].asked
        assert asked is not None
        name, self.asked = asked
        self._class_id = asking.present.names.class_ids[name]
        self._split = split

    def largest(self, kept: int, among: Mask) -> Largest | None:
        """The largest smaller amount with which one of some hosts fits some atoms, this one
        included; None if there is none."""
        return self.largest_within(kept, among, most=self.asked - 1)

    def largest_within(
        self, kept: int, among: Mask, *, most: int = MAX_INT, above: int = 0
    ) -> Largest | None:
        """The same, but any amount above one and up to another."""
        if self._asking.budget.is_spent():
            return None
        most = min(most, self._most(among))

        def fit(amount: int, among: Mask) -> Mask:
            return self._asking.fit(kept, among=among, amounts={self._number: amount})

        if self._grids is None:
            return self._first_below(most + 1, fit, among, above)
        best = None
        for grid in self._grids:
            best = _largest_of(grid, best.amount if best else above, most, fit, among) or best
        if best is None or len(self._grids) == 1:
            return best
        # Who cannot give less in steps of that grid may still give this amount.
        return best._replace(hosts=fit(best.amount, among))

    def _first_below(self, end: int, fit: _Fit, among: Mask, above: int) -> Largest | None:
        """Try every amount, the largest first."""
        for amount in range(end - 1, above, -1):
            hosts = fit(amount, among)
            if hosts.any():
                return Largest(amount, hosts)
            if self._asking.budget.is_spent():
                break
        return None

    def _most(self, among: Mask) -> int:
        """None of some hosts can give more, and no other tree to one of them."""
        most = 0
        is_shared = self._class_id in self._asking.present.sharing.classes
        for _, block, hosts in self._asking.fleet.spans:
            columns = block.columns.get(self._class_id)
            if columns is not None:
                room = self._asking.at_once(columns)
                room = room if is_shared else room[:, among[hosts]]
                if room.size and self._split is None:
                    most = max(most, int(room.max()))
                elif room.size:
                    most = max(most, int(room.sum(axis=0, dtype=np.int64).max()))
        return most

    @cached_property
    def _grids(self) -> list[Grid] | None:
        """The grids that have every amount that some host may fit with; None if there are too
        many."""
        units = sorted(self._units())
        if self._split is None:
            return units
        grids = set(units)
        for count in range(2, self._split.parts + 1):
            if comb(len(units) + count - 1, count) > _GRIDS_MAX:
                return None
            for several in combinations_with_replacement(units, count):
                step = lcm(self._split.step, *(unit.step for unit in several))
                least = sum(_part(unit, step, self._split.min) for unit in several)
                grids.add(Grid(step, least))
        return sorted(grids)

    def _units(self) -> set[Grid]:
        """step_size and min_unit of every inventory of the class."""
        units: set[Grid] = set()
        for columns in self._columns():
            if not columns.stepped and columns.min_unit_max <= 1:
                units.add(Grid(1, 1))
                continue
            pairs = np.stack((columns.step_size.ravel(), columns.min_unit.ravel()), axis=1)
            units.update(Grid(*pair) for pair in np.unique(pairs, axis=0).tolist())
        return units

    def _columns(self) -> Iterator[Columns]:
        class_id = self._class_id
        for _, block in self._asking.present.occupied():
            if class_id in block.columns:
                yield block.columns[class_id]


def _part(unit: Grid, step: int, least: int) -> int:
    """The least multiple of a step that one provider may give as a part."""
    return -(-max(unit.least, least) // step) * step


def _largest_of(grid: Grid, best: int, most: int, fit: _Fit, among: Mask) -> Largest | None:
    """The largest amount of a grid with which some host fits, if it is above the best so far;
    otherwise None."""
    low, high = -(-max(grid.least, best + 1) // grid.step), most // grid.step
    if low > high:
        return None
    # Mostly some host can give all that its provider has.
    hosts = fit(high * grid.step, among)
    if hosts.any():
        return Largest(high * grid.step, hosts)
    high -= 1
    hosts = fit(low * grid.step, among) if low <= high else hosts
    if not hosts.any():
        return None
    while low < high:
        at = (low + high + 1) // 2
        # Who gives more in steps of this grid can give this.
        more = fit(at * grid.step, hosts)
        if more.any():
            hosts, low = more, at
        else:
            high = at - 1
    return Largest(low * grid.step, hosts)
