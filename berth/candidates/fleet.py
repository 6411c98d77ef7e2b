# SPDX-License-Identifier: Apache-2.0
"""All hosts of a snapshot in one line, so that a set of hosts is one mask.

N is the number of hosts: the rows of all blocks, one block behind another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.candidates.batch import tree_keys
from berth.index.block import Block, Bytes, Ints
from berth.index.sets import Mask
from berth.index.shape import Shape
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ClassId

#: What a provider counts as having left of a class at most: the largest integer that every reader
#: of JSON tells from its neighbours.
FREE_MAX: Final = (1 << 53) - 1


class Span(NamedTuple):
    """The hosts of one block."""

    block_id: int
    block: Block
    hosts: slice


class Fleet:
    """The hosts of a snapshot.

    Attributes:
        spans: of each block, ascending.
        starts: block_id -> its first host.
        size: N.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.spans: list[Span] = []
        self.starts: dict[int, int] = {}
        self.size = 0
        for block_id, block in snapshot.occupied():
            hosts = slice(self.size, self.size + block.rows)
            self.spans.append(Span(block_id, block, hosts))
            self.starts[block_id] = hosts.start
            self.size = hosts.stop

    @cached_property
    def _firsts(self) -> Ints:
        """The first host of each span."""
        return np.array([*self.starts.values()], dtype=np.int64)

    def none(self) -> Mask:
        """No host."""
        return np.zeros(self.size, dtype=np.bool_)

    def all(self) -> Mask:
        """Every host."""
        return np.ones(self.size, dtype=np.bool_)

    def undrained(self) -> Mask:
        """The hosts whose root is not drained."""
        hosts = self.all()
        for span in self.spans:
            if span.block.drained is not None:
                hosts[span.hosts] = ~span.block.drained[0]
        return hosts

    def only(self, host: int) -> Mask:
        """One host."""
        mask = self.none()
        mask[host] = True
        return mask

    def by_block(self, hosts: Mask) -> dict[int, Mask]:
        """Those blocks that have some of the hosts, with the rows of them."""
        if not self.spans:
            return {}
        # PERF bench, worst questions: where each host is a block of its own, few blocks have any.
        numbers = np.logical_or.reduceat(hosts, self._firsts).nonzero()[0]
        some = (self.spans[number] for number in numbers.tolist())
        return {span.block_id: hosts[span.hosts] for span in some}

    def of_blocks(self, rows: Mapping[int, Mask]) -> Mask:
        """The hosts that are some rows of blocks."""
        hosts = self.none()
        for span in self.spans:
            mask = rows.get(span.block_id)
            if mask is not None:
                hosts[span.hosts] = mask
        return hosts

    @cached_property
    def keys(self) -> Ints:
        """The key of each host (`berth.candidates.batch`), ascending."""
        keys = [tree_keys(each.block_id, np.arange(each.block.rows)) for each in self.spans]
        return np.concatenate([np.zeros(0, dtype=np.int64), *keys])

    def place(self, host: int) -> tuple[Span, int]:
        """Where a host is: its block, and the row."""
        span = self.spans[int(np.searchsorted(self._firsts, host, side="right")) - 1]
        return span, host - span.hosts.start

    def uuid(self, host: int) -> str:
        """The uuid of a host."""
        span, row = self.place(host)
        return span.block.uuid(0, row)

    def pools(self) -> Mask:
        """The hosts of which every provider with inventory is a sharing provider."""
        hosts = self.none()
        for span in self.spans:
            hosts[span.hosts] = is_pool(self._snapshot, span.block.shape)
        return hosts

    @cached_property
    def settled(self) -> Mask:
        """The hosts of one provider: the only one that can serve them."""
        hosts = self.none()
        for span in self.spans:
            hosts[span.hosts] = span.block.shape.size == 1
        return hosts & ~self.shared

    @cached_property
    def is_settled(self) -> bool:
        """Whether all hosts are settled."""
        return bool(self.settled.all())

    @cached_property
    def shared(self) -> Mask:
        """The hosts with which a provider of another tree shares something."""
        hosts = self.none()
        if self._snapshot.sharing.by_aggregate:
            for span in self.spans:
                hosts[span.hosts] = self._shared_in(span.block)
        return hosts

    def _shared_in(self, block: Block) -> Mask:
        sharing, sets = self._snapshot.sharing, self._snapshot.aggregate_sets
        shared: Mask = np.zeros(block.rows, dtype=np.bool_)
        for tree_set in set(block.tree_aggregate_sets.tolist()):
            providers = sharing.serving(tree_set, sets)
            if providers:
                rows = (block.tree_aggregate_sets == tree_set).nonzero()[0]
                own = np.isin(block.provider_ids[:, rows], providers).sum(axis=0)
                shared[rows] = own < len(providers)
        return shared

    def free(self, hosts: Mask, class_id: ClassId, sharing: Iterable[Location] = ()) -> int:
        """What providers have left of a class, drained ones aside: all of the trees of some hosts,
        and some sharing providers, which may be of the same trees."""
        every = slice(None)
        free = 0
        for block_id, row, node in sharing:
            block = self._snapshot.block(block_id)
            if not hosts[self.starts[block_id] + row]:
                free += _free_of(block, class_id, (block.shape.row_of_node[class_id][node], row))
        for _, block, span in self.spans:
            if class_id in block.columns and (rows := hosts[span]).any():
                free += _free_of(block, class_id, (every, every if rows.all() else rows))
        return free

    def roots_in(self) -> Ints:
        """For each host the set of aggregates that its root is in (`AggregateSets`)."""
        sets = [span.block.aggregate_sets[0] for span in self.spans]
        return np.concatenate(sets) if sets else np.zeros(0, dtype=np.int64)

    def first(self, hosts: Mask, count: int) -> list[int]:
        """The first of some hosts by uuid."""
        places, uuids = hosts.nonzero()[0], self._uuid_bytes(hosts)
        if len(places) > count > 0:
            # PERF bench, explain: of 100,000 hosts a few are wanted.
            begins = _begins_of(uuids)
            is_early = begins <= np.partition(begins, count - 1)[count - 1]
            places, uuids = places[is_early], uuids[is_early]
        order = _by_uuid(uuids)[: max(count, 0)]
        return [int(place) for place in places[order]]

    def in_order(self) -> Ints:
        """All hosts, ascending by the uuids of their roots."""
        return _by_uuid(self._uuid_bytes(self.all()))

    def _uuid_bytes(self, hosts: Mask) -> Bytes:
        parts = [span.block.uuid_bytes[0][hosts[span.hosts]] for span in self.spans]
        return np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.uint8)


