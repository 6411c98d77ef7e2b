# SPDX-License-Identifier: Apache-2.0
"""Room that the driver keeps free on GPUs, within the `reserved` of their records: pure, no I/O.

The driver reserves room for unattributed consumers, as much as a move left for them on the root.
Everything else in `reserved` is an operator's, who may be draining a GPU: the driver's part is
added
to it, up to the total, and only that part is removed again. Whatever an operator writes there later
is the operator's.
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
    #: The total of its allocations.
    allocated: int
    #: The amount to keep free on it for unattributed consumers.
    kept_free: int
    #: Whether consumers have more on it than before.
    has_gained: bool


def left_before(tree: ProviderTree, root: ProviderData) -> dict[str, int]:
    """What an earlier move left on the root, by class: all of it is reserved.

    Before the first move, an operator may have reserved everything on the root too.
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
    """The room that a driver keeps free on its GPUs, by the UUIDs of their providers."""

    def __init__(self) -> None:
        #: The amount to keep free since the last move.
        self._wanted: dict[str, int] = {}
        #: The driver's part of each possible value of `reserved`, since the last write may have
        #: failed.
        self._put: dict[str, dict[int, int]] = {}

    def recall(self, gpus: Sequence[ProviderData], resource_class: str, left: int) -> None:
        """Find out what the driver reserved before it was restarted: as much as it left on the
        root.

        If everything is reserved, and that is more, an operator has drained the GPU.
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
        """The change in what an operator has reserved of each GPU after a move.

        What was reserved on the root is distributed over their free capacity. Consumers that turn
        up on a
        drained GPU take what was reserved there, or they could not be moved.
        """
        room, changes = [], {}
        for gpu in gpus:
            self._wanted[gpu.data.uuid] = gpu.kept_free
            others = self._reserved_by_others(gpu.data, resource_class)
            total = gpu.data.inventory[resource_class]["total"]
            free = total - gpu.allocated - gpu.kept_free - others
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
        """Reserve the room to keep free on a GPU.

        Args:
            most: the amount to keep free on this GPU and the following ones.
            carried: the change in what an operator has reserved of it.

        Returns:
            The part of `most` that this GPU keeps free.
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
