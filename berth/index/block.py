# SPDX-License-Identifier: Apache-2.0
"""Blocks: up to `ROWS_MAX` trees of one shape, side by side in arrays.

Axes: K nodes of the shape (in tree order), R trees of the block (a tree is a *row*); a class that M
of the nodes have is in arrays of shape (M, R), whose first axis follows `Shape.nodes_of_class`.

A block never changes once a snapshot holds it: every method that changes something returns
a new block, which shares with the old one all arrays that did not change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from berth.index.records import InventoryRecord, NodeRecord
from berth.index.sets import NO_DRAINS, Mask, drained_of
from berth.index.shape import Shape
from berth.index.text_column import TextColumn
from berth.model.ids import ClassId
from berth.store.index_feed import ProviderState

Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]
#: Elements are bytes or None.
Texts = NDArray[np.object_]

Values = TypeVar("Values", Floats, Ints, SmallInts)
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


class Columns(Struct, frozen=True):
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
    total: SmallInts
    reserved: SmallInts
    allocation_ratio: Floats
    #: The time of the last change of the inventory: seconds since 1970, or `NO_TIME`.
    modified: Ints
    #: `room_of` capacity, used and max_unit: the only one of the four that a search reads.
    room: SmallInts
    #: No min_unit is above this: an amount of at least so much need not be compared with them.
    min_unit_max: int
    #: Whether a step_size may be other than 1: whether the remainder has to be computed at all.
    stepped: bool

    @classmethod
    def of(cls, **own: NDArray[Any]) -> Columns:
        """The columns from `OWN` arrays, with those that follow from them."""
        return cls(
            **own,
            room=room_of(own["capacity"], own["used"], own["max_unit"]),
            min_unit_max=int(own["min_unit"].max()),
            stepped=bool((own["step_size"] != 1).any()),
        )

    def with_rows(self, rows: Sequence[int], new: Columns) -> Columns:
        """The columns with other values in some rows; arrays in which nothing changes are the same
        objects."""
        return Columns(
            **{name: _put(getattr(self, name), rows, getattr(new, name)) for name in ARRAYS},
            min_unit_max=max(self.min_unit_max, new.min_unit_max),
            stepped=self.stepped or new.stepped,
        )

    def with_used(self, changes: Iterable[tuple[int, int, int]]) -> Columns:
        """The same inventories with other amounts used: (place along M, row, amount)."""
        # PERF bench, claims: not `replace`, which takes several times as long, here and in
        # `Block.with_states`.
        columns = Columns(
            self.capacity,
            self.used.copy(),
            self.min_unit,
            self.max_unit,
            self.step_size,
            self.total,
            self.reserved,
            self.allocation_ratio,
            self.modified,
            self.room.copy(),
            self.min_unit_max,
            self.stepped,
        )
        for line, row, amount in changes:
            columns.set_used(line, row, amount)
        return columns

    def set_used(self, line: int, row: int, amount: int) -> None:
        """Set an amount used in arrays that no snapshot has yet."""
        self.used[line, row] = amount
        # `room_of` for one element: arrays would take ten times as long.
        free = self.capacity.item(line, row) - amount
        self.room[line, row] = min(max(free, 0), self.max_unit.item(line, row))

    def with_values(self, **arrays: Floats) -> Columns:
        """The columns with other capacities, amounts used or allocation ratios."""
        return Columns.of(**{**{name: getattr(self, name) for name in OWN}, **arrays})

    def only(self, index: Ints) -> Columns:
        """Some rows, in the order given."""
        return Columns(
            **{name: getattr(self, name).take(index, axis=1) for name in ARRAYS},
            min_unit_max=self.min_unit_max,
            stepped=self.stepped,
        )

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        """The rows of several, one behind another."""
        return cls(
            **{name: _side_by_side([getattr(part, name) for part in parts]) for name in ARRAYS},
            min_unit_max=max(part.min_unit_max for part in parts),
            stepped=any(part.stepped for part in parts),
        )


#: The arrays among the fields of `Columns`, which come first, and those that follow from no others.
ARRAYS: Final = Columns.__struct_fields__[:-2]
OWN: Final = ARRAYS[:-1]


def room_of(capacity: Floats, used: Floats, max_unit: SmallInts) -> SmallInts:
    """The most that one claim, or all groups of a candidate together, may take now: what is free,
    up to max_unit; 0 where too much is taken already."""
    room: SmallInts = np.clip(capacity - used, 0, max_unit).astype(np.int32)
    return room


class Block(Struct, frozen=True, eq=False):
    """See the module's text for K, M and R.

    Attributes:
        provider_ids: (K, R).
        uuid_bytes: (K, R, 36), each provider's uuid as ASCII.
        aggregate_sets: (K, R), ids of `AggregateSets`: what each provider itself is in; int64,
            because tables are indexed with them.
        tree_aggregate_sets: (R,), ids of `AggregateSets`: what any provider of the tree is in.
        names: (K, R), as JSON.
        generations: (K, R), int64: other programs may go beyond int32.
        modified: (K, R), the times of the providers' last changes: seconds since 1970, or
            `NO_TIME`.
        columns: one entry for each class of the shape.
        summaries: (R,) the rendered provider summaries of whole trees, None if not needed yet.
            A part of the index's `Memory`, which fills and empties it; whatever changes a row drops
            the row's text, and `Fleet.set_names` drops those in which a name changed.
        drain_sets: (K, R), ids of `DrainSets`: the drains that name each provider; None if there
            are none.
        drained: (K, R), the providers that get nothing new, which follow from `drain_sets` and the
            drains in effect (`with_drained`); None if there are none, so that a search of an
            undrained fleet pays nothing.
    """

    shape: Shape
    provider_ids: Ints
    uuid_bytes: Bytes
    aggregate_sets: Ints
    tree_aggregate_sets: Ints
    names: TextColumn
    generations: Ints
    modified: Ints
    columns: Mapping[ClassId, Columns]
    summaries: Texts
    drain_sets: SmallInts | None = None
    drained: Mask | None = None

    @property
    def rows(self) -> int:
        """The number of trees."""
        return len(self.summaries)

    @property
    def uuid_texts(self) -> NDArray[np.bytes_]:
        """`uuid_bytes` as texts, of shape (K, R)."""
        return self.uuid_bytes.view(f"S{UUID_LENGTH}")[:, :, 0]

    @property
    def uuid_elements(self) -> NDArray[np.void]:
        """`uuid_bytes` as elements of shape (K, R), which NumPy copies whole."""
        return self.uuid_bytes.view(f"V{UUID_LENGTH}")[:, :, 0]

    def uuid_text(self, node: int, row: int) -> bytes:
        """The uuid of one provider, as ASCII."""
        text: bytes = self.uuid_bytes[node, row].tobytes()
        return text.rstrip(b"\0")

    def uuid(self, node: int, row: int) -> str:
        """The uuid of one provider."""
        return self.uuid_text(node, row).decode("ascii")

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
            names=TextColumn.of([n.name for row in nodes for n in row], len(trees)),
            generations=np.array([[n.generation for n in row] for row in nodes], dtype=np.int64),
            modified=np.array([[n.modified for n in row] for row in nodes], dtype=np.int64),
            columns=_columns_of(shape, nodes),
            summaries=no_texts(len(trees)),
            drain_sets=_drain_sets_of(nodes),
        )

    def with_drained(self, excluding: Mask) -> Block:
        """The block with the providers that are drained now.

        Args:
            excluding: the sets of drains that exclude, as `drained_of` takes them.
        """
        if self.drain_sets is None and self.drained is None:
            return self
        return replace(self, drained=drained_of(self.shape.parents, self.drain_sets, excluding))

    def drained_of_class(self, class_id: ClassId) -> Mask | None:
        """Which providers with a class are drained, of the shape of its columns; None if no
        provider of the block is."""
        if self.drained is None:
            return None
        drained: Mask = self.drained[[*self.shape.nodes_of_class[class_id]]]
        return drained

    def holds(self, row: int, tree: Tree) -> bool:
        """Whether a row has the providers of a tree, whatever their amounts, units and aggregates.

        Ids are not enough: SQLite gives the id of a deleted provider to the next one.
        """
        return self.shape is tree.shape and all(
            self.provider_ids[node, row] == record.provider_id
            and self.uuid(node, row) == record.uuid
            for node, record in enumerate(tree.nodes)
        )

    def without_texts(self) -> Block:
        """The block without the kept texts of its trees."""
        return replace(self, summaries=no_texts(self.rows))

    def with_row_values(self, changed: Mapping[int, Tree]) -> Block:
        """The block with other amounts, units, aggregates, names, generations or drains in some
        rows; providers and shape are as they were. Which providers are drained must be derived
        again."""
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
        nodes = _nodes_of(self.shape, list(changed.values()))
        new = _columns_of(self.shape, nodes)
        generations = np.array([[n.generation for n in row] for row in nodes], dtype=np.int64)
        modified = np.array([[n.modified for n in row] for row in nodes], dtype=np.int64)
        return replace(
            self,
            aggregate_sets=aggregate_sets,
            tree_aggregate_sets=tree_aggregate_sets,
            names=self.names.with_rows(
                {row: [node.name for node in tree.nodes] for row, tree in changed.items()}
            ),
            generations=_put(self.generations, rows, generations),
            modified=_put(self.modified, rows, modified),
            columns={
                class_id: columns.with_rows(rows, new[class_id])
                for class_id, columns in self.columns.items()
            },
            summaries=summaries,
            drain_sets=self._with_drain_sets(rows, nodes),
        )

    def _with_drain_sets(
        self, rows: Sequence[int], nodes: Sequence[Sequence[NodeRecord]]
    ) -> SmallInts | None:
        """The sets of drains with others in some rows."""
        new = _drain_sets_of(nodes)
        if new is None and self.drain_sets is None:
            return None
        sets = np.zeros(self.provider_ids.shape, dtype=np.int32)
        if self.drain_sets is not None:
            sets[:] = self.drain_sets
        sets[:, rows] = NO_DRAINS if new is None else new
        return sets if sets.any() else None

    def state_of(self, row: int, node: int) -> ProviderState:
        """What a claim changes of one of its providers."""
        return ProviderState(
            self.generations.item(node, row),
            self.modified.item(node, row),
            {
                class_id: int(
                    self.columns[class_id].used[self.shape.row_of_node[class_id][node], row]
                )
                for class_id in self.shape.node_types[node].classes
            },
        )

    def with_states(self, changes: Sequence[tuple[int, int, ProviderState]]) -> Block:
        """The block with other amounts used, and other generations and times.

        Args:
            changes: (row, node, state), each node once; a class that it does not have is passed
                over.

        Cost: a copy of two arrays for each class of which an amount is another one now, and of two
        for the generations.
        """
        changed: dict[ClassId, dict[tuple[int, int], int]] = {}
        for row, node, state in changes:
            for class_id, amount in state.used.items():
                line = self.shape.row_of_node.get(class_id, {}).get(node)
                if line is not None and self.columns[class_id].used.item(line, row) != amount:
                    changed.setdefault(class_id, {})[line, row] = amount
        generations, modified = self._with_generations(changes)
        if not changed and generations is self.generations:
            return self
        columns, summaries = dict(self.columns), self.summaries
        if changed:
            summaries = summaries.copy()
        for class_id, new in changed.items():
            columns[class_id] = columns[class_id].with_used(
                (line, row, amount) for (line, row), amount in new.items()
            )
            for _, row in new:
                summaries[row] = None
        return Block(
            self.shape,
            self.provider_ids,
            self.uuid_bytes,
            self.aggregate_sets,
            self.tree_aggregate_sets,
            self.names,
            generations,
            modified,
            columns,
            summaries,
            self.drain_sets,
            self.drained,
        )

    def _with_generations(
        self, changes: Iterable[tuple[int, int, ProviderState]]
    ) -> tuple[Ints, Ints]:
        """The generations and times after some changes; the present arrays if they are the same."""
        generations, modified = self.generations, self.modified
        for row, node, state in changes:
            if (
                generations.item(node, row) != state.generation
                or modified.item(node, row) != state.modified
            ):
                if generations is self.generations:
                    generations, modified = generations.copy(), modified.copy()
                generations[node, row] = state.generation
                modified[node, row] = state.modified
        return generations, modified

    @classmethod
    def joined(cls, blocks: Sequence[Block]) -> Block:
        """The rows of some blocks of one shape, one block's behind another's."""
        first = blocks[0]
        return cls(
            shape=first.shape,
            **{name: _side_by_side([getattr(block, name) for block in blocks]) for name in _PLAIN},
            tree_aggregate_sets=np.concatenate([block.tree_aggregate_sets for block in blocks]),
            names=TextColumn.joined([block.names for block in blocks]),
            columns={
                class_id: Columns.joined([block.columns[class_id] for block in blocks])
                for class_id in first.columns
            },
            summaries=np.concatenate([block.summaries for block in blocks]),
            drain_sets=_joined_if_any([(block.drain_sets, block.rows) for block in blocks], first),
            drained=_joined_if_any([(block.drained, block.rows) for block in blocks], first),
        )

    def part(self, begin: int, end: int) -> Block:
        """A block of some consecutive rows."""
        return self._only(np.arange(begin, end))

    def without_rows(self, gone: Collection[int]) -> tuple[Block, list[int]]:
        """The block without some rows; others must stay.

        The last rows move into the gaps, and all others stay where they are.

        Returns:
            The block, and the rows that have other trees now.
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

    def _only(self, index: Ints) -> Block:
        """Some rows, in the order given."""
        return Block(
            shape=self.shape,
            **{name: getattr(self, name).take(index, axis=1) for name in _PLAIN},
            tree_aggregate_sets=self.tree_aggregate_sets.take(index),
            names=self.names.take(index),
            columns={class_id: columns.only(index) for class_id, columns in self.columns.items()},
            summaries=self.summaries.take(index),
            drain_sets=_taken_if_any(self.drain_sets, index),
            drained=_taken_if_any(self.drained, index),
        )


