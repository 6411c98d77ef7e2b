# SPDX-License-Identifier: Apache-2.0
"""What providers have left, and how often an amount goes into it, as integers.

Source: spec/beyond.md 4.7.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from berth.candidates.trees import Trees
from berth.index.block import Ints
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ClassId, ProviderId

#: A choice (`berth.candidates.trees`), and one of its classes.
Cell = tuple[int, ClassId]

#: The quotients that are kept take at most about this many bytes.
_KEPT_BYTES_MAX: Final = 64 << 20


class Free:
    """What the providers of one snapshot have left; for all requests of one question."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._free: dict[tuple[int, ClassId], Ints] = {}
        self._times: dict[tuple[int, ClassId, int], Ints] = {}
        self._kept_bytes = 0

    def of_block(self, block_id: int, class_id: ClassId) -> Ints:
        """What is free of a class in a block, at least 0; of the shape of its columns."""
        key = block_id, class_id
        free = self._free.get(key)
        if free is None:
            columns = self._snapshot.block(block_id).columns[class_id]
            left = columns.capacity - columns.used
            free = self._free[key] = np.maximum(left, 0.0, out=left).astype(np.int64)
        return free

    def times_in_block(self, block_id: int, class_id: ClassId, amount: int) -> Ints:
        """How often an amount goes into what is free; of the shape of the columns."""
        key = block_id, class_id, amount
        times = self._times.get(key)
        if times is None:
            # PERF bench, capacity: integers divide ten times as fast as doubles, and flavors often
            # have some of their amounts in common.
            times = self.of_block(block_id, class_id) // amount
            self._kept_bytes += times.nbytes
            if self._kept_bytes > _KEPT_BYTES_MAX:
                self._times.clear()
                self._kept_bytes = times.nbytes
            self._times[key] = times
        return times

    def of(self, trees: Trees, cell: Cell) -> Ints:
        """What a choice has left of a class, for each of `Trees.rows`."""
        return self.times(trees, cell, 1)

    def times(self, trees: Trees, cell: Cell, amount: int) -> Ints:
        """How often an amount goes into what a choice has left, for each of `Trees.rows`."""
        choice, class_id = cell
        block, rows = trees.block, trees.rows
        place = choice - block.shape.size
        if place < 0:
            line = block.shape.row_of_node[class_id][choice]
            of_block = self.times_in_block(trees.block_id, class_id, amount)
            local: Ints = of_block[line] if len(rows) == block.rows else of_block[line, rows]
            return local
        if trees.served_by is None:
            only = self.at(trees.serving[place].location, class_id) // amount
            return np.broadcast_to(np.int64(only), rows.shape)
        numbers, which = np.unique(trees.served_by[place], return_inverse=True)
        met = trees.sharing_providers
        each = [self.at(met[n].location, class_id) // amount for n in numbers.tolist()]
        times = np.array(each, dtype=np.int64)[which]
        return times

    def at(self, location: Location, class_id: ClassId) -> int:
        """What one provider has left of a class that it has."""
        block_id, row, node = location
        line = self._snapshot.block(block_id).shape.row_of_node[class_id][node]
        return int(self.of_block(block_id, class_id)[line, row])

    def of_provider(self, provider: ProviderId, class_id: ClassId) -> int:
        """`at` by the id of a provider."""
        location = self._snapshot.locate(provider)
        assert location is not None, "the snapshot has the providers that it names"
        return self.at(location, class_id)
