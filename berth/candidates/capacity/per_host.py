# SPDX-License-Identifier: Apache-2.0
"""How often each host serves a request: cap(R, q) for every host R at once.

What the ways of a host are comes from the search; only their amounts are counted here. Sharing
providers count in full for each host.

Source: spec/beyond.md 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, takewhile
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.assign import assign_groups
from berth.candidates.batch import Batch
from berth.candidates.capacity.greedy import Filling, Placements, asked_of, most_of
from berth.candidates.capacity.packing import Bounds, Steps, least_of, pack
from berth.candidates.capacity.ways import WAYS_MAX, Cell, Factor, Free, Way, factors_of, together
from berth.candidates.conditions import Rows
from berth.candidates.filter import filter_trees
from berth.candidates.fleet import Fleet
from berth.candidates.plan import Plan
from berth.candidates.trees import Trees, marks_in, united
from berth.index.block import Ints
from berth.index.sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, ProviderId


class Single(NamedTuple):
    """How hosts need one pool, and nothing else that is shared.

    Attributes:
        choice: the pool.
        takes: (class, amount) of it for each placement.
        own: how often each row can do the rest; None for as often as anybody likes.
    """

    choice: int
    takes: tuple[tuple[ClassId, int], ...]
    own: Ints | None


class Piece:
    """Some hosts that the search found together, and how they serve the request.

    Attributes:
        hosts: their numbers in the fleet, one for each of `Trees.rows`.
        factors: with the bounds of each; none of hosts that were filled.
        foreign: the choices of other trees.
        single: see `Single`; None if these hosts are otherwise.
        is_pool: the rows of which a provider serves other trees too.
    """

    def __init__(
        self,
        trees: Trees,
        hosts: Rows,
        cells: Mapping[Cell, Mask | None],
        factors: tuple[tuple[Factor, Bounds], ...],
        rows: Mask | None,
    ) -> None:
        """Hosts.

        Args:
            cells: what may give anything, and in which rows; None for all.
            rows: those that count; None for all.
        """
        self.trees = trees
        self.hosts = hosts
        self.factors = factors
        self._cells = cells
        self._rows = rows
        self._size = trees.block.shape.size
        self.foreign = sorted({choice for choice, _ in cells if choice >= self._size})
        self.single = self._single()
        self.is_pool: Mask = np.zeros(len(hosts), dtype=np.bool_)
        #: Node -> the rows in which it serves other trees too.
        self._own_pools: dict[int, Mask] = {}
        self._own_times: dict[tuple[ClassId, int], Ints] = {}

    def some(self, hosts: Mask | None) -> Rows:
        """Those of the rows that are some hosts."""
        rows: Mask = np.ones(len(self.hosts), dtype=np.bool_)
        if self._rows is not None:
            rows = rows & self._rows
        if hosts is not None:
            rows = rows & hosts[self.hosts]
        return np.flatnonzero(rows)

    def pools(self) -> set[ProviderId]:
        """All providers of other trees that may serve any row."""
        return {
            ProviderId(each)
            for choice in self.foreign
            for each in np.unique(self.trees.provider_ids(choice)).tolist()
        }

    def pools_giving(self, class_id: ClassId, rows: Rows) -> set[ProviderId]:
        """The pools that may give a class to some rows, their own ones too."""
        pools: set[ProviderId] = set()
        for choice, each in self._cells:
            if each != class_id:
                continue
            if choice >= self._size:
                some = rows
            elif choice in self._own_pools:
                some = rows[self._own_pools[choice][rows]]
            else:
                continue
            pools.update(map(ProviderId, np.unique(self.trees.provider_ids(choice, some)).tolist()))
        return pools

    def find_own(self, pools: set[ProviderId]) -> None:
        """Find the rows of which a provider is one of the pools."""
        trees, every = self.trees, np.array(sorted(pools), dtype=np.int64)
        trait = trees.sharing_providers.sharing.trait
        for node in sorted({choice for choice, _ in self._cells if choice < self._size}):
            if trait in trees.block.shape.node_types[node].traits:
                mask = np.isin(self.trees.provider_ids(node), every)
                if mask.any():
                    self._own_pools[node] = mask
                    self.is_pool = self.is_pool | mask

    def own_times(self, free: Free, class_id: ClassId, unit: int) -> Ints:
        """How often an amount goes into what each row's own providers have left, pools aside."""
        key = class_id, unit
        total = self._own_times.get(key)
        if total is None:
            total = np.zeros(len(self.hosts), dtype=np.int64)
            for cell, rows in self._cells.items():
                choice, each = cell
                if each != class_id or choice >= self._size:
                    continue
                times = free.times(self.trees, cell, unit)
                if rows is not None:
                    times = np.where(rows, times, 0)
                if choice in self._own_pools:
                    times = np.where(self._own_pools[choice], 0, times)
                total = together([total, times])
            self._own_times[key] = total
        return total

    def _single(self) -> Single | None:
        own: Ints | None = None
        through: Way | None = None
        for factor, bounds in self.factors:
            if all(choice < self._size for choice, _ in factor.cells):
                own = bounds.count if own is None else np.minimum(own, bounds.count)
                continue
            if through is not None or len(factor.ways) > 1 or factor.ways[0].rows is not None:
                return None
            through = factor.ways[0]
        choices = {choice for (choice, _), _ in through.takes} if through else set()
        if through is None or len(choices) > 1 or min(choices) < self._size:
            return None
        takes = tuple((class_id, amount) for (_, class_id), amount in through.takes)
        return Single(min(choices), takes, own)


