# SPDX-License-Identifier: Apache-2.0
"""vGPUs: on which GPU each consumer's are, and the room kept free for the others; pure, no I/O.

vGPU inventory on the host's root moves to one child for each GPU, and allocations move to the GPUs
of their devices. A consumer whose devices are unknown does not hold up the others: its allocation
stays on the root, and the same amount is kept free on the GPUs, since it may turn up on any of
them. An operator may say where it is.

The room is kept free within the `reserved` of the GPUs' records. Everything else in `reserved` is
an operator's, who may be draining a GPU: the driver's part is added to it, up to the total, and
only that part is removed again. Whatever an operator writes there later is the operator's.
Source: spec/compute-side.md 4.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from berth.hosts.drivers.host_model.devices import Device
from berth.hosts.drivers.host_model.facts import share_out
from berth.hosts.drivers.libvirt.xml_documents import Guest, Mdev
from berth.hosts.errors import ReshapeFailed
from berth.hosts.provider_tree import ProviderData, ProviderTree

_ASSUME: Final = "or set its GPU: assume: {{{consumer}: {device}}}"


@dataclass(frozen=True, slots=True)
class GPU:
    """A physical GPU, or another device that is divided into mediated devices of one type."""

    #: libvirt's name.
    device: str
    resource_class: str
    #: Devices that exist, and that could still be created.
    total: int


@dataclass(frozen=True, slots=True)
class Unattributed:
    """A consumer whose GPU the host does not know."""

    consumer: str
    resource_class: str
    amount: int
    why: str
    what_to_do: str

    def __str__(self) -> str:
        return (
            f"consumer {self.consumer} holds {self.amount} {self.resource_class}, but its GPU "
            f"is unknown: {self.why}; {self.what_to_do}"
        )


@dataclass(frozen=True, slots=True)
class Placing:
    """The devices of the consumers of one resource class."""

    #: The amount by consumer and device.
    parts: Mapping[str, Mapping[str, int]]
    unattributed: tuple[Unattributed, ...]
    #: The amount to keep free for unattributed consumers, by device.
    kept_free: Mapping[str, int]


def gpus_of(devices: Iterable[Device]) -> list[GPU]:
    """The devices that are divided into mediated ones."""
    return [
        GPU(device.name, name, count)
        for device in devices
        if device.is_mediated
        for name, count in device.counts.items()
    ]


def devices_by_guest(guests: Iterable[Guest], mdevs: Iterable[Mdev]) -> dict[str, Counter[str]]:
    """The number of each guest's mediated devices, by GPU.

    A device belongs to one guest: to the running one, if a stopped one names it too.
    """
    parents = {mdev.uuid: mdev.parent for mdev in mdevs}
    by_guest: dict[str, Counter[str]] = {}
    for guest in sorted(guests, key=lambda guest: (not guest.is_running, guest.uuid)):
        by_guest[guest.uuid] = Counter(
            parents.pop(mdev) for mdev in dict.fromkeys(guest.mdevs) if mdev in parents
        )
    return by_guest


class DeviceLocator:
    """Finds out on which GPU consumers' vGPUs are.

    Args:
        guests, mdevs: libvirt's data.
        migrations: the instance of each migration that has allocations, by UUID.
        assume: the device on which an operator says that a consumer is. Used only if the host does
            not know, or contradicts the allocation.
    """

    def __init__(
        self,
        guests: Sequence[Guest],
        mdevs: Sequence[Mdev],
        *,
        migrations: Mapping[str, str],
        assume: Mapping[str, str],
    ) -> None:
        self._guests = {guest.uuid: guest for guest in guests}
        self._devices = devices_by_guest(guests, mdevs)
        self._migrations = migrations
        self._assume = assume

    def place(
        self,
        allocated: Mapping[str, int],
        gpus: Sequence[GPU],
        *,
        allocated_on_gpus: Mapping[str, Counter[str]],
        elsewhere: Set[str],
    ) -> Placing:
        """Find the devices of the consumers of a resource class.

        Args:
            allocated: the consumers' allocations on the root.
            gpus: the GPUs of the class; at least one.
            allocated_on_gpus: the consumers' allocations on GPUs.
            elsewhere: consumers with allocations of the class on other hosts.

        Raises:
            ReshapeFailed: guests have more devices than are allocated to them; an assumption names
                no GPU; or there is no room left for unattributed consumers.
        """
        resource_class = gpus[0].resource_class
        parts: dict[str, Mapping[str, int]] = {}
        unattributed: list[Unattributed] = []
        faults: list[str] = []
        claims = Counter(self._guest_of(consumer) for consumer in allocated)
        for consumer, amount in allocated.items():
            guest = self._guest_of(consumer)
            devices = self._devices_of(guest, gpus)
            for holder in {consumer, guest} & allocated_on_gpus.keys():
                devices -= allocated_on_gpus[holder]
            is_sure = claims[guest] == 1
            if is_sure and devices.total() == amount:
                parts[consumer] = devices
            elif consumer in self._assume:
                device = self._assume[consumer]
                parts[consumer] = {device: amount}
                if device not in {gpu.device for gpu in gpus}:
                    faults.append(_no_such_gpu(consumer, device, gpus))
            elif is_sure and devices.total() > amount:
                faults.append(_mismatch(consumer, amount, devices, gpus))
            else:
                why, remedy = self._why(guest, devices, consumer in elsewhere, not is_sure)
                last = _ASSUME.format(consumer=consumer, device=gpus[0].device)
                unattributed.append(
                    Unattributed(consumer, resource_class, amount, why, f"{remedy}, {last}")
                )
        if faults:
            raise ReshapeFailed("; ".join([*faults, *map(str, unattributed)]))
        taken: Counter[str] = Counter()
        for of_one in [*allocated_on_gpus.values(), *parts.values()]:
            taken.update(of_one)
        return Placing(parts, tuple(unattributed), _keep_free(unattributed, gpus, taken))

    def _guest_of(self, consumer: str) -> str:
        return self._migrations.get(consumer, consumer)

    def _devices_of(self, guest: str, gpus: Sequence[GPU]) -> Counter[str]:
        names = {gpu.device for gpu in gpus}
        devices = self._devices.get(guest, Counter())
        return Counter({device: count for device, count in devices.items() if device in names})

    def _why(
        self, guest: str, devices: Counter[str], is_elsewhere: bool, is_claimed_twice: bool
    ) -> tuple[str, str]:
        """Why a consumer's GPU is unknown, and what may help."""
        if is_claimed_twice:
            return (
                "an instance and its migration both have some on this host",
                "end the migration",
            )
        if devices:
            return f"its guest has only {_listed(devices)}", "correct its allocation"
        if guest in self._guests and not self._guests[guest].is_running:
            return "its guest is stopped and has no mediated device", "start the guest"
        if guest in self._guests:
            return "its guest runs without a mediated device", "restart it with its device"
        if is_elsewhere:
            return (
                "it has no guest here, and has some on another host too: it was evacuated, or is "
                "being migrated",
                "finish that, so that it is on one host",
            )
        return (
            "it has no guest here: it is a migration, or was deleted",
            "map the migration to its instance under `migrations`, delete the allocation of a "
            "deleted guest",
        )


