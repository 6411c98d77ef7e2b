# SPDX-License-Identifier: Apache-2.0
"""The live index without I/O: rows of whole trees come in, snapshots go out.

One `Fleet` belongs to one thread at a time (`berth.index.index` holds a lock around it); the
snapshots that it gives out may be read by any number of threads.
"""

from __future__ import annotations

import math
from calendar import timegm
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeVar

import numpy as np
import os_traits
from msgspec.structs import replace

from berth.index.block import ROWS_MAX, UUID_LENGTH, Block, Tree
from berth.index.bulk import BlockBuilder
from berth.index.faulty_rows import FaultyRow, sieved
from berth.index.maps import PagedMap, TextMap
from berth.index.memory import Memory
from berth.index.names import Names
from berth.index.records import InventoryRecord, NodeRecord, json_of
from berth.index.revision import NO_CLOCK, Clock
from berth.index.sets import AggregateSets, DrainSets
from berth.index.shape import Shape, ShapeRegistry
from berth.index.snapshot import Location, Sharing, Snapshot, location_of, packed
from berth.model.ids import (
    AggregateId,
    AggregateUUID,
    ClassId,
    ProviderId,
    ProviderUUID,
    TraitId,
)
from berth.model.named import DrainId, NamedRecords
from berth.store.engine.transaction import Moves
from berth.store.index_feed import FleetPart, FleetRows, ProviderState

N = TypeVar("N")

SHARING_TRAIT: Final = os_traits.MISC_SHARES_VIA_AGGREGATE


