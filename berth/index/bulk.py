# SPDX-License-Identifier: Apache-2.0
"""A whole fleet at once: from rows to blocks by operations on arrays, without a record for each
provider.

The providers of a part are numbered here by their *positions*: trees one after the other, and
within a tree by id. Two trees have the same *layout* when their providers, in this order, have the
same parents, classes and traits. Then `ShapeRegistry.arrange` would put both in the same order, so
it arranges one tree of each layout.

`Fleet.replace` does the same tree by tree; tests check that both give the same result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.index.block import ROWS_MAX, UUID_LENGTH, Block, Columns, SmallInts, no_texts
from berth.index.faulty_rows import FaultyRow, sieved
from berth.index.names import Names
from berth.index.records import InventoryRecord, NodeRecord, json_of
from berth.index.sets import NO_AGGREGATES, NO_DRAINS, AggregateSets, DrainSets
from berth.index.shape import NO_PARENT, Shape, ShapeRegistry
from berth.index.text_column import TextColumn
from berth.model.ids import AggregateId, TraitId
from berth.model.named import DrainId
from berth.store.index_feed import FleetRows

Ints = NDArray[np.int64]

_PROVIDERS: Final = np.dtype(
    # An id is far below 2^53, so a float holds it: and NaN where a provider has no parent.
    [
        ("id", "i8"),
        ("uuid", f"S{UUID_LENGTH}"),
        ("parent", "f8"),
        ("root", "i8"),
        ("name", "O"),
        ("generation", "i8"),
        ("modified", "i8"),
    ]
)
_INVENTORIES: Final = np.dtype(
    [
        ("provider", "i8"),
        ("class", "i8"),
        ("total", "i4"),
        ("reserved", "i4"),
        ("allocation_ratio", "f8"),
        ("used", "f8"),
        ("min_unit", "i4"),
        ("max_unit", "i4"),
        ("step_size", "i4"),
        ("modified", "i8"),
    ]
)
_PAIRS: Final = np.dtype([("provider", "i8"), ("value", "i8")])


class Layout(NamedTuple):
    """The trees of one layout: their shape, and for each of its nodes the place of the provider
    among the tree's positions."""

    shape: Shape
    places: Ints


