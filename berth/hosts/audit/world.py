# SPDX-License-Identifier: Apache-2.0
"""All providers of a service and their consumers, as a series of requests reads them.

A provider costs one request. A consumer costs one too, and there are far more consumers, so only
those are read about which the providers do not say enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from berth.hosts.errors import NotThere
from berth.hosts.provider_tree import SHARING_TRAIT
from berth.hosts.service import Service, named_path, provider_path, with_all_below

#: The first microversion that shows consumer types.
VERSION: Final = "1.38"

#: The last microversion without consumer types; a write keeps the type that a consumer has.
UNTYPED_VERSION: Final = "1.37"

#: The type that the service shows for consumers that were written without one, such as all of
#: nova's.
UNTYPED: Final = "unknown"

#: Consumers by UUID, as the service shows them.
Consumers = Mapping[str, Mapping[str, Any]]

#: By provider and resource class: the allocated amount, or the total.
Amounts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class World:
    """The state of a service."""

    #: By UUID, as the service lists them.
    providers: Mapping[str, Mapping[str, Any]]
    #: The sharing providers.
    sharing: frozenset[str]
    #: By consumer, the providers on which it has allocations.
    providers_of: Mapping[str, frozenset[str]]

    def root_of(self, provider: str) -> str:
        """The root of a provider's tree."""
        root: str = self.providers[provider]["root_provider_uuid"]
        return root

    def name_of(self, provider: str) -> str:
        """The name of a provider."""
        name: str = self.providers[provider]["name"]
        return name

    def hosts(self) -> list[str]:
        """The roots, in the order of their UUIDs; sharing providers are not hosts."""
        return sorted(
            uuid
            for uuid, provider in self.providers.items()
            if uuid == provider["root_provider_uuid"] and uuid not in self.sharing
        )

    def tree_of(self, root: str) -> list[str]:
        """The providers of a tree, parents before children."""
        return with_all_below(root, self.providers.values())

    def hosts_of(self, consumer: str) -> set[str]:
        """The roots of the trees in which a consumer has allocations; sharing providers are not
        hosts.
        """
        return {
            self.root_of(provider)
            for provider in self.providers_of[consumer]
            if provider in self.providers and provider not in self.sharing
        }


def read_world(service: Service) -> World:
    """Read the providers and their consumers; a provider that is deleted meanwhile is left out."""
    listed = service.list_providers(version=VERSION)
    sharing = service.list_providers(version=VERSION, required=SHARING_TRAIT)
    providers_of: dict[str, set[str]] = {}
    for provider in listed:
        try:
            allocations = service.get(provider_path(provider["uuid"], "allocations"))["allocations"]
        except NotThere:
            continue
        for consumer in allocations:
            providers_of.setdefault(consumer, set()).add(provider["uuid"])
    return World(
        providers={provider["uuid"]: provider for provider in listed},
        sharing=frozenset(provider["uuid"] for provider in sharing),
        providers_of={
            consumer: frozenset(providers) for consumer, providers in providers_of.items()
        },
    )


def read_inventories(service: Service, world: World, hosts: Iterable[str]) -> Amounts:
    """The total inventories in the trees of some hosts; a provider that is deleted meanwhile is
    left out.
    """
    inventories: dict[str, dict[str, int]] = {}
    for provider in (uuid for host in hosts for uuid in world.tree_of(host)):
        try:
            body = service.get(provider_path(provider, "inventories"))["inventories"]
        except NotThere:
            continue
        inventories[provider] = {name: inventory["total"] for name, inventory in body.items()}
    return inventories


def read_consumers(service: Service, consumers: Iterable[str]) -> Consumers:
    """The current allocations of some consumers; those without any are left out."""
    bodies = {
        consumer: service.get(named_path("/allocations", consumer), version=VERSION)
        for consumer in consumers
    }
    return {consumer: body for consumer, body in bodies.items() if body["allocations"]}