class Fleet:
    """All trees of the fleet in blocks, with the registries that changes need."""

    def __init__(
        self,
        *,
        class_ids: Mapping[str, ClassId],
        trait_ids: Mapping[str, TraitId],
        trait_times: Mapping[TraitId, int] = MappingProxyType({}),
        rows_max: int = ROWS_MAX,
        memory: Memory | None = None,
    ) -> None:
        """An empty fleet.

        Args:
            rows_max: trees in one of its blocks.
            memory: what its snapshots share; None for a new one.
        """
        assert 0 < rows_max <= ROWS_MAX
        self._rows_max = rows_max
        self.names = Names().redefined(class_ids, trait_ids, trait_times)
        self._memory = Memory() if memory is None else memory
        #: The ids of all aggregates in `names`, and the other ids of the same aggregates.
        self._known_aggregates: set[AggregateId] = set()
        self._uuids = TextMap()
        self._provider_names = TextMap()
        self._has_short_uuids = False
        #: The rows that are left out.
        self.faults: frozenset[FaultyRow] = frozenset()
        #: Whether no tree has a class or trait without a name: another program may delete one.
        self.has_its_names = True
        self._shapes = ShapeRegistry()
        self._sets = AggregateSets()
        self._drain_sets = DrainSets()
        #: The drains in effect.
        self._excluding: frozenset[DrainId] = frozenset()
        self._locations = PagedMap()
        self._blocks: list[Block | None] = []
        self._free_block_ids: list[int] = []
        #: shape -> the numbers of its blocks.
        self._block_ids: defaultdict[Shape, set[int]] = defaultdict(set)
        #: sharing provider -> the set of aggregates that it shares through, and the classes that it
        #: has.
        self._sharing_by: dict[ProviderId, tuple[int, tuple[ClassId, ...]]] = {}
        self._sharing = self._sharing_now()
        #: Whether `_sharing_by` has changed since.
        self._sharing_changed = False

    def snapshot(self, clock: Clock = NO_CLOCK) -> Snapshot:
        """The fleet as it is now; later changes do not touch it. Cost: a few copies of page
        tables.

        Args:
            clock: the writers' clock at this moment.
        """
        if self.names.aggregate_sets_count != len(self._sets):
            self.names = replace(self.names, aggregate_sets_count=len(self._sets))
        blocks = tuple(self._blocks)
        self._memory.follow(self.names, blocks)
        return Snapshot(
            blocks=blocks,
            locations=self._locations.fork(),
            names=self.names,
            uuids=self._uuids,
            provider_names=self._provider_names,
            has_short_uuids=self._has_short_uuids,
            aggregate_sets=self._sets,
            sharing=self._sharing,
            memory=self._memory,
            clock=clock,
            drain_sets=self._drain_sets,
            excluding=self._excluding,
            faults={fault.owner: fault.sentence for fault in self.faults},
        )

    @property
    def has_drains(self) -> bool:
        """Whether there is any drain, in effect or not."""
        return bool(self.names.records.drains)

    def set_records(self, records: NamedRecords) -> None:
        """Take over the present named records; the providers of drains come with their trees."""
        if records == self.names.records:
            return
        self.names = self.names.with_records(records)
        excluding = frozenset(drain.id for drain in records.drains.values() if drain.excludes)
        if excluding != self._excluding:
            self._excluding = excluding
            self._derive_drained(
                number for number, block in enumerate(self._blocks) if block is not None
            )

    def _derive_drained(self, numbers: Iterable[int]) -> None:
        """Derive again which providers of some blocks are drained."""
        excluding = self._drain_sets.having_any(self._excluding)
        for number in numbers:
            self._blocks[number] = self._block(number).with_drained(excluding)

    def set_names(
        self,
        class_ids: Mapping[str, ClassId],
        trait_ids: Mapping[str, TraitId],
        trait_times: Mapping[TraitId, int] = MappingProxyType({}),
    ) -> None:
        """Take over the present names of classes and traits.

        A database may give the id of a deleted one to the next. So the kept texts of all trees end
        that have an id whose name has changed or gone.
        """
        before = self.names
        names = before.class_ids, before.trait_ids, before.trait_times
        if (class_ids, trait_ids, trait_times) == names:
            return
        self.names = before.redefined(class_ids, trait_ids, trait_times)
        classes = _renamed(before.class_names, self.names.class_names)
        traits = _renamed(before.trait_names, self.names.trait_names)
        for block_id, block in enumerate(self._blocks):
            if block is not None and not (
                traits.isdisjoint(block.shape.traits)
                and classes.isdisjoint(block.shape.nodes_of_class)
            ):
                self._blocks[block_id] = block.without_texts()
                self.has_its_names &= self._has_names(
                    block.shape.nodes_of_class, block.shape.traits
                )

    def lacks_names(self, rows: FleetRows) -> bool:
        """Whether some rows have a class or trait that the fleet does not know."""
        return not self._has_names(
            {row[1] for row in rows.inventories}, {trait for _, trait in rows.traits}
        )

    def _has_names(self, classes: Iterable[ClassId], traits: Iterable[TraitId]) -> bool:
        names = self.names
        return names.class_names.keys() >= set(classes) and names.trait_names.keys() >= set(traits)

    def unknown_aggregates(self, aggregates: Iterable[AggregateId]) -> set[AggregateId]:
        """Those of some aggregates whose uuids the fleet does not know."""
        return {aggregate for aggregate in aggregates if aggregate not in self._known_aggregates}

    def add_aggregates(self, rows: Iterable[tuple[AggregateId, AggregateUUID, str]]) -> None:
        """Take over the uuids and spellings of some aggregates. An adopted database may have
        several rows for one aggregate; the first stands for all of them."""
        new = list(rows)
        if not new:
            return
        ids = dict(self.names.aggregate_ids)
        for number, uuid, spelling in new:
            self._known_aggregates.add(number)
            self._sets.spell(number, spelling)
            first = ids.setdefault(uuid, number)
            if first != number:
                self._sets.unite(number, first)
        if len(ids) > len(self.names.aggregate_ids):
            self.names = replace(self.names, aggregate_ids=ids)

    def roots_of(self, providers: Iterable[ProviderId]) -> set[ProviderId]:
        """The roots of some providers, as the index has them, without those of providers that it
        does not have."""
        roots: set[ProviderId] = set()
        for provider in providers:
            at = location_of(self._locations.get(provider))
            if at is not None:
                roots.add(ProviderId(int(self._block(at.block_id).provider_ids[0, at.row])))
        return roots

    def uuids_of(self, roots: Iterable[ProviderId]) -> dict[ProviderId, ProviderUUID]:
        """The uuids of all providers in the trees of some roots, as the index has them, without the
        trees of roots that it does not have."""
        uuids: dict[ProviderId, ProviderUUID] = {}
        for root in roots:
            if (at := self._row_of_root(root)) is not None:
                block = self._block(at.block_id)
                for node, provider in enumerate(block.provider_ids[:, at.row].tolist()):
                    uuids[provider] = ProviderUUID(block.uuid(node, at.row))
        return uuids

    def load(self, parts: Iterable[FleetPart]) -> None:
        """Fill the fleet, which must be empty: each tree in one of some parts, whole."""
        assert not self._blocks
        builder = BlockBuilder(self._shapes, self._sets, self._drain_sets, self._rows_max)
        for part in parts:
            for block in builder.add(part, self.names):
                self._settle(block)
        for block in builder.rest():
            self._settle(block)
        self.faults = frozenset(builder.faults)
        self._derive_drained(range(len(self._blocks)))
        self._renew_maps()
        self._renew_sharing()

    def sound(self, roots: Collection[ProviderId], rows: FleetRows) -> FleetRows:
        """Those rows of the trees of some roots that have a place; the others are noted."""
        kept, faults = sieved(rows, self.names)
        if faults or self.faults:
            read = {uuid for _, uuid, *_ in rows.providers}
            self.faults = frozenset(faults).union(
                each for each in self.faults if each.root not in roots and each.owner not in read
            )
        return kept

    def trees_from(self, rows: FleetRows) -> list[Tree]:
        """Assemble whole trees from their rows."""
        return list(_trees(rows, self._shapes, self._sets, self._drain_sets))

    def replace(self, roots: Collection[ProviderId], trees: Iterable[Tree]) -> None:
        """Replace the trees of some roots with their present ones.

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
            if at is not None and self._block(at.block_id).holds(at.row, tree):
                values[at.block_id][at.row] = tree
                self._note_names(at, tree)
                del gone[root]
            else:
                added[tree.shape].append(tree)
        for block_id, changed in values.items():
            block = self._blocks[block_id] = self._block(block_id).with_row_values(changed)
            self._note_sharing(block, changed)
        self._derive_drained(values)
        removed = self._remove(gone.values())
        for shape, news in added.items():
            self._add(shape, news)
            for tree in news:
                for node in tree.nodes:
                    if (node.uuid, node.provider_id) not in removed:
                        self._uuids.add(node.uuid.encode(), node.provider_id)
                        self._has_short_uuids |= len(node.uuid) < UUID_LENGTH
                    self._provider_names.add(node.name, node.provider_id)
        if self._uuids.is_crowded or self._provider_names.is_crowded:
            self._renew_maps()
        self._renew_sharing()

    def set_states(self, states: Mapping[ProviderId, ProviderState]) -> None:
        """Take over amounts used and generations; nothing else of these providers has changed.

        Providers and classes that the fleet does not have are ignored. Cost: a copy of two arrays
        for each class and block that is touched, and of two for each block.
        """
        by_block: defaultdict[int, list[tuple[int, int, ProviderState]]] = defaultdict(list)
        for provider, state in states.items():
            at = location_of(self._locations.get(provider))
            if at is not None:
                by_block[at.block_id].append((at.row, at.node, state))
        for block_id, changes in by_block.items():
            self._blocks[block_id] = self._block(block_id).with_states(changes)

    def move(self, moves: Iterable[Moves]) -> int:
        """Take over what claims and releases changed; return of how many providers.

        Cost: as `set_states`.
        """
        states: dict[ProviderId, ProviderState] = {}
        for steps, deltas, at in moves:
            for (provider, class_id), delta in deltas:
                used = self._state_in(states, provider).used
                used[class_id] = used.get(class_id, 0) + delta
            for provider, count in steps.items():
                state = self._state_in(states, provider)
                states[provider] = state._replace(
                    generation=state.generation + count, modified=timegm(at.timetuple())
                )
        self.set_states(states)
        return len(states)

    def _state_in(
        self, states: dict[ProviderId, ProviderState], provider: ProviderId
    ) -> ProviderState:
        """The state of a provider among some, or the present one, which is added to them."""
        if provider not in states:
            at = location_of(self._locations.get(provider))
            # One that the fleet does not have is passed over in the end.
            states[provider] = (
                ProviderState(0, 0, {})
                if at is None
                else self._block(at.block_id).state_of(at.row, at.node)
            )
        return states[provider]

    def _note_names(self, at: Location, tree: Tree) -> None:
        """Note the names of a tree that are not those in its place."""
        names = self._block(at.block_id).names
        for place, node in enumerate(tree.nodes):
            if names.item(place, at.row) != node.name:
                self._provider_names.add(node.name, node.provider_id)

    def _renew_maps(self) -> None:
        blocks = [block for block in self._blocks if block is not None]
        self._uuids = TextMap(
            (block.uuid_texts.ravel().tolist(), block.provider_ids.ravel()) for block in blocks
        )
        self._provider_names = TextMap(
            (block.names.every(), block.provider_ids.ravel()) for block in blocks
        )
        self._has_short_uuids = not all(block.uuid_bytes[:, :, -1].all() for block in blocks)

    def _row_of_root(self, root: ProviderId) -> Location | None:
        at = location_of(self._locations.get(root))
        return at if at is not None and at.node == 0 else None

    def _block(self, block_id: int) -> Block:
        block = self._blocks[block_id]
        assert block is not None
        return block

    def _remove(self, places: Iterable[Location]) -> set[tuple[str, ProviderId]]:
        """Take trees out; the uuids and ids of their providers."""
        removed: set[tuple[str, ProviderId]] = set()
        by_block: defaultdict[int, set[int]] = defaultdict(set)
        for place in places:
            by_block[place.block_id].add(place.row)
        for block_id, rows in by_block.items():
            block = self._block(block_id)
            for row in rows:
                for node, provider in enumerate(block.provider_ids[:, row].tolist()):
                    removed.add((block.uuid(node, row), provider))
                    self._locations.remove(provider)
                    self._forget_sharing(provider)
            if len(rows) < block.rows:
                smaller, moved = block.without_rows(rows)
                self._blocks[block_id] = smaller
                self._place(block_id, smaller, moved)
            else:
                self._vacate(block_id, block.shape)
        return removed

    def _vacate(self, block_id: int, shape: Shape) -> None:
        self._blocks[block_id] = None
        self._free_block_ids.append(block_id)
        self._block_ids[shape].discard(block_id)
        if not self._block_ids[shape]:
            del self._block_ids[shape]

    def _add(self, shape: Shape, trees: Sequence[Tree]) -> None:
        done = 0
        for block_id in sorted(self._block_ids[shape]):
            block = self._block(block_id)
            part = trees[done : done + self._rows_max - block.rows]
            if part:
                larger = self._blocks[block_id] = block.with_rows(part)
                rows = range(block.rows, larger.rows)
                self._derive_drained((block_id,))
                self._place(block_id, larger, rows)
                self._note_sharing(larger, rows)
                done += len(part)
        while done < len(trees):
            part = trees[done : done + self._rows_max]
            self._derive_drained((self._settle(Block.of(shape, part)),))
            done += len(part)

    def _settle(self, block: Block) -> int:
        """Give a new block a number, and note its providers; return the number."""
        block_id = self._free_block_ids.pop() if self._free_block_ids else len(self._blocks)
        if block_id == len(self._blocks):
            self._blocks.append(None)
        self._blocks[block_id] = block
        self._block_ids[block.shape].add(block_id)
        rows = range(block.rows)
        self._place(block_id, block, rows)
        self._note_sharing(block, rows)
        return block_id

    def _place(self, block_id: int, block: Block, rows: Sequence[int]) -> None:
        """Note the locations of the providers in some rows of a block."""
        if rows:
            at = np.array(rows, dtype=np.int64)
            nodes = np.arange(block.shape.size, dtype=np.int64)[:, None]
            self._locations.set_many(
                block.provider_ids[:, at].ravel(), packed(block_id, at[None, :], nodes).ravel()
            )

    def _note_sharing(self, block: Block, rows: Iterable[int]) -> None:
        """Note the sharing providers in some rows of a block."""
        sharing = self.names.trait_ids.get(SHARING_TRAIT)
        if sharing not in block.shape.traits:
            return
        for node, node_type in enumerate(block.shape.node_types):
            if sharing in node_type.traits:
                for row in rows:
                    provider = ProviderId(block.provider_ids.item(node, row))
                    through = block.aggregate_sets.item(node, row), node_type.classes
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


def _trees(
    rows: FleetRows, shapes: ShapeRegistry, sets: AggregateSets, drain_sets: DrainSets
) -> Iterator[Tree]:
    inventories: defaultdict[int, list[InventoryRecord]] = defaultdict(list)
    for row in rows.inventories:
        provider, class_id, total, reserved, ratio, used, least, most, step, modified = row
        capacity = float(math.trunc((total - reserved) * ratio))
        inventories[provider].append(
            InventoryRecord(
                class_id, capacity, used, least, most, step, total, reserved, ratio, modified
            )
        )
    traits = _gathered(rows.traits)
    aggregates = _gathered(rows.aggregates)
    drains = _gathered(rows.drained)
    same: dict[frozenset[TraitId], frozenset[TraitId]] = {}
    nothing: frozenset[TraitId] = frozenset()
    trees: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    for provider, uuid, parent, root, name, generation, modified in rows.providers:
        having = frozenset(traits[provider]) if provider in traits else nothing
        trees[root].append(
            NodeRecord(
                provider_id=ProviderId(provider),
                uuid=uuid,
                parent_id=None if parent is None else ProviderId(parent),
                inventories=tuple(sorted(inventories.get(provider, ()))),
                # One object for equal sets: a fleet has few, and comparing them is then free.
                traits=same.setdefault(having, having),
                aggregate_set=sets.id_of(frozenset(aggregates.get(provider, ()))),
                name=json_of(name),
                generation=generation,
                modified=modified,
                drain_set=drain_sets.id_of(frozenset(drains.get(provider, ()))),
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
