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

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.index.block import OWN, ROWS_MAX, UUID_LENGTH, Block, Columns, SmallInts, no_texts
from berth.index.faulty_rows import FaultyRow, sieved
from berth.index.names import Names
from berth.index.records import InventoryRecord, NodeRecord, json_of
from berth.index.sets import NO_AGGREGATES, NO_DRAINS, AggregateSets, DrainSets
from berth.index.shape import NO_PARENT, Shape, ShapeRegistry
from berth.index.text_column import TextColumn
from berth.model.ids import AggregateId, ClassId, TraitId
from berth.model.named import DrainId
from berth.store.index_feed import NO_PARENT_ID, RATIO_PARTS, FleetPart, FleetRows

Ints = NDArray[np.int64]

#: An id is far below 2^53, so a float holds it: and NaN where a provider has no parent.
_PROVIDERS: Final = np.dtype(
    [
        *(("id", "i8"), ("uuid", f"S{UUID_LENGTH}"), ("parent", "f8"), ("root", "i8")),
        *(("name", "O"), ("generation", "i8"), ("modified", "i8")),
    ]
)
_INVENTORIES: Final = np.dtype(
    [
        *(("provider", "i8"), ("class", "i8"), ("total", "i4"), ("reserved", "i4")),
        *(("allocation_ratio", "f8"), ("used", "f8"), ("min_unit", "i4"), ("max_unit", "i4")),
        *(("step_size", "i4"), ("modified", "i8")),
    ]
)
_PAIRS: Final = np.dtype([("provider", "i8"), ("value", "i8")])

#: Of an inventory, instead of everything but its class.
_NO_AMOUNTS: Final = (0,) * 9

#: Makes an array of some rows.
_Array = Callable[[list[Any], np.dtype[np.void]], NDArray[np.void]]

#: Odd, with bits all over: other numbers times its powers hardly ever have the same sum.
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)


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

    def add(self, trees: FleetPart, names: Names) -> Iterator[Block]:
        """Add some whole trees; returns the blocks that are full now."""
        if (part := self._sound_part(trees, names)) is None:
            return
        sets = self._sets_of(part)
        drains = part.drain_sets(self._drain_sets)
        for layout, alike in self._by_layout(part):
            starts = part.tree_bounds[alike]
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

    def _sound_part(self, trees: FleetPart, names: Names) -> _Part | None:
        """Some trees as arrays; None if none of them has a place."""
        if trees.texts is not None and (part := _sound(trees.texts, names, _from_texts)):
            return part
        rows = trees.rows()
        if part := _sound(rows, names, np.array):
            return part
        # PERF row by row, which a sound part does not need.
        rows, faults = sieved(rows, names)
        self.faults |= faults
        return _Part(rows, np.array) if rows.providers else None

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

    def __init__(self, rows: FleetRows, array: _Array) -> None:
        """The rows in arrays, which `array` makes.

        Raises:
            ValueError, TypeError, OverflowError: some of them are faulty.
        """
        table = array(rows.providers, _PROVIDERS)
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
            array(rows.inventories, _INVENTORIES), "class"
        )
        self._capacity = np.trunc(
            np.subtract(self.inventories["total"], self.inventories["reserved"], dtype=np.int64)
            * self.inventories["allocation_ratio"]
        )
        traits, self.trait_bounds = self._sorted(array(rows.traits, _PAIRS), "value")
        self.traits: Ints = traits["value"]
        aggregates, self.aggregate_bounds = self._sorted(array(rows.aggregates, _PAIRS), "value")
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
        own = {name: self.inventories[name][at] for name in OWN[1:]}
        return Columns.of(capacity=self._capacity[at], **own)

    def records(self, tree: int) -> list[NodeRecord]:
        """The providers of one tree, with no more than what decides the layout."""
        first, end = self.tree_bounds[tree : tree + 2].tolist()
        ids = self.ids[first:end].tolist()
        classes = _between(self.inventories["class"], self.inventory_bounds)
        traits = _between(self.traits, self.trait_bounds)
        return [
            NodeRecord(
                provider_id=provider,
                uuid="",
                parent_id=None if parent == NO_PARENT else ids[parent],
                inventories=tuple(
                    InventoryRecord(ClassId(each), *_NO_AMOUNTS) for each in classes(position)
                ),
                traits=frozenset(map(TraitId, traits(position))),
                aggregate_set=NO_AGGREGATES,
                name=b"",
                generation=0,
                modified=0,
            )
            for position, provider, parent in zip(
                range(first, end), ids, self.parents[first:end].tolist(), strict=True
            )
        ]

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


