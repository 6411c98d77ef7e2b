# SPDX-License-Identifier: Apache-2.0
"""A small database with everything that a copy could lose, and functions that read it.

Rows are written and read with plain SQLAlchemy, independently of the copy.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import insert, select, update

from berth.store.engine.database import Database
from berth.store.engine.tables import (
    allocations,
    berth_consumer_names,
    berth_drained,
    berth_drains,
    berth_flavors,
    berth_labels,
    berth_leases,
    berth_placements,
    consumer_types,
    consumers,
    inventories,
    metadata,
    placement_aggregates,
    projects,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
    users,
)
from berth.store.engine.transaction import Tx
from berth.upkeep import schema
from tests.store.fleet import aggregate, consumer, provider

#: The tables of what only berth keeps.
OWN = (
    berth_consumer_names,
    berth_drained,
    berth_drains,
    berth_flavors,
    berth_labels,
    berth_leases,
    berth_placements,
)

Rows = dict[str, list[tuple[Any, ...]]]

#: Of which the fraction is kept by most engines.
CREATED = datetime(2021, 3, 4, 5, 6, 7, 654321)
UPDATED = datetime(2026, 7, 8, 9, 10, 11)

#: A ratio that single precision holds, one that it shows as it was, and one that it does not.
RATIOS = (1.5, 0.9, 1.23456789)

#: Providers, of which the second has been put below the last, with the third below itself.
PROVIDERS = 12
MOVED, BELOW_MOVED, NEW_PARENT = 2, 3, PROVIDERS

#: In id order.
NAMES = ["", "quote ' and \\ backslash", "tab\tnewline\n", "Zürich", "\\N", "%s", "NULL"]


def fill(db: Database) -> None:
    """Create the schema and insert the rows; ids have gaps."""
    schema.upgrade(db)
    db.write(_write)


def _write(tx: Tx) -> None:
    times = {"created_at": CREATED, "updated_at": UPDATED}
    run = tx.connection.execute
    run(
        insert(resource_classes),
        [
            {"id": number, "name": name, **times}
            for number, name in ((0, "VCPU"), (10_000, "CUSTOM_A"))
        ],
    )
    run(
        insert(traits),
        [{"id": n, "name": f"CUSTOM_T{n}", "created_at": CREATED} for n in (1, 5, 6)],
    )
    run(insert(projects), [{"id": n, "external_id": f"project {n}"} for n in (1, 2, 9)])
    run(insert(users), [{"id": 4, "external_id": "ü" * 255, **times}])
    run(insert(consumer_types), [{"id": 3, "name": "INSTANCE", **times}])
    run(
        insert(placement_aggregates),
        [{"id": n, "uuid": aggregate(n), **times} for n in (2, 3)],
    )
    # One of them has no provider in it.
    run(
        insert(berth_labels),
        [
            {"id": 7, "aggregate_uuid": aggregate(9), "name": None, "labels": '{"zone": "z\\\\1"}'},
            {
                "id": 8,
                "aggregate_uuid": aggregate(2),
                "name": "Zürich",
                "labels": '{"name": "Zürich"}',
            },
        ],
    )
    run(
        insert(berth_flavors),
        [
            {
                "id": number,
                "name": name,
                "request": '{"query": "resources=VCPU:\\u0031"}',
                "expose": number == 3,
                "description": "für \\ alle",
            }
            for number, name in ((3, "m1.large"), (1000, "M1.large"))
        ],
    )
    run(
        insert(berth_placements),
        [
            {
                "id": 2**30,
                "consumer_uuid": consumer(1),
                "digest": "a" * 64,
                "allocations_digest": "b" * 64,
                "host_uuid": provider(1),
                "mappings": '{"_ü": []}',
                "request": '{"call": "ü", "request": {}}',
                "created_at": CREATED,
            }
        ],
    )
    _write_providers(tx)
    _write_consumers(tx)


def _write_providers(tx: Tx) -> None:
    numbers = range(1, PROVIDERS + 1)
    tx.connection.execute(
        insert(resource_providers),
        [
            {
                "id": n,
                "uuid": provider(n),
                "name": NAMES[n - 1] if n <= len(NAMES) else f"p{n}",
                "generation": n,
                "root_provider_id": n,
                "created_at": CREATED + timedelta(seconds=n),
            }
            for n in numbers
        ],
    )
    for child, parent in ((MOVED, NEW_PARENT), (BELOW_MOVED, MOVED)):
        tx.connection.execute(
            update(resource_providers)
            .where(resource_providers.c.id == child)
            .values(root_provider_id=NEW_PARENT, parent_provider_id=parent)
        )
    tx.connection.execute(
        insert(inventories),
        [
            {
                "resource_provider_id": n,
                "resource_class_id": c,
                "total": 2**31 - 1,
                "reserved": 0,
                "min_unit": 1,
                "max_unit": 2**31 - 1,
                "step_size": 1,
                "allocation_ratio": RATIOS[n % 3],
            }
            for n in numbers
            for c in (0, 10_000)
        ],
    )
    tx.connection.execute(
        insert(resource_provider_traits),
        [{"trait_id": t, "resource_provider_id": n} for n in numbers for t in (1, 6)],
    )
    tx.connection.execute(
        insert(resource_provider_aggregates),
        [{"resource_provider_id": n, "aggregate_id": a} for n in numbers for a in (2, 3)],
    )


def _write_consumers(tx: Tx) -> None:
    holders = range(1, 6)
    tx.connection.execute(
        insert(consumers),
        [
            {
                "id": n * 10,
                "uuid": consumer(n),
                "project_id": 1,
                "user_id": 4,
                "generation": n,
                "created_at": CREATED,
                "consumer_type_id": 3 if n % 2 else None,
            }
            for n in holders
        ],
    )
    tx.connection.execute(
        insert(allocations),
        [
            {
                "id": 1000 * n + place,
                "resource_provider_id": place,
                "consumer_id": consumer(n),
                "resource_class_id": 0,
                "used": n,
                "created_at": CREATED,
            }
            for n in holders
            for place in (1, 2, 5)
        ],
    )
    tx.connection.execute(
        insert(berth_consumer_names),
        [
            {"id": number, "project_id": 1, "name": name, "consumer_uuid": consumer(n)}
            for number, name, n in ((2, "job-17", 1), (9, "Zürich \\ 'N", 3))
        ],
    )
    _write_drains(tx)
    tx.connection.execute(
        insert(berth_leases),
        [
            {
                "id": number,
                "consumer_uuid": consumer(n),
                "consumer_id": n * 10,
                "consumer_created_at": CREATED,
                "consumer_generation": n,
                "expires_at": UPDATED,
                "renewals": number,
            }
            for number, n in ((3, 3), (4, 5))
        ],
    )


def _write_drains(tx: Tx) -> None:
    tx.connection.execute(
        insert(berth_drains),
        [
            {
                "id": number,
                "name": name,
                "generation": number,
                "effect": effect,
                "reason": "für \\ alle",
                "created_at": CREATED,
                "created_by": "",
            }
            for number, name, effect in ((1, "rack", "exclude"), (1000, "Rack", "none"))
        ],
    )
    tx.connection.execute(
        insert(berth_drained),
        [
            {"drain_id": drain, "provider_id": place, "provider_uuid": provider(place)}
            for drain in (1, 1000)
            for place in (5, 1, 2)
        ],
    )


def contents(db: Database) -> Rows:
    """Every row of the tables of OpenStack Placement, and of what only berth keeps."""
    with db.read() as tx:
        return {
            table.name: sorted(
                (tuple(row) for row in tx.connection.execute(select(table))), key=repr
            )
            for table in metadata.sorted_tables
            if not table.name.startswith("berth_") or table in OWN
        }


def whole_seconds(rows: Rows) -> Rows:
    """The same with times as MySQL stores them."""
    return {
        name: sorted(
            (
                tuple(
                    value.replace(microsecond=0) if isinstance(value, datetime) else value
                    for value in row
                )
                for row in table
            ),
            key=repr,
        )
        for name, table in rows.items()
    }


def single_precision(rows: Rows) -> Rows:
    """The same with ratios as MySQL returns them."""
    return {
        name: sorted(
            (
                tuple(float(f"{value:.6g}") if isinstance(value, float) else value for value in row)
                for row in table
            ),
            key=repr,
        )
        for name, table in rows.items()
    }
