# SPDX-License-Identifier: Apache-2.0
"""Reshaping: moves inventories and allocations between providers in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from berth.model.consumer import ConsumerWrite
from berth.model.errors import InventoryInUse, ReshapedProviderNotFound
from berth.model.ids import Generation, ProviderId, ProviderUUID
from berth.model.inventory import Inventory
from berth.store.claim_reads import (
    check_class_names,
    check_provider_names,
    read_claim_facts,
)
from berth.store.claims import Claim, write_claim_of_bumped
from berth.store.consumers import check_generations
from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from berth.store.engine.write_record import InventoryWrite
from berth.store.generations import Bump, bump_generations, check_seen
from berth.store.inventories import (
    Key,
    class_names,
    known_classes,
    put_inventories,
    remove_unused,
    stored_keys,
)
from berth.store.lookups import ProviderRow, providers_by_uuid


class ReshapedInventories(Struct, frozen=True):
    """The new inventories of a provider, by resource class name."""

    provider_uuid: ProviderUUID
    seen: Generation
    inventories: Mapping[str, Inventory]


def reshape(
    db: Database,
    inventories: Sequence[ReshapedInventories],
    writes: Sequence[ConsumerWrite],
) -> None:
    """Replace the inventories of some providers and the allocations of some consumers at once.

    The claims are checked against the new inventories; old ones are deleted after the allocations
    have moved away. Each provider and each consumer may appear at most once.

    Raises:
        ReshapedProviderNotFound, ProviderGenerationConflict: for each provider in turn.
        ConsumerGenerationConflict, UnknownProviderInAllocation, UnknownClassInInventory,
        UnknownClassInAllocation, NoInventory, UnitViolation, CapacityExceeded, InventoryInUse: in
            this order.
        ConsumerRace, LostRace: another request was faster.
    Source: spec/rest-api.md 12.
    """
    record = db.record
    if record is not None:
        record.claims = writes
        record.inventory_writes = [
            InventoryWrite(each.provider_uuid, each.inventories, is_whole=True)
            for each in inventories
        ]

    def unit(tx: Tx) -> None:
        reshaped = _read_reshaped(tx, inventories)
        facts = read_claim_facts(tx, writes, record)
        check_generations(writes, facts.consumers)
        check_provider_names(facts, writes)
        wanted = _wanted_inventories(tx, inventories, reshaped)
        check_class_names(facts, writes)
        claim = Claim(writes, facts)
        tx.left_alone |= claim.left_alone() - {provider.id for provider in reshaped.values()}
        bumps = _bumps(inventories, reshaped, claim.bumped())
        bump_generations(tx, bumps.values())
        ids = [provider.id for provider in reshaped.values()]
        before = stored_keys(tx, ids, record)
        put_inventories(tx, wanted, stored=before, generations=_moved(bumps))
        write_claim_of_bumped(
            tx, claim, {bump.provider: bump.steps for bump in bumps.values() if bump.seen is None}
        )
        _remove(tx, before - set(wanted), reshaped)

    db.write(unit)


def _read_reshaped(
    tx: Tx, inventories: Sequence[ReshapedInventories]
) -> dict[ProviderUUID, ProviderRow]:
    rows = providers_by_uuid(tx, [entry.provider_uuid for entry in inventories])
    for entry in inventories:
        if entry.provider_uuid not in rows:
            raise ReshapedProviderNotFound(entry.provider_uuid)
        check_seen(rows[entry.provider_uuid], entry.seen)
    return rows


def _wanted_inventories(
    tx: Tx,
    inventories: Sequence[ReshapedInventories],
    reshaped: Mapping[ProviderUUID, ProviderRow],
) -> dict[Key, Inventory]:
    named = {name: entry.provider_uuid for entry in inventories for name in entry.inventories}
    ids = known_classes(tx, named)
    return {
        Key(reshaped[entry.provider_uuid].id, ids[name]): inventory
        for entry in inventories
        for name, inventory in entry.inventories.items()
    }


def _bumps(
    inventories: Sequence[ReshapedInventories],
    reshaped: Mapping[ProviderUUID, ProviderRow],
    claimed: set[ProviderId],
) -> dict[ProviderId, Bump]:
    """The increment of each provider's generation.

    COMPAT spec/rest-api.md 12: one for writing the new inventories (not for an empty set), one for
    the claims, and one for removing the old inventories, though all is one commit.
    """
    bumps = {provider: Bump(provider) for provider in claimed}
    for entry in inventories:
        row = reshaped[entry.provider_uuid]
        steps = bool(entry.inventories) + (row.id in claimed) + 1
        bumps[row.id] = Bump(row.id, row.generation, steps)
    return bumps


def _moved(bumps: Mapping[ProviderId, Bump]) -> dict[ProviderId, Generation]:
    """The new generations of the providers whose old generations are known."""
    return {
        bump.provider: Generation(bump.seen + bump.steps)
        for bump in bumps.values()
        if bump.seen is not None
    }


def _remove(tx: Tx, keys: set[Key], reshaped: Mapping[ProviderUUID, ProviderRow]) -> None:
    in_use = remove_unused(tx, keys)
    if not in_use:
        return
    first = in_use[0].provider
    uuid = next(row.uuid for row in reshaped.values() if row.id == first)
    ids = [key.resource_class for key in in_use if key.provider == first]
    raise InventoryInUse(uuid, class_names(tx, ids))
