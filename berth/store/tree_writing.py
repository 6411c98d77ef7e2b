# SPDX-License-Identifier: Apache-2.0
"""Writes the changes of a tree of providers whose rows are locked (`berth.store.tree_rows`).

Source: spec/beyond.md 6.3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import Integer, bindparam, update
from sqlalchemy.exc import IntegrityError

from berth.model.errors import LostRace
from berth.model.ids import AggregateUUID, Generation, ProviderId, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.provider_trees import ProviderChange
from berth.store.aggregate_spellings import ensure_aggregates
from berth.store.aggregates import membership_changes
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import resource_providers
from berth.store.engine.transaction import Change, Tx
from berth.store.generations import Bump, bump_generations
from berth.store.inventories import Key, put_inventories, remove_or_refuse
from berth.store.lookups import ProviderRow, class_ids, providers_by_uuid, trait_ids
from berth.store.providers import remove_provider
from berth.store.resource_classes import insert_class
from berth.store.traits import insert_traits, write_traits

_rp = resource_providers.c
_OF_PROVIDER: Final = _rp.id == bindparam("provider")

_INSERT: Final = insert_of(resource_providers, "uuid", "name", "generation", "created_at")
_PLACE: Final = (
    update(resource_providers)
    .where(_OF_PROVIDER)
    .values(
        parent_provider_id=bindparam("new_parent", type_=Integer),
        root_provider_id=bindparam("new_root"),
    )
)
_RENAME: Final = (
    update(resource_providers)
    .where(_OF_PROVIDER)
    .values(name=bindparam("new"), updated_at=bindparam("now"))
)


def write_changes(
    tx: Tx,
    rows: Mapping[ProviderUUID, ProviderRow],
    changes: Sequence[ProviderChange],
    *,
    root: ProviderUUID,
    classes: Collection[str],
    traits: Collection[str],
    spellings: Mapping[AggregateUUID, str],
) -> None:
    """Write the changes of a tree.

    Args:
        rows: the tree as it is stored, locked.
        root: of the tree.
        changes: parents first, removed providers last and children first.
        classes, traits: names to be created.
        spellings: of the aggregates that may be new.

    Raises:
        InventoryInUse, ProviderInUse: what is to be removed has allocations.
        LostRace: another request took a name, or deleted a trait or a resource class.
        ForeignWrite: another program had changed one of the providers.
    """
    for name in classes:
        insert_class(tx, name)
    if traits:
        insert_traits(tx, traits)
    kept = [change for change in changes if change.after is not None]
    _free_names(tx, rows, changes)
    ids = {uuid: row.id for uuid, row in rows.items()} | _create(tx, changes)
    _place(tx, ids, root, kept)
    generations = _bump(tx, rows, ids, kept)
    _write_aggregates(tx, ids, kept, spellings)
    _write_traits(tx, ids, kept)
    _write_inventories(tx, ids, kept, generations)
    for change in changes:
        if change.after is None:
            remove_provider(tx, rows[change.provider.uuid])
    _rename(tx, rows, kept)
    tx.touched.update(ids[change.provider.uuid] for change in changes)


def _is_renamed(change: ProviderChange) -> bool:
    """Whether a provider loses its name."""
    return change.before is not None and (
        change.after is None or change.after.name != change.before.name
    )


def _free_names(
    tx: Tx, rows: Mapping[ProviderUUID, ProviderRow], changes: Sequence[ProviderChange]
) -> None:
    """Give providers whose names others get their uuids as names, until those have theirs."""
    wanted = {change.after.name for change in changes if change.after is not None}
    freed = [
        change.before.uuid
        for change in changes
        if change.before is not None and _is_renamed(change) and change.before.name in wanted
    ]
    _set_names(tx, rows, {uuid: str(uuid) for uuid in freed})


def _rename(
    tx: Tx, rows: Mapping[ProviderUUID, ProviderRow], kept: Sequence[ProviderChange]
) -> None:
    names = {
        change.after.uuid: change.after.name
        for change in kept
        if change.after is not None and _is_renamed(change)
    }
    _set_names(tx, rows, names)


def _set_names(
    tx: Tx, rows: Mapping[ProviderUUID, ProviderRow], names: Mapping[ProviderUUID, str]
) -> None:
    if not names:
        return
    try:
        renamed = tx.change(
            _RENAME,
            [
                {"provider": rows[uuid].id, "new": name, "now": tx.now}
                for uuid, name in names.items()
            ],
        )
    except IntegrityError as error:
        raise LostRace("the name of a resource provider") from error
    if renamed != len(names):
        raise LostRace("a resource provider")


def _create(tx: Tx, changes: Sequence[ProviderChange]) -> dict[ProviderUUID, ProviderId]:
    """Create the new providers, which have no place yet; return their ids."""
    new = [change for change in changes if change.before is None]
    if not new:
        return {}
    try:
        tx.change(
            _INSERT,
            [
                {
                    "uuid": change.provider.uuid,
                    "name": change.provider.name,
                    "generation": len(change.parts),
                    "created_at": tx.now,
                }
                for change in new
            ],
        )
    except IntegrityError as error:
        raise LostRace("a resource provider") from error
    created = providers_by_uuid(tx, [change.provider.uuid for change in new])
    tx.created |= {row.id for row in created.values()}
    return {uuid: row.id for uuid, row in created.items()}


def _place(
    tx: Tx,
    ids: Mapping[ProviderUUID, ProviderId],
    root: ProviderUUID,
    kept: Sequence[ProviderChange],
) -> None:
    """Give providers that are new, or that move, their parents; all have the root of the tree."""
    placed = [
        change.provider
        for change in kept
        if change.before is None or change.before.parent != change.provider.parent
    ]
    moves = [
        {
            "provider": ids[provider.uuid],
            "new_parent": None if provider.parent is None else ids[provider.parent],
            "new_root": ids[root],
        }
        for provider in placed
    ]
    if moves and tx.change(_PLACE, moves) != len(moves):
        raise LostRace("a tree of resource providers")


def _bump(
    tx: Tx,
    rows: Mapping[ProviderUUID, ProviderRow],
    ids: Mapping[ProviderUUID, ProviderId],
    kept: Sequence[ProviderChange],
) -> dict[ProviderId, Generation]:
    """Increment the generations; return the new ones of all providers of which parts change."""
    steps = {change.provider.uuid: len(change.parts) for change in kept if change.parts}
    bump_generations(
        tx,
        [
            Bump(rows[uuid].id, rows[uuid].generation, count)
            for uuid, count in steps.items()
            if uuid in rows
        ],
    )
    return {
        ids[uuid]: Generation(count + (rows[uuid].generation if uuid in rows else 0))
        for uuid, count in steps.items()
    }


def _write_aggregates(
    tx: Tx,
    ids: Mapping[ProviderUUID, ProviderId],
    kept: Sequence[ProviderChange],
    spellings: Mapping[AggregateUUID, str],
) -> None:
    changed = [change.provider for change in kept if "aggregates" in change.parts]
    wanted = {uuid for provider in changed for uuid in provider.aggregates}
    stored = ensure_aggregates(tx, {uuid: spellings.get(uuid, uuid) for uuid in sorted(wanted)})
    writes: list[Change] = []
    for provider in changed:
        members = sorted({stored[uuid] for uuid in provider.aggregates})
        writes += membership_changes(tx, ids[provider.uuid], members)
    tx.change_all(writes)


def _write_traits(
    tx: Tx, ids: Mapping[ProviderUUID, ProviderId], kept: Sequence[ProviderChange]
) -> None:
    changed = [change for change in kept if "traits" in change.parts]
    before = {
        change.provider.uuid: change.before.traits if change.before else frozenset()
        for change in changed
    }
    names = {
        name for change in changed for name in change.provider.traits ^ before[change.provider.uuid]
    }
    numbers = trait_ids(tx, sorted(names))
    if len(numbers) != len(names):
        raise LostRace("a trait")
    for change in changed:
        had, has = before[change.provider.uuid], change.provider.traits
        write_traits(
            tx,
            ids[change.provider.uuid],
            gone={numbers[name] for name in had - has},
            new={numbers[name] for name in has - had},
        )


def _write_inventories(
    tx: Tx,
    ids: Mapping[ProviderUUID, ProviderId],
    kept: Sequence[ProviderChange],
    generations: Mapping[ProviderId, Generation],
) -> None:
    """Write the inventories that differ, and remove the others."""
    changed = [change for change in kept if "inventories" in change.parts]
    stock = {
        change.provider.uuid: change.before.inventories if change.before else {}
        for change in changed
    }
    names = {
        name
        for change in changed
        for name in (*change.provider.inventories, *stock[change.provider.uuid])
    }
    numbers = class_ids(tx, sorted(names))
    if len(numbers) != len(names):
        raise LostRace("a resource class")
    wanted: dict[Key, Inventory] = {}
    stored: set[Key] = set()
    for change in changed:
        uuid, had = change.provider.uuid, stock[change.provider.uuid]
        stored |= {Key(ids[uuid], numbers[name]) for name in had}
        wanted |= {
            Key(ids[uuid], numbers[name]): inventory
            for name, inventory in change.provider.inventories.items()
            if had.get(name) != inventory
        }
        gone = had.keys() - change.provider.inventories.keys()
        remove_or_refuse(tx, uuid, {Key(ids[uuid], numbers[name]) for name in gone})
    put_inventories(tx, wanted, stored=stored, generations=generations)
