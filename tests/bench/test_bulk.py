# SPDX-License-Identifier: Apache-2.0
"""What the bulk loader writes is what the API would have left behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from bench.bulk import write_fleet
from bench.claims import lost_claims
from bench.client import Client
from bench.flat import EVERY_HOST, FILTERED
from bench.fleet import (
    CLAIM,
    LARGE_PROJECT,
    SMALL_PROJECT,
    Fleet,
    Holding,
    Provider,
    consumer_uuid,
    flat,
    full_flat,
    host_uuid,
    nested,
    sharing,
    wide,
)
from bench.loading import load, load_holding, load_provider
from bench.nested import NESTED
from bench.wide import wide_query
from berth.store.engine.opening import open_database
from berth.upkeep import schema
from tests.bench.serving import berth_at, berth_on

FLEETS = {
    "flat": (flat(9), FILTERED),
    "full flat": (full_flat(4, allocations_count=23, crowd=5), EVERY_HOST),
    "nested": (nested(3), NESTED),
    "sharing": (sharing(42), EVERY_HOST),
    "wide": (wide(2, 3), wide_query(2, "isolate")),
}


@pytest.mark.parametrize("name", FLEETS)
def test_a_fleet_in_bulk_is_the_fleet_loaded_through_the_api(name: str, tmp_path: Path) -> None:
    """Every answer about it is the same, generations included, and the database has no fault."""
    fleet, query = FLEETS[name]
    bulk, loaded = tmp_path / "bulk.sqlite", tmp_path / "loaded.sqlite"
    write_fleet(f"sqlite:///{bulk}", fleet)
    assert faults(f"sqlite:///{bulk}") == []
    with berth_on(loaded) as server:
        load(server, fleet)
        expected = list(answers(Client(server), fleet, query))
    with berth_on(bulk) as server:
        assert list(answers(Client(server), fleet, query)) == expected
    assert len(json.loads(expected[0])["allocation_requests"]) > 0


def test_a_fleet_in_bulk_can_be_written_to_on_every_engine(
    database_url: str, tmp_path: Path
) -> None:
    """Nothing is at fault, and what comes next is numbered after what is there."""
    write_fleet(database_url, full_flat(3, allocations_count=20, crowd=5))
    assert faults(database_url) == []
    with berth_at(database_url, tmp_path) as server, Client(server) as client:
        load_provider(client, Provider("0a0f1e0c-8f5f-4a5e-9c1c-000000000001", "one more"))
        holding = Holding(str(UUID(int=1, version=4)), "another", {host_uuid(0): CLAIM})
        load_holding(client, holding)
        held = client.demand("GET", f"/allocations/{holding.consumer}")
    assert json.loads(held)["allocations"][host_uuid(0)]["resources"] == CLAIM


def test_claims_that_are_not_on_record_are_counted(tmp_path: Path) -> None:
    """Those that are gone, and those that nobody was told of."""
    database = tmp_path / "berth.sqlite"
    write_fleet(f"sqlite:///{database}", full_flat(2, allocations_count=9, crowd=0))
    held = [consumer_uuid(number) for number in range(3)]
    with berth_on(database) as server, Client(server) as client:
        assert lost_claims(server, held, SMALL_PROJECT, unknown_max=0) == 0
        assert lost_claims(server, held[:2], SMALL_PROJECT, unknown_max=0) == 1
        assert lost_claims(server, held[:2], SMALL_PROJECT, unknown_max=1) == 0
        client.demand("DELETE", f"/allocations/{held[0]}")
        assert lost_claims(server, held, SMALL_PROJECT, unknown_max=0) == 1


def faults(url: str) -> list[str]:
    """What `berth db check` finds."""
    db = open_database(url)
    try:
        return schema.check(db)
    finally:
        db.dispose()


def answers(client: Client, fleet: Fleet, query: str) -> Iterator[bytes]:
    """Everything that can be asked about a fleet."""
    yield client.demand("GET", f"/allocation_candidates?{query}")
    yield client.demand("GET", "/resource_providers")
    for provider in fleet.providers():
        yield from about(client, provider)
    for holding in fleet.holdings():
        yield client.demand("GET", f"/allocations/{holding.consumer}")
    for project in (SMALL_PROJECT, LARGE_PROJECT):
        yield client.demand("GET", f"/usages?project_id={project}&consumer_type=all")


def about(client: Client, provider: Provider) -> Iterator[bytes]:
    """Everything that can be asked about one provider."""
    for part in ("", "/inventories", "/usages", "/aggregates", "/traits", "/allocations"):
        yield client.demand("GET", f"/resource_providers/{provider.uuid}{part}")