def _free_of(block: Block, class_id: ClassId, at: tuple[slice | int, slice | int | Mask]) -> int:
    """What some inventories of a class have left, drained ones aside."""
    columns = block.columns[class_id]
    left = np.clip(columns.capacity[at] - columns.used[at], 0.0, FREE_MAX)
    drained = block.drained_of_class(class_id)
    if drained is not None:
        left = np.where(drained[at], 0.0, left)
    total = float(left.sum())
    return int(total) if total <= FREE_MAX else sum(map(int, left.ravel().tolist()))


def is_pool(snapshot: Snapshot, shape: Shape) -> bool:
    """Whether trees of a shape have providers with inventory, all of which share."""
    having = [node.traits for node in shape.node_types if node.classes]
    return bool(having) and all(snapshot.sharing.trait in traits for traits in having)


def _by_uuid(uuids: Bytes) -> Ints:
    """The order of some uuids, ascending."""
    if not len(uuids):
        return np.zeros(0, dtype=np.int64)
    begins = _begins_of(uuids)
    order = np.argsort(begins, kind="stable")
    ranked = begins[order]
    if (ranked[1:] == ranked[:-1]).any():
        order = np.argsort(np.ascontiguousarray(uuids).view(f"S{uuids.shape[1]}")[:, 0])
    return order


def _begins_of(uuids: Bytes) -> NDArray[np.uint64]:
    """The first eight characters of some uuids, as numbers."""
    # PERF bench, explain: as numbers they sort ten times as fast as 36 characters as a text.
    return np.ascontiguousarray(uuids[:, :8]).view(">u8")[:, 0].astype(np.uint64)