#: The choices of all candidates of some trees, if all rows have them -> their factors.
Factors = dict[tuple[tuple[int, ...], ...], tuple[Factor, ...]]

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
        steps: Steps,
        *,
        among: Mapping[int, Mask] | None = None,
        factors: Factors | None = None,
    ) -> None:
        """Count, as far as the budget of the steps allows.

        Args:
            among: the rows of each block that count; None for all of all blocks. With them, what
                the budget cuts off has no bounds.
            factors: those of earlier counts of the same plan; gets the new ones.
        """
        assert plan.giving or plan.splits, "a request that takes nothing fits without end"
        self.snapshot = snapshot
        self.plan = plan
        self.fleet = fleet
        self.free = free
        self.budget = steps.budget
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
        if self.budget.ended is not None and among is None:
            self._bound_the_rest()

    def _list(self) -> None:
        """Count where the ways can be listed."""
        passing = filter_trees(self.snapshot, self.plan, self.budget, among=self._among)
        batches = assign_groups(
            self.snapshot, self.plan, passing, self.budget, most_per_tree=WAYS_MAX, unordered=True
        )
        for trees, several in groupby(batches, key=attrgetter("trees")):
            listed = [*takewhile(lambda batch: self.budget.take(batch.size), several)]
            if self.budget.ended is None:
                self._count(trees, listed)
            self.budget.give_back(sum(batch.size for batch in listed))

    def _count(self, trees: Trees, batches: Sequence[Batch]) -> None:
        start = self._starts[trees.block_id]
        if len(batches) == 1 and not self.snapshot.sharing.by_aggregate:
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
        packed = tuple((factor, self._packed(factor, trees)) for factor in factors)
        bounds = least_of(bounds for _, bounds in packed)
        if listed is not None:
            bounds = Bounds(np.where(listed, bounds.count, 0), np.where(listed, bounds.at_most, 0))
        self._set(hosts, bounds)
        if self.snapshot.sharing.by_aggregate:
            cells = united([factor.having for factor, _ in packed])
            self.pieces.append(Piece(trees, hosts, cells, packed, listed))

    def _of_one(self, batch: Batch) -> Ints:
        """How often the only way of flat hosts, or of trees that nobody shares with, fits."""
        trees = batch.trees
        least: Ints | None = None
        given = self._given.get(batch.choices)
        if given is None:
            given = self._given[batch.choices] = batch.given(self.plan)
        for (choice, class_id), amount in given.items():
            assert isinstance(amount, int), "nothing is split"
            line = trees.block.shape.row_of_node[class_id][choice]
            times = self.free.times_in_block(trees.block_id, class_id, amount)[line]
            least = times if least is None else np.minimum(least, times)
        assert least is not None
        return least if len(batch.rows) == len(least) else least[batch.rows]

    def _factors_of(self, trees: Trees, batches: Sequence[Batch]) -> tuple[Factor, ...]:
        if any(len(batch.positions) < len(trees.rows) for batch in batches):
            return factors_of(self.plan, batches)
        # PERF bench, capacity: the trees of one shape fill many blocks.
        key = tuple([batch.choices for batch in batches])
        factors = self._factors.get(key)
        if factors is None:
            if len(self._factors) >= _FACTORS_MAX:
                self._factors.clear()
            factors = self._factors[key] = factors_of(self.plan, batches)
        return factors

    def _packed(self, factor: Factor, trees: Trees) -> Bounds:
        def times(cell: Cell, amount: int) -> Ints:
            return self.free.times(trees, cell, amount)

        return pack(factor, times, len(trees.rows), self._steps)

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
        marks_in(self._unlisted, trees.block_id, trees.block)[trees.rows[~listed]] = True
        return listed

    def _fill(self) -> None:
        """Count the hosts whose ways are not listed."""
        among = self._among if self.plan.splits else self._unlisted
        for trees in filter_trees(self.snapshot, self.plan, self.budget, among=among):
            hosts = self._starts[trees.block_id] + trees.rows
            none = np.zeros(len(hosts), dtype=np.int64)
            self._set(hosts, Bounds(none, most_of(self.plan, trees, self.free)))
            if self.snapshot.sharing.by_aggregate:
                cells = united(
                    {
                        (choice, class_id): mask
                        for choice, mask in trees.masks[demand.query_id].items()
                    }
                    for demand in self.plan.asking
                    for class_id, _ in demand.amounts
                )
                self.pieces.append(Piece(trees, hosts, cells, (), None))
        filling = Filling(self.snapshot, self.plan, self.free, self.budget)
        filling.fill(among)
        for block_id, counts in filling.counts.items():
            start = self._starts[block_id]
            self.count[start : start + len(counts)] += counts
        self.placements = filling.placements
        if self.budget.ended is None:
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
                self.free.of_hosts(self.fleet, class_id) // asked.units_of(1)
                for class_id, asked in asked_of(self.plan).items()
            ]
        )
        self.at_most = np.where(self.count > 0, self.at_most, most)
