# SPDX-License-Identifier: Apache-2.0
"""What is kept free of GPUs, within the `reserved` of their records: pure, no I/O.

The driver keeps some free for consumers of which could not be told on which GPU they are, as much
as a move left for them on the root. All else that is reserved is an operator's, who may drain a
GPU: the driver's part comes on top of that, up to the total, and only that part is taken away
again. What an operator writes in its place is wholly theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from berth.hosts.drivers.hosts.shares import share_out
from berth.hosts.provider_tree import ProviderData, ProviderTree


@dataclass(frozen=True, slots=True)
class MovedTo:
    """The provider of a GPU, after a move."""

    data: ProviderData
    #: What consumers hold of it.
    held: int
    #: What is to be kept free of it for those that cannot be told.
    kept_free: int
    #: Whether consumers hold more of it than before.
    has_gained: bool


def left_before(tree: ProviderTree, root: ProviderData) -> dict[str, int]:
    """By class, what an earlier move left on the root: all of it reserved, the others below it.

    An operator may have reserved all that stands on the root, too; before the first move.
    """
    below = {
        name
        for uuid in tree.get_provider_uuids(root.uuid)
        if uuid != root.uuid
        for name in tree.data(uuid).inventory
    }
    return {
        name: record["total"]
        for name, record in root.inventory.items()
        if name in below and record["total"] == record.get("reserved", 0)
    }


class KeptFree:
    """What a driver keeps free of its GPUs; they are named by their providers' uuids."""

    def __init__(self) -> None:
        #: What is to be kept free since the last move.
        self._wanted: dict[str, int] = {}
        #: By what may be reserved (the last write may have failed), how much of it was put there.
        self._put: dict[str, dict[int, int]] = {}

    def recall(self, gpus: Sequence[ProviderData], resource_class: str, left: int) -> None:
        """Find out what the driver before this one put there: as much as it left on the root.

        Where everything is reserved, and that is more, an operator has drained the GPU.
        """
        for gpu in gpus:
            record = gpu.inventory.get(resource_class, {"total": 0})
            reserved = record.get("reserved", 0)
            if gpu.uuid not in self._put:
                put = 0 if reserved == record["total"] > left else min(reserved, left)
                self._put[gpu.uuid] = {reserved: put}
                self._wanted[gpu.uuid] = put
            left -= min(self._wanted.get(gpu.uuid, 0), left)

    def move(self, gpus: Sequence[MovedTo], resource_class: str, reserved: int) -> dict[str, int]:
        """How much more (or, below 0, less) an operator keeps back of each GPU after a move.

        What was reserved on the root is shared by what is free of them. Where consumers have turned
        up on a GPU that is drained, they hold what was reserved: else they could not be moved.
        """
        room, changes = [], {}
        for gpu in gpus:
            self._wanted[gpu.data.uuid] = gpu.kept_free
            others = self._reserved_by_others(gpu.data, resource_class)
            total = gpu.data.inventory[resource_class]["total"]
            free = total - gpu.held - gpu.kept_free - others
            room.append(max(0, free))
            changes[gpu.data.uuid] = max(min(0, free), -others) if gpu.has_gained else 0
        if shared := min(reserved, sum(room)):
            for uuid, share in zip(changes, share_out(shared, room), strict=True):
                changes[uuid] += share
        return changes

    def write(
        self,
        tree: ProviderTree,
        gpu: ProviderData,
        resource_class: str,
        *,
        most: int,
        carried: int,
    ) -> int:
        """Reserve what is to be kept free of a GPU.

        Args:
            most: that is to be kept free of this GPU and those after it.
            carried: how much more or less an operator keeps back of it.

        Returns:
            How much of `most` is kept free of this one.
        """
        record = gpu.inventory[resource_class]
        reserved = record.get("reserved", 0)
        others = self._reserved_by_others(gpu, resource_class)
        kept = min(self._wanted.get(gpu.uuid, 0), most)
        becomes = min(others + carried + kept, record["total"])
        self._put[gpu.uuid] = {reserved: reserved - others, becomes: becomes - others - carried}
        if becomes != reserved:
            inventory = {**gpu.inventory, resource_class: {**record, "reserved": becomes}}
            tree.update_inventory(gpu.uuid, inventory)
        return kept

    def _reserved_by_others(self, gpu: ProviderData, resource_class: str) -> int:
        reserved: int = gpu.inventory[resource_class].get("reserved", 0)
        return reserved - self._put.get(gpu.uuid, {}).get(reserved, 0)
