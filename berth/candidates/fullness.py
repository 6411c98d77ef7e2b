# SPDX-License-Identifier: Apache-2.0
"""How full the trees of candidates would be after the placement.

Source: spec/beyond.md 2.7, "Fullness".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from berth.candidates.batch import Batch, Given
from berth.candidates.hosts import serving_each
from berth.candidates.plan import Plan
from berth.index.block import Floats
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ClassId


class Fullness:
    """The fullness of the candidates of one search.

    Args:
        weights: of each class, 1 for those that are not named.
    """

    def __init__(self, snapshot: Snapshot, plan: Plan, weights: Mapping[ClassId, float]) -> None:
        self._snapshot = snapshot
        self._plan = plan
        names = snapshot.names.class_names
        taken = {class_id for demand in plan.asking for class_id, _ in demand.amounts}
        #: (class, weight), in ascending order of the names: sums of doubles depend on the order.
        self._weights = [
            (class_id, weight)
            for class_id in sorted(taken, key=names.__getitem__)
            if (weight := weights.get(class_id, 1))
        ]
        self._weight = sum(weight for _, weight in self._weights)
        #: (block_id, class) -> of each row of the block: (used, capacity) of the whole tree.
        self._sums: dict[tuple[int, ClassId], tuple[Floats, Floats]] = {}

    def of(self, batch: Batch) -> Floats:
        """The fullness of each candidate, from 0 to 1; 0 if no class has any weight."""
        fullness: Floats = np.zeros(len(batch.positions))
        given = batch.given(self._plan)
        for class_id, weight in self._weights:
            choices = [choice for choice, gives in given if gives == class_id]
            used, capacity = self._of_trees(batch, class_id, choices)
            for choice in choices:
                used = used + given[choice, class_id]
            share = used / capacity
            fullness += share if weight == 1 else weight * share
        return fullness / self._weight if self._weight else fullness

    def of_one(self, batch: Batch, row: int, given: Given) -> float:
        """The fullness of one candidate, which only nodes of its own tree serve.

        Args:
            batch: with this candidate.
            row: of the candidate.
            given: `batch.given`, without splits.
        """
        # PERF bench, place: the sums of `of`, where arrays would take several times as long.
        fullness = 0.0
        for class_id, weight in self._weights:
            sums = self._of_block(batch.trees.block_id, class_id)
            used = sums[0].item(row)
            for (_, gives), amount in given.items():
                if gives == class_id:
                    used += int(amount)
            share = used / sums[1].item(row)
            fullness += share if weight == 1 else weight * share
        return fullness / self._weight if self._weight else fullness

    def take(self, at: Location, class_id: ClassId, amount: int) -> None:
        """From now on so much more is used of a provider, which must have it."""
        used, _ = self._of_block(at.block_id, class_id)
        used[at.row] += amount

    def _of_trees(
        self, batch: Batch, class_id: ClassId, choices: Sequence[int]
    ) -> tuple[Floats, Floats]:
        """What is used, and the capacity, of a class in the trees of some choices together, for
        each candidate."""
        trees = batch.trees
        size = trees.block.shape.size
        used, capacity = np.zeros(len(batch.positions)), np.zeros(len(batch.positions))
        if any(choice < size for choice in choices):
            sums = self._of_block(trees.block_id, class_id)
            if len(batch.rows) == trees.block.rows:
                # PERF bench, candidates: the rows of a batch are distinct and ascend, so these are
                # all of them.
                used, capacity = sums
            else:
                used, capacity = sums[0].take(batch.rows), sums[1].take(batch.rows)
        for choice in _one_of_each_tree(batch, choices):
            foreign = self._of_sharing(batch, class_id, choice)
            used, capacity = used + foreign[0], capacity + foreign[1]
        return used, capacity

    def _of_block(self, block_id: int, class_id: ClassId) -> tuple[Floats, Floats]:
        key = block_id, class_id
        sums = self._sums.get(key)
        if sums is None:
            block = self._snapshot.block(block_id)
            columns = block.columns[class_id]
            # More may be reserved of a provider than it has.
            capacity = np.maximum(columns.capacity, 0)
            used = np.minimum(columns.used, capacity)
            drained = block.drained_of_class(class_id)
            if drained is not None:
                used, capacity = np.where(drained, 0, used), np.where(drained, 0, capacity)
            if len(used) == 1:
                sums = used[0], capacity[0]
            else:
                sums = used.sum(axis=0), capacity.sum(axis=0)
            self._sums[key] = sums
        return sums

    def _of_sharing(self, batch: Batch, class_id: ClassId, choice: int) -> tuple[Floats, Floats]:
        locations = [each.location for each in serving_each(batch, choice)]
        sums = [(self._of_block(at.block_id, class_id), at.row) for at in locations]
        used = np.array([used.item(row) for (used, _), row in sums])
        capacity = np.array([capacity.item(row) for (_, capacity), row in sums])
        return used, capacity


def _one_of_each_tree(batch: Batch, choices: Iterable[int]) -> Iterable[int]:
    """Those of some choices that are sharing providers of other trees, one of each tree: which of
    them are in one tree is the same for all candidates of a batch."""
    size, serving = batch.trees.block.shape.size, batch.trees.serving
    return {
        serving[choice - size].location[:2]: choice for choice in choices if choice >= size
    }.values()
