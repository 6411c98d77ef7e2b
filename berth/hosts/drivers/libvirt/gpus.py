# SPDX-License-Identifier: Apache-2.0
"""Which consumer's vGPUs are on which GPU, as far as the host can tell: pure, no I/O.

Inventory of vGPUs that stood on the host's root moves to one child for each GPU, and what consumers
hold of it moves to where their devices are. A consumer whose devices cannot be told does not hold
up the others: what it holds stays on the root, and as much is kept free on the GPUs, since it may
turn up on any of them. An operator may say where it is.
Source: spec/compute-side.md 4.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from berth.hosts.drivers.hosts.devices import Device
from berth.hosts.drivers.libvirt.xml_documents import Guest, Mdev
from berth.hosts.errors import ReshapeFailed

_ASSUME: Final = "or say on which GPU it is: assume: {{{consumer}: {device}}}"


@dataclass(frozen=True, slots=True)
class GPU:
    """A physical GPU, or another device that is cut into mediated devices of one type."""

    #: As libvirt calls it.
    device: str
    resource_class: str
    #: Devices there are, and could still be made.
    total: int


@dataclass(frozen=True, slots=True)
class Untold:
    """A consumer of which the host cannot tell on which GPU it is."""

    consumer: str
    resource_class: str
    amount: int
    why: str
    what_to_do: str

    def __str__(self) -> str:
        return (
            f"consumer {self.consumer} holds {self.amount} {self.resource_class}, and it cannot be "
            f"told of which GPU: {self.why}; {self.what_to_do}"
        )


@dataclass(frozen=True, slots=True)
class Placing:
    """Where the consumers of one resource class are."""

    #: By consumer, how much is on which device.
    parts: Mapping[str, Mapping[str, int]]
    untold: tuple[Untold, ...]
    #: By device, how much of it must stay free for those that cannot be told.
    kept_free: Mapping[str, int]


def gpus_of(devices: Iterable[Device]) -> list[GPU]:
    """The GPUs among the devices that are cut into mediated ones."""
    return [
        GPU(device.name, name, count) for device in devices for name, count in device.counts.items()
    ]


def devices_by_guest(guests: Iterable[Guest], mdevs: Iterable[Mdev]) -> dict[str, Counter[str]]:
    """By guest, how many of its mediated devices are on which GPU.

    A device that exists is one guest's: of a running one, if a stopped one names it too.
    """
    parents = {mdev.uuid: mdev.parent for mdev in mdevs}
    found: dict[str, Counter[str]] = {}
    for guest in sorted(guests, key=lambda guest: (not guest.is_running, guest.uuid)):
        found[guest.uuid] = Counter(
            parents.pop(mdev) for mdev in dict.fromkeys(guest.mdevs) if mdev in parents
        )
    return found


class Teller:
    """Tells of consumers where their vGPUs are.

    Args:
        guests, mdevs: what libvirt knows.
        migrations: by the uuid of a migration that holds something, its instance's.
        assume: by consumer, the device on which an operator says it is. Counts only where the host
            cannot tell, or tells otherwise than what is held.
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
        held: Mapping[str, int],
        gpus: Sequence[GPU],
        *,
        held_of_gpus: Mapping[str, Counter[str]],
        elsewhere: Set[str],
    ) -> Placing:
        """Tell where the consumers of a resource class are.

        Args:
            held: by consumer, what it holds of the root.
            gpus: those of the class; at least one.
            held_of_gpus: by consumer, what it holds of which GPU already.
            elsewhere: consumers that hold some of the class on other hosts, too.

        Raises:
            ReshapeFailed: guests have more devices than is held; an assumption names no GPU; or
                there would be no room left for those that cannot be told.
        """
        resource_class = gpus[0].resource_class
        parts: dict[str, Mapping[str, int]] = {}
        untold: list[Untold] = []
        faults: list[str] = []
        claims = Counter(self._guest_of(consumer) for consumer in held)
        for consumer, amount in held.items():
            guest = self._guest_of(consumer)
            devices = self._devices_of(guest, gpus)
            for holder in {consumer, guest} & held_of_gpus.keys():
                devices -= held_of_gpus[holder]
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
                untold.append(Untold(consumer, resource_class, amount, why, f"{remedy}, {last}"))
        if faults:
            raise ReshapeFailed("; ".join([*faults, *map(str, untold)]))
        taken: Counter[str] = Counter()
        for of_one in [*held_of_gpus.values(), *parts.values()]:
            taken.update(of_one)
        return Placing(parts, tuple(untold), _keep_free(untold, gpus, taken))

    def _guest_of(self, consumer: str) -> str:
        return self._migrations.get(consumer, consumer)

    def _devices_of(self, guest: str, gpus: Sequence[GPU]) -> Counter[str]:
        names = {gpu.device for gpu in gpus}
        devices = self._devices.get(guest, Counter())
        return Counter({device: count for device, count in devices.items() if device in names})

    def _why(
        self, guest: str, devices: Counter[str], is_elsewhere: bool, is_claimed_twice: bool
    ) -> tuple[str, str]:
        """Why nothing can be told of a consumer, and what may help."""
        if is_claimed_twice:
            return (
                "an instance and its migration both hold some on this host",
                "end the migration",
            )
        if devices:
            return f"its guest has only {_listed(devices)}", "correct what it holds"
        if guest in self._guests and not self._guests[guest].is_running:
            return "its guest is stopped and has no mediated device", "start the guest"
        if guest in self._guests:
            return "its guest runs without a mediated device", "start it anew with its device"
        if is_elsewhere:
            return (
                "it has no guest here, and holds some of another host too: it was evacuated, or "
                "is on its way",
                "end that, so that it holds of one host",
            )
        return (
            "it has no guest here: it is a migration, or gone",
            "map the migration to its instance under `migrations`, delete what a gone one holds",
        )


def _keep_free(
    untold: Sequence[Untold], gpus: Sequence[GPU], used: Mapping[str, int]
) -> dict[str, int]:
    """As much as the untold hold, from the first GPUs that have it."""
    missing = sum(one.amount for one in untold)
    kept: dict[str, int] = {}
    for gpu in gpus:
        if part := min(missing, max(0, gpu.total - used.get(gpu.device, 0))):
            kept[gpu.device] = part
            missing -= part
    if missing:
        raise ReshapeFailed(
            f"the GPUs have {sum(kept.values())} {gpus[0].resource_class} left, too few for those "
            f"that cannot be told: {'; '.join(map(str, untold))}"
        )
    return kept


def _mismatch(consumer: str, amount: int, devices: Counter[str], gpus: Sequence[GPU]) -> str:
    return (
        f"consumer {consumer} holds {amount} {gpus[0].resource_class}, and its guest has "
        f"{devices.total()}: {_listed(devices)}; correct what it holds, "
        f"{_ASSUME.format(consumer=consumer, device=min(devices))}"
    )


def _listed(devices: Counter[str]) -> str:
    return ", ".join(f"{count} on {device}" for device, count in sorted(devices.items()))


def _no_such_gpu(consumer: str, device: str, gpus: Sequence[GPU]) -> str:
    return (
        f"consumer {consumer} is assumed to be on {device}, and the GPUs with "
        f"{gpus[0].resource_class} are {', '.join(gpu.device for gpu in gpus)}"
    )