def _keep_free(
    unattributed: Sequence[Unattributed], gpus: Sequence[GPU], used: Mapping[str, int]
) -> dict[str, int]:
    """Choose room for the unattributed consumers, on the first GPUs that have it."""
    missing = sum(consumer.amount for consumer in unattributed)
    kept: dict[str, int] = {}
    for gpu in gpus:
        if part := min(missing, max(0, gpu.total - used.get(gpu.device, 0))):
            kept[gpu.device] = part
            missing -= part
    if missing:
        raise ReshapeFailed(
            f"the GPUs have {sum(kept.values())} {gpus[0].resource_class} left, too few for those "
            f"that cannot be located: {'; '.join(map(str, unattributed))}"
        )
    return kept


def _mismatch(consumer: str, amount: int, devices: Counter[str], gpus: Sequence[GPU]) -> str:
    return (
        f"consumer {consumer} holds {amount} {gpus[0].resource_class}, and its guest has "
        f"{devices.total()}: {_listed(devices)}; correct its allocation, "
        f"{_ASSUME.format(consumer=consumer, device=min(devices))}"
    )


def _listed(devices: Counter[str]) -> str:
    return ", ".join(f"{count} on {device}" for device, count in sorted(devices.items()))


def _no_such_gpu(consumer: str, device: str, gpus: Sequence[GPU]) -> str:
    return (
        f"consumer {consumer} is assumed to be on {device}, but the GPUs with "
        f"{gpus[0].resource_class} are {', '.join(gpu.device for gpu in gpus)}"
    )


# --- Room that is kept free -----------------------------------------------------------------------


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
