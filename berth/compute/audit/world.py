# SPDX-License-Identifier: Apache-2.0
"""All providers and all allocations of a service, as they are read one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from berth.compute.errors import NotThere
from berth.compute.provider_tree import SHARING_TRAIT
from berth.compute.service import Service, named_path, provider_path, with_all_below

#: The first microversion that says of what type consumers are.
VERSION: Final = "1.38"


@dataclass(frozen=True, slots=True)
class World:
    """What a service holds."""

    #: By uuid, as the service lists them.
    providers: Mapping[str, Mapping[str, Any]]
    #: Providers that share with others.
    sharing: frozenset[str]
    #: By consumer, as the service shows them.
    allocations: Mapping[str, Mapping[str, Any]]

    def root_of(self, provider: str) -> str:
        """The root of the tree that a provider stands in."""
        root: str = self.providers[provider]["root_provider_uuid"]
        return root

    def name_of(self, provider: str) -> str:
        """The name of a provider."""
        name: str = self.providers[provider]["name"]
        return name

    def tree_of(self, root: str) -> list[str]:
        """The providers of a tree, parents before children."""
        return with_all_below(root, self.providers.values())

    def hosts_of(self, consumer: str) -> set[str]:
        """The roots of the trees that a consumer holds something of; sharing ones are no hosts."""
        held = self.allocations[consumer]["allocations"]
        return {
            self.root_of(provider)
            for provider in held
            if provider in self.providers and provider not in self.sharing
        }


def read_world(service: Service) -> World:
    """Read everything; what goes meanwhile is left out."""
    listed = service.get("/resource_providers", version=VERSION)["resource_providers"]
    sharing = service.get("/resource_providers", version=VERSION, required=SHARING_TRAIT)
    consumers: dict[str, None] = {}
    for provider in listed:
        try:
            held = service.get(provider_path(provider["uuid"], "allocations"))["allocations"]
        except NotThere:
            continue
        consumers.update(dict.fromkeys(held))
    bodies = {
        consumer: service.get(named_path("/allocations", consumer), version=VERSION)
        for consumer in consumers
    }
    return World(
        providers={provider["uuid"]: provider for provider in listed},
        sharing=frozenset(provider["uuid"] for provider in sharing["resource_providers"]),
        allocations={name: body for name, body in bodies.items() if body["allocations"]},
    )
