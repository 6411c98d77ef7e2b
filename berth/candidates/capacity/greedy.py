# SPDX-License-Identifier: Apache-2.0
"""Hosts that serve a request in too many ways to list them, or with splits: a construction below,
and bounds above.

The construction asks the search for one candidate of each host, takes it, and asks again with what
is left, until nothing fits. A candidate that splits nothing is taken as often as it goes; of one
that does, the next may be another.

Source: spec/beyond.md 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from math import gcd
from typing import Final, NamedTuple

import numpy as np

from berth.candidates import one_candidate_each
from berth.candidates.batch import Batch
from berth.candidates.capacity.ways import TOGETHER_MAX, Free, together
from berth.candidates.fleet import FREE_MAX
from berth.candidates.plan import Plan, PlannedSplit
from berth.candidates.trees import FilteredTrees, marks_in, united
from berth.index.block import Ints
from berth.index.scenario import with_more_used
from berth.index.sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId, ProviderId

#: What a placement takes: (provider, class) -> amount.
Taken = dict[tuple[ProviderId, ClassId], int]


#: The blocks that are filled together.
_BLOCKS_AT_ONCE: Final = 64


class Placements(NamedTuple):
    """The same placement, several times."""

    takes: Taken
    times: int


class Filling:
    """Fills hosts of one snapshot, each as if it were alone.

    Attributes:
        counts: block_id -> how many placements each row has got.
        placements: (block_id, row) -> these, of hosts with which other trees may share.
    """

    def __init__(self, snapshot: Snapshot, plan: Plan, free: Free, budget: Budget) -> None:
        self._snapshot = snapshot
        self._plan = plan
        self._free = free
        self._budget = budget
        self.counts: dict[int, Ints] = {}
        self.placements: dict[tuple[int, int], list[Placements]] = {}
        #: (block_id, class) -> what the trees' own providers have given.
        self._taken: dict[tuple[int, ClassId], Ints] = {}
        #: (block_id, row) -> what the tree has got from providers of other trees.
        self._foreign: dict[tuple[int, int], Taken] = {}

    def fill(self, hosts: Mapping[int, Mask] | None) -> None:
        """Fill the hosts in some rows of blocks; None for all."""
        if hosts is None:
            occupied = self._snapshot.occupied()
            hosts = {number: np.ones(block.rows, dtype=np.bool_) for number, block in occupied}
        # What is left changes only where something was placed, and the budget is looked at between
        # two states: so each is of few blocks.
        several = iter(hosts.items())
        while some := dict(islice(several, _BLOCKS_AT_ONCE)):
            self._fill(some)

    def _fill(self, left: Mapping[int, Mask]) -> None:
        """Fill some hosts, which share no state with those filled before."""
        self._taken = {}
        while left and not self._budget.is_spent():
            fleet = with_more_used(self._snapshot, self._taken) if self._taken else self._snapshot
            placed: dict[int, Mask] = {}
            for batch in one_candidate_each(fleet, self._plan, self._budget, left):
                self._take(batch, placed)
            left = placed

    def _take(self, batch: Batch, placed: dict[int, Mask]) -> None:
        """Take the candidates of a batch, and note the rows in which that was possible."""
        trees = batch.trees
        block_id, block, rows = trees.block_id, trees.block, batch.rows
        size = block.shape.size
        given = batch.given(self._plan)
        is_split = any(len(part.choices) > 1 for part in batch.parts)
        often: Ints = np.full(len(rows), 1 if is_split else FREE_MAX)
        for (choice, class_id), amount in given.items():
            if choice < size:
                line = block.shape.row_of_node[class_id][choice]
                free = self._free.of_block(block_id, class_id)[line, rows]
                left = free - self._taken_of(block_id, class_id)[line, rows]
                often = np.minimum(often, left // amount)
        if self._snapshot.sharing.by_aggregate:
            often = self._take_shared(batch, given, often)
        for (choice, class_id), amount in given.items():
            if choice < size:
                line = block.shape.row_of_node[class_id][choice]
                self._taken_of(block_id, class_id)[line, rows] += amount * often
        counts = self.counts.setdefault(block_id, np.zeros(block.rows, dtype=np.int64))
        counts[rows] = np.minimum(counts[rows] + often, TOGETHER_MAX)
        if often.any():
            marks_in(placed, block_id, block)[rows[often > 0]] = True

    def _taken_of(self, block_id: int, class_id: ClassId) -> Ints:
        key = block_id, class_id
        if key not in self._taken:
            self._taken[key] = np.zeros_like(self._free.of_block(block_id, class_id))
        return self._taken[key]

    def _take_shared(
        self, batch: Batch, given: Mapping[tuple[int, ClassId], int | Ints], often: Ints
    ) -> Ints:
        """Note placements one by one, and how often each is possible with what providers of other
        trees have left for this tree alone."""
        trees = batch.trees
        size = trees.block.shape.size
        often = often.copy()
        for place, position in enumerate(batch.positions.tolist()):
            at = trees.block_id, int(batch.rows[place])
            foreign = self._foreign.setdefault(at, {})
            takes: Taken = {}
            times = int(often[place])
            for (choice, class_id), amounts in given.items():
                cell = trees.provider_id(choice, position), class_id
                amount = int(amounts[place] if isinstance(amounts, np.ndarray) else amounts)
                takes[cell] = amount
                if choice >= size:
                    left = self._free.of_provider(*cell) - foreign.get(cell, 0)
                    times = min(times, left // amount)
            for (choice, class_id), amount in zip(given, takes.values(), strict=True):
                if choice >= size:
                    cell = trees.provider_id(choice, position), class_id
                    foreign[cell] = foreign.get(cell, 0) + times * amount
            if times:
                self.placements.setdefault(at, []).append(Placements(takes, times))
            often[place] = times
        return often


def most_of(plan: Plan, trees: FilteredTrees, free: Free) -> Ints:
    """No row of some trees serves a request more often, whatever the ways."""
    bounds = []
    for class_id, asked in asked_of(plan).items():
        for unit in asked.units:
            cells = ((class_id, unit),)
            bounds.append(_total(trees, asked.query_ids, cells, free) // asked.units_of(unit))
    for demand in plan.demands:
        if len(demand.amounts) > 1:
            bounds.append(_total(trees, (demand.query_id,), demand.amounts, free))
    most: Ints = np.minimum.reduce(bounds)
    return most


class AskedOfClass(NamedTuple):
    """What all groups ask of one class.

    Attributes:
        amounts: that one provider gives.
        splits: that several may give.
        query_ids: of the providers that may give any of it.
    """

    amounts: tuple[int, ...]
    splits: tuple[PlannedSplit, ...]
    query_ids: tuple[int, ...]

    @property
    def units(self) -> list[int]:
        """Units in which the class may be counted, so that each placement takes some."""
        units = {1, *self.amounts, *map(_unit_of, self.splits)}
        return sorted(unit for unit in units if self.units_of(unit))

    def units_of(self, unit: int) -> int:
        """How many whole units each placement takes at least, whichever providers give them."""
        return sum(amount // unit for amount in self.amounts) + sum(
            split.amount // unit for split in self.splits if _unit_of(split) % unit == 0
        )


def asked_of(plan: Plan) -> dict[ClassId, AskedOfClass]:
    """What a plan asks of each class."""
    asked: dict[ClassId, AskedOfClass] = {}
    none = AskedOfClass((), (), ())
    for demand in plan.demands:
        for class_id, amount in demand.amounts:
            amounts, splits, queries = asked.get(class_id, none)
            asked[class_id] = AskedOfClass(
                (*amounts, amount), splits, tuple({*queries, demand.query_id})
            )
    for split in plan.splits:
        amounts, splits, queries = asked.get(split.class_id, none)
        asked[split.class_id] = AskedOfClass(
            amounts, (*splits, split), tuple({*queries, split.demand.query_id})
        )
    return asked


def _unit_of(split: PlannedSplit) -> int:
    """A number of which every part of a split is a multiple."""
    return gcd(split.amount, split.step)


def _total(
    trees: FilteredTrees,
    query_ids: tuple[int, ...],
    amounts: Sequence[tuple[ClassId, int]],
    free: Free,
) -> Ints:
    """How often some amounts go into the choices of some queries, each choice once."""
    total = np.zeros(len(trees.rows), dtype=np.int64)
    for choice, mask in united([trees.masks[query_id] for query_id in query_ids]).items():
        several = [free.times(trees, (choice, class_id), amount) for class_id, amount in amounts]
        each = np.minimum.reduce(several)
        total = together([total, each if mask is None else np.where(mask, each, 0)])
    return total
