# SPDX-License-Identifier: Apache-2.0
"""What providers have left, and how often an amount goes into it, as integers.

Source: spec/beyond.md 4.7.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from berth.candidates.fleet import FREE_MAX, Fleet
from berth.candidates.trees import Trees
from berth.index.block import Ints
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ClassId, ProviderId

#: A choice (`berth.candidates.trees`), and one of its classes.
Cell = tuple[int, ClassId]

#: What the providers that serve a host count as having left together at most: two of these, or one
#: and `FREE_MAX`, still are an int64.
TOGETHER_MAX: Final = 1 << 62

#: So many numbers up to this have a sum of 64 bits as a fleet has hosts.
_SUMMED_MAX: Final = 1 << 36

#: The quotients that are kept take at most about this many bytes.
_KEPT_BYTES_MAX: Final = 64 << 20


def together(several: Iterable[Ints]) -> Ints:
    """The sum of some columns, at most `TOGETHER_MAX`."""
    first, *others = several
    total = first
    for each in others:
        total = np.minimum(total + each, TOGETHER_MAX)
    return total


def summable(values: Ints) -> Ints:
    """The values; as integers of Python if 64 bits might be too few for their sum."""
    return values if values.max(initial=0) <= _SUMMED_MAX else values.astype(object)


class Free:
    """What the providers of one snapshot have left; for all requests of one question."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._free: dict[tuple[int, ClassId], Ints] = {}
        self._times: dict[tuple[int, ClassId, int], Ints] = {}
        self._kept_bytes = 0
        self._of_hosts: dict[ClassId, Ints] = {}

    def of_block(self, block_id: int, class_id: ClassId) -> Ints:
        """What is free of a class in a block, at least 0; of the shape of its columns."""
        key = block_id, class_id
        free = self._free.get(key)
        if free is None:
            columns = self._snapshot.block(block_id).columns[class_id]
            left = columns.capacity - columns.used
            free = self._free[key] = np.clip(left, 0.0, FREE_MAX, out=left).astype(np.int64)
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

    def of_hosts(self, fleet: Fleet, class_id: ClassId) -> Ints:
        """What all providers that may serve each host of the fleet have left of a class: those of
        its tree, and all sharing providers."""
        of_hosts = self._of_hosts.get(class_id)
        if of_hosts is None:
            shared = min(self._shared(class_id), TOGETHER_MAX)
            of_hosts = np.full(fleet.size, shared, dtype=np.int64)
            for block_id, block, hosts in fleet.spans:
                if class_id in block.columns:
                    own = self.of_block(block_id, class_id)
                    of_hosts[hosts] = together([of_hosts[hosts], *own])
            self._of_hosts[class_id] = of_hosts
        return of_hosts

    def _shared(self, class_id: ClassId) -> int:
        """What all sharing providers have left of a class."""
        sharing = self._snapshot.sharing
        providers = {each for several in sharing.by_aggregate.values() for each in several}
        return sum(
            self.at(at, class_id)
            for at in filter(None, map(self._snapshot.locate, providers))
            if class_id in self._snapshot.block(at.block_id).shape.node_types[at.node].classes
        )

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
