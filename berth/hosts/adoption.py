# SPDX-License-Identifier: Apache-2.0
"""A host whose name another provider has: who that is, and whether the host can go on as it.

So it is with a host that was installed anew, or whose state directory was lost: it comes under
another uuid. What the service has under its name may be the host as it was, or another host. Where
nobody holds anything of it, the host can take over its uuid, and nothing changes in the service.
Source: spec/compute-side.md 8, scenario L.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from berth.hosts.drivers.owned import OWNER_TRAIT
from berth.hosts.errors import ComputeError, NameTaken
from berth.hosts.service import Listed, Service, provider_path
from berth.hosts.tracker import Node
from berth.hosts.wording import some_of

LOG = logging.getLogger(__name__)

#: Names that a message has of many.
_NAMED_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Holder:
    """The provider that has a node's name."""

    uuid: str
    name: str
    #: Its parent's uuid; None for a root.
    parent: str | None
    #: How many providers stand in its tree.
    providers: int
    #: Who holds something of its tree.
    consumers: tuple[str, ...]
    #: Providers below it with inventory that no driver of berth has made.
    others: tuple[str, ...]
    #: Whether the service knows the node under its own uuid too.
    is_beside_node: bool

    @property
    def can_be_taken_over(self) -> bool:
        """Whether nobody would be surprised if the node went on under its uuid."""
        return not (self.parent or self.consumers or self.others or self.is_beside_node)


class NodeNameTaken(ComputeError):
    """A node cannot be reported: another provider has its name. Nothing was sent."""

    def __init__(self, node: Node, holder: Holder) -> None:
        super().__init__(
            f"The name {node.name} is taken: the service has it as provider {holder.uuid}"
            f"{_described(holder)}, and this host is {node.uuid}. {_remedy(holder)}"
        )
        self.node = node
        self.holder = holder


def take_over(
    service: Service,
    node: Node,
    taken: NameTaken,
    *,
    keep: Callable[[Node], None] | None,
) -> Node:
    """The node under which a host goes on whose name is taken.

    Args:
        taken: why it could not be reported.
        keep: keeps the uuid on this host; None: the operator has not allowed it.

    Raises:
        NodeNameTaken: it cannot go on; the message says what would be right.
        NameTaken: it was another name.
        BadConfiguration: the uuid cannot be kept.
    """
    holder = find_holder(service, node)
    if holder is None:
        raise taken
    if keep is None or not holder.can_be_taken_over:
        raise NodeNameTaken(node, holder) from taken
    adopted = Node(holder.uuid, node.name)
    keep(adopted)
    LOG.warning("%s goes on as %s, and not as %s", node.name, adopted.uuid, node.uuid)
    return adopted


def find_holder(service: Service, node: Node) -> Holder | None:
    """Who has the name of a node; None where it is the node itself, or nobody.

    Raises:
        NotThere, Refused, Unreachable: the service said so, or nothing.
    """
    named = service.list_providers(name=node.name)
    if not named or named[0]["uuid"] == node.uuid:
        return None
    (found,) = named
    tree = service.list_providers(in_tree=found["uuid"])
    consumers = {
        consumer
        for one in tree
        for consumer in service.get(provider_path(one["uuid"], "allocations"))["allocations"]
    }
    others = [one["name"] for one in tree if _is_of_others(service, one, found["uuid"])]
    return Holder(
        found["uuid"],
        found["name"],
        found["parent_provider_uuid"],
        len(tree),
        tuple(sorted(consumers)),
        tuple(sorted(others)),
        bool(service.list_providers(uuid=node.uuid)),
    )


def _is_of_others(service: Service, provider: Listed, root: str) -> bool:
    if provider["uuid"] == root:
        return False
    traits = service.get(provider_path(provider["uuid"], "traits"))["traits"]
    if any(trait.startswith(OWNER_TRAIT) for trait in traits):
        return False
    return bool(service.get(provider_path(provider["uuid"], "inventories"))["inventories"])


def _described(holder: Holder) -> str:
    if holder.parent is not None:
        return f", a child of {holder.parent}"
    return f", with {holder.providers - 1} below it" if holder.providers > 1 else ""


def _remedy(holder: Holder) -> str:
    other = "if it is another host, give this one another name"
    if holder.parent is not None:
        return "That is no host: give this one another name, or rename that provider"
    if holder.is_beside_node:
        return (
            "The service knows this host by its own uuid as well: give it another name, or "
            "delete the provider that it is not"
        )
    if holder.can_be_taken_over:
        return (
            f"Nobody holds anything of it. If it is this host, installed anew, `berth agent run "
            f"--adopt` goes on as {holder.uuid}; {other}"
        )
    why = (
        f"{some_of(holder.consumers, _NAMED_MAX)} hold something of it"
        if holder.consumers
        else f"{some_of(holder.others, _NAMED_MAX)} below it belong to others"
    )
    return (
        f"It is not taken over by itself, since {why}. If it is this host, installed anew, write "
        f"uuid: {holder.uuid} beside its name; {other}"
    )
