# SPDX-License-Identifier: Apache-2.0
"""A whole fleet at once: from rows to blocks by operations on arrays, without a record for each
provider.

The providers of a part are numbered here by their *positions*: trees one after the other, and
within a tree by id. Two trees have the same *layout* when their providers, in this order, have the
same parents, classes and traits. Then `ShapeRegistry.arrange` would put both in the same order: it
is asked about one tree of each layout, and its answer is kept.

`Fleet.replace` does the same tree by tree: tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.index.aggregate_sets import NO_AGGREGATES, AggregateSets
from berth.index.block import ROWS_MAX, UUID_LENGTH, Block, Columns, no_texts
from berth.index.records import InventoryRecord, NodeRecord
from berth.index.shape import NO_PARENT, Shape, ShapeRegistry
from berth.model.ids import AggregateId, ProviderId, TraitId
from berth.store.index_feed import FleetRows

Ints = NDArray[np.int64]

_PROVIDERS: Final = np.dtype(
    # An id is far below 2^53, so a float holds it: and NaN where a provider has no parent.
    [("id", "i8"), ("uuid", f"S{UUID_LENGTH}"), ("parent", "f8"), ("root", "i8")]
)
_INVENTORIES: Final = np.dtype(
    [
        ("provider", "i8"),
        ("class", "i8"),
        ("net", "f8"),
        ("ratio", "f8"),
        ("used", "f8"),
        ("min_unit", "i4"),
        ("max_unit", "i4"),
        ("step_size", "i4"),
    ]
)
_PAIRS: Final = np.dtype([("provider", "i8"), ("value", "i8")])


class Layout(NamedTuple):
    """What trees laid out alike become: their shape, and for each of its nodes the place of the
    provider among the tree's positions."""

    shape: Shape
    places: Ints


