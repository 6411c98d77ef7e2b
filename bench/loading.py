# SPDX-License-Identifier: Apache-2.0
"""Loads a fleet into a server through its API, with one client."""

from __future__ import annotations

from collections.abc import Callable

from bench.api import Json
from bench.client import Client
from bench.fleet import Fleet, Holding, Provider
from bench.server import RunningServer

#: Providers between two words about how far it is.
_REPORTED_EACH = 1000


def load(
    server: RunningServer, fleet: Fleet, say: Callable[[str], None] = lambda text: None
) -> None:
    """Put in every provider and every holding of a fleet.

    One client does it all: to several at once Placement on SQLite answers 500 ("locked").

    Raises:
        UnexpectedStatus: the server refused something.
    """
    with Client(server) as client:
        for count, provider in enumerate(fleet.providers(), 1):
            load_provider(client, provider)
            if count % _REPORTED_EACH == 0:
                say(f"{server.name}: {count:,} providers of {fleet.name}")
        for holding in fleet.holdings():
            load_holding(client, holding)


def load_provider(client: Client, provider: Provider) -> None:
    """Create a provider and put its inventories, aggregates and traits, in this order."""
    path = f"/resource_providers/{provider.uuid}"
    body: dict[str, Json] = {"name": provider.name, "uuid": provider.uuid}
    if provider.parent is not None:
        body["parent_provider_uuid"] = provider.parent
    client.demand("POST", "/resource_providers", body)
    parts: list[tuple[str, Json]] = [
        ("inventories", provider.inventories),
        ("aggregates", provider.aggregates),
        ("traits", provider.traits),
    ]
    generation = 0
    for part, value in parts:
        if value:
            wanted = {"resource_provider_generation": generation, part: value}
            client.demand("PUT", f"{path}/{part}", wanted)
            generation += 1


def load_holding(client: Client, holding: Holding) -> None:
    """Claim the allocations of a consumer."""
    client.demand("PUT", f"/allocations/{holding.consumer}", claim_body(holding))


def claim_body(holding: Holding) -> dict[str, Json]:
    """The body of `PUT /allocations` for a new consumer."""
    return {
        "allocations": {
            provider: {"resources": amounts} for provider, amounts in holding.allocations.items()
        },
        "project_id": holding.project,
        "user_id": "bench",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
