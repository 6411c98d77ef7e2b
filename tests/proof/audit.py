# SPDX-License-Identifier: Apache-2.0
"""The end of a proof: what the database holds, by plain SQL and by a fresh application over it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, create_engine, text

from berth import config, deploy
from berth.store import schema
from berth.store.database import open_database
from tests.client import Client
from tests.proof import answers, wire
from tests.proof.answers import Sights
from tests.proof.fleet import TRAITS
from tests.proof.history import (
    ConsumerSight,
    History,
    Operation,
    Outcome,
    ProviderSight,
)

#: What every worker and a fresh application are asked, to see whether their indexes agree.
QUERIES: Final = (
    "resources=VCPU:1",
    "resources=MEMORY_MB:1",
    "resources=VCPU:1,MEMORY_MB:4,DISK_GB:5",
    "resources1=VCPU:1&resources2=VCPU:1&group_policy=isolate",
    *(f"resources=VCPU:1&required={trait}" for trait in TRAITS),
    *(f"resources=VCPU:1&required=!{trait}" for trait in TRAITS),
    "resources=VCPU:1&member_of=in:"
    "b0000000-0000-4000-8000-000000000002,b0000000-0000-4000-8000-000000000003",
)

_OVER_CAPACITY: Final = text("""
    SELECT rp.uuid, rc.name, SUM(a.used), (i.total - i.reserved) * i.allocation_ratio
    FROM allocations a
    JOIN inventories i ON i.resource_provider_id = a.resource_provider_id
                      AND i.resource_class_id = a.resource_class_id
    JOIN resource_providers rp ON rp.id = a.resource_provider_id
    JOIN resource_classes rc ON rc.id = a.resource_class_id
    GROUP BY rp.uuid, rc.name, i.total, i.reserved, i.allocation_ratio
    HAVING SUM(a.used) > (i.total - i.reserved) * i.allocation_ratio
""")

_WRONG_SUMS: Final = text("""
    SELECT rp.uuid, u.resource_class_id, u.used, COALESCE(SUM(a.used), 0)
    FROM berth_usages u
    JOIN resource_providers rp ON rp.id = u.resource_provider_id
    LEFT JOIN allocations a ON a.resource_provider_id = u.resource_provider_id
                           AND a.resource_class_id = u.resource_class_id
    GROUP BY rp.uuid, u.resource_class_id, u.used
    HAVING u.used <> COALESCE(SUM(a.used), 0)
""")


def database_faults(url: str, history: History) -> list[str]:
    """What is wrong in the database, whatever any index says."""
    db = open_database(url)
    try:
        faults = schema.check(db)
    finally:
        db.dispose()
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            faults += _sum_faults(connection)
            faults += _capacity_faults(connection, history)
    finally:
        engine.dispose()
    return faults


def _sum_faults(connection: Connection) -> Iterator[str]:
    for provider, resource_class, used, counted in connection.execute(_WRONG_SUMS):
        yield f"{provider}, class {resource_class}: {used} remembered, {counted} allocated"


def _capacity_faults(connection: Connection, history: History) -> Iterator[str]:
    """More may be used than there is only where an inventory was written after the first claim."""
    written = {
        write.provider
        for one in history.operations
        if one.outcome is not Outcome.REFUSED
        for write in one.providers
        if write.capacities is not None
    }
    for provider, name, used, capacity in connection.execute(_OVER_CAPACITY):
        if provider not in written:
            yield f"{provider}: {used} of {capacity} {name} used, and it was never shrunk"


@contextmanager
def fresh_client(conf_path: Path) -> Iterator[Client]:
    """A client of an application in this process, just built over the database."""
    yield Client.of(deploy.load_application(config.load([str(conf_path)])))


def last_sight(client: Client, operations: Sequence[Operation]) -> Operation:
    """All that was ever written, as it is now: the last operation of a history."""
    begin = time.monotonic_ns()
    consumers = sorted({write.consumer for one in operations for write in one.consumers})
    providers = sorted({write.provider for one in operations for write in one.providers})
    sights: list[ConsumerSight | ProviderSight] = []
    for uuid in consumers:
        found = client.get(f"/allocations/{uuid}")
        sights += answers.of_allocations(uuid, found.json)
    for uuid in providers:
        sights += _provider_now(client, uuid)
    return Operation(
        "the end",
        "everything, from the database",
        begin,
        time.monotonic_ns(),
        Outcome.ACCEPTED,
        sights=tuple(sights),
    )


def _provider_now(client: Client, uuid: str) -> Sights:
    path = f"/resource_providers/{uuid}"
    found = client.get(path)
    if found.status == 404:
        return (ProviderSight(uuid, gone=True),)
    return (
        *answers.of_provider(uuid, found.json),
        *answers.of_inventories(uuid, client.get(f"{path}/inventories").json),
        *answers.of_usages(uuid, client.get(f"{path}/usages").json),
        *answers.of_traits(uuid, client.get(f"{path}/traits").json),
        *answers.of_aggregates(uuid, client.get(f"{path}/aggregates").json),
    )


def index_differences(connection: wire.Connection, client: Client) -> list[str]:
    """The queries to which a worker gives another answer than a fresh load does."""
    return [
        query
        for query in QUERIES
        if in_order(connection.ask("GET", f"/allocation_candidates?{query}").body)
        != in_order(client.get(f"/allocation_candidates?{query}").json)
    ]


def in_order(candidates: Any) -> Any:
    """Candidates in an order that does not depend on how an index came to be."""
    return {
        "allocation_requests": sorted(candidates["allocation_requests"], key=_text),
        "provider_summaries": {
            uuid: {**one, "traits": sorted(one["traits"])}
            for uuid, one in candidates["provider_summaries"].items()
        },
    }


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return str({key: _text(value[key]) for key in sorted(value)})
    return str(value)
