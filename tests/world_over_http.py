# SPDX-License-Identifier: Apache-2.0
"""Drawn worlds made real on a server, through the API, and taken down again.

What is used is held by one consumer per provider, and is claimed while there is plenty of room, so
that a world may show more used than its capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.client import Client, Response
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


@contextmanager
def built_over_http(
    fleet: World, client: Client, *, after_each: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Make a world on a server that holds none of its names; afterwards nothing is left of it.

    Args:
        after_each: is called after each provider.
    """
    for name in fleet.custom_classes:
        _done(client.put(f"/resource_classes/{name}"))
    for name in fleet.custom_traits:
        _done(client.put(f"/traits/{name}"))
    for provider in fleet.providers:
        _send_provider(provider, client)
        after_each()
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


def changed_over_http(before: World, after: World, client: Client) -> None:
    """Make what providers have, and what is used of it, what is drawn now; the classes are as
    before.

    What does not change is not written: a claim alone reaches an index in another way than an
    inventory.
    """
    for old, new in zip(before.providers, after.providers, strict=True):
        roomy = old.used != new.used and _hold(new, client).status != 204
        if roomy:
            _stock(new, client, roomy=True)
            _done(_hold(new, client))
        if roomy or _without_use(old) != _without_use(new):
            _stock(new, client)


def _send_provider(provider: WorldProvider, client: Client) -> None:
    uuid = provider_uuid(provider.name)
    body: dict[str, Any] = {"name": provider.name, "uuid": uuid}
    if provider.parent is not None:
        body["parent_provider_uuid"] = provider_uuid(provider.parent)
    _done(client.post("/resource_providers", json=body))
    if provider.used:
        _stock(provider, client, roomy=True)
        _done(_hold(provider, client))
    _stock(provider, client)
    _put(provider, client, "aggregates", [*map(aggregate_uuid, sorted(provider.aggregates))])
    _put(provider, client, "traits", sorted(provider.traits))


def _stock(provider: WorldProvider, client: Client, *, roomy: bool = False) -> None:
    """Make a provider's inventories what is drawn, or have room for everything."""
    stocks = provider.stocks.items()
    fields = {name: {"total": MAX_INT} if roomy else inventory_fields(s) for name, s in stocks}
    _put(provider, client, "inventories", fields)


def _hold(provider: WorldProvider, client: Client) -> Response:
    """Let the consumer of a provider hold what is drawn as used."""
    path = f"/allocations/{consumer_uuid(provider.name)}"
    given = {provider_uuid(provider.name): {"resources": provider.used}}
    claim = {
        "allocations": given if provider.used else {},
        "project_id": "worlds",
        "user_id": "tests",
        "consumer_generation": client.get(path).json.get("consumer_generation"),
        "consumer_type": "INSTANCE",
    }
    return client.put(path, json=claim)


def _put(provider: WorldProvider, client: Client, what: str, value: Any) -> None:
    path = f"/resource_providers/{provider_uuid(provider.name)}"
    generation = client.get(path).json["generation"]
    changed = {what: value, "resource_provider_generation": generation}
    _done(client.put(f"{path}/{what}", json=changed))


def _without_use(provider: WorldProvider) -> dict[str, Stock]:
    return {name: replace(stock, used=0) for name, stock in provider.stocks.items()}


def _done(response: Response) -> None:
    assert response.status in (200, 201, 204), response.text
