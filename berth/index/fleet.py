# SPDX-License-Identifier: Apache-2.0
"""The live index without I/O: rows of whole trees come in, snapshots go out.

One `Fleet` belongs to one thread at a time (`berth.index.index` holds a lock around it); the
snapshots that it gives out may be read by any number of threads.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
import os_traits

from berth.index.aggregate_sets import AggregateSets
from berth.index.allowance import BYTES_MAX, Allowance
from berth.index.block import ROWS_MAX, Block, Tree
from berth.index.bulk import BlockBuilder
from berth.index.memory import Memory, TextSize
from berth.index.paged_map import PagedMap
from berth.index.records import InventoryRecord, NodeRecord
from berth.index.shape import Shape, ShapeRegistry
from berth.index.snapshot import Location, Names, Sharing, Snapshot, location_of, packed
from berth.index.uuid_map import UuidMap
from berth.model.ids import AggregateId, AggregateUUID, ClassId, ProviderId, TraitId
from berth.store.index_feed import FleetRows

N = TypeVar("N")

SHARING_TRAIT: Final = os_traits.MISC_SHARES_VIA_AGGREGATE


class Fleet:
    """All trees of the fleet in blocks, and what is needed to change them."""

    def __init__(
        self,
        *,
        class_ids: Mapping[str, ClassId],
        trait_ids: Mapping[str, TraitId],
        rows_max: int = ROWS_MAX,
    ) -> None:
        assert 0 < rows_max <= ROWS_MAX
        self._rows_max = rows_max
        self.names = Names.of(class_ids, trait_ids)
        #: What readers keep as long as `names` is the same object.
        self._memory = Memory(TextSize())
        #: aggregate uuid -> id, of every aggregate that some provider was ever seen in: readers
        #: have it, so it is never changed but replaced; and the ids.
        self._aggregate_ids: Mapping[AggregateUUID, AggregateId] = {}
        self._known_aggregates: set[AggregateId] = set()
        self._uuids = UuidMap()
        self._shapes = ShapeRegistry()
        self._sets = AggregateSets()
        self._allowance = Allowance(BYTES_MAX)
        self._locations = PagedMap()
        self._blocks: list[Block | None] = []
        self._free_slots: list[int] = []
        #: shape -> the slots of its blocks.
        self._slots: defaultdict[Shape, set[int]] = defaultdict(set)
        #: sharing provider -> the set of aggregates that it shares through, and the classes that it
        #: has.
        self._sharing_by: dict[ProviderId, tuple[int, tuple[ClassId, ...]]] = {}
        self._sharing = self._sharing_now()
        #: Whether `_sharing_by` has changed since.
        self._sharing_changed = False

    def snapshot(self) -> Snapshot:
        """The fleet as it is now; later changes do not touch it. Cost: a few copies of page
        tables."""
        return Snapshot(
            blocks=tuple(self._blocks),
            locations=self._locations.fork(),
            names=self.names,
            uuids=self._uuids,
            aggregate_ids=self._aggregate_ids,
            aggregate_sets=self._sets,
            sharing=self._sharing,
            memory=self._memory,
            allowance=self._allowance,
        )

    def set_names(self, class_ids: Mapping[str, ClassId], trait_ids: Mapping[str, TraitId]) -> None:
        """Take over what classes and traits are called now.

        An engine may give the id of a deleted one to the next: ids say nothing about names. So what
        was remembered under the old names ends, with the texts of the trees that have an id whose
        name is another one now, or gone.
        """
        before, new = self.names, Names.of(class_ids, trait_ids)
        if new == before:
            return
        self.names, self._memory = new, Memory(self._memory.texts)
        classes = _renamed(before.class_names, new.class_names)
        traits = _renamed(before.trait_names, new.trait_names)
        for slot, block in enumerate(self._blocks):
            if block is not None and not (
                traits.isdisjoint(block.shape.traits)
                and classes.isdisjoint(block.shape.nodes_of_class)
            ):
                self._blocks[slot] = block.without_texts()

    def unknown_aggregates(self, aggregates: Iterable[AggregateId]) -> set[AggregateId]:
        """Those of some aggregates whose uuids the fleet has not been told."""
        return {aggregate for aggregate in aggregates if aggregate not in self._known_aggregates}

    def add_aggregates(self, rows: Iterable[tuple[AggregateId, AggregateUUID]]) -> None:
        """Tell for what aggregates some rows stand. Of several rows of one aggregate, which an
        adopted database may have, the first counts for all of them."""
        found = list(rows)
        if not found:
            return
        ids = dict(self._aggregate_ids)
        for number, uuid in found:
            self._known_aggregates.add(number)
            first = ids.setdefault(uuid, number)
            if first != number:
                self._sets.unite(number, first)
        self._aggregate_ids = ids

    def roots_of(self, providers: Iterable[ProviderId]) -> set[ProviderId]:
        """The roots, as the index has them, of those of some providers that it has."""
        roots: set[ProviderId] = set()
        for provider in providers:
            at = location_of(self._locations.get(provider))
            if at is not None:
                roots.add(ProviderId(int(self._block(at.slot).provider_ids[0, at.row])))
        return roots

    def load(self, parts: Iterable[FleetRows]) -> None:
        """Fill the fleet, which must be empty: each tree in one of some parts, whole."""
        assert not self._blocks
        builder = BlockBuilder(self._shapes, self._sets, self._rows_max)
        for part in parts:
            for block in builder.add(part):
                self._settle(block)
        for block in builder.rest():
            self._settle(block)
        self._uuids = UuidMap(block for block in self._blocks if block is not None)
        self._renew_sharing()

    def trees_from(self, rows: FleetRows) -> list[Tree]:
        """Assemble whole trees from their rows."""
        return list(_trees(rows, self._shapes, self._sets))

    def replace(self, roots: Collection[ProviderId], trees: Iterable[Tree]) -> None:
        """Make the trees of some roots what they are now.

        Args:
            roots: every root whose tree may have changed, the roots that providers left included.
            trees: the present trees of those roots; a root without one is gone.
        """
        values: defaultdict[int, dict[int, Tree]] = defaultdict(dict)
        gone = {root: at for root in roots if (at := self._row_of_root(root)) is not None}
        added: defaultdict[Shape, list[Tree]] = defaultdict(list)
        for tree in trees:
            root = tree.nodes[0].provider_id
            at = gone.get(root)
            if at is not None and self._block(at.slot).holds(at.row, tree):
                values[at.slot][at.row] = tree
                del gone[root]
            else:
                added[tree.shape].append(tree)
        for slot, changed in values.items():
            block = self._blocks[slot] = self._block(slot).with_row_values(changed)
            self._note_sharing(block, changed)
        known = self._remove(gone.values())
        for shape, news in added.items():
            self._add(shape, news)
            for tree in news:
                for node in tree.nodes:
                    if (node.uuid, node.provider_id) not in known:
                        self._uuids.add(node.uuid, node.provider_id)
        if self._uuids.is_crowded:
            self._uuids = UuidMap(block for block in self._blocks if block is not None)
        self._renew_sharing()

    def set_used(self, used: Mapping[ProviderId, Mapping[ClassId, int]]) -> None:
        """Take over amounts used; nothing else of these providers has changed.

        Providers that the fleet does not have are passed over, and so is what they have no
        inventory of. Cost: a copy of two arrays for each class and block that is touched.
        """
        by_slot: defaultdict[int, list[tuple[int, int, Mapping[ClassId, int]]]] = defaultdict(list)
        for provider, amounts in used.items():
            at = location_of(self._locations.get(provider))
            if at is not None:
                by_slot[at.slot].append((at.row, at.node, amounts))
        for slot, changes in by_slot.items():
            self._blocks[slot] = self._block(slot).with_used(changes)

    def _row_of_root(self, root: ProviderId) -> Location | None:
        at = location_of(self._locations.get(root))
        return at if at is not None and at.node == 0 else None

    def _block(self, slot: int) -> Block:
        block = self._blocks[slot]
        assert block is not None
        return block

    def _remove(self, places: Iterable[Location]) -> set[tuple[str, ProviderId]]:
        """Take trees out; the uuids and ids of their providers."""
        removed: set[tuple[str, ProviderId]] = set()
        by_slot: defaultdict[int, set[int]] = defaultdict(set)
        for place in places:
            by_slot[place.slot].add(place.row)
        for slot, rows in by_slot.items():
            block = self._block(slot)
            for row in rows:
                for node, provider in enumerate(block.provider_ids[:, row].tolist()):
                    removed.add((block.uuid(node, row), provider))
                    self._locations.remove(provider)
                    self._forget_sharing(provider)
            if len(rows) < block.rows:
                smaller, moved = block.without_rows(rows)
                self._blocks[slot] = smaller
                self._place(slot, smaller, moved)
            else:
                self._vacate(slot, block.shape)
        return removed

    def _vacate(self, slot: int, shape: Shape) -> None:
        self._blocks[slot] = None
        self._free_slots.append(slot)
        self._slots[shape].discard(slot)
        if not self._slots[shape]:
            del self._slots[shape]

    def _add(self, shape: Shape, trees: Sequence[Tree]) -> None:
        done = 0
        for slot in sorted(self._slots[shape]):
            block = self._block(slot)
            part = trees[done : done + self._rows_max - block.rows]
            if part:
                larger = self._blocks[slot] = block.with_rows(part)
                rows = range(block.rows, larger.rows)
                self._place(slot, larger, rows)
                self._note_sharing(larger, rows)
                done += len(part)
        while done < len(trees):
            part = trees[done : done + self._rows_max]
            self._settle(Block.of(shape, part))
            done += len(part)

    def _settle(self, block: Block) -> None:
        """Give a new block a slot."""
        slot = self._free_slots.pop() if self._free_slots else len(self._blocks)
        if slot == len(self._blocks):
            self._blocks.append(None)
        self._blocks[slot] = block
        self._slots[block.shape].add(slot)
        rows = range(block.rows)
        self._place(slot, block, rows)
        self._note_sharing(block, rows)

    def _place(self, slot: int, block: Block, rows: Sequence[int]) -> None:
        """Note where the trees in some rows of a block stand."""
        if rows:
            at = np.array(rows, dtype=np.int64)
            nodes = np.arange(block.shape.size, dtype=np.int64)[:, None]
            self._locations.set_many(
                block.provider_ids[:, at].ravel(), packed(slot, at[None, :], nodes).ravel()
            )

    def _note_sharing(self, block: Block, rows: Iterable[int]) -> None:
        """Note the sharing providers in some rows of a block."""
        sharing = self.names.trait_ids.get(SHARING_TRAIT)
        if sharing not in block.shape.traits:
            return
        for node, kind in enumerate(block.shape.kinds):
            if sharing in kind.traits:
                for row in rows:
                    provider = ProviderId(block.provider_ids.item(node, row))
                    through = block.aggregate_sets.item(node, row), kind.classes
                    if self._sharing_by.get(provider) != through:
                        self._sharing_by[provider] = through
                        self._sharing_changed = True

    def _forget_sharing(self, provider: ProviderId) -> None:
        if self._sharing_by.pop(provider, None) is not None:
            self._sharing_changed = True

    def _renew_sharing(self) -> None:
        if self._sharing_changed:
            self._sharing = self._sharing_now()
            self._sharing_changed = False

    def _sharing_now(self) -> Sharing:
        by_aggregate: defaultdict[AggregateId, list[ProviderId]] = defaultdict(list)
        for provider, (aggregates, _) in sorted(self._sharing_by.items()):
            for aggregate in self._sets.members(aggregates):
                by_aggregate[aggregate].append(provider)
        return Sharing(
            {aggregate: tuple(providers) for aggregate, providers in by_aggregate.items()},
            self.names.trait_ids.get(SHARING_TRAIT),
            frozenset().union(*(classes for _, classes in self._sharing_by.values())),
        )


def _renamed(before: Mapping[N, str], now: Mapping[N, str]) -> set[N]:
    """The ids that have another name now, or none."""
    return {number for number, name in before.items() if now.get(number) != name}


def _trees(rows: FleetRows, shapes: ShapeRegistry, sets: AggregateSets) -> Iterator[Tree]:
    inventories: defaultdict[int, list[InventoryRecord]] = defaultdict(list)
    for provider, class_id, net, ratio, used, least, most, step in rows.inventories:
        inventories[provider].append(
            InventoryRecord(class_id, float(math.trunc(net * ratio)), used, least, most, step)
        )
    traits = _gathered(rows.traits)
    aggregates = _gathered(rows.aggregates)
    same: dict[frozenset[TraitId], frozenset[TraitId]] = {}
    nothing: frozenset[TraitId] = frozenset()
    trees: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    for provider, uuid, parent, root in rows.providers:
        having = frozenset(traits[provider]) if provider in traits else nothing
        trees[root].append(
            NodeRecord(
                provider_id=ProviderId(provider),
                uuid=uuid,
                parent_id=None if parent is None else ProviderId(parent),
                root_id=ProviderId(root),
                inventories=tuple(sorted(inventories.get(provider, ()))),
                # One object for equal sets: a fleet has few, and comparing them is then free.
                traits=same.setdefault(having, having),
                aggregate_set=sets.id_of(frozenset(aggregates.get(provider, ()))),
            )
        )
    for nodes in trees.values():
        shape, ordered = shapes.arrange(nodes)
        yield Tree(shape, ordered, sets.union(node.aggregate_set for node in ordered))


def _gathered(pairs: Iterable[tuple[ProviderId, N]]) -> dict[ProviderId, list[N]]:
    gathered: defaultdict[ProviderId, list[N]] = defaultdict(list)
    for key, value in pairs:
        gathered[key].append(value)
    return gathered