def _between(values: Ints, bounds: Ints) -> Callable[[int], list[int]]:
    """A function that returns the list of a position."""
    return lambda position: values[slice(*bounds[position : position + 2])].tolist()


def _sound(rows: FleetRows, names: Names, array: _Array) -> _Part | None:
    """The rows in arrays; None if there are none, or faulty ones."""
    with suppress(ValueError, TypeError, OverflowError):
        part = _Part(rows, array)
        if part.size and part.is_sound(names):
            return part
    return None


def _from_texts(rows: list[Any], dtype: np.dtype[np.void]) -> NDArray[np.void]:
    """An array of the rows in some texts: see `FleetPart`."""
    ((count, *texts),) = rows
    table = np.empty(count, dtype)
    for name, text in zip(dtype.names or (), texts if count else (), strict=count > 0):
        values = _values(text or "", name, dtype[name])
        if len(values) != count:
            raise ValueError("the text cannot hold one of them")
        table[name] = values
    return table


def _values(text: str, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    is_text = dtype.kind in "SO"
    if not text.endswith("\n" if is_text else ","):
        raise ValueError("the text was cut in the middle of a value")
    if is_text:
        return np.array(text[:-1].split("\n"), dtype)
    values = np.fromstring(text[:-1], np.int64, sep=",")
    if dtype.itemsize == 4 and len(values) and max(values.max(), ~values.min()) >= 2**31:
        raise OverflowError
    if name == "parent":
        return np.where(values == NO_PARENT_ID, np.nan, values)
    return values / RATIO_PARTS if name == "allocation_ratio" else values


class _Lists:
    """Numbers lists of integers from 0 on; equal lists have one number."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def numbers(self, values: Ints, bounds: Ints) -> Ints:
        """The number of each list; list i is `values[bounds[i] : bounds[i + 1]]`."""
        lengths = np.diff(bounds)
        places = np.arange(len(values)) - np.repeat(bounds[:-1], lengths)
        # PERF bench, start: most lists are equal, and a text of each takes five times as long.
        terms = (values + 1).view(np.uint64) * _FACTOR ** places.view(np.uint64)
        sums = np.concatenate(([np.uint64(0)], np.cumsum(terms)))[bounds]
        _, first, which = np.unique(np.diff(sums), return_index=True, return_inverse=True)
        like = first[which]
        # Lists with the same sum may still differ.
        if not (
            np.array_equal(lengths[like], lengths)
            and np.array_equal(values[np.repeat(bounds[like], lengths) + places], values)
        ):
            first = which = np.arange(len(lengths))
        numbers = np.empty(len(first), dtype=np.int64)
        for place in np.argsort(first).tolist():
            begin, end = bounds[first[place] : first[place] + 2].tolist()
            text = values[begin:end].tobytes()
            numbers[place] = self._numbers.setdefault(text, len(self._numbers))
        return numbers[which]

    def since(self, number: int) -> Iterator[list[int]]:
        """The lists with this number and higher ones, in order."""
        for text in islice(self._numbers, number, None):
            yield np.frombuffer(text, dtype=np.int64).tolist()


def _looked_up(table: list[int], numbers: Ints) -> Ints:
    values: Ints = np.array(table, dtype=np.int64)[numbers]
    return values