class BlockBuilder:
    """Makes blocks of a fleet that comes part by part."""

    def __init__(
        self,
        shapes: ShapeRegistry,
        sets: AggregateSets,
        drain_sets: DrainSets,
        rows_max: int = ROWS_MAX,
    ) -> None:
        #: Of the parts so far.
        self.faults: set[FaultyRow] = set()
        self._rows_max = rows_max
        self._shapes = shapes
        self._sets = sets
        self._drain_sets = drain_sets
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

    def add(self, rows: FleetRows, names: Names) -> Iterator[Block]:
        """Add some whole trees; returns the blocks that are full now."""
        if not rows.providers or (part := self._sound_part(rows, names)) is None:
            return
        sets = self._sets_of(part)
        drains = part.drain_sets(self._drain_sets)
        for layout, trees in self._by_layout(part):
            starts = part.tree_bounds[trees]
            block = self._block(part, layout, starts + layout.places[:, None], sets, drains)
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
        """The blocks that are not full."""
        return (Block.joined(pending) for pending in self._pending.values() if pending)

    def _sound_part(self, rows: FleetRows, names: Names) -> _Part | None:
        """Some rows as arrays; None if none of them has a place."""
        with suppress(ValueError, TypeError, OverflowError):
            part = _Part(rows)
            if part.is_sound(names):
                return part
        # PERF row by row, which a sound part does not need.
        rows, faults = sieved(rows, names)
        self.faults |= faults
        return _Part(rows) if rows.providers else None

    def _sets_of(self, part: _Part) -> Ints:
        """The aggregate set of each position."""
        numbers = self._aggregates.numbers(part.aggregates, part.aggregate_bounds)
        for members in self._aggregates.since(len(self._aggregate_sets)):
            self._aggregate_sets.append(self._sets.id_of(frozenset(map(AggregateId, members))))
        return _looked_up(self._aggregate_sets, numbers)

    def _sets_of_trees(self, sets: Ints) -> Ints:
        """The union of the aggregate sets of each tree, from those of shape (K, R) of its
        providers."""
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

    def _block(
        self,
        part: _Part,
        layout: Layout,
        positions: Ints,
        sets: Ints,
        drains: SmallInts | None,
    ) -> Block:
        """A block of trees of one layout, of any number of rows.

        Args:
            positions: (K, R).
            sets, drains: of each position its aggregates, and its drains.
        """
        drain_sets = None if drains is None else drains[positions]
        aggregate_sets = sets[positions]
        names = list(map(json_of, part.providers["name"][positions].ravel()))
        return Block(
            shape=layout.shape,
            provider_ids=part.ids[positions],
            uuid_bytes=part.uuids[positions].view(np.uint8).reshape(*positions.shape, UUID_LENGTH),
            aggregate_sets=aggregate_sets,
            tree_aggregate_sets=self._sets_of_trees(aggregate_sets),
            names=TextColumn.of(names, positions.shape[1]),
            generations=part.providers["generation"][positions],
            modified=part.providers["modified"][positions],
            columns={
                class_id: part.columns(
                    # A provider's inventories are in the order of its type's classes.
                    np.array(
                        [
                            part.inventory_bounds[positions[node]]
                            + layout.shape.node_types[node].classes.index(class_id)
                            for node in nodes
                        ]
                    )
                )
                for class_id, nodes in layout.shape.nodes_of_class.items()
            },
            summaries=no_texts(positions.shape[1]),
            drain_sets=drain_sets if drain_sets is not None and drain_sets.any() else None,
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
        """The rows in arrays.

        Raises:
            ValueError, TypeError, OverflowError: some of them are faulty.
        """
        table = np.array(rows.providers, dtype=_PROVIDERS)
        table = table[np.lexsort((table["id"], table["root"]))]
        self.size = len(table)
        self.providers = table
        self.ids: Ints = table["id"]
        self.uuids: NDArray[np.bytes_] = table["uuid"]
        self.tree_bounds: Ints = np.flatnonzero(np.diff(table["root"], prepend=-1, append=-1))
        self._by_id = np.argsort(self.ids)
        self._ids_ascending = self.ids[self._by_id]
        self.parents = self._places_of_parents(table["parent"])
        self.inventories, self.inventory_bounds = self._sorted(
            np.array(rows.inventories, dtype=_INVENTORIES), "class"
        )
        self._capacity = np.trunc(
            np.subtract(self.inventories["total"], self.inventories["reserved"], dtype=np.int64)
            * self.inventories["allocation_ratio"]
        )
        traits, self.trait_bounds = self._sorted(np.array(rows.traits, dtype=_PAIRS), "value")
        self.traits: Ints = traits["value"]
        aggregates, self.aggregate_bounds = self._sorted(
            np.array(rows.aggregates, dtype=_PAIRS), "value"
        )
        self.aggregates: Ints = aggregates["value"]
        self._drained = rows.drained

    def is_sound(self, names: Names) -> bool:
        """Whether every row has a place, as in `faulty_rows`."""
        inventories, roots = self.inventories, self._above
        for _ in range(int(np.diff(self.tree_bounds).max()).bit_length()):
            roots = roots[roots]
        return bool(
            np.array_equal(self.ids[roots], self.providers["root"])
            and np.isnan(self.providers["parent"][roots]).all()
            and np.isin(inventories["class"], list(names.class_names)).all()
            and np.isin(self.traits, list(names.trait_names)).all()
            and (inventories["step_size"] > 0).all()
            and np.isfinite(self._capacity).all()
        )

    def drain_sets(self, registry: DrainSets) -> SmallInts | None:
        """The set of drains of each position; None if no drain names any."""
        if not self._drained:
            return None
        drains: dict[int, set[DrainId]] = {}
        for provider, drain in self._drained:
            drains.setdefault(provider, set()).add(drain)
        sets = np.full(self.size, NO_DRAINS, dtype=np.int32)
        positions = self._positions(np.array(list(drains), dtype=np.int64))
        sets[positions] = [registry.id_of(frozenset(each)) for each in drains.values()]
        return sets

    def columns(self, at: Ints) -> Columns:
        """One class's columns; `at` says which inventories, of shape (M, R)."""
        inventories = self.inventories
        return Columns.of(
            capacity=self._capacity[at],
            used=inventories["used"][at],
            min_unit=inventories["min_unit"][at],
            max_unit=inventories["max_unit"][at],
            step_size=inventories["step_size"][at],
            total=inventories["total"][at],
            reserved=inventories["reserved"][at],
            allocation_ratio=inventories["allocation_ratio"][at],
            modified=inventories["modified"][at],
        )

    def records(self, tree: int) -> list[NodeRecord]:
        """The providers of one tree, with what decides the layout."""
        first, end = self.tree_bounds[tree : tree + 2].tolist()
        ids = self.ids[first:end].tolist()
        return [
            NodeRecord(
                provider_id=provider,
                uuid=self.uuids[first + place].decode("ascii"),
                parent_id=None if parent == NO_PARENT else ids[parent],
                inventories=self._inventories_at(first + place),
                traits=self._traits_at(first + place),
                aggregate_set=NO_AGGREGATES,
                name=b"",
                generation=0,
                modified=0,
            )
            for place, (provider, parent) in enumerate(
                zip(ids, self.parents[first:end].tolist(), strict=True)
            )
        ]

    def _inventories_at(self, position: int) -> tuple[InventoryRecord, ...]:
        first, end = self.inventory_bounds[position : position + 2].tolist()
        capacities = self._capacity[first:end].tolist()
        return tuple(
            InventoryRecord(
                class_id, capacity, int(used), least, most, step, total, reserved, ratio, modified
            )
            for capacity, (
                _,
                class_id,
                total,
                reserved,
                ratio,
                used,
                least,
                most,
                step,
                modified,
            ) in zip(capacities, self.inventories[first:end].tolist(), strict=True)
        )

    def _traits_at(self, position: int) -> frozenset[TraitId]:
        first, end = self.trait_bounds[position : position + 2].tolist()
        return frozenset(self.traits[first:end].tolist())

    def _places_of_parents(self, parents: NDArray[np.float64]) -> Ints:
        places = np.full(self.size, NO_PARENT, dtype=np.int64)
        #: The position of each parent; for roots, their own.
        self._above: Ints = np.arange(self.size)
        children = np.flatnonzero(~np.isnan(parents))
        if len(children):
            starts = np.repeat(self.tree_bounds[:-1], np.diff(self.tree_bounds))
            positions = self._positions(parents[children].astype(np.int64))
            places[children] = positions - starts[children]
            self._above[children] = positions
        return places

    def _positions(self, providers: Ints) -> Ints:
        at = np.searchsorted(self._ids_ascending, providers)
        positions: Ints = self._by_id.take(at, mode="clip")
        if not np.array_equal(self.ids[positions], providers):
            raise ValueError("a part holds whole trees")
        return positions

    def _sorted(self, table: Any, by: str) -> tuple[Any, Ints]:
        positions = self._positions(table["provider"])
        order = np.lexsort((table[by], positions))
        bounds = np.searchsorted(positions[order], np.arange(self.size + 1))
        return table[order], bounds


class _Lists:
    """Numbers lists of integers from 0 on; equal lists have one number."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def numbers(self, values: Ints, bounds: Ints) -> Ints:
        """The number of each list; list i is `values[bounds[i] : bounds[i + 1]]`."""
        text = values.tobytes()
        numbers = self._numbers
        edges = (bounds * values.itemsize).tolist()
        return np.array(
            [numbers.setdefault(text[begin:end], len(numbers)) for begin, end in pairwise(edges)],
            dtype=np.int64,
        )

    def since(self, number: int) -> Iterator[list[int]]:
        """The lists with this number and higher ones, in order."""
        for text in islice(self._numbers, number, None):
            yield np.frombuffer(text, dtype=np.int64).tolist()


def _looked_up(table: list[int], numbers: Ints) -> Ints:
    values: Ints = np.array(table, dtype=np.int64)[numbers]
    return values
