# SPDX-License-Identifier: Apache-2.0
"""Drawn worlds made real in a database, through the store.

What is used is held by one consumer per provider, and is claimed while there is plenty of room, so
that a world may show more used than its capacity.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from berth.model.consumer import ConsumerWrite
from berth.model.drain import DrainName, Effect
from berth.model.errors import BerthError
from berth.model.flavor import Flavor, FlavorName
from berth.model.ids import AggregateUUID, ConsumerUUID, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.sentinels import UNSET
from berth.store.aggregates import replace_aggregates
from berth.store.allocations import replace_allocations
from berth.store.drains import put_drain
from berth.store.engine.database import Database
from berth.store.flavors import put_flavor
from berth.store.inventories import replace_inventories
from berth.store.labels import replace_labels
from berth.store.providers import create_provider, get_provider
from berth.store.resource_classes import ensure_resource_class
from berth.store.traits import create_trait, replace_provider_traits
from tests.worlds import (
    MAX_INT,
    Stock,
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
    for aggregate, labels in fleet.labels.items():
        replace_labels(db, AggregateUUID(aggregate_uuid(aggregate)), labels)
    for name, request in fleet.flavors.items():
        put_flavor(db, FlavorName(name), Flavor(json.dumps(request)))
    add_drains(fleet, db)


def add_drains(fleet: World, db: Database) -> None:
    """Make the drains of a world, whose providers are there."""
    for name, providers in fleet.drains.items():
        drain(db, name, providers, announced=name in fleet.announced)


def drain(db: Database, name: str, providers: Iterable[str], *, announced: bool = False) -> None:
    """Make a drain of some providers, or replace it."""
    put_drain(
        db,
        DrainName(name),
        [ProviderUUID(provider_uuid(provider)) for provider in providers],
        effect=Effect.NONE if announced else Effect.EXCLUDE,
        reason="",
        created_by="tests",
    )


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

    if provider.used:
        make_room(provider, db)
        hold(provider, db)
    restock(provider, db)
    aggregates = [AggregateUUID(aggregate_uuid(name)) for name in sorted(provider.aggregates)]
    replace_aggregates(db, uuid, aggregates, get_provider(db, uuid).generation)
    replace_provider_traits(db, uuid, sorted(provider.traits), get_provider(db, uuid).generation)


def change_provider(before: WorldProvider, after: WorldProvider, db: Database) -> None:
    """Make the inventories of a provider, and what is used of them, what is drawn now; the classes
    are as before.

    What does not change is not written: a claim alone reaches an index in another way than an
    inventory.
    """
    roomy = False
    if after.used != before.used:
        try:
            hold(after, db)
        except BerthError:
            roomy = True
            make_room(after, db)
            hold(after, db)
    if roomy or _without_use(after) != _without_use(before):
        restock(after, db)


def make_room(provider: WorldProvider, db: Database) -> None:
    """Let a provider have as much of its classes as there can be."""
    _put(provider, {name: Inventory(total=MAX_INT) for name in provider.stocks}, db)


def restock(provider: WorldProvider, db: Database) -> None:
    """Make a provider's inventories what is drawn, whatever is used of them."""
    stocks = provider.stocks.items()
    _put(provider, {name: Inventory(**inventory_fields(stock)) for name, stock in stocks}, db)


def hold(provider: WorldProvider, db: Database) -> None:
    """Let the consumer of a provider hold what is drawn as used."""
    uuid = ProviderUUID(provider_uuid(provider.name))
    claim = ConsumerWrite(
        uuid=ConsumerUUID(consumer_uuid(provider.name)),
        allocations={uuid: provider.used} if provider.used else {},
        project_id="worlds",
        user_id="tests",
        generation=UNSET,
        consumer_type="INSTANCE",
    )
    replace_allocations(db, [claim], attempts=1)


def _put(provider: WorldProvider, inventories: dict[str, Inventory], db: Database) -> None:
    uuid = ProviderUUID(provider_uuid(provider.name))
    replace_inventories(db, uuid, get_provider(db, uuid).generation, inventories)


def _without_use(provider: WorldProvider) -> dict[str, Stock]:
    return {name: replace(stock, used=0) for name, stock in provider.stocks.items()}
