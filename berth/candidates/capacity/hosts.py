# SPDX-License-Identifier: Apache-2.0
"""How often each host serves a request: cap(R, q) for every host R at once.

What the ways of a host are comes from the search; only their amounts are counted here. Sharing
providers count in full for each host.

Source: spec/beyond.md 4.1.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, takewhile
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.assign import PerTree, assign
from berth.candidates.batch import Batch
from berth.candidates.capacity.branching import Steps
from berth.candidates.capacity.factors import WAYS_MAX, Factor, factors_of
from berth.candidates.capacity.filling import Filling, Placements, asked_of, most_of
from berth.candidates.capacity.free import Cell, Free
from berth.candidates.capacity.packing import Bounds, Solved, pack
from berth.candidates.filter import filter_trees
from berth.candidates.fleet import Fleet
from berth.candidates.masks import Rows
from berth.candidates.plan import Plan
from berth.candidates.request import SearchSettings
from berth.candidates.trees import Trees
from berth.candidates.uniform import united
from berth.index.aggregate_sets import Mask
from berth.index.block import Ints
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget


class Piece(NamedTuple):
    """Some hosts that the search found together, and how they serve the request.

    Attributes:
        hosts: their numbers in the fleet, one for each of `Trees.rows`.
        cells: what may give anything, and in which rows; None for all.
        factors: with the bounds of each; none of hosts that were filled.
        rows: those that count; None for all.
    """

    trees: Trees
    hosts: Rows
    cells: Mapping[Cell, Mask | None]
    factors: tuple[tuple[Factor, Bounds], ...]
    rows: Mask | None


class _Packing(NamedTuple):
    """A factor, and what has been searched of it."""

    factor: Factor
    solved: Solved


#: The choices of all candidates of some trees, if all rows have them -> their factors.
Factors = dict[tuple[tuple[int, ...], ...], tuple[_Packing, ...]]

#: More of them are not kept.
_FACTORS_MAX: Final = 1_000


class HostCounts:
    """cap(R, q) of all hosts of a fleet, for one request.

    Attributes:
        count, at_most: for each host of the fleet.
        pieces: the hosts that fit, if any tree of this fleet shares anything.
        placements: of hosts that were filled: (block_id, row) -> what they got.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        plan: Plan,
        fleet: Fleet,
        free: Free,
        *,
        budget: Budget,
        steps: Steps,
        among: Mapping[int, Mask] | None = None,
        factors: Factors | None = None,
    ) -> None:
        """Count, as far as the budget allows.

        Args:
            among: the rows of each block that count; None for all of all blocks. With them, what
                the budget cuts off has no bounds.
            factors: those of earlier counts of the same plan; gets the new ones.
        """
        assert plan.giving or plan.splits, "a request that takes nothing fits without end"
        self._snapshot = snapshot
        self._plan = plan
        self._fleet = fleet
        self._free = free
        self._budget = budget
        self._steps = steps
        self._among = among
        self.count: Ints = np.zeros(fleet.size, dtype=np.int64)
        self.at_most: Ints = self.count
        self.pieces: list[Piece] = []
        self.placements: dict[tuple[int, int], list[Placements]] = {}
        self._factors: Factors = {} if factors is None else factors
        #: What candidates with some choices take.
        self._given: dict[tuple[int, ...], dict[Cell, int | Ints]] = {}
        self._starts = fleet.starts
        #: The rows of each block whose ways are not listed.
        self._unlisted: dict[int, Mask] = {}
        if not plan.splits:
            self._list()
        if plan.splits or self._unlisted:
            self._fill()
        if budget.ended is not None and among is None:
            self._bound_the_rest()

    @property
    def is_exact(self) -> bool:
        """Whether the two are equal for all hosts."""
        return self.count is self.at_most or bool((self.count == self.at_most).all())

    def _list(self) -> None:
        """Count where the ways can be listed."""
        batches = assign(
            self._snapshot,
            self._plan,
            filter_trees(self._snapshot, self._plan, self._budget, among=self._among),
            SearchSettings(),
            None,
            rng=random.Random(0),
            budget=self._budget,
            duplicates=None,
            # One more, to know whether there is one.
            per_tree=PerTree(WAYS_MAX + 1),
            unordered=True,
        )
        for trees, several in groupby(batches, key=attrgetter("trees")):
            listed = [*takewhile(lambda batch: self._budget.take(batch.size), several)]
            if self._budget.ended is None:
                self._count(trees, listed)
            self._budget.give_back(sum(batch.size for batch in listed))

    def _count(self, trees: Trees, batches: Sequence[Batch]) -> None:
        start = self._starts[trees.block_id]
        if len(batches) == 1 and not self._snapshot.sharing.by_aggregate:
            # PERF bench, capacity: the one way of a flat host.
            count, rows = self._of_one(batches[0]), batches[0].rows
            is_whole = len(rows) == trees.block.rows
            at = slice(start, start + len(rows)) if is_whole else start + rows
            self.count[at] = count
            if self.at_most is not self.count:
                self.at_most[at] = count
            return
        hosts = start + trees.rows
        listed = self._listed(trees, batches)
        factors = self._factors_of(trees, batches)
        packed = tuple((each.factor, self._packed(each, trees)) for each in factors)
        bounds = least_of(bounds for _, bounds in packed)
        if listed is not None:
            bounds = Bounds(np.where(listed, bounds.count, 0), np.where(listed, bounds.at_most, 0))
        self._set(hosts, bounds)
        if self._snapshot.sharing.by_aggregate:
            cells = united([factor.having for factor, _ in packed])
            self.pieces.append(Piece(trees, hosts, cells, packed, listed))

    def _of_one(self, batch: Batch) -> Ints:
        """How often the only way of flat hosts, or of trees that nobody shares with, fits."""
        trees = batch.trees
        least: Ints | None = None
        given = self._given.get(batch.choices)
        if given is None:
            given = self._given[batch.choices] = batch.given(self._plan)
        for (choice, class_id), amount in given.items():
            assert isinstance(amount, int), "nothing is split"
            line = trees.block.shape.row_of_node[class_id][choice]
            times = self._free.times_in_block(trees.block_id, class_id, amount)[line]
            least = times if least is None else np.minimum(least, times)
        assert least is not None
        return least if len(batch.rows) == len(least) else least[batch.rows]

    def _factors_of(self, trees: Trees, batches: Sequence[Batch]) -> tuple[_Packing, ...]:
        if any(len(batch.positions) < len(trees.rows) for batch in batches):
            return _packings(self._plan, batches)
        # PERF bench, capacity: the trees of one shape fill many blocks.
        key = tuple([batch.choices for batch in batches])
        factors = self._factors.get(key)
        if factors is None:
            if len(self._factors) >= _FACTORS_MAX:
                self._factors.clear()
            factors = self._factors[key] = _packings(self._plan, batches)
        return factors

    def _packed(self, packing: _Packing, trees: Trees) -> Bounds:
        def times(cell: Cell, amount: int) -> Ints:
            return self._free.times(trees, cell, amount)

        return pack(packing.factor, times, len(trees.rows), self._steps, packing.solved)

    def _listed(self, trees: Trees, batches: Sequence[Batch]) -> Mask | None:
        """The rows of which all candidates were found; None for all. The others are noted."""
        if len(batches) <= WAYS_MAX:
            return None
        counts = np.zeros(len(trees.rows), dtype=np.int64)
        for batch in batches:
            counts[batch.positions] += 1
        listed = counts <= WAYS_MAX
        if listed.all():
            return None
        unlisted = self._unlisted.setdefault(
            trees.block_id, np.zeros(trees.block.rows, dtype=np.bool_)
        )
        unlisted[trees.rows[~listed]] = True
        return listed

    def _fill(self) -> None:
        """Count the hosts whose ways are not listed."""
        among = self._among if self._plan.splits else self._unlisted
        for trees in filter_trees(self._snapshot, self._plan, self._budget, among=among):
            hosts = self._starts[trees.block_id] + trees.rows
            none = np.zeros(len(hosts), dtype=np.int64)
            self._set(hosts, Bounds(none, most_of(self._plan, trees, self._free)))
            if self._snapshot.sharing.by_aggregate:
                cells = united(
                    {
                        (choice, class_id): mask
                        for choice, mask in trees.masks[demand.query_id].items()
                    }
                    for demand in self._plan.asking
                    for class_id, _ in demand.amounts
                )
                self.pieces.append(Piece(trees, hosts, cells, (), None))
        filling = Filling(self._snapshot, self._plan, self._free, self._budget)
        filling.fill(among)
        for block_id, counts in filling.counts.items():
            start = self._starts[block_id]
            self.count[start : start + len(counts)] += counts
        self.placements = filling.placements
        if self._budget.ended is None:
            # Bounds that look at amounts only do not know that nothing fits.
            self.at_most = np.where(self.count > 0, self.at_most, 0)

    def _set(self, hosts: Rows, bounds: Bounds) -> None:
        if self.at_most is self.count and not bounds.is_exact:
            self.at_most = self.count.copy()
        self.count[hosts] = bounds.count
        if self.at_most is not self.count:
            self.at_most[hosts] = bounds.at_most

    def _bound_the_rest(self) -> None:
        """Bound the hosts that the search may not have come to, by their amounts alone."""
        most: Ints = np.minimum.reduce(
            [
                self._free.of_hosts(self._fleet, class_id) // asked.units_of(1)
                for class_id, asked in asked_of(self._plan).items()
            ]
        )
        self.at_most = np.where(self.count > 0, self.at_most, most)


def _packings(plan: Plan, batches: Sequence[Batch]) -> tuple[_Packing, ...]:
    return tuple(_Packing(factor, {}) for factor in factors_of(plan, batches))


def least_of(several: Iterable[Bounds]) -> Bounds:
    """The least of some bounds, row by row."""
    listed = list(several)
    count = np.minimum.reduce([bounds.count for bounds in listed])
    if all(bounds.is_exact for bounds in listed):
        return Bounds(count, count)
    return Bounds(count, np.minimum.reduce([bounds.at_most for bounds in listed]))
