# SPDX-License-Identifier: Apache-2.0
"""Providers of a snapshot as the API shows them, and their names with those of their hosts for
records that people read later.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from berth.index.block import Block
from berth.index.shape import NodeType
from berth.index.snapshot import Location, Snapshot
from berth.model.errors import InventoryNotFound, ProviderNotFound
from berth.model.ids import ClassId, Generation, ProviderId, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.shown import NamedProvider
from berth.store.index_feed import NO_TIME

_EPOCH: Final = datetime(1970, 1, 1)
_encode: Final = msgspec.json.Encoder().encode


class ProviderTraits(Struct, frozen=True):
    """The traits of a type of provider, as JSON, and when the newest of them was created."""

    names: bytes
    modified: datetime | None


class IndexedProvider(Struct, frozen=True):
    """A provider at its place in a snapshot. Times are naive UTC, and None if unknown."""

    snapshot: Snapshot
    block: Block
    node: int
    row: int

    @property
    def generation(self) -> Generation:
        """Its generation."""
        return Generation(self.block.generations.item(self.node, self.row))

    @property
    def modified(self) -> datetime | None:
        """When it was last changed, or created."""
        return time_of(self.block.modified.item(self.node, self.row))

    def inventories(self) -> dict[str, Inventory]:
        """Its inventories by class name, in the order of the classes."""
        names = self.snapshot.names.class_names
        return {
            names[class_id]: self._inventory(class_id)
            for class_id in self._type.classes
            if class_id in names
        }

    def inventories_modified(self) -> datetime | None:
        """When the newest of its inventories was changed, or created."""
        return time_of(max(map(self._modified, self._type.classes), default=NO_TIME))

    def inventory(self, class_name: str) -> tuple[Inventory, datetime | None]:
        """Its inventory of a class, and when that was last changed, or created.

        Raises:
            InventoryNotFound: it has none, or there is no such class.
        """
        class_id = self.snapshot.names.class_ids.get(class_name)
        if class_id is None or class_id not in self._type.classes:
            uuid = ProviderUUID(self.block.uuid(self.node, self.row))
            raise InventoryNotFound(uuid, class_name, hint=_hint(self.snapshot, uuid))
        return self._inventory(class_id), time_of(self._modified(class_id))

    def usages(self) -> dict[str, int]:
        """What is used of each inventory, by class name; in the order of the classes."""
        names = self.snapshot.names.class_names
        lines = self.block.shape.row_of_node
        return {
            names[class_id]: int(
                self.block.columns[class_id].used.item(lines[class_id][self.node], self.row)
            )
            for class_id in self._type.classes
            if class_id in names
        }

    def traits(self) -> ProviderTraits:
        """Its traits, in the order of their ids. Kept for all providers of its type."""
        memory, names = self.snapshot.memory, self.snapshot.names
        key = names, self._type.traits
        traits: ProviderTraits | None = memory.get(key)
        if traits is None:
            own = [trait for trait in sorted(self._type.traits) if trait in names.trait_names]
            newest = max((names.trait_times[trait] for trait in own), default=NO_TIME)
            text = _encode([names.trait_names[trait] for trait in own])
            traits = ProviderTraits(text, time_of(newest))
            memory.keep(key, traits, len(text))
        return traits

    def aggregates(self) -> list[str]:
        """Its aggregates, each once, in the spelling that created it."""
        number = self.block.aggregate_sets.item(self.node, self.row)
        return self.snapshot.aggregate_sets.spellings(number)

    @property
    def _type(self) -> NodeType:
        return self.block.shape.node_types[self.node]

    def _inventory(self, class_id: ClassId) -> Inventory:
        columns = self.block.columns[class_id]
        at = self.block.shape.row_of_node[class_id][self.node], self.row
        return Inventory(
            columns.total.item(at),
            columns.reserved.item(at),
            columns.min_unit.item(at),
            columns.max_unit.item(at),
            columns.step_size.item(at),
            columns.allocation_ratio.item(at),
        )

    def _modified(self, class_id: ClassId) -> int:
        line = self.block.shape.row_of_node[class_id][self.node]
        return self.block.columns[class_id].modified.item(line, self.row)


def get_provider(snapshot: Snapshot, uuid: ProviderUUID) -> IndexedProvider:
    """The provider with a uuid.

    Raises:
        ProviderNotFound: there is none.
    """
    at = snapshot.locate_uuid(uuid)
    if at is None:
        raise ProviderNotFound(uuid, hint=_hint(snapshot, uuid))
    return IndexedProvider(snapshot, snapshot.block(at.block_id), at.node, at.row)


def _hint(snapshot: Snapshot, uuid: ProviderUUID) -> str:
    fault = snapshot.faults.get(uuid)
    return f"Its rows are damaged: {fault}. `berth db check` says more." if fault else ""


def time_of(seconds: int) -> datetime | None:
    """A time of the index, naive UTC; None for `NO_TIME`."""
    return None if seconds == NO_TIME else _EPOCH + timedelta(seconds=seconds)


class HostedProvider(NamedTuple):
    """A provider with its name, and the name of its root: the host."""

    uuid: ProviderUUID
    #: None in old data.
    name: str | None
    #: None if it is unknown.
    host: str | None


def named_provider(block: Block, node: int, row: int) -> NamedProvider:
    """The provider at a place in a block."""
    return NamedProvider(ProviderUUID(block.uuid(node, row)), _name(block, node, row))


def hosted_provider(
    snapshot: Snapshot | None, provider: ProviderUUID | ProviderId
) -> HostedProvider | None:
    """A provider, by its uuid or its id; None if the snapshot does not have it."""
    if snapshot is None:
        return None
    at = snapshot.locate_uuid(provider) if isinstance(provider, str) else snapshot.locate(provider)
    return None if at is None else _hosted(snapshot, at)


def _hosted(snapshot: Snapshot, at: Location) -> HostedProvider:
    block = snapshot.block(at.block_id)
    named = named_provider(block, at.node, at.row)
    return HostedProvider(named.uuid, named.name, host=_name(block, 0, at.row))


def _name(block: Block, node: int, row: int) -> str | None:
    name: str | None = msgspec.json.decode(block.names.item(node, row))
    return name
