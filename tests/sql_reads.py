# SPDX-License-Identifier: Apache-2.0
"""What the database says of providers, read row by row: the slow twin of the index's reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Table, func, select

from berth.model.errors import (
    InventoryNotFound,
    ProviderNotFound,
    UnknownResourceClass,
    UnknownTraits,
)
from berth.model.filters import ProviderFilters
from berth.model.ids import AggregateUUID, Generation, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.provider import Provider
from berth.store.aggregate_spellings import canonical
from berth.store.engine.database import Database
from berth.store.engine.tables import (
    berth_usages,
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from berth.store.engine.transaction import Tx


@dataclass(frozen=True, slots=True)
class StoredInventory:
    """One inventory, with its provider's generation."""

    inventory: Inventory
    generation: Generation
    last_modified: datetime | None


@dataclass(frozen=True, slots=True)
class ProviderInventories:
    """All inventories of a provider by resource class name, and the newest time, if any."""

    generation: Generation
    inventories: dict[str, Inventory]
    last_modified: datetime | None


@dataclass(frozen=True, slots=True)
class ProviderTraits:
    """A provider's traits, and when the newest of them was created; None if it has none."""

    generation: Generation
    names: list[str]
    last_modified: datetime | None


@dataclass(frozen=True, slots=True)
class ProviderAggregates:
    """A provider's aggregates: each one once, in the spelling that created it."""

    generation: Generation
    spellings: list[str]


@dataclass(frozen=True, slots=True)
class ProviderUsages:
    """What is used of each inventory of a provider, zeroes included."""

    generation: Generation
    usages: dict[str, int]


@dataclass(frozen=True, slots=True)
class StoredProvider:
    """All that the tables have of a provider, in the order in which the API shows it.

    Attributes:
        inventories: with the time of the last change, by class name.
        traits: with the time of the last change.
    """

    provider: Provider
    inventories: dict[str, tuple[Inventory, datetime | None]]
    usages: dict[str, int]
    traits: dict[str, datetime | None]
    spellings: list[str]

    @property
    def aggregates(self) -> dict[AggregateUUID, str]:
        """Each aggregate once, in the spelling that created it."""
        first: dict[AggregateUUID, str] = {}
        for spelling in self.spellings:
            first.setdefault(canonical(spelling), spelling)
        return first

    def matches(self, filters: ProviderFilters, tree: ProviderUUID | None) -> bool:
        """Whether a list with these filters has it; `tree`: the root that `in_tree` stands for."""
        return (
            filters.name in (None, self.provider.name)
            and filters.uuid in (None, self.provider.uuid)
            and (filters.in_tree is None or tree == self.provider.root_uuid)
            and all(self._has_room(*amount) for amount in filters.resources.items())
            and _is_among(self.traits, filters.required, filters.forbidden)
            and _is_among(self.aggregates, filters.member_of, filters.not_member_of)
        )

    def _has_room(self, name: str, amount: int) -> bool:
        if name not in self.inventories:
            return False
        inventory, _ = self.inventories[name]
        return inventory.allows_unit(amount) and inventory.has_capacity_for(
            self.usages[name] + amount
        )


def read_all(db: Database) -> dict[ProviderUUID, StoredProvider]:
    """Every provider, in the order of their creation."""
    with db.read() as tx:
        every = {
            provider.id: StoredProvider(provider, {}, {}, {}, []) for provider in _providers(tx)
        }
        inv, usage, having = inventories.c, berth_usages.c, resource_provider_traits.c
        aggregate, member = placement_aggregates.c, resource_provider_aggregates.c
        for provider, name, modified, *fields in tx.rows_once(
            select(
                inv.resource_provider_id,
                resource_classes.c.name,
                func.coalesce(inv.updated_at, inv.created_at),
                *(inv.total, inv.reserved, inv.min_unit, inv.max_unit, inv.step_size),
                inv.allocation_ratio,
            )
            .join(resource_classes, resource_classes.c.id == inv.resource_class_id)
            .order_by(inv.resource_class_id)
        ):
            every[provider].inventories[name] = Inventory(*fields), modified
        for provider, name, used in tx.rows_once(
            select(usage.resource_provider_id, resource_classes.c.name, usage.used)
            .join(resource_classes, resource_classes.c.id == usage.resource_class_id)
            .order_by(usage.resource_class_id)
        ):
            every[provider].usages[name] = used
        for provider, name, modified in tx.rows_once(
            select(
                having.resource_provider_id,
                traits.c.name,
                func.coalesce(traits.c.updated_at, traits.c.created_at),
            )
            .join(traits, traits.c.id == having.trait_id)
            .order_by(traits.c.id)
        ):
            every[provider].traits[name] = modified
        for provider, spelling in tx.rows_once(
            select(member.resource_provider_id, aggregate.uuid)
            .join(placement_aggregates, aggregate.id == member.aggregate_id)
            .where(aggregate.uuid.is_not(None))
            .order_by(aggregate.id)
        ):
            every[provider].spellings.append(spelling)
    return {stored.provider.uuid: stored for stored in every.values()}


