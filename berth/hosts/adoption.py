# SPDX-License-Identifier: Apache-2.0
"""What to do when another provider has a host's name: find out which, and take it over if allowed.

This happens to a host that was reinstalled, or that lost its state directory: it reports under a
new UUID. The provider with its name may be the same host from before, or a different host. If that
provider has no allocations, the host can adopt its UUID, and nothing changes in the service.
Source: spec/compute-side.md 8, scenario L.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from berth.hosts.drivers.ownership import is_owned
from berth.hosts.errors import ComputeError, NameTaken, some_of
from berth.hosts.service import Service
from berth.hosts.tracker import Node

LOG = logging.getLogger(__name__)

#: How many names a message lists.
_NAMED_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Holder:
    """The provider that has a node's name."""

    uuid: str
    #: The UUID of its parent; None for a root.
    parent: str | None
    #: The number of providers in its tree.
    providers: int
    #: The consumers with allocations in its tree.
    consumers: tuple[str, ...]
    #: Providers below it whose inventory no driver of berth created.
    others: tuple[str, ...]
    #: Whether the service also has a provider with the node's own UUID.
    is_beside_node: bool

    @property
    def can_be_taken_over(self) -> bool:
        """Whether the node can adopt the UUID without affecting anything else."""
        return not (self.parent or self.consumers or self.others or self.is_beside_node)


class NodeNameTaken(ComputeError):
    """A node cannot be reported because another provider has its name. Nothing was sent."""

    def __init__(self, node: Node, holder: Holder) -> None:
        super().__init__(
            f"The name {node.name} is taken by provider {holder.uuid}"
            f"{_described(holder)}; this host is {node.uuid}. {_remedy(holder)}"
        )


def take_over(
    service: Service,
    node: Node,
    taken: NameTaken,
    *,
    keep: Callable[[Node], None] | None,
) -> Node:
    """Decide under which UUID a host continues when its name is taken.

    Args:
        taken: the error that reporting the node raised.
        keep: saves the UUID on this host; None if the operator does not allow adoption.

    Raises:
        NodeNameTaken: the host cannot adopt the UUID; the message says what to do.
        NameTaken: the conflict is about another name.
        BadConfiguration: the UUID cannot be saved.
    """
    holder = _find_holder(service, node)
    if holder is None:
        raise taken
    if keep is None or not holder.can_be_taken_over:
        raise NodeNameTaken(node, holder) from taken
    adopted = Node(holder.uuid, node.name)
    keep(adopted)
    LOG.warning("%s adopts UUID %s in place of %s", node.name, adopted.uuid, node.uuid)
    return adopted


def _find_holder(service: Service, node: Node) -> Holder | None:
    """Find the provider that has a node's name; None if that is the node itself, or there is none.

    Raises:
        NotThere, Refused, Unreachable: a request failed.
    """
    named = service.list_providers(name=node.name)
    if not named or named[0]["uuid"] == node.uuid:
        return None
    (holder,) = named
    tree = service.list_providers(in_tree=holder["uuid"])
    consumers = {
        consumer
        for provider in tree
        for consumer in service.get_part(provider["uuid"], "allocations")
    }
    others = [
        provider["name"]
        for provider in tree
        if provider["uuid"] != holder["uuid"] and _is_of_others(service, provider["uuid"])
    ]
    return Holder(
        holder["uuid"],
        holder["parent_provider_uuid"],
        len(tree),
        tuple(sorted(consumers)),
        tuple(sorted(others)),
        bool(service.list_providers(uuid=node.uuid)),
    )


def _is_of_others(service: Service, uuid: str) -> bool:
    if is_owned(service.get_part(uuid, "traits")):
        return False
    return bool(service.get_part(uuid, "inventories"))


def _described(holder: Holder) -> str:
    if holder.parent is not None:
        return f", a child of {holder.parent}"
    return f", with {holder.providers - 1} below it" if holder.providers > 1 else ""


def _remedy(holder: Holder) -> str:
    other = "if it is a different host, rename this one"
    if holder.parent is not None:
        return "That provider is not a host: rename this host, or that provider"
    if holder.is_beside_node:
        return (
            "The service also has a provider with this host's own UUID: rename this host, or "
            "delete the wrong provider"
        )
    if holder.can_be_taken_over:
        return (
            f"It has no allocations. If it is this host, reinstalled, `berth agent run "
            f"--adopt` takes it over as {holder.uuid}; {other}"
        )
    why = (
        f"{some_of(holder.consumers, _NAMED_MAX)} have allocations on it"
        if holder.consumers
        else f"{some_of(holder.others, _NAMED_MAX)} below it belong to other agents"
    )
    return (
        f"It is not taken over automatically, because {why}. If it is this host, reinstalled, "
        f"set uuid: {holder.uuid} next to its name; {other}"
    )
