# SPDX-License-Identifier: Apache-2.0
"""A small database with everything that a copy could lose, and functions that read it.

Rows are written and read with plain SQLAlchemy, independently of the copy.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Table, insert, select, update

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
    def add(table: Table, *rows: dict[str, Any], **of_each: Any) -> None:
        tx.connection.execute(insert(table), [{**row, **of_each} for row in rows])

    times = {"created_at": CREATED, "updated_at": UPDATED}
    numbers, holders = range(1, PROVIDERS + 1), range(1, 6)
    add(resource_classes, {"id": 0, "name": "VCPU"}, {"id": 10_000, "name": "CUSTOM_A"}, **times)
    add(traits, *({"id": n, "name": f"CUSTOM_T{n}"} for n in (1, 5, 6)), created_at=CREATED)
    add(projects, *({"id": n, "external_id": f"project {n}"} for n in (1, 2, 9)))
    add(users, {"id": 4, "external_id": "ü" * 255}, **times)
    add(consumer_types, {"id": 3, "name": "INSTANCE"}, **times)
    add(placement_aggregates, *({"id": n, "uuid": aggregate(n)} for n in (2, 3)), **times)
    zone, named = '{"zone": "z\\\\1"}', '{"name": "Zürich"}'
    add(
        berth_labels,  # one of them has no provider in it
        {"id": 7, "aggregate_uuid": aggregate(9), "name": None, "labels": zone},
        {"id": 8, "aggregate_uuid": aggregate(2), "name": "Zürich", "labels": named},
    )
    add(
        berth_flavors,
        {"id": 3, "name": "m1.large", "expose": True},
        {"id": 1000, "name": "M1.large", "expose": False},
        request='{"query": "resources=VCPU:\\u0031"}',
        description="für \\ alle",
    )
    add(
        berth_placements,
        {"id": 2**30, "consumer_uuid": consumer(1), "host_uuid": provider(1)},
        digest="a" * 64,
        allocations_digest="b" * 64,
        mappings='{"_ü": []}',
        request='{"call": "ü", "request": {}}',
        created_at=CREATED,
    )

    for n in numbers:
        row = {"id": n, "uuid": provider(n), "generation": n, "root_provider_id": n}
        name = NAMES[n - 1] if n <= len(NAMES) else f"p{n}"
        add(resource_providers, row, name=name, created_at=CREATED + timedelta(seconds=n))
    for child, parent in ((MOVED, NEW_PARENT), (BELOW_MOVED, MOVED)):
        tx.connection.execute(
            update(resource_providers)
            .where(resource_providers.c.id == child)
            .values(root_provider_id=NEW_PARENT, parent_provider_id=parent)
        )
    add(
        inventories,
        *(
            {"resource_provider_id": n, "resource_class_id": c, "allocation_ratio": RATIOS[n % 3]}
            for n in numbers
            for c in (0, 10_000)
        ),
        total=2**31 - 1,
        reserved=0,
        min_unit=1,
        max_unit=2**31 - 1,
        step_size=1,
    )
    for n in numbers:
        add(resource_provider_traits, *({"trait_id": t} for t in (1, 6)), resource_provider_id=n)
        of_both = ({"aggregate_id": a} for a in (2, 3))
        add(resource_provider_aggregates, *of_both, resource_provider_id=n)
    add(
        consumers,
        *(
            {
                "id": n * 10,
                "uuid": consumer(n),
                "generation": n,
                "consumer_type_id": 3 if n % 2 else None,
            }
            for n in holders
        ),
        project_id=1,
        user_id=4,
        created_at=CREATED,
    )
    for n in holders:
        places = ({"id": 1000 * n + at, "resource_provider_id": at} for at in (1, 2, 5))
        holder = {"consumer_id": consumer(n), "resource_class_id": 0, "used": n}
        add(allocations, *places, **holder, created_at=CREATED)
    add(
        berth_consumer_names,
        {"id": 2, "name": "job-17", "consumer_uuid": consumer(1)},
        {"id": 9, "name": "Zürich \\ 'N", "consumer_uuid": consumer(3)},
        project_id=1,
    )
    add(
        berth_drains,
        {"id": 1, "name": "rack", "generation": 1, "effect": "exclude"},
        {"id": 1000, "name": "Rack", "generation": 1000, "effect": "none"},
        reason="für \\ alle",
        created_at=CREATED,
        created_by="",
    )
    for drain in (1, 1000):
        drained = ({"provider_id": n, "provider_uuid": provider(n)} for n in (5, 1, 2))
        add(berth_drained, *drained, drain_id=drain)
    for number, n in ((3, 3), (4, 5)):
        lease = {"id": number, "renewals": number, "expires_at": UPDATED}
        of: dict[str, Any] = {
            "consumer_uuid": consumer(n),
            "consumer_id": n * 10,
            "consumer_generation": n,
        }
        add(berth_leases, {**lease, **of}, consumer_created_at=CREATED)


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


def as_mysql_keeps(rows: Rows) -> Rows:
    """The same with times in whole seconds, and ratios in single precision."""

    def kept(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.replace(microsecond=0)
        return float(f"{value:.6g}") if isinstance(value, float) else value

    return {
        name: sorted((tuple(map(kept, row)) for row in table), key=repr)
        for name, table in rows.items()
    }
