# SPDX-License-Identifier: Apache-2.0
"""What the database says of providers, read row by row: the slow twin of the index's reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import select

from berth.model.errors import ProviderNotFound
from berth.model.ids import AggregateUUID, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.provider import Provider, ProviderFilters
from berth.store.aggregates import canonical
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


@dataclass(frozen=True, slots=True)
class StoredProvider:
    """All that the tables have of a provider, in the order in which the API shows it.

    Attributes:
        names: of its traits.
        aggregates: each once, with the spelling that created it.
    """

    provider: Provider
    inventories: dict[str, Inventory] = field(default_factory=dict)
    usages: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    aggregates: dict[AggregateUUID, str] = field(default_factory=dict)

    @property
    def spellings(self) -> list[str]:
        """Those of its aggregates."""
        return [*self.aggregates.values()]


def read_all(db: Database) -> dict[ProviderUUID, StoredProvider]:
    """Every provider, in the order of their creation."""
    with db.read() as tx:
        rp, inv, usage, having = (
            table.c
            for table in (resource_providers, inventories, berth_usages, resource_provider_traits)
        )
        aggregate, member = placement_aggregates.c, resource_provider_aggregates.c
        rows = tx.rows_once(
            select(
                *(rp.id, rp.uuid, rp.name, rp.generation),
                *(rp.parent_provider_id, rp.root_provider_id, rp.created_at, rp.updated_at),
            ).order_by(rp.id)
        )
        uuids = {row[0]: row[1] for row in rows}
        every = {
            number: StoredProvider(
                Provider(number, uuid, name, generation, uuids.get(parent), uuids[root], *times)
            )
            for number, uuid, name, generation, parent, root, *times in rows
        }
        of_class = resource_classes.c
        for number, name, *fields in tx.rows_once(
            select(
                *(inv.resource_provider_id, of_class.name, inv.total, inv.reserved),
                *(inv.min_unit, inv.max_unit, inv.step_size, inv.allocation_ratio),
            )
            .join(resource_classes, of_class.id == inv.resource_class_id)
            .order_by(inv.resource_class_id)
        ):
            every[number].inventories[name] = Inventory(*fields)
        for number, name, used in tx.rows_once(
            select(usage.resource_provider_id, of_class.name, usage.used)
            .join(resource_classes, of_class.id == usage.resource_class_id)
            .order_by(usage.resource_class_id)
        ):
            every[number].usages[name] = used
        for number, name in tx.rows_once(
            select(having.resource_provider_id, traits.c.name)
            .join(traits, traits.c.id == having.trait_id)
            .order_by(traits.c.id)
        ):
            every[number].names.append(name)
        for number, spelling in tx.rows_once(
            select(member.resource_provider_id, aggregate.uuid)
            .join(placement_aggregates, aggregate.id == member.aggregate_id)
            .where(aggregate.uuid.is_not(None))
            .order_by(aggregate.id)
        ):
            every[number].aggregates.setdefault(canonical(spelling), spelling)
    return {stored.provider.uuid: stored for stored in every.values()}


def list_providers(db: Database, filters: ProviderFilters) -> list[Provider]:
    """The providers that are members of one of each set of aggregates, in the order of their
    creation; other filters are not for here."""
    return [
        stored.provider
        for stored in read_all(db).values()
        if all(stored.aggregates.keys() & wanted for wanted in filters.member_of)
    ]


def stored_provider(db: Database, uuid: ProviderUUID) -> StoredProvider:
    """One provider.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    every = read_all(db)
    if uuid not in every:
        raise ProviderNotFound(uuid)
    return every[uuid]


#: By what is asked of it.
list_inventories = get_provider_traits = get_aggregates = provider_usages = stored_provider
