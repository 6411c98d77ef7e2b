# SPDX-License-Identifier: Apache-2.0
"""Blocks: up to `ROWS_MAX` trees of one shape, side by side in arrays.

Axes: K nodes of the shape (in tree order), R trees of the block (a tree is a *row*); a class that M
of the nodes have stands in arrays of shape (M, R), whose first axis follows `Shape.nodes_of_class`.

A block never changes once a snapshot holds it: every method that changes something gives a new
block, which shares with the old one all arrays that did not change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.index.records import InventoryRecord, NodeRecord
from berth.index.shape import Shape
from berth.model.ids import ClassId, ProviderId

Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]
#: Elements are bytes or None.
Texts = NDArray[np.object_]

Values = TypeVar("Values", Floats, SmallInts)
S = TypeVar("S", bound=np.generic)

#: Trees per block at most: large enough that array operations outweigh the interpreter, small
#: enough that copying one array of a block on a write costs microseconds and that a search with a
#: limit touches little. Tests give a fleet smaller blocks.
ROWS_MAX: Final = 4096

#: The length of every uuid's text.
UUID_LENGTH: Final = 36


class Tree(NamedTuple):
    """One tree in tree order, with the union of its nodes' aggregates (an id of
    `AggregateSets`)."""

    shape: Shape
    nodes: tuple[NodeRecord, ...]
    aggregate_set: int


@dataclass(frozen=True, slots=True)
class Columns:
    """One resource class in a block: arrays of shape (M, R).

    Requirements: float64 holds every capacity exactly (a capacity is the truncated product of a
    double), and every sum of used amounts up to 2^53.
    """

    #: (total - reserved) x allocation_ratio, truncated toward zero.
    capacity: Floats
    #: The sum of all allocations.
    used: Floats
    min_unit: SmallInts
    max_unit: SmallInts
    step_size: SmallInts
    #: `room_of` the three: what a search compares with, so that it need not touch them.
    room: SmallInts
    #: No min_unit is above this: an amount of at least so much need not be compared with them.
    min_unit_max: int
    #: Whether a step_size may be other than 1: whether the remainder has to be computed at all.
    stepped: bool

    @classmethod
    def of(
        cls,
        *,
        capacity: Floats,
        used: Floats,
        min_unit: SmallInts,
        max_unit: SmallInts,
        step_size: SmallInts,
    ) -> Columns:
        """The columns with what follows from them."""
        return cls(
            capacity,
            used,
            min_unit,
            max_unit,
            step_size,
            room=room_of(capacity, used, max_unit),
            min_unit_max=int(min_unit.max()),
            stepped=bool((step_size != 1).any()),
        )

    def with_rows(self, rows: Sequence[int], new: Columns) -> Columns:
        """The columns with other values in some rows; arrays in which nothing changes are the same
        objects."""
        return Columns(
            capacity=_put(self.capacity, rows, new.capacity),
            used=_put(self.used, rows, new.used),
            min_unit=_put(self.min_unit, rows, new.min_unit),
            max_unit=_put(self.max_unit, rows, new.max_unit),
            step_size=_put(self.step_size, rows, new.step_size),
            room=_put(self.room, rows, new.room),
            min_unit_max=max(self.min_unit_max, new.min_unit_max),
            stepped=self.stepped or new.stepped,
        )

    def with_used(self, changes: Iterable[tuple[int, int, int]]) -> Columns:
        """The same inventories with other amounts used: (place along M, row, amount)."""
        used, room = self.used.copy(), self.room.copy()
        for line, row, amount in changes:
            used[line, row] = amount
            # `room_of` for one element: arrays would take ten times as long.
            free = self.capacity.item(line, row) - amount
            room[line, row] = min(max(free, 0), self.max_unit.item(line, row))
        return Columns(
            self.capacity,
            used,
            self.min_unit,
            self.max_unit,
            self.step_size,
            room,
            self.min_unit_max,
            self.stepped,
        )

    def only(self, index: Ints) -> Columns:
        """Some rows, in the order given."""
        return Columns(
            self.capacity.take(index, axis=1),
            self.used.take(index, axis=1),
            self.min_unit.take(index, axis=1),
            self.max_unit.take(index, axis=1),
            self.step_size.take(index, axis=1),
            self.room.take(index, axis=1),
            self.min_unit_max,
            self.stepped,
        )

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        """The rows of several, one behind another."""
        return cls(
            _side_by_side([part.capacity for part in parts]),
            _side_by_side([part.used for part in parts]),
            _side_by_side([part.min_unit for part in parts]),
            _side_by_side([part.max_unit for part in parts]),
            _side_by_side([part.step_size for part in parts]),
            _side_by_side([part.room for part in parts]),
            max(part.min_unit_max for part in parts),
            any(part.stepped for part in parts),
        )


def room_of(capacity: Floats, used: Floats, max_unit: SmallInts) -> SmallInts:
    """The most that one claim, or all groups of a candidate together, may take now: what is free,
    up to max_unit; 0 where too much is taken already."""
    room: SmallInts = np.clip(capacity - used, 0, max_unit).astype(np.int32)
    return room


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """See the module's text for K, M and R.

    Attributes:
        provider_ids: (K, R).
        uuid_bytes: (K, R, 36), each provider's uuid as ASCII.
        aggregate_sets: (K, R), ids of `AggregateSets`: what each provider itself is in; int64,
            because tables are indexed with them.
        tree_aggregate_sets: (R,), ids of `AggregateSets`: what any provider of the tree is in.
        columns: one entry for each class of the shape.
        summaries: (R,) the rendered provider summaries of whole trees, None where nobody asked yet.
            Kept between requests: `berth.index.summary_text` fills and bounds it, whatever changes
            a row drops the row's text, and `Fleet.set_names` those in which a name changed.
    """

    shape: Shape
    provider_ids: Ints
    uuid_bytes: Bytes
    aggregate_sets: Ints
    tree_aggregate_sets: Ints
    columns: Mapping[ClassId, Columns]
    summaries: Texts

    @property
    def rows(self) -> int:
        """The number of trees."""
        return len(self.summaries)

    def uuid(self, node: int, row: int) -> str:
        """The uuid of one provider."""
        text: bytes = self.uuid_bytes[node, row].tobytes()
        return text.rstrip(b"\0").decode("ascii")

    @classmethod
    def of(cls, shape: Shape, trees: Sequence[Tree]) -> Block:
        """A block of some trees of one shape; a row for each, in the order given."""
        assert 0 < len(trees) <= ROWS_MAX
        nodes = _nodes_of(shape, trees)
        return cls(
            shape=shape,
            provider_ids=np.array([[n.provider_id for n in row] for row in nodes], dtype=np.int64),
            uuid_bytes=bytes_of([n.uuid for row in nodes for n in row]).reshape(
                shape.size, len(trees), UUID_LENGTH
            ),
            aggregate_sets=np.array([[n.aggregate_set for n in row] for row in nodes], np.int64),
            tree_aggregate_sets=np.array([tree.aggregate_set for tree in trees], dtype=np.int64),
            columns=_columns_of(shape, nodes),
            summaries=no_texts(len(trees)),
        )

    def holds(self, row: int, tree: Tree) -> bool:
        """Whether a row is that tree already, but for amounts, units and aggregates.

        Ids alone do not tell: SQLite gives the id of a deleted provider to the next one.
        """
        return self.shape is tree.shape and all(
            self.provider_ids[node, row] == record.provider_id
            and self.uuid(node, row) == record.uuid
            for node, record in enumerate(tree.nodes)
        )

    def without_texts(self) -> Block:
        """The block with nothing remembered of how its trees are described."""
        return replace(self, summaries=no_texts(self.rows))

    def with_row_values(self, changed: Mapping[int, Tree]) -> Block:
        """The block with other amounts, units or aggregates in some rows; providers and shape are
        as they were."""
        summaries = self.summaries.copy()
        aggregate_sets, tree_aggregate_sets = self.aggregate_sets, self.tree_aggregate_sets
        for row, tree in changed.items():
            summaries[row] = None
            sets = [node.aggregate_set for node in tree.nodes]
            if aggregate_sets[:, row].tolist() != sets:
                if aggregate_sets is self.aggregate_sets:
                    aggregate_sets = aggregate_sets.copy()
                    tree_aggregate_sets = tree_aggregate_sets.copy()
                aggregate_sets[:, row] = sets
                tree_aggregate_sets[row] = tree.aggregate_set
        rows = list(changed)
        new = _columns_of(self.shape, _nodes_of(self.shape, list(changed.values())))
        return replace(
            self,
            aggregate_sets=aggregate_sets,
            tree_aggregate_sets=tree_aggregate_sets,
            columns={
                class_id: columns.with_rows(rows, new[class_id])
                for class_id, columns in self.columns.items()
            },
            summaries=summaries,
        )

    def with_used(self, changes: Iterable[tuple[int, int, Mapping[ClassId, int]]]) -> Block:
        """The block with other amounts used.

        Args:
            changes: (row, node, class -> amount used), each node once; a class that it does not
                have is passed over.

        Cost: a copy of two arrays for each class of which an amount is another one now.
        """
        changed: dict[ClassId, dict[tuple[int, int], int]] = {}
        for row, node, amounts in changes:
            for class_id, amount in amounts.items():
                line = self.shape.row_of_node.get(class_id, {}).get(node)
                if line is not None and self.columns[class_id].used.item(line, row) != amount:
                    changed.setdefault(class_id, {})[line, row] = amount
        if not changed:
            return self
        columns, summaries = dict(self.columns), self.summaries.copy()
        for class_id, new in changed.items():
            columns[class_id] = columns[class_id].with_used(
                (line, row, amount) for (line, row), amount in new.items()
            )
            for _, row in new:
                summaries[row] = None
        return Block(
            shape=self.shape,
            provider_ids=self.provider_ids,
            uuid_bytes=self.uuid_bytes,
            aggregate_sets=self.aggregate_sets,
            tree_aggregate_sets=self.tree_aggregate_sets,
            columns=columns,
            summaries=summaries,
        )

    @classmethod
    def joined(cls, blocks: Sequence[Block]) -> Block:
        """The rows of some blocks of one shape, one block's behind another's."""
        first = blocks[0]
        return cls(
            shape=first.shape,
            provider_ids=_side_by_side([block.provider_ids for block in blocks]),
            uuid_bytes=_side_by_side([block.uuid_bytes for block in blocks]),
            aggregate_sets=_side_by_side([block.aggregate_sets for block in blocks]),
            tree_aggregate_sets=np.concatenate([block.tree_aggregate_sets for block in blocks]),
            columns={
                class_id: Columns.joined([block.columns[class_id] for block in blocks])
                for class_id in first.columns
            },
            summaries=np.concatenate([block.summaries for block in blocks]),
        )

    def part(self, begin: int, end: int) -> Block:
        """A block of some consecutive rows."""
        return self._only(np.arange(begin, end))

    def without_rows(self, gone: Collection[int]) -> tuple[Block, list[int]]:
        """The block without some rows; others must stay.

        The last rows move to where rows went, and all others stand where they stood.

        Returns:
            The block, and the rows in which other trees stand now.
        """
        rows = self.rows - len(gone)
        assert rows > 0
        holes = sorted(row for row in gone if row < rows)
        moved = [row for row in range(rows, self.rows) if row not in gone]
        index = np.arange(rows)
        index[holes] = moved
        return self._only(index), holes

    def with_rows(self, trees: Sequence[Tree]) -> Block:
        """The block with more trees behind its own."""
        return Block.joined((self, Block.of(self.shape, trees)))

    def tree(self, row: int) -> Tree:
        """A row as records again: what `check` compares with the database."""
        ids = self.provider_ids[:, row].tolist()
        return Tree(
            self.shape,
            tuple(self._node(node, row, ids) for node in range(self.shape.size)),
            int(self.tree_aggregate_sets[row]),
        )

    def _only(self, index: Ints) -> Block:
        """Some rows, in the order given."""
        return Block(
            shape=self.shape,
            provider_ids=self.provider_ids.take(index, axis=1),
            uuid_bytes=self.uuid_bytes.take(index, axis=1),
            aggregate_sets=self.aggregate_sets.take(index, axis=1),
            tree_aggregate_sets=self.tree_aggregate_sets.take(index),
            columns={class_id: columns.only(index) for class_id, columns in self.columns.items()},
            summaries=self.summaries.take(index),
        )

    def _node(self, node: int, row: int, ids: Sequence[ProviderId]) -> NodeRecord:
        parent = self.shape.parents[node]
        kind = self.shape.kinds[node]
        return NodeRecord(
            provider_id=ids[node],
            uuid=self.uuid(node, row),
            parent_id=None if parent < 0 else ids[parent],
            root_id=ids[0],
            inventories=tuple(self._inventory(class_id, node, row) for class_id in kind.classes),
            traits=kind.traits,
            aggregate_set=int(self.aggregate_sets[node, row]),
        )

    def _inventory(self, class_id: ClassId, node: int, row: int) -> InventoryRecord:
        columns = self.columns[class_id]
        at = (self.shape.row_of_node[class_id][node], row)
        return InventoryRecord(
            class_id,
            float(columns.capacity[at]),
            int(columns.used[at]),
            int(columns.min_unit[at]),
            int(columns.max_unit[at]),
            int(columns.step_size[at]),
        )


def no_texts(count: int) -> Texts:
    """The summaries of rows for which nobody has asked."""
    texts: Texts = np.full(count, None, dtype=np.object_)
    return texts


def bytes_of(uuids: Sequence[str]) -> Bytes:
    """Uuids as ASCII, of shape (N, 36); what is shorter is filled up with zeros."""
    texts = np.array(uuids, dtype=f"S{UUID_LENGTH}")
    return texts.view(np.uint8).reshape(len(uuids), UUID_LENGTH)


def _nodes_of(shape: Shape, trees: Sequence[Tree]) -> list[list[NodeRecord]]:
    """For each node of a shape the providers that some trees have there."""
    return [[tree.nodes[node] for tree in trees] for node in range(shape.size)]


def _columns_of(shape: Shape, nodes: Sequence[Sequence[NodeRecord]]) -> dict[ClassId, Columns]:
    columns = {}
    for class_id, having in shape.nodes_of_class.items():
        lines = []
        for node in having:
            at = shape.kinds[node].classes.index(class_id)
            lines.append([record.inventories[at] for record in nodes[node]])
        columns[class_id] = Columns.of(
            capacity=np.array([[i.capacity for i in line] for line in lines], dtype=np.float64),
            used=np.array([[i.used for i in line] for line in lines], dtype=np.float64),
            min_unit=np.array([[i.min_unit for i in line] for line in lines], dtype=np.int32),
            max_unit=np.array([[i.max_unit for i in line] for line in lines], dtype=np.int32),
            step_size=np.array([[i.step_size for i in line] for line in lines], dtype=np.int32),
        )
    return columns


def _side_by_side(arrays: Sequence[NDArray[S]]) -> NDArray[S]:
    return np.concatenate(arrays, axis=1)


def _put(array: Values, rows: Sequence[int], new: Values) -> Values:
    """The array with other values in some rows: itself when they are the values it has."""
    if np.array_equal(array[:, rows], new):
        return array
    changed = array.copy()
    changed[:, rows] = new
    return changed