class BlockBuilder:
    """Takes in the fleet part by part, and gives out blocks."""

    def __init__(
        self, shapes: ShapeRegistry, sets: AggregateSets, rows_max: int = ROWS_MAX
    ) -> None:
        self._rows_max = rows_max
        self._shapes = shapes
        self._sets = sets
        self._class_lists = _Lists()
        self._trait_sets = _Lists()
        self._aggregates = _Lists()
        #: Number in `_aggregates` -> id in `_sets`.
        self._aggregate_sets: list[int] = []
        #: The aggregate sets of a tree's nodes, one after the other.
        self._trees_aggregates = _Lists()
        #: Number in `_trees_aggregates` -> id in `_sets`.
        self._tree_aggregate_sets: list[int] = []
        self._layout_numbers = _Lists()
        self._layouts: dict[int, Layout] = {}
        #: shape -> blocks that are not full yet.
        self._pending: dict[Shape, list[Block]] = {}

    def add(self, rows: FleetRows) -> Iterator[Block]:
        """Take in some whole trees; the blocks that are full now."""
        if not rows.providers:
            return
        part = _Part(rows)
        sets = self._sets_of(part)
        for layout, trees in self._by_layout(part):
            starts = part.tree_bounds[trees]
            block = self._block(part, layout, starts + layout.places[:, None], sets)
            pending = self._pending.setdefault(layout.shape, [])
            pending.append(block)
            most = self._rows_max
            if sum(each.rows for each in pending) >= most:
                whole = Block.joined(pending)
                full = whole.rows - whole.rows % most
                yield from (whole.part(at, at + most) for at in range(0, full, most))
                self._pending[layout.shape] = (
                    [whole.part(full, whole.rows)] if full < whole.rows else []
                )

    def rest(self) -> Iterator[Block]:
        """The blocks that did not get full."""
        return (Block.joined(pending) for pending in self._pending.values() if pending)

    def _sets_of(self, part: _Part) -> Ints:
        """What each position is in: ids of `AggregateSets`."""
        numbers = self._aggregates.numbers(part.aggregates, part.aggregate_bounds)
        for members in self._aggregates.since(len(self._aggregate_sets)):
            self._aggregate_sets.append(self._sets.id_of(frozenset(map(AggregateId, members))))
        return _looked_up(self._aggregate_sets, numbers)

    def _sets_of_trees(self, sets: Ints) -> Ints:
        """What any provider of each tree is in, from what each one is in, of shape (K, R)."""
        size, rows = sets.shape
        if size == 1:
            return sets.ravel()
        bounds = np.arange(rows + 1, dtype=np.int64) * size
        numbers = self._trees_aggregates.numbers(sets.T.ravel(), bounds)
        for each in self._trees_aggregates.since(len(self._tree_aggregate_sets)):
            self._tree_aggregate_sets.append(self._sets.union(each))
        return _looked_up(self._tree_aggregate_sets, numbers)

    def _by_layout(self, part: _Part) -> Iterator[tuple[Layout, Ints]]:
        """The layouts of a part, each with its trees."""
        looks = np.empty((part.size, 3), dtype=np.int64)
        looks[:, 0] = part.parents
        looks[:, 1] = self._class_lists.numbers(part.inventories["class"], part.inventory_bounds)
        looks[:, 2] = self._trait_sets.numbers(part.traits, part.trait_bounds)
        numbers = self._layout_numbers.numbers(looks.ravel(), part.tree_bounds * 3)
        order = np.argsort(numbers, kind="stable")
        edges = np.flatnonzero(np.diff(numbers[order], prepend=-1))
        for trees in np.split(order, edges[1:]):
            number = int(numbers[trees[0]])
            layout = self._layouts.get(number)
            if layout is None:
                layout = self._layouts[number] = self._layout(part, int(trees[0]))
            yield layout, trees

    def _layout(self, part: _Part, tree: int) -> Layout:
        records = part.records(tree)
        shape, ordered = self._shapes.arrange(records)
        places = {record.provider_id: place for place, record in enumerate(records)}
        return Layout(shape, np.array([places[each.provider_id] for each in ordered]))

    def _block(self, part: _Part, layout: Layout, positions: Ints, sets: Ints) -> Block:
        """A block of trees of one layout, of any number of rows.

        Args:
            positions: (K, R).
        """
        aggregate_sets = sets[positions]
        return Block(
            shape=layout.shape,
            provider_ids=part.ids[positions],
            uuid_bytes=part.uuids[positions].view(np.uint8).reshape(*positions.shape, UUID_LENGTH),
            aggregate_sets=aggregate_sets,
            tree_aggregate_sets=self._sets_of_trees(aggregate_sets),
            columns={
                class_id: part.columns(
                    # A provider's inventories stand in the order of its kind's classes.
                    np.array(
                        [
                            part.inventory_bounds[positions[node]]
                            + layout.shape.kinds[node].classes.index(class_id)
                            for node in nodes
                        ]
                    )
                )
                for class_id, nodes in layout.shape.nodes_of_class.items()
            },
            summaries=no_texts(positions.shape[1]),
        )


