# SPDX-License-Identifier: Apache-2.0
"""Drivers for tests, which know a few devices and guests and nothing else.

The host with GPUs has its vGPUs on the root at first, and then on one child for each GPU (the first
document of the specification). The host with PCI functions has guests that used them before they
were in the service (scenario J).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from berth.hosts import HealingNeeded, ReshapeFailed, ReshapeNeeded
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree

OWNER = "CUSTOM_OWNER_BERTH"


@dataclass
class GPUHost:
    """A host with GPUs, each of which can be divided into vGPUs."""

    #: By address, how many vGPUs each GPU has.
    gpus: Mapping[str, int]
    #: By consumer, on which GPUs its vGPUs are.
    guests: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Create a child for each GPU, and move VGPU there if it is still on the root."""
        root = provider_tree.data(nodename)
        must_move = "VGPU" in root.inventory
        if must_move and allocations is None:
            raise ReshapeNeeded
        children = {}
        for address, count in self.gpus.items():
            name = f"{root.name}_pci_{address}"
            if not provider_tree.exists(name):
                provider_tree.new_child(name, root.uuid)
            provider_tree.update_inventory(name, {"VGPU": {"total": count, "max_unit": count}})
            provider_tree.add_traits(name, OWNER)
            children[address] = provider_tree.data(name).uuid
        if must_move and allocations is not None:
            self._move(allocations, root.uuid, children)
            left = {name: record for name, record in root.inventory.items() if name != "VGPU"}
            provider_tree.update_inventory(root.uuid, left)

    def _move(self, allocations: Allocations, root: str, children: Mapping[str, str]) -> None:
        for consumer, body in allocations.items():
            parts = body["allocations"]
            amount = parts.get(root, {"resources": {}})["resources"].pop("VGPU", 0)
            devices = Counter(self.guests.get(consumer, {}))
            if amount and not devices:
                raise ReshapeFailed(f"consumer {consumer} has no vGPU on this host")
            for address, count in devices.items():
                parts[children[address]] = {"resources": {"VGPU": count}}


@dataclass
class PCIHost:
    """A host with functions of one kind of PCI card, by the cards' addresses."""

    resource_class: str
    #: By card, how many functions it has.
    cards: Mapping[str, int]
    #: By consumer, how many functions of which cards its guest has.
    guests: Mapping[str, Mapping[str, int]]

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Create a child for each card; add the missing allocations of guests on a new card."""
        names = {address: f"{nodename}_{address}" for address in self.cards}
        if allocations is None and not all(map(provider_tree.exists, names.values())):
            raise HealingNeeded(
                {
                    consumer: {self.resource_class: sum(cards.values())}
                    for consumer, cards in self.guests.items()
                }
            )
        for address, name in names.items():
            if not provider_tree.exists(name):
                provider_tree.new_child(name, nodename)
            total = self.cards[address]
            provider_tree.update_inventory(name, {self.resource_class: {"total": total}})
            provider_tree.add_traits(name, "COMPUTE_MANAGED_PCI_DEVICE", "OWNER_NOVA")
        for consumer, body in (allocations or {}).items():
            for address, count in self.guests.get(consumer, {}).items():
                part = {"resources": {self.resource_class: count}}
                body["allocations"][provider_tree.data(names[address]).uuid] = part