#: The arrays of a block that begin with the axes K and R, and are never None.
_PLAIN: Final = ("provider_ids", "uuid_bytes", "aggregate_sets", "generations", "modified")


def no_texts(count: int) -> Texts:
    """The texts of rows of which none is kept."""
    texts: Texts = np.full(count, None, dtype=np.object_)
    return texts


def bytes_of(uuids: Sequence[str]) -> Bytes:
    """Uuids as ASCII, of shape (N, 36); shorter ones are padded with zeros."""
    texts = np.array(uuids, dtype=f"S{UUID_LENGTH}")
    return texts.view(np.uint8).reshape(len(uuids), UUID_LENGTH)


def _nodes_of(shape: Shape, trees: Sequence[Tree]) -> list[list[NodeRecord]]:
    """For each node of a shape the providers of some trees."""
    return [[tree.nodes[node] for tree in trees] for node in range(shape.size)]


def _drain_sets_of(nodes: Sequence[Sequence[NodeRecord]]) -> SmallInts | None:
    """The sets of drains of some providers; None if they are in none."""
    if not any(record.drain_set for row in nodes for record in row):
        return None
    return np.array([[record.drain_set for record in row] for row in nodes], dtype=np.int32)


def _taken_if_any(array: NDArray[S] | None, index: Ints) -> NDArray[S] | None:
    """Some columns of an array; None if nothing is set in them."""
    if array is None:
        return None
    taken = array.take(index, axis=1)
    return taken if taken.any() else None


