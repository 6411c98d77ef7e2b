# SPDX-License-Identifier: Apache-2.0
"""Inventories: the resources of providers, by resource class.

Each inventory has a row in `berth_usages`, which can be deleted only while its usage is zero: this
is the guard against deleting an inventory that has allocations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import bindparam, delete, func, insert, select, update

from berth.model.errors import (
    InventoryExists,
    InventoryInUse,
    InventoryInUseOnDelete,
    InventoryNotFound,
    InventoryNotOnProvider,
    LostRace,
    ResourceClassNotFound,
    UnknownClassInInventory,
)
from berth.model.ids import ClassId, Generation, ProviderId, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.standard import CUSTOM_CLASS_ID_MIN
from berth.store.engine.database import Database
from berth.store.engine.expressions import rewritten
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import (
    allocations,
    berth_usages,
    inventories,
    of_inventory,
    resource_classes,
)
from berth.store.engine.transaction import Tx, unless_taken
from berth.store.engine.write_record import InventoryWrite, WriteRecord
from berth.store.generations import bump_generation, check_seen
from berth.store.lookups import class_ids, get_provider_row, missing


class Key(NamedTuple):
    """The key of an inventory: provider and resource class."""

    provider: ProviderId
    resource_class: ClassId


_inv = inventories.c
_usage = berth_usages.c

_FIELDS: Final = Inventory.__struct_fields__
#: The columns of an `Inventory`, in its order.
INVENTORY_COLUMNS: Final = tuple(_inv[name] for name in _FIELDS)


_KEYS: Final = select(_inv.resource_provider_id, _inv.resource_class_id).where(
    _inv.resource_provider_id.in_(bindparam("providers", expanding=True))
)
_STORED: Final = select(
    _inv.resource_provider_id, _inv.resource_class_id, *INVENTORY_COLUMNS
).where(_inv.resource_provider_id.in_(bindparam("providers", expanding=True)))
_KEYS_IN_USE: Final = select(_usage.resource_provider_id, _usage.resource_class_id).where(
    _usage.resource_provider_id.in_(bindparam("providers", expanding=True)), _usage.used > 0
)
_CLASS_NAMES: Final = (
    select(resource_classes.c.name)
    .where(resource_classes.c.id.in_(bindparam("classes", expanding=True)))
    .order_by(resource_classes.c.id)
)
_PIN_CLASSES: Final = (
    update(resource_classes)
    .where(resource_classes.c.id.in_(bindparam("classes", expanding=True)))
    .values(name=resource_classes.c.name, updated_at=rewritten(resource_classes.c.updated_at))
)

_INSERT: Final = insert_of(
    inventories, "resource_provider_id", "resource_class_id", "created_at", *_FIELDS
)
_UPDATE: Final = (
    update(inventories)
    .where(of_inventory(inventories))
    .values({name: bindparam(f"new_{name}") for name in _FIELDS})
    .values(updated_at=bindparam("now"))
)
_DELETE: Final = delete(inventories).where(of_inventory(inventories))
#: The guard against deleting an inventory that has allocations.
_DELETE_UNUSED: Final = delete(berth_usages).where(of_inventory(berth_usages), _usage.used == 0)

#: Starts at the sum of existing allocations: zero, unless the data were inconsistent before.
_INSERT_USAGE: Final = insert(berth_usages).from_select(
    ["resource_provider_id", "resource_class_id", "used", "generation"],
    select(
        bindparam("provider", type_=_usage.resource_provider_id.type),
        bindparam("resource_class", type_=_usage.resource_class_id.type),
        func.coalesce(func.sum(allocations.c.used), 0),
        bindparam("generation", type_=_usage.generation.type),
    ).where(of_inventory(allocations)),
)


def create_inventory(
    db: Database,
    uuid: ProviderUUID,
    class_name: str,
    inventory: Inventory,
) -> Generation:
    """Add an inventory; return the provider's new generation.

    Raises:
        ProviderNotFound: no provider has this uuid.
        UnknownClassInInventory: no resource class has this name.
        InventoryExists: the provider already has one of this class.
    """
    _note(db, uuid, {class_name: inventory}, is_whole=False)

    def unit(tx: Tx) -> Generation:
        provider = get_provider_row(tx, uuid)
        class_id = class_ids(tx, [class_name]).get(class_name)
        if class_id is None:
            raise UnknownClassInInventory(uuid, class_name, creating=True)
        generation = bump_generation(tx, provider)
        key = Key(provider.id, class_id)
        if key in stored_keys(tx, [provider.id], db.record):
            raise InventoryExists(uuid, class_name)
        put_inventories(tx, {key: inventory}, stored=set(), generations={provider.id: generation})
        return generation

    return db.write(unit)


def replace_inventories(
    db: Database,
    uuid: ProviderUUID,
    seen: Generation,
    inventories: Mapping[str, Inventory],
) -> Generation:
    """Replace a provider's inventories, given by resource class name.

    An inventory may shrink below its usage. The generation increments even if nothing changes.

    Raises:
        ProviderNotFound: no provider has this uuid.
        ProviderGenerationConflict: it is not at `seen`.
        UnknownClassInInventory: a resource class does not exist.
        InventoryInUse: an inventory that would be deleted has allocations.
    """
    _note(db, uuid, inventories, is_whole=True)

    def unit(tx: Tx) -> Generation:
        provider = get_provider_row(tx, uuid)
        check_seen(provider, seen)
        ids = known_classes(tx, dict.fromkeys(inventories, uuid))
        generation = bump_generation(tx, provider)
        stored = stored_keys(tx, [provider.id], db.record)
        wanted = {Key(provider.id, ids[name]): value for name, value in inventories.items()}
        remove_or_refuse(tx, uuid, stored - set(wanted))
        put_inventories(tx, wanted, stored=stored, generations={provider.id: generation})
        return generation

    return db.write(unit)


def update_inventory(
    db: Database,
    uuid: ProviderUUID,
    class_name: str,
    seen: Generation,
    inventory: Inventory,
) -> Generation:
    """Change an existing inventory; return the provider's new generation.

    Raises:
        ProviderNotFound: no provider has this uuid.
        ProviderGenerationConflict: it is not at `seen`.
        ResourceClassNotFound: no resource class has this name.
        InventoryNotOnProvider: the provider has no inventory of this class.
    """
    _note(db, uuid, {class_name: inventory}, is_whole=False)

    def unit(tx: Tx) -> Generation:
        provider = get_provider_row(tx, uuid)
        check_seen(provider, seen)
        ids = class_ids(tx, [class_name])
        if class_name not in ids:
            raise ResourceClassNotFound(class_name)
        generation = bump_generation(tx, provider)
        key = Key(provider.id, ids[class_name])
        stored = stored_keys(tx, [provider.id], db.record)
        if key not in stored:
            raise InventoryNotOnProvider(uuid, class_name)
        put_inventories(tx, {key: inventory}, stored=stored, generations={})
        return generation

    return db.write(unit)


def delete_inventory(
    db: Database,
    uuid: ProviderUUID,
    class_name: str,
) -> None:
    """Delete one inventory.

    Raises:
        ProviderNotFound: no provider has this uuid.
        InventoryNotFound: it has no such inventory, or there is no such resource class.
        InventoryInUseOnDelete: it has allocations.
    """
    _note(db, uuid, {class_name: None}, is_whole=False)

    def unit(tx: Tx) -> None:
        provider = get_provider_row(tx, uuid)
        class_id = class_ids(tx, [class_name]).get(class_name)
        if class_id is None:
            raise InventoryNotFound(uuid, class_name, to_delete=True, class_exists=False)
        key = Key(provider.id, class_id)
        if key not in stored_keys(tx, [provider.id], db.record):
            raise InventoryNotFound(uuid, class_name, to_delete=True)
        bump_generation(tx, provider)
        if remove_unused(tx, [key]):
            raise InventoryInUseOnDelete(uuid, class_name)

    db.write(unit)


def delete_inventories(
    db: Database,
    uuid: ProviderUUID,
) -> None:
    """Delete all inventories; the generation increments even if there were none.

    Raises:
        ProviderNotFound: no provider has this uuid.
        InventoryInUse: one has allocations.
    """
    _note(db, uuid, {}, is_whole=True)

    def unit(tx: Tx) -> None:
        provider = get_provider_row(tx, uuid)
        bump_generation(tx, provider)
        remove_or_refuse(tx, uuid, stored_keys(tx, [provider.id], db.record))

    db.write(unit)


def _note(
    db: Database,
    uuid: ProviderUUID,
    inventories: Mapping[str, Inventory | None],
    *,
    is_whole: bool,
) -> None:
    if db.record is not None:
        db.record.inventory_writes = (InventoryWrite(uuid, inventories, is_whole),)


# --- Parts of a transaction, shared with the reshaper --------------------------------------------


def known_classes(tx: Tx, wanted: Mapping[str, ProviderUUID]) -> dict[str, ClassId]:
    """The ids of resource classes, each given with a provider whose inventory names it.

    Raises:
        UnknownClassInInventory: one does not exist.
    """
    ids = class_ids(tx, wanted)
    for name in missing(wanted, ids):
        raise UnknownClassInInventory(wanted[name], name)
    return ids


def stored_keys(
    tx: Tx, providers: Iterable[ProviderId], record: WriteRecord | None = None
) -> set[Key]:
    """The keys of all inventories of some providers.

    Args:
        record: gets the inventories too, which the same query reads.
    """
    if record is not None:
        stored = {
            Key(provider, class_id): Inventory(*values)
            for chunk in tx.chunks(providers)
            for provider, class_id, *values in tx.rows(_STORED, {"providers": chunk})
        }
        record.inventories = dict(stored.items())
        return set(stored)
    return {
        Key(*row) for chunk in tx.chunks(providers) for row in tx.rows(_KEYS, {"providers": chunk})
    }


def put_inventories(
    tx: Tx,
    wanted: Mapping[Key, Inventory],
    *,
    stored: Collection[Key],
    generations: Mapping[ProviderId, Generation],
) -> None:
    """Write inventories: update those that are stored, insert the others.

    The providers' generations must have been bumped in this transaction.

    Args:
        generations: the current generation of each provider that gets a new inventory.

    Raises:
        LostRace: an inventory or a resource class was created or deleted at the same time.
    """
    changed = [key for key in wanted if key in stored]
    if changed:
        updated = tx.change(
            _UPDATE,
            [{**key._asdict(), **_fields(wanted[key], "new_"), "now": tx.now} for key in changed],
        )
        if updated != len(changed):
            raise LostRace("an inventory")
    added = [key for key in wanted if key not in stored]
    if added:
        _pin_custom_classes(tx, {key.resource_class for key in added})
        _insert_inventories(tx, added, wanted, generations)


def remove_unused(tx: Tx, keys: Collection[Key]) -> list[Key]:
    """Delete inventories that are not in use; return those in use, which the caller must refuse.

    The guard: a usage row is deleted only while its usage is zero.

    Raises:
        LostRace: an inventory was deleted at the same time.
    """
    if not keys:
        return []
    parameters = [key._asdict() for key in sorted(keys)]
    if tx.change(_DELETE_UNUSED, parameters) != len(keys):
        if in_use := _in_use(tx, keys):
            return in_use
        raise LostRace("an inventory")
    tx.change(_DELETE, parameters)
    return []


def remove_or_refuse(tx: Tx, uuid: ProviderUUID, keys: Collection[Key]) -> None:
    """Delete inventories of one provider.

    Raises:
        InventoryInUse: some have allocations.
        LostRace: an inventory was deleted at the same time.
    """
    if in_use := remove_unused(tx, keys):
        raise InventoryInUse(uuid, class_names(tx, [key.resource_class for key in in_use]))


def class_names(tx: Tx, ids: Collection[ClassId]) -> list[str]:
    """The names of some resource classes, for an error message."""
    return [
        name for chunk in tx.chunks(ids) for (name,) in tx.rows(_CLASS_NAMES, {"classes": chunk})
    ]


# --- Details -------------------------------------------------------------------------------------


def _fields(inventory: Inventory, prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}{name}": getattr(inventory, name) for name in _FIELDS}


def _pin_custom_classes(tx: Tx, ids: Collection[ClassId]) -> None:
    """Lock the classes' rows, so that none is deleted while it gets its first inventory."""
    custom = sorted(number for number in ids if number >= CUSTOM_CLASS_ID_MIN)
    for chunk in tx.chunks(custom):
        if tx.change(_PIN_CLASSES, {"classes": chunk}) != len(chunk):
            raise LostRace("a resource class")


def _insert_inventories(
    tx: Tx,
    added: Sequence[Key],
    wanted: Mapping[Key, Inventory],
    generations: Mapping[ProviderId, Generation],
) -> None:
    rows = [
        {
            "resource_provider_id": key.provider,
            "resource_class_id": key.resource_class,
            "created_at": tx.now,
            **_fields(wanted[key]),
        }
        for key in added
    ]
    usages = [{**key._asdict(), "generation": generations[key.provider]} for key in added]
    with unless_taken("an inventory"):
        tx.change(_INSERT, rows)
        tx.change(_INSERT_USAGE, usages)


def _in_use(tx: Tx, keys: Collection[Key]) -> list[Key]:
    providers = {key.provider for key in keys}
    used = {
        Key(*row)
        for chunk in tx.chunks(providers)
        for row in tx.rows(_KEYS_IN_USE, {"providers": chunk})
    }
    return sorted(used.intersection(keys))
