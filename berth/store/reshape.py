# SPDX-License-Identifier: Apache-2.0
"""Reshaping: inventories and allocations moved between providers in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from berth.model.consumer import ConsumerWrite
from berth.model.errors import InventoryInUse, ReshapedProviderNotFound
from berth.model.ids import Generation, ProviderId, ProviderUUID
from berth.model.inventory import Inventory
from berth.store.claims import Claim, apply_claim, read_classes, read_held, read_providers
from berth.store.consumers import check_generations, read_consumers
from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from berth.store.generations import Bump, bump_generations, check_seen, keep_generations
from berth.store.inventories import (
    Key,
    class_names,
    known_classes,
    put_inventories,
    remove_unused,
    stored_keys,
)
from berth.store.lookups import ProviderRow, providers_by_uuid


@dataclass(frozen=True, slots=True)
class ReshapedInventories:
    """All that a provider shall have from now on, by resource class name."""

    provider_uuid: ProviderUUID
    seen: Generation
    inventories: Mapping[str, Inventory]


def reshape(
    db: Database, inventories: Sequence[ReshapedInventories], writes: Sequence[ConsumerWrite]
) -> None:
    """Replace the inventories of some providers and the allocations of some consumers at once.

    The claims are judged by the new inventories; those that go stay until the allocations have
    moved away. Each provider and each consumer at most once.

    Raises:
        ReshapedProviderNotFound, ProviderGenerationConflict: for each provider in turn.
        ConsumerGenerationConflict, UnknownProviderInAllocation, UnknownClassInInventory,
        UnknownClassInAllocation, NoInventory, UnitViolation, CapacityExceeded, InventoryInUse: in
            this order.
        ConsumerRace, LostRace: somebody else was faster.
    Source: spec/rest-api.md 12.
    """

    def unit(tx: Tx) -> None:
        reshaped = _read_reshaped(tx, inventories)
        uuids = [write.uuid for write in writes]
        stored = read_consumers(tx, uuids)
        check_generations(writes, stored)
        providers = read_providers(tx, writes)
        wanted = _wanted_inventories(tx, inventories, reshaped)
        classes = read_classes(tx, writes)
        claim = Claim(writes, stored, providers, classes, read_held(tx, uuids))
        bumps = _bumps(inventories, reshaped, claim.bumped())
        bump_generations(tx, bumps.values())
        keep_generations(tx, list(bumps.values()))
        before = stored_keys(tx, [provider.id for provider in reshaped.values()])
        put_inventories(tx, wanted, stored=before, generations=_moved(bumps))
        apply_claim(
            tx, claim, {one.provider: one.steps for one in bumps.values() if one.seen is None}
        )
        _remove(tx, before - set(wanted), reshaped)

    db.write(unit)


def _read_reshaped(
    tx: Tx, inventories: Sequence[ReshapedInventories]
) -> dict[ProviderUUID, ProviderRow]:
    found = providers_by_uuid(tx, [one.provider_uuid for one in inventories])
    for one in inventories:
        if one.provider_uuid not in found:
            raise ReshapedProviderNotFound(one.provider_uuid)
        check_seen(found[one.provider_uuid], one.seen)
    return found


def _wanted_inventories(
    tx: Tx,
    inventories: Sequence[ReshapedInventories],
    reshaped: Mapping[ProviderUUID, ProviderRow],
) -> dict[Key, Inventory]:
    named = {name: one.provider_uuid for one in inventories for name in one.inventories}
    ids = known_classes(tx, named)
    return {
        Key(reshaped[one.provider_uuid].id, ids[name]): inventory
        for one in inventories
        for name, inventory in one.inventories.items()
    }


def _bumps(
    inventories: Sequence[ReshapedInventories],
    reshaped: Mapping[ProviderUUID, ProviderRow],
    claimed: set[ProviderId],
) -> dict[ProviderId, Bump]:
    """How far each provider moves on.

    COMPAT spec/rest-api.md 12: one for the new inventories being written (not for an empty set),
    one for the claims, one for the old inventories being removed, though all is one commit.
    """
    bumps = {provider: Bump(provider) for provider in claimed}
    for one in inventories:
        row = reshaped[one.provider_uuid]
        steps = bool(one.inventories) + (row.id in claimed) + 1
        bumps[row.id] = Bump(row.id, row.generation, steps)
    return bumps


def _moved(bumps: Mapping[ProviderId, Bump]) -> dict[ProviderId, Generation]:
    """The new generations of those providers whose old ones are known."""
    return {
        one.provider: Generation(one.seen + one.steps)
        for one in bumps.values()
        if one.seen is not None
    }


def _remove(tx: Tx, keys: set[Key], reshaped: Mapping[ProviderUUID, ProviderRow]) -> None:
    in_use = remove_unused(tx, keys)
    if not in_use:
        return
    first = in_use[0].provider
    uuid = next(row.uuid for row in reshaped.values() if row.id == first)
    ids = [key.resource_class for key in in_use if key.provider == first]
    raise InventoryInUse(uuid, class_names(tx, ids))
