# SPDX-License-Identifier: Apache-2.0
"""All providers of a service, and who holds of them, as they are read one after another.

A provider costs one request. A consumer costs one too, and there are many more of them, so only
those are asked for of whom something has to be known that their providers do not tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from berth.hosts.errors import NotThere
from berth.hosts.provider_tree import SHARING_TRAIT
from berth.hosts.service import Service, named_path, provider_path, with_all_below

#: The first microversion that says of what type consumers are.
VERSION: Final = "1.38"

#: The last one that knows of no types, and leaves alone the one that a consumer has.
UNTYPED_VERSION: Final = "1.37"

#: How the type of consumers that were written without one is shown: nova's, all of them.
UNTYPED: Final = "unknown"

#: Consumers by uuid, as the service shows them.
Consumers = Mapping[str, Mapping[str, Any]]

#: By provider and resource class: what is held of it, or what it has.
Amounts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class World:
    """What a service holds."""

    #: By uuid, as the service lists them.
    providers: Mapping[str, Mapping[str, Any]]
    #: Providers that share with others.
    sharing: frozenset[str]
    #: By consumer, the providers that it holds something of.
    held: Mapping[str, frozenset[str]]

    def root_of(self, provider: str) -> str:
        """The root of the tree that a provider stands in."""
        root: str = self.providers[provider]["root_provider_uuid"]
        return root

    def name_of(self, provider: str) -> str:
        """The name of a provider."""
        name: str = self.providers[provider]["name"]
        return name

    def hosts(self) -> list[str]:
        """The roots, in the order of their uuids; sharing ones are no hosts."""
        return sorted(
            uuid
            for uuid, provider in self.providers.items()
            if uuid == provider["root_provider_uuid"] and uuid not in self.sharing
        )

    def tree_of(self, root: str) -> list[str]:
        """The providers of a tree, parents before children."""
        return with_all_below(root, self.providers.values())

    def hosts_of(self, consumer: str) -> set[str]:
        """The roots of the trees that a consumer holds something of; sharing ones are no hosts."""
        return {
            self.root_of(provider)
            for provider in self.held[consumer]
            if provider in self.providers and provider not in self.sharing
        }


def read_world(service: Service) -> World:
    """Read the providers, and who holds of each; what goes meanwhile is left out."""
    listed = service.list_providers(version=VERSION)
    sharing = service.list_providers(version=VERSION, required=SHARING_TRAIT)
    held: dict[str, set[str]] = {}
    for provider in listed:
        try:
            found = service.get(provider_path(provider["uuid"], "allocations"))["allocations"]
        except NotThere:
            continue
        for consumer in found:
            held.setdefault(consumer, set()).add(provider["uuid"])
    return World(
        providers={provider["uuid"]: provider for provider in listed},
        sharing=frozenset(provider["uuid"] for provider in sharing),
        held={consumer: frozenset(providers) for consumer, providers in held.items()},
    )


def read_inventories(service: Service, world: World, hosts: Iterable[str]) -> Amounts:
    """The totals of the inventories in the trees of some hosts; of what goes meanwhile, nothing."""
    found: dict[str, dict[str, int]] = {}
    for provider in (one for host in hosts for one in world.tree_of(host)):
        try:
            body = service.get(provider_path(provider, "inventories"))["inventories"]
        except NotThere:
            continue
        found[provider] = {name: inventory["total"] for name, inventory in body.items()}
    return found


def read_consumers(service: Service, consumers: Iterable[str]) -> Consumers:
    """What some consumers hold by now; those that hold nothing any more are left out."""
    bodies = {
        consumer: service.get(named_path("/allocations", consumer), version=VERSION)
        for consumer in consumers
    }
    return {consumer: body for consumer, body in bodies.items() if body["allocations"]}
