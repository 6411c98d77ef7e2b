# SPDX-License-Identifier: Apache-2.0
"""Drawn worlds made real on a server, through the API, and taken down again.

What is used is held by one consumer per provider, and is claimed while there is plenty of room, so
that a world may show more used than its capacity.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.client import Client, Response
from tests.worlds import (
    MAX_INT,
    World,
    WorldProvider,
    aggregate_uuid,
    consumer_uuid,
    inventory_fields,
    provider_uuid,
)


@contextmanager
def built_over_http(fleet: World, client: Client) -> Iterator[None]:
    """Make a world on a server that holds none of its names; afterwards nothing is left of it."""
    for name in fleet.custom_classes:
        _done(client.put(f"/resource_classes/{name}"))
    for name in fleet.custom_traits:
        _done(client.put(f"/traits/{name}"))
    for provider in fleet.providers:
        _send_provider(provider, client)
    for name, providers in fleet.drains.items():
        effect = "none" if name in fleet.announced else "exclude"
        body = {"providers": [*map(provider_uuid, providers)], "effect": effect}
        _done(client.put(f"/berth/v1/drains/{name}", json=body))
    try:
        yield
    finally:
        for name in fleet.drains:
            _done(client.delete(f"/berth/v1/drains/{name}"))
        for provider in reversed(fleet.providers):
            if provider.used:
                _done(client.delete(f"/allocations/{consumer_uuid(provider.name)}"))
            _done(client.delete(f"/resource_providers/{provider_uuid(provider.name)}"))
        for name in fleet.custom_traits:
            _done(client.delete(f"/traits/{name}"))
        for name in fleet.custom_classes:
            _done(client.delete(f"/resource_classes/{name}"))


def release_all(fleet: World, client: Client) -> None:
    """Take away what consumers hold of a world that stands on a server."""
    for name in fleet.by_name:
        path = f"/resource_providers/{provider_uuid(name)}/allocations"
        for consumer in client.get(path).json["allocations"]:
            _done(client.delete(f"/allocations/{consumer}"))


def _send_provider(provider: WorldProvider, client: Client) -> None:
    uuid = provider_uuid(provider.name)
    body: dict[str, Any] = {"name": provider.name, "uuid": uuid}
    if provider.parent is not None:
        body["parent_provider_uuid"] = provider_uuid(provider.parent)
    _done(client.post("/resource_providers", json=body))

    def put(what: str, value: Any) -> None:
        generation = client.get(f"/resource_providers/{uuid}").json["generation"]
        changed = {what: value, "resource_provider_generation": generation}
        _done(client.put(f"/resource_providers/{uuid}/{what}", json=changed))

    if provider.used:
        put("inventories", {name: {"total": MAX_INT} for name in provider.stocks})
        claim = {
            "allocations": {uuid: {"resources": provider.used}},
            "project_id": "worlds",
            "user_id": "tests",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        _done(client.put(f"/allocations/{consumer_uuid(provider.name)}", json=claim))
    put("inventories", {name: inventory_fields(stock) for name, stock in provider.stocks.items()})
    put("aggregates", [aggregate_uuid(name) for name in sorted(provider.aggregates)])
    put("traits", sorted(provider.traits))


def _done(response: Response) -> None:
    assert response.status in (200, 201, 204), response.text