def list_providers(db: Database, filters: ProviderFilters) -> list[Provider]:
    """The providers that match all filters, in the order of their creation.

    Raises:
        UnknownResourceClass: `filters.resources` names one.
        UnknownTraits: `filters.required` or `filters.forbidden` name some.
    """
    with db.read() as tx:
        _check_names(tx, filters)
    return matching(read_all(db), filters)


def matching(
    every: Mapping[ProviderUUID, StoredProvider], filters: ProviderFilters
) -> list[Provider]:
    """Those of all providers that match all filters."""
    top = every.get(filters.in_tree) if filters.in_tree is not None else None
    tree = None if top is None else top.provider.root_uuid
    return [stored.provider for stored in every.values() if stored.matches(filters, tree)]


def list_inventories(db: Database, uuid: ProviderUUID) -> ProviderInventories:
    """All inventories of a provider.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    stored = _one(db, uuid)
    return ProviderInventories(
        stored.provider.generation,
        {name: inventory for name, (inventory, _) in stored.inventories.items()},
        newest(modified for _, modified in stored.inventories.values()),
    )


def get_inventory(db: Database, uuid: ProviderUUID, class_name: str) -> StoredInventory:
    """A provider's inventory of one resource class.

    Raises:
        ProviderNotFound: no provider has this uuid.
        InventoryNotFound: it has no such inventory, or there is no such resource class.
    """
    stored = _one(db, uuid)
    if class_name not in stored.inventories:
        raise InventoryNotFound(uuid, class_name)
    inventory, modified = stored.inventories[class_name]
    return StoredInventory(inventory, stored.provider.generation, modified)


def get_provider_traits(db: Database, uuid: ProviderUUID) -> ProviderTraits:
    """The traits that a provider itself has.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    stored = _one(db, uuid)
    return ProviderTraits(
        stored.provider.generation, list(stored.traits), newest(stored.traits.values())
    )


def get_aggregates(db: Database, uuid: ProviderUUID) -> ProviderAggregates:
    """The aggregates that a provider itself is a member of.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    stored = _one(db, uuid)
    return ProviderAggregates(stored.provider.generation, list(stored.aggregates.values()))


def provider_usages(db: Database, uuid: ProviderUUID) -> ProviderUsages:
    """What is used of a provider, by resource class.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    stored = _one(db, uuid)
    return ProviderUsages(stored.provider.generation, stored.usages)


def newest(times: Iterable[datetime | None]) -> datetime | None:
    """The last of some times; None if all are unknown."""
    return max((time for time in times if time is not None), default=None)


def _one(db: Database, uuid: ProviderUUID) -> StoredProvider:
    stored = read_all(db).get(uuid)
    if stored is None:
        raise ProviderNotFound(uuid)
    return stored


def _providers(tx: Tx) -> list[Provider]:
    rp = resource_providers.c
    rows = tx.rows_once(
        select(
            *(rp.id, rp.uuid, rp.name, rp.generation, rp.parent_provider_id, rp.root_provider_id),
            *(rp.created_at, rp.updated_at),
        ).order_by(rp.id)
    )
    uuids = {row[0]: row[1] for row in rows}
    return [
        Provider(number, uuid, name, generation, uuids.get(parent), uuids[root], *times)
        for number, uuid, name, generation, parent, root, *times in rows
    ]


def _check_names(tx: Tx, filters: ProviderFilters) -> None:
    classes = _names(tx, resource_classes)
    for name in filters.resources:
        if name not in classes:
            raise UnknownResourceClass(name)
    named = filters.forbidden.union(*filters.required)
    if unknown := sorted(named - _names(tx, traits)):
        raise UnknownTraits(unknown)


def _names(tx: Tx, table: Table) -> set[str]:
    return {name for (name,) in tx.rows_once(select(table.c.name))}


def _is_among(
    own: Collection[str],
    required: Iterable[Collection[str]],
    forbidden: Collection[str],
) -> bool:
    """Whether something has one of each required set, and nothing that is forbidden."""
    return all(set(own) & set(wanted) for wanted in required) and not set(own) & set(forbidden)