class _Part:
    """The rows of some whole trees as arrays, in the order of positions.

    Attributes:
        tree_bounds: where each tree begins, and where the last one ends.
        parents: the parent's place in its tree, `NO_PARENT` for roots.
        inventory_bounds, trait_bounds, aggregate_bounds: where each position's inventories, traits
            and aggregates begin, and where the last one's end; each ascending by id.
    """

    def __init__(self, rows: FleetRows) -> None:
        table = np.array(rows.providers, dtype=_PROVIDERS)
        table = table[np.lexsort((table["id"], table["root"]))]
        self.size = len(table)
        self.ids: Ints = table["id"]
        self.uuids: NDArray[np.bytes_] = table["uuid"]
        self._roots: Ints = table["root"]
        self.tree_bounds: Ints = np.flatnonzero(np.diff(self._roots, prepend=-1, append=-1))
        self._by_id = np.argsort(self.ids)
        self._ids_ascending = self.ids[self._by_id]
        self.parents = self._places_of_parents(table["parent"])
        self.inventories, self.inventory_bounds = self._sorted(
            np.array(rows.inventories, dtype=_INVENTORIES), "class"
        )
        self._capacity = np.trunc(self.inventories["net"] * self.inventories["ratio"])
        traits, self.trait_bounds = self._sorted(np.array(rows.traits, dtype=_PAIRS), "value")
        self.traits: Ints = traits["value"]
        aggregates, self.aggregate_bounds = self._sorted(
            np.array(rows.aggregates, dtype=_PAIRS), "value"
        )
        self.aggregates: Ints = aggregates["value"]

    def columns(self, at: Ints) -> Columns:
        """One class's columns; `at` says which inventories, of shape (M, R)."""
        found = self.inventories
        return Columns.of(
            capacity=self._capacity[at],
            used=found["used"][at],
            min_unit=found["min_unit"][at],
            max_unit=found["max_unit"][at],
            step_size=found["step_size"][at],
        )

    def records(self, tree: int) -> list[NodeRecord]:
        """The providers of one tree, but for what they are in: all that decides the layout."""
        first, end = self.tree_bounds[tree : tree + 2].tolist()
        ids = self.ids[first:end].tolist()
        return [
            NodeRecord(
                provider_id=provider,
                uuid=self.uuids[first + place].decode("ascii"),
                parent_id=None if parent == NO_PARENT else ids[parent],
                root_id=ProviderId(int(self._roots[first])),
                inventories=self._inventories_at(first + place),
                traits=self._traits_at(first + place),
                aggregate_set=NO_AGGREGATES,
            )
            for place, (provider, parent) in enumerate(
                zip(ids, self.parents[first:end].tolist(), strict=True)
            )
        ]

    def _inventories_at(self, position: int) -> tuple[InventoryRecord, ...]:
        first, end = self.inventory_bounds[position : position + 2].tolist()
        capacities = self._capacity[first:end].tolist()
        return tuple(
            InventoryRecord(class_id, capacity, int(used), least, most, step)
            for capacity, (_, class_id, _, _, used, least, most, step) in zip(
                capacities, self.inventories[first:end].tolist(), strict=True
            )
        )

    def _traits_at(self, position: int) -> frozenset[TraitId]:
        first, end = self.trait_bounds[position : position + 2].tolist()
        return frozenset(self.traits[first:end].tolist())

    def _places_of_parents(self, parents: NDArray[np.float64]) -> Ints:
        places = np.full(self.size, NO_PARENT, dtype=np.int64)
        children = np.flatnonzero(~np.isnan(parents))
        if len(children):
            starts = np.repeat(self.tree_bounds[:-1], np.diff(self.tree_bounds))
            positions = self._positions(parents[children].astype(np.int64))
            places[children] = positions - starts[children]
        return places

    def _positions(self, providers: Ints) -> Ints:
        at = np.searchsorted(self._ids_ascending, providers)
        found: Ints = self._by_id[at]
        assert np.array_equal(self.ids[found], providers), "a part holds whole trees"
        return found

    def _sorted(self, table: Any, by: str) -> tuple[Any, Ints]:
        positions = self._positions(table["provider"])
        order = np.lexsort((table[by], positions))
        bounds = np.searchsorted(positions[order], np.arange(self.size + 1))
        return table[order], bounds


class _Lists:
    """Lists of integers by number: equal lists have one, and numbers are given out from 0 on."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def numbers(self, values: Ints, bounds: Ints) -> Ints:
        """The number of each list; list i is `values[bounds[i] : bounds[i + 1]]`."""
        text = values.tobytes()
        known = self._numbers
        edges = (bounds * values.itemsize).tolist()
        return np.array(
            [known.setdefault(text[begin:end], len(known)) for begin, end in pairwise(edges)],
            dtype=np.int64,
        )

    def since(self, number: int) -> Iterator[list[int]]:
        """The lists with this number and higher ones, in order."""
        for text in islice(self._numbers, number, None):
            yield np.frombuffer(text, dtype=np.int64).tolist()


def _looked_up(table: list[int], numbers: Ints) -> Ints:
    found: Ints = np.array(table, dtype=np.int64)[numbers]
    return found
