# SPDX-License-Identifier: Apache-2.0
"""Drawn worlds made real in a database, through the store.

What is used is held by one consumer per provider, and is claimed while there is plenty of room, so
that a world may show more used than its capacity.
"""

from __future__ import annotations

from berth.model.consumer import ConsumerWrite
from berth.model.ids import AggregateUUID, ConsumerUUID, Generation, ProviderUUID
from berth.model.inventory import Inventory
from berth.store.aggregates import replace_aggregates
from berth.store.allocations import replace_allocations
from berth.store.database import Database
from berth.store.inventories import replace_inventories
from berth.store.providers import create_provider, get_provider
from berth.store.resource_classes import ensure_resource_class
from berth.store.traits import create_trait, replace_provider_traits
from tests.worlds import (
    MAX_INT,
    World,
    WorldProvider,
    aggregate_uuid,
    consumer_uuid,
    inventory_fields,
    provider_uuid,
)


def build_in_store(fleet: World, db: Database) -> None:
    """Make a world in a database that holds none of its names yet."""
    define_names(fleet, db)
    for provider in fleet.providers:
        add_provider(provider, db)


def define_names(fleet: World, db: Database) -> None:
    """Create the custom resource classes and traits that a world needs."""
    for name in fleet.custom_classes:
        ensure_resource_class(db, name)
    for name in fleet.custom_traits:
        create_trait(db, name)


def add_provider(provider: WorldProvider, db: Database) -> None:
    """Create one provider with all that is drawn of it; its parent and its names are there."""
    uuid = ProviderUUID(provider_uuid(provider.name))
    parent = None if provider.parent is None else ProviderUUID(provider_uuid(provider.parent))
    create_provider(db, uuid=uuid, name=provider.name, parent_uuid=parent)

    def seen() -> Generation:
        return get_provider(db, uuid).generation

    if provider.used:
        roomy = {name: Inventory(total=MAX_INT) for name in provider.stocks}
        replace_inventories(db, uuid, seen(), roomy)
        claim = ConsumerWrite(
            uuid=ConsumerUUID(consumer_uuid(provider.name)),
            allocations={uuid: provider.used},
            project_id="worlds",
            user_id="tests",
            generation=None,
            consumer_type="INSTANCE",
        )
        replace_allocations(db, [claim], attempts=1)
    stocks = provider.stocks.items()
    replace_inventories(
        db, uuid, seen(), {name: Inventory(**inventory_fields(s)) for name, s in stocks}
    )
    aggregates = [AggregateUUID(aggregate_uuid(name)) for name in sorted(provider.aggregates)]
    replace_aggregates(db, uuid, aggregates, seen())
    replace_provider_traits(db, uuid, sorted(provider.traits), seen())
