# SPDX-License-Identifier: Apache-2.0
"""The state at the end of a proof, read with plain SQL and by a new application."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, text

from berth import config, deploy
from berth.store.engine.opening import open_database
from berth.upkeep import schema
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
from tests.servers.statements import connected, run

#: What every worker and a fresh application are asked, to see whether their indexes agree.
_QUERIES: Final = (
    "resources=VCPU:1",
    "resources=MEMORY_MB:1",
    "resources=VCPU:1,MEMORY_MB:4,DISK_GB:5",
    "resources1=VCPU:1&resources2=VCPU:1&group_policy=isolate",
    *(f"resources=VCPU:1&required={trait}" for trait in TRAITS),
    *(f"resources=VCPU:1&required=!{trait}" for trait in TRAITS),
    *(f"resources=VCPU:1&root_required={trait}" for trait in TRAITS),
)

#: Aggregates of which members are asked for.
_AGGREGATES_MAX: Final = 4

_STOCK: Final = text("""
    SELECT rp.uuid, rc.name, (i.total - i.reserved) * i.allocation_ratio
    FROM inventories i
    JOIN resource_providers rp ON rp.id = i.resource_provider_id
    JOIN resource_classes rc ON rc.id = i.resource_class_id
""")

_HELD: Final = text("""
    SELECT a.consumer_id, c.generation, rp.uuid, rc.name, a.used
    FROM allocations a
    LEFT JOIN consumers c ON c.uuid = a.consumer_id
    JOIN resource_providers rp ON rp.id = a.resource_provider_id
    JOIN resource_classes rc ON rc.id = a.resource_class_id
""")

#: (provider, resource class)
_Place = tuple[str, str]


def database_faults(url: str, history: History) -> list[str]:
    """The faults of the database at the end of a history: those that `berth db check` finds, and
    those that only the history tells."""
    db = open_database(url)
    try:
        faults = schema.check(db)
    finally:
        db.dispose()
    with connected(url) as connection:
        faults += _faults(connection, history)
    return faults


def _faults(connection: Connection, history: History) -> Iterator[str]:
    capacities: dict[_Place, float] = {
        (provider, name): capacity for provider, name, capacity in connection.execute(_STOCK)
    }
    used: Counter[_Place] = Counter()
    consumers: dict[str, tuple[int | None, set[tuple[str, str, int]]]] = {}
    for consumer, generation, provider, name, amount in connection.execute(_HELD):
        used[provider, name] += amount
        consumers.setdefault(consumer, (generation, set()))[1].add((provider, name, amount))
    yield from _capacity_faults(used, capacities, history)
    yield from _consumer_faults(consumers, history)


def _capacity_faults(
    used: Mapping[_Place, int], capacities: Mapping[_Place, float], history: History
) -> Iterator[str]:
    """Only inventories that were reduced may be over capacity, by no more than they once had."""
    most: dict[_Place, float] = {}
    written = [
        (write.provider, write.stock(frozenset()))
        for operation in history.operations
        if operation.outcome is not Outcome.REFUSED
        for write in operation.providers
    ]
    begun = [(provider, begin.capacities) for provider, begin in history.begin.items()]
    for provider, stock in (*begun, *written):
        for name, capacity in stock:
            most[provider, name] = max(most.get((provider, name), 0), capacity)
    for place, amount in used.items():
        if capacities.get(place, 0) < amount > most.get(place, 0):
            yield f"{place}: {amount} used, and there never was more than {most.get(place, 0)}"


def _consumer_faults(
    consumers: Mapping[str, tuple[int | None, set[tuple[str, str, int]]]], history: History
) -> Iterator[str]:
    """The database has exactly the consumers that exist at the end of the history."""
    shown = {
        sight.consumer: (sight.generation, set(sight.held))
        for sight in history.operations[-1].sights
        if isinstance(sight, ConsumerSight) and sight.held
    }
    for consumer in sorted(consumers.keys() | shown.keys()):
        if consumers.get(consumer) != shown.get(consumer):
            yield (
                f"{consumer}: the database has {consumers.get(consumer)}, "
                f"and {shown.get(consumer)} was shown"
            )


def commits_by_writer(url: str) -> list[int]:
    """The number of commits of each process that has written."""
    return [seq for (seq,) in run(url, "SELECT seq FROM berth_writer")]


@contextmanager
def fresh_client(conf_path: Path) -> Iterator[Client]:
    """A client of a new application in this process.

    It does not recount usages, which would repair the faults to be found.
    """
    yield Client.of(deploy.load_application(config.load([str(conf_path)]), recount=False))


def last_sight(client: Client, operations: Sequence[Operation]) -> Operation:
    """Read everything that was ever written: the last operation of a history."""
    begin = time.monotonic_ns()
    consumers = sorted(
        {write.consumer for operation in operations for write in operation.consumers}
    )
    providers = sorted(
        {write.provider for operation in operations for write in operation.providers}
    )
    sights: list[ConsumerSight | ProviderSight] = []
    for uuid in consumers:
        response = client.get(f"/allocations/{uuid}")
        sights += answers.of_allocations(uuid, response.json)
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
    response = client.get(path)
    if response.status == 404:
        return (ProviderSight(uuid, gone=True),)
    return (
        *answers.of_provider(uuid, response.json),
        *answers.of_inventories(uuid, client.get(f"{path}/inventories").json),
        *answers.of_usages(uuid, client.get(f"{path}/usages").json),
        *answers.of_traits(uuid, client.get(f"{path}/traits").json),
        *answers.of_aggregates(uuid, client.get(f"{path}/aggregates").json),
    )


def index_differences(connection: wire.Connection, client: Client) -> list[str]:
    """The queries to which a worker's response differs from that of a new index."""
    return [
        query
        for query in (*_QUERIES, *_of_aggregates(client))
        if in_order(connection.ask("GET", f"/allocation_candidates?{query}").body)
        != in_order(client.get(f"/allocation_candidates?{query}").json)
    ]


def _of_aggregates(client: Client) -> Iterator[str]:
    providers = client.get("/resource_providers").json["resource_providers"]
    members = [
        client.get(f"/resource_providers/{one['uuid']}/aggregates").json for one in providers
    ]
    some = sorted({uuid for each in members for uuid in each["aggregates"]})[:_AGGREGATES_MAX]
    for uuid in some:
        yield f"resources=VCPU:1&member_of={uuid}"
        yield f"resources=MEMORY_MB:1&member_of=!{uuid}"
    if len(some) > 1:
        yield f"resources=VCPU:1&member_of=in:{some[0]},{some[1]}"


def in_order(candidates: Any) -> Any:
    """Candidates in an order that does not depend on the history of an index."""
    return {
        "allocation_requests": sorted(candidates["allocation_requests"], key=_text),
        "provider_summaries": {
            uuid: {**summary, "traits": sorted(summary["traits"])}
            for uuid, summary in candidates["provider_summaries"].items()
        },
    }


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return str({key: _text(value[key]) for key in sorted(value)})
    return str(value)
