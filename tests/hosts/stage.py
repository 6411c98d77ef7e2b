# SPDX-License-Identifier: Apache-2.0
"""A service with a drawn world, and a drawing of its current state.

Providers are drawn as in `tests/worlds.py`; the consumers follow below them, one a line:

    cn1    VCPU=16  VGPU=8  COMPUTE_NODE
      numa0  MEMORY_MB=1024
    i1: cn1 VCPU=2 VGPU=1, numa0 MEMORY_MB=512

`Stage.picture` draws the service's state in the same form, sorted, so that a test can compare two
drawings.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid5

from berth.hosts.service import Transport
from tests.hosts.drivers import OWNER
from tests.worlds import (
    Stock,
    World,
    WorldProvider,
    aggregate_uuid,
    inventory_fields,
    provider_uuid,
    standard_traits,
    world,
)

VERSION = "1.38"
WITHOUT_TYPES = "1.37"

_CONSUMERS = UUID("0b0f6f4e-7c2e-4c8e-9a51-5c7a4a3a1e10")


def consumer_uuid(name: str) -> str:
    """The uuid of the consumer with this name."""
    return str(uuid5(_CONSUMERS, name))


class Stage:
    """A service, reached through a transport of the report client."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._consumers: dict[str, str] = {}
        self._aggregates: dict[str, str] = {}

    def show(self, drawing: str) -> None:
        """Create a drawn world of providers and consumers."""
        lines = [line for line in drawing.splitlines() if line.strip()]
        fleet = world("\n".join(line for line in lines if not _is_consumer(line)))
        for name in fleet.custom_classes:
            self._send("PUT", f"/resource_classes/{name}")
        for name in {*fleet.custom_traits, OWNER}:
            self._send("PUT", f"/traits/{name}")
        for provider in fleet.providers:
            self._make(provider)
        for line in lines:
            if _is_consumer(line):
                consumer, _, held = line.strip().partition(": ")
                self.hold(consumer, held)

    def name_consumers(self, *names: str) -> None:
        """Show consumers with these names in pictures, whoever creates them."""
        self._consumers |= {consumer_uuid(name): name for name in names}

    def name_aggregates(self, *names: str) -> None:
        """Show aggregates with these names in pictures, whoever creates them."""
        self._aggregates |= {aggregate_uuid(name): name for name in names}

    def hold(self, consumer: str, held: str, *, kind: str | None = "INSTANCE") -> None:
        """Replace a consumer's allocations; `""` for none.

        Args:
            kind: its consumer type; None for none, as nova writes.
        """
        uuid = consumer_uuid(consumer)
        self.name_consumers(consumer)
        before = self._get(f"/allocations/{uuid}")
        names = {data["name"]: data["uuid"] for data in self._providers()}
        allocations = {}
        for part in filter(None, held.split(", ")):
            provider, *amounts = part.split()
            resources = {name: int(amount) for name, amount in (a.split("=") for a in amounts)}
            allocations[names[provider]] = {"resources": resources}
        self._send(
            "PUT",
            f"/allocations/{uuid}",
            {
                "allocations": allocations,
                "project_id": "web",
                "user_id": "alice",
                "consumer_generation": before.get("consumer_generation"),
                **({"consumer_type": kind} if kind else {}),
            },
            version=VERSION if kind else WITHOUT_TYPES,
        )

    def release(self, consumer: str) -> None:
        """Delete all allocations of a consumer; no provider's generation changes."""
        self._send("DELETE", f"/allocations/{consumer_uuid(consumer)}")

    def trait(self, provider: str, name: str) -> None:
        """Add a trait to a provider, as an operator would."""
        if name not in standard_traits():
            self._send("PUT", f"/traits/{name}")
        path = f"/resource_providers/{self.uuid_of(provider)}/traits"
        body = self._get(path)
        self._send("PUT", path, {**body, "traits": [*body["traits"], name]})

    def stock(self, provider: str, resource_class: str, **fields: int) -> None:
        """Create a provider's inventory of a class, or change some fields of an existing one."""
        path = f"/resource_providers/{self.uuid_of(provider)}/inventories"
        body = self._get(path)
        self._send(
            "PUT", path, {**body, "inventories": body["inventories"] | {resource_class: fields}}
        )

    def reserve(self, provider: str, resource_class: str, amount: int) -> None:
        """Set what is reserved of an inventory, as an operator would."""
        path = f"/resource_providers/{self.uuid_of(provider)}/inventories/{resource_class}"
        self._send("PUT", path, {**self._get(path), "reserved": amount})

    def remove(self, provider: str) -> None:
        """Delete a provider, as another client would."""
        self._send("DELETE", f"/resource_providers/{self.uuid_of(provider)}")

    def make(self, name: str, parent: str) -> None:
        """Create a provider below another, as another agent would."""
        body = {"name": name, "uuid": provider_uuid(name)}
        body["parent_provider_uuid"] = self.uuid_of(parent)
        self._send("POST", "/resource_providers", body)

    def uuid_of(self, name: str) -> str:
        """The uuid of the provider with a name."""
        return str(self._listed(name)["uuid"])

    def generation_of(self, name: str) -> int:
        """The generation of the provider with a name."""
        return int(self._listed(name)["generation"])

    def type_of(self, consumer: str) -> str:
        """The type of a consumer with allocations, as the service shows it."""
        return str(self._get(f"/allocations/{consumer_uuid(consumer)}")["consumer_type"])

    def used(self, uuid: str) -> dict[str, int]:
        """A provider's usage by resource class."""
        usages: dict[str, int] = self._get(f"/resource_providers/{uuid}/usages")["usages"]
        return usages

    def picture(self) -> str:
        """A drawing of all providers and consumers in the service."""
        listed = sorted(self._providers(), key=lambda data: data["name"])
        names = {data["uuid"]: data["name"] for data in listed}
        allocations: dict[str, dict[str, dict[str, int]]] = {}
        providers = []
        for data in listed:
            path = f"/resource_providers/{data['uuid']}"
            inventories = self._get(f"{path}/inventories")["inventories"]
            providers.append(
                WorldProvider(
                    data["name"],
                    names.get(data["parent_provider_uuid"]),
                    {name: Stock(**inventories[name]) for name in sorted(inventories)},
                    frozenset(self._get(f"{path}/traits")["traits"]),
                    frozenset(
                        self._aggregates[aggregate]
                        for aggregate in self._get(f"{path}/aggregates")["aggregates"]
                    ),
                )
            )
            for consumer, body in self._get(f"{path}/allocations")["allocations"].items():
                allocations.setdefault(self._consumers[consumer], {})[data["name"]] = body[
                    "resources"
                ]
        consumers = [
            f"{consumer}: {_draw_held(allocations[consumer])}" for consumer in sorted(allocations)
        ]
        return "\n".join([str(World(tuple(providers))), *consumers])

    def clear(self) -> None:
        """Delete everything from the service."""
        listed = self._providers()
        for data in listed:
            path = f"/resource_providers/{data['uuid']}/allocations"
            for consumer in self._get(path)["allocations"]:
                self._send("DELETE", f"/allocations/{consumer}")
        while listed:
            parents = {data["parent_provider_uuid"] for data in listed}
            for data in listed:
                if data["uuid"] not in parents:
                    self._send("DELETE", f"/resource_providers/{data['uuid']}")
            listed = self._providers()

    def _make(self, provider: WorldProvider) -> None:
        uuid = provider_uuid(provider.name)
        body: dict[str, Any] = {"name": provider.name, "uuid": uuid}
        if provider.parent is not None:
            body["parent_provider_uuid"] = provider_uuid(provider.parent)
        self._send("POST", "/resource_providers", body)
        self.name_aggregates(*provider.aggregates)
        parts = {
            "inventories": {
                name: inventory_fields(stock) for name, stock in provider.stocks.items()
            },
            "traits": sorted(provider.traits),
            "aggregates": [aggregate_uuid(name) for name in sorted(provider.aggregates)],
        }
        generation = 0
        for part, value in parts.items():
            body = {part: value, "resource_provider_generation": generation}
            answer = self._send("PUT", f"/resource_providers/{uuid}/{part}", body).json()
            generation = answer["resource_provider_generation"]

    def _listed(self, name: str) -> dict[str, Any]:
        return next(data for data in self._providers() if data["name"] == name)

    def _providers(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self._get("/resource_providers")["resource_providers"]
        return listed

    def _get(self, path: str) -> dict[str, Any]:
        body: dict[str, Any] = self._send("GET", path).json()
        return body

    def _send(self, method: str, path: str, body: object = None, *, version: str = VERSION) -> Any:
        options = {} if body is None else {"json": body}
        answer = self.transport.request(
            path, method, microversion=version, raise_exc=False, **options
        )
        assert answer.status_code < 400, f"{method} {path}: {answer.text}"
        return answer


def drawn(drawing: str) -> str:
    """A drawing in the form of `Stage.picture`, for comparison."""
    lines = [line for line in drawing.splitlines() if line.strip()]
    fleet = world("\n".join(line for line in lines if not _is_consumer(line)))
    providers = [
        WorldProvider(
            provider.name,
            provider.parent,
            dict(sorted(provider.stocks.items())),
            provider.traits,
            provider.aggregates,
        )
        for provider in sorted(fleet.providers, key=lambda provider: provider.name)
    ]
    consumers = sorted(_sorted_line(line) for line in lines if _is_consumer(line))
    return "\n".join([str(World(tuple(providers))), *consumers])


def _is_consumer(line: str) -> bool:
    return line.split()[0].endswith(":")


def _sorted_line(line: str) -> str:
    consumer, _, held = line.strip().partition(": ")
    parts: dict[str, dict[str, int]] = {}
    for part in held.split(", "):
        provider, *amounts = part.split()
        parts[provider] = {name: int(n) for name, n in (amount.split("=") for amount in amounts)}
    return f"{consumer}: {_draw_held(parts)}"


def _draw_held(held: dict[str, dict[str, int]]) -> str:
    return ", ".join(
        " ".join([provider, *(f"{name}={held[provider][name]}" for name in sorted(held[provider]))])
        for provider in sorted(held)
    )