def _joined_if_any(
    parts: Sequence[tuple[NDArray[S] | None, int]], first: Block
) -> NDArray[S] | None:
    """Some arrays side by side, each given with its number of columns; one that is None has nothing
    set."""
    some = next((array for array, _ in parts if array is not None), None)
    if some is None:
        return None
    return _side_by_side(
        [
            np.zeros((first.shape.size, columns), dtype=some.dtype) if array is None else array
            for array, columns in parts
        ]
    )


#: An `InventoryRecord` in the types of `Columns`.
_TYPES: Final = ("i8", "f8", "f8", "i4", "i4", "i4", "i4", "i4", "f8", "i8")
_INVENTORY: Final = np.dtype([*zip(InventoryRecord._fields, _TYPES, strict=True)])


def _columns_of(shape: Shape, nodes: Sequence[Sequence[NodeRecord]]) -> dict[ClassId, Columns]:
    columns = {}
    for class_id, having in shape.nodes_of_class.items():
        lines = []
        for node in having:
            at = shape.node_types[node].classes.index(class_id)
            lines.append([record.inventories[at] for record in nodes[node]])
        table = np.array(lines, dtype=_INVENTORY)
        columns[class_id] = Columns.of(**{name: np.ascontiguousarray(table[name]) for name in OWN})
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
