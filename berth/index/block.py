# SPDX-License-Identifier: Apache-2.0
"""Blocks: up to `ROWS_MAX` trees of one shape, side by side in arrays.

Axes: K nodes of the shape (in tree order), R trees of the block (a tree is a *row*); a class that M
of the nodes have stands in arrays of shape (M, R), whose first axis follows `Shape.nodes_of_class`.

A block never changes once a snapshot holds it: every method that changes something gives a new
block, which shares with the old one all arrays that did not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

Values = TypeVar("Values", Floats, SmallInts)

#: Trees per block: large enough that array operations outweigh the interpreter, small enough that
#: copying one array of a block on a write costs microseconds and that a search with a limit touches
#: little.
ROWS_MAX: Final = 4096


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
    #: Whether some step_size is not 1: whether the remainder has to be computed at all.
    stepped: bool


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """See the module's text for K, M and R.

    Attributes:
        provider_ids: (K, R).
        uuids: K lists of R texts.
        aggregate_sets: (K, R), ids of `AggregateSets`: what each provider itself is in.
        tree_aggregate_sets: (R,), ids of `AggregateSets`: what any provider of the tree is in.
        columns: one entry for each class of the shape.
        summaries: (R,) the rendered provider summaries of whole trees, None where nobody asked yet;
            a cache, filled by `berth.candidates.render`, dropped for a row by whatever changes the
            row.
    """

    shape: Shape
    provider_ids: Ints
    uuids: list[list[str]]
    aggregate_sets: SmallInts
    tree_aggregate_sets: SmallInts
    columns: Mapping[ClassId, Columns]
    summaries: list[str | None]

    @property
    def rows(self) -> int:
        """The number of trees."""
        return len(self.summaries)

    @classmethod
    def of(cls, shape: Shape, trees: Sequence[Tree]) -> Block:
        """A block of some trees of one shape; a row for each, in the order given."""
        assert 0 < len(trees) <= ROWS_MAX
        nodes = [[tree.nodes[node] for tree in trees] for node in range(shape.size)]
        return cls(
            shape=shape,
            provider_ids=np.array([[n.provider_id for n in row] for row in nodes], dtype=np.int64),
            uuids=[[n.uuid for n in row] for row in nodes],
            aggregate_sets=np.array([[n.aggregate_set for n in row] for row in nodes], np.int32),
            tree_aggregate_sets=np.array([tree.aggregate_set for tree in trees], dtype=np.int32),
            columns=_columns_of(shape, nodes),
            summaries=[None] * len(trees),
        )

    def holds(self, row: int, tree: Tree) -> bool:
        """Whether a row is that tree already, but for amounts, units and aggregates.

        Ids alone do not tell: SQLite gives the id of a deleted provider to the next one.
        """
        return self.shape is tree.shape and all(
            self.uuids[node][row] == record.uuid
            and self.provider_ids[node, row] == record.provider_id
            for node, record in enumerate(tree.nodes)
        )

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
        return replace(
            self,
            aggregate_sets=aggregate_sets,
            tree_aggregate_sets=tree_aggregate_sets,
            columns={
                class_id: self._changed_columns(class_id, changed) for class_id in self.columns
            },
            summaries=summaries,
        )

    def with_rows(self, trees: Sequence[Tree]) -> Block:
        """The block with more trees behind its own."""
        more = Block.of(self.shape, trees)
        return Block(
            shape=self.shape,
            provider_ids=np.concatenate((self.provider_ids, more.provider_ids), axis=1),
            uuids=[ours + theirs for ours, theirs in zip(self.uuids, more.uuids, strict=True)],
            aggregate_sets=np.concatenate((self.aggregate_sets, more.aggregate_sets), axis=1),
            tree_aggregate_sets=np.concatenate(
                (self.tree_aggregate_sets, more.tree_aggregate_sets)
            ),
            columns={
                class_id: _joined(columns, more.columns[class_id])
                for class_id, columns in self.columns.items()
            },
            summaries=self.summaries + more.summaries,
        )

    def only_rows(self, kept: Sequence[int]) -> Block:
        """The block with some of its rows, in the order given."""
        index = np.array(kept, dtype=np.int64)
        return Block(
            shape=self.shape,
            provider_ids=self.provider_ids[:, index],
            uuids=[[texts[row] for row in kept] for texts in self.uuids],
            aggregate_sets=self.aggregate_sets[:, index],
            tree_aggregate_sets=self.tree_aggregate_sets[index],
            columns={
                class_id: Columns(
                    columns.capacity[:, index],
                    columns.used[:, index],
                    columns.min_unit[:, index],
                    columns.max_unit[:, index],
                    columns.step_size[:, index],
                    columns.stepped,
                )
                for class_id, columns in self.columns.items()
            },
            summaries=[self.summaries[row] for row in kept],
        )

    def tree(self, row: int) -> Tree:
        """A row as records again: what `check` compares with the database."""
        ids = self.provider_ids[:, row].tolist()
        return Tree(
            self.shape,
            tuple(self._node(node, row, ids) for node in range(self.shape.size)),
            int(self.tree_aggregate_sets[row]),
        )

    def _node(self, node: int, row: int, ids: Sequence[ProviderId]) -> NodeRecord:
        parent = self.shape.parents[node]
        kind = self.shape.kinds[node]
        return NodeRecord(
            provider_id=ids[node],
            uuid=self.uuids[node][row],
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

    def _changed_columns(self, class_id: ClassId, changed: Mapping[int, Tree]) -> Columns:
        """One class's columns after a change; arrays in which nothing changed are the same
        objects."""
        old = self.columns[class_id]
        place = {
            node: self.shape.kinds[node].classes.index(class_id)
            for node in self.shape.nodes_of_class[class_id]
        }
        rows = list(changed)
        new = [
            [changed[row].nodes[node].inventories[at] for row in rows] for node, at in place.items()
        ]
        step_size = _put(old.step_size, rows, [[i.step_size for i in line] for line in new])
        return Columns(
            capacity=_put(old.capacity, rows, [[i.capacity for i in line] for line in new]),
            used=_put(old.used, rows, [[i.used for i in line] for line in new]),
            min_unit=_put(old.min_unit, rows, [[i.min_unit for i in line] for line in new]),
            max_unit=_put(old.max_unit, rows, [[i.max_unit for i in line] for line in new]),
            step_size=step_size,
            stepped=old.stepped if step_size is old.step_size else bool((step_size != 1).any()),
        )


def _columns_of(shape: Shape, nodes: Sequence[Sequence[NodeRecord]]) -> dict[ClassId, Columns]:
    columns = {}
    for class_id, having in shape.nodes_of_class.items():
        lines = []
        for node in having:
            at = shape.kinds[node].classes.index(class_id)
            lines.append([record.inventories[at] for record in nodes[node]])
        step_size = np.array([[i.step_size for i in line] for line in lines], dtype=np.int32)
        columns[class_id] = Columns(
            capacity=np.array([[i.capacity for i in line] for line in lines], dtype=np.float64),
            used=np.array([[i.used for i in line] for line in lines], dtype=np.float64),
            min_unit=np.array([[i.min_unit for i in line] for line in lines], dtype=np.int32),
            max_unit=np.array([[i.max_unit for i in line] for line in lines], dtype=np.int32),
            step_size=step_size,
            stepped=bool((step_size != 1).any()),
        )
    return columns


def _joined(ours: Columns, theirs: Columns) -> Columns:
    return Columns(
        np.concatenate((ours.capacity, theirs.capacity), axis=1),
        np.concatenate((ours.used, theirs.used), axis=1),
        np.concatenate((ours.min_unit, theirs.min_unit), axis=1),
        np.concatenate((ours.max_unit, theirs.max_unit), axis=1),
        np.concatenate((ours.step_size, theirs.step_size), axis=1),
        ours.stepped or theirs.stepped,
    )


def _put(array: Values, rows: Sequence[int], values: Sequence[Sequence[float]]) -> Values:
    """The array with other values in some columns: itself when they are the values it has."""
    new: Values = np.array(values, dtype=array.dtype)
    if np.array_equal(array[:, rows], new):
        return array
    changed = array.copy()
    changed[:, rows] = new
    return changed
