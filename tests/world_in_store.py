# SPDX-License-Identifier: Apache-2.0
"""Drawn worlds made real in a database at once, row by row: a tenth of the time of the API.

What is used is held by one consumer per provider. The rows are those that the API leaves behind;
tests of an index that sees a world grow use `tests.world_over_http`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Table, insert, select

from berth.model.ids import AggregateUUID, ProviderUUID
from berth.model.named import DrainName, Effect, Flavor, FlavorName
from berth.store.engine import tables
from berth.store.engine.database import Database
from berth.store.named import put_drain, put_flavor, replace_labels
from berth.store.resource_classes import ensure_resource_class
from berth.store.traits import create_trait
from berth.store.usages import fill_project_usages
from tests.worlds import (
    World,
    aggregate_uuid,
    consumer_uuid,
    inventory_fields,
    provider_uuid,
)


def build_in_store(fleet: World, db: Database) -> None:
    """Make a world in a database that holds no provider yet, and none of its names."""
    for name in fleet.custom_classes:
        ensure_resource_class(db, name)
    for name in fleet.custom_traits:
        create_trait(db, name)
    with db.engine.begin() as connection:
        _insert_providers(fleet, connection)
    fill_project_usages(db)
    for aggregate, labels in fleet.labels.items():
        replace_labels(db, AggregateUUID(aggregate_uuid(aggregate)), labels)
    for name, request in fleet.flavors.items():
        put_flavor(db, FlavorName(name), Flavor(json.dumps(request)))
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


def _insert_providers(fleet: World, connection: Connection) -> None:
    classes, traits = (_ids(t, connection) for t in (tables.resource_classes, tables.traits))
    ids: dict[str, int] = {}
    roots: dict[str, int] = {}
    aggregates: dict[str, int] = {}
    rows: dict[Table, list[dict[str, Any]]] = {}

    def add(table: Table, **values: Any) -> None:
        rows.setdefault(table, []).append(values)

    if any(each.used for each in fleet.providers):
        add(tables.projects, id=1, external_id="worlds")
        add(tables.users, id=1, external_id="tests")
        add(tables.consumer_types, id=1, name="INSTANCE")
    for number, each in enumerate(fleet.providers, 1):
        ids[each.name] = number
        roots[each.name] = number if each.parent is None else roots[each.parent]
        for aggregate in sorted(each.aggregates):
            if aggregate not in aggregates:
                aggregates[aggregate] = len(aggregates) + 1
                uuid = aggregate_uuid(aggregate)
                add(tables.placement_aggregates, id=aggregates[aggregate], uuid=uuid)
            pair = {"resource_provider_id": number, "aggregate_id": aggregates[aggregate]}
            add(tables.resource_provider_aggregates, **pair)
        add(
            tables.resource_providers,
            id=number,
            uuid=provider_uuid(each.name),
            name=each.name,
            generation=1,
            root_provider_id=roots[each.name],
            parent_provider_id=each.parent and ids[each.parent],
        )
        for trait in each.traits:
            add(
                tables.resource_provider_traits,
                resource_provider_id=number,
                trait_id=traits[trait],
            )
        consumer = consumer_uuid(each.name)
        if each.used:
            who = {"project_id": 1, "user_id": 1, "consumer_type_id": 1, "generation": 1}
            add(tables.consumers, uuid=consumer, **who)
        for name, stock in each.stocks.items():
            of = {"resource_provider_id": number, "resource_class_id": classes[name]}
            add(tables.inventories, **of, **inventory_fields(stock))
            add(tables.berth_usages, **of, used=stock.used, generation=1)
            if stock.used:
                add(tables.allocations, **of, consumer_id=consumer, used=stock.used)
    for table in tables.metadata.sorted_tables:
        if table in rows:
            connection.execute(insert(table), rows[table])


def _ids(table: Table, connection: Connection) -> dict[str, int]:
    rows = connection.execute(select(table.c.name, table.c.id))
    return {row.name: row.id for row in rows}
