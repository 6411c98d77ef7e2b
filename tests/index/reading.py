# SPDX-License-Identifier: Apache-2.0
"""Compares what the index says of every provider with what the tables say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from berth.candidates.providers import find_providers
from berth.index import Index
from berth.index.providers import IndexedProvider
from berth.index.providers import get_provider as read_provider
from berth.index.snapshot import Snapshot, location_of
from berth.model.filters import ProviderFilters
from berth.model.ids import ProviderUUID
from berth.store.engine.database import Database
from tests import sql_reads
from tests.sql_reads import StoredProvider, newest

#: Everything that the API shows of a provider.
Shown = tuple[object, ...]


def check_reads(index: Index, db: Database) -> None:
    """Compare each provider, and lists with each filter that any provider can match."""
    snapshot = index.snapshot()
    every = sql_reads.read_all(db)
    for uuid, provider in every.items():
        assert shown(read_provider(snapshot, uuid)) == stored(provider)
    for filters in _filters(every):
        expected = [provider.uuid for provider in sql_reads.matching(every, filters)]
        assert listed(snapshot, filters) == expected, filters


def listed(snapshot: Snapshot, filters: ProviderFilters) -> list[str]:
    """The uuids of a list, in its order."""
    places = map(location_of, find_providers(snapshot, filters).tolist())
    return [snapshot.block(at.block_id).uuid(at.node, at.row) for at in places if at is not None]


def shown(provider: IndexedProvider) -> Shown:
    """What the index says."""
    block, node, row = provider.block, provider.node, provider.row
    parent = block.shape.parents[node]
    traits = provider.traits()
    inventories = provider.inventories()
    return (
        block.uuid(node, row),
        msgspec.json.decode(block.names.item(node, row)),
        provider.generation,
        None if parent < 0 else block.uuid(parent, row),
        block.uuid(0, row),
        provider.modified,
        inventories,
        [provider.inventory(name)[1] for name in inventories],
        provider.inventories_modified(),
        msgspec.json.decode(traits.names),
        traits.modified,
        provider.aggregates(),
        provider.usages(),
    )


def stored(tables: StoredProvider) -> Shown:
    """What the tables say."""
    provider, inventories = tables.provider, tables.inventories
    return (
        provider.uuid,
        provider.name,
        provider.generation,
        provider.parent_uuid,
        provider.root_uuid,
        _second(provider.last_modified),
        {name: inventory for name, (inventory, _) in inventories.items()},
        [_second(modified) for _, modified in inventories.values()],
        _second(newest(modified for _, modified in inventories.values())),
        list(tables.traits),
        _second(newest(tables.traits.values())),
        list(tables.aggregates.values()),
        tables.usages,
    )


def _second(time: datetime | None) -> datetime | None:
    return None if time is None else time.replace(microsecond=0)


def _filters(every: Mapping[ProviderUUID, StoredProvider]) -> Iterator[ProviderFilters]:
    yield ProviderFilters()
    yield ProviderFilters(name="nobody")
    yield ProviderFilters(uuid=ProviderUUID("00000000-0000-0000-0000-000000000000"))
    for uuid, each in every.items():
        name, root = each.provider.name, each.provider.root_uuid
        yield ProviderFilters(name=name)
        yield ProviderFilters(uuid=uuid)
        yield ProviderFilters(in_tree=uuid)
        yield ProviderFilters(in_tree=root, uuid=uuid)
        yield ProviderFilters(in_tree=next(iter(every)), name=name)
        for class_name, (inventory, _) in each.inventories.items():
            for amount in {1, 2, max(inventory.capacity - each.usages[class_name], 1)}:
                yield ProviderFilters(resources={class_name: amount})
                yield ProviderFilters(resources={class_name: amount}, in_tree=uuid)
        traits, aggregates = frozenset(each.traits), frozenset(each.aggregates)
        yield ProviderFilters(required=(traits,) if traits else (), uuid=uuid)
        yield ProviderFilters(required=tuple(frozenset({trait}) for trait in sorted(traits)))
        yield ProviderFilters(forbidden=traits)
        if aggregates:
            yield ProviderFilters(member_of=(aggregates,))
            yield ProviderFilters(not_member_of=aggregates)
            all_of = tuple(frozenset({aggregate}) for aggregate in sorted(aggregates))
            yield ProviderFilters(member_of=all_of, resources={"VCPU": 1}, forbidden=traits)
