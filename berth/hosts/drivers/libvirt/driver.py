# SPDX-License-Identifier: Apache-2.0
"""Reports a host through libvirt.

The model is the same for all hosts (`drivers.hosts`). libvirt adds the guests: they tell on which
NUMA nodes consumers are, which PCI functions they use, and on which GPU their vGPUs are. vGPUs on
the root move to one child for each GPU, with their allocations.
Source: spec/compute-side.md 4.
"""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

from berth.hosts.drivers import Used
from berth.hosts.drivers.hosts.id_lists import write_id_list
from berth.hosts.drivers.hosts.moving import allocated_on, transfer
from berth.hosts.drivers.hosts.notices import Notices
from berth.hosts.drivers.hosts.options import Placement
from berth.hosts.drivers.hosts.pci import Function, functions_given
from berth.hosts.drivers.hosts.shaping import Shaper, counts_disk
from berth.hosts.drivers.kept import Keeping
from berth.hosts.drivers.libvirt.gpus import (
    GPU,
    DeviceLocator,
    Placing,
    Unattributed,
    devices_by_guest,
    gpus_of,
)
from berth.hosts.drivers.libvirt.host_facts import (
    device_notices,
    devices_of,
    facts_of,
    node_of_cpus,
    shares_of,
)
from berth.hosts.drivers.libvirt.kept_free import KeptFree, MovedTo, left_before
from berth.hosts.drivers.libvirt.machine import Host, Machine
from berth.hosts.drivers.libvirt.options import Options
from berth.hosts.drivers.libvirt.passthrough import (
    Assigned,
    Refused,
    actual_usage_of,
    assigned_to,
    heal,
)
from berth.hosts.drivers.libvirt.unclaimed import Unclaimed
from berth.hosts.drivers.libvirt.xml_documents import Guest, Mdev
from berth.hosts.errors import HealingNeeded, ReshapeNeeded
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderData, ProviderTree

LOG = logging.getLogger(__name__)

#: The initial values of the first records of a class.
_FIRSTS: Final[Mapping[str, Mapping[str, float]]] = {
    "VCPU": {"allocation_ratio": 4.0},
    "MEMORY_MB": {"reserved": 512},
}


class LibvirtDriver:
    """Reports a host with libvirt."""

    #: See `drivers.KnowsOneHost`.
    one_host = "the one that libvirt runs on"

    def __init__(self, host: Host, options: Options) -> None:
        self._host = host
        self._options = options
        #: Consumers whose GPU was unknown at the last move.
        self.unattributed: tuple[Unattributed, ...] = ()
        self._notices = Notices()
        self.keeping = Keeping(options.keep_days)
        #: By root and resource class, what the last move left on the root for unattributed
        #: consumers.
        self._left: dict[tuple[str, str], int] = {}
        #: By root and resource class, moves that were requested but did not happen.
        self._waiting: set[tuple[str, str]] = set()
        self._kept_free = KeptFree()
        self._sums = Unclaimed()
        #: By root, the functions that consumers use, and their totals, when the allocations were
        #: requested.
        self._asked: dict[str, tuple[Assigned, Mapping[str, Counter[str]]]] = {}
        #: By root, assignments to which nothing could be added, with the providers' generations.
        self._checked: dict[str, tuple[Assigned, Mapping[str, int | None]]] = {}
        #: By root, functions that could not be added to allocations.
        self._refused: dict[str, tuple[Refused, ...]] = {}
        #: The NUMA node of each CPU in the last pass.
        self._node_of: Mapping[int, int] = {}
        #: Reads the usage of a provider, by resource class; None: only known at a reshape.
        self.used: Used | None = None

    @property
    def untold(self) -> tuple[Unattributed, ...]:
        """The former name of `unattributed`, available for one more release."""
        warnings.warn(
            "`untold` is called `unattributed` now, and the former name will go with the next "
            "release",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.unattributed

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices of the last pass for the operator, a sentence each."""
        return self._notices.last

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Update the tree of a node to what the host has (see `tracker.Driver`).

        Raises:
            ReshapeNeeded: inventory has to move, and `allocations` is None. Nothing is edited then.
            HealingNeeded: consumers may have less allocated than they use, and `allocations` is
                None.
            ReshapeFailed, BadProviderTree: guests have other devices than are allocated to them;
                there is
                no room for unattributed consumers; or a provider of others is in the way.
            BadConfiguration: the options do not suit the host.
            HostUnreadable: libvirt does not answer.
        """
        machine = self._host.machine()
        node_devices = self._host.devices()
        self._node_of = node_of_cpus(machine, self._node_of)
        devices, cut = devices_of(node_devices, machine.encryption_slots, self._options)
        root = provider_tree.data(nodename)
        facts = facts_of(
            machine,
            devices,
            self._options,
            node_of=self._node_of,
            disk_gib=self._disk_gib(provider_tree, root),
            functions=node_devices.functions,
        )
        with provider_tree.transaction():
            shaper = Shaper(
                provider_tree,
                root,
                facts,
                self._options,
                placements=self._placements(machine),
                used=self.used,
                keeping=self.keeping,
                allocations=allocations,
                firsts=_FIRSTS,
                movable={rule.resource_class for rule in self._options.mdev},
            )
            gpus = [
                replace(gpu, total=total)
                for gpu in gpus_of(cut)
                if (total := shaper.offers(f"{root.name}_{gpu.device}", gpu.resource_class))
            ]
            left = left_before(provider_tree, root)
            moving = self._vgpus_to_move(root, gpus, left, is_asking=allocations is None)
            if allocations is None:
                given = {
                    address: (provider, name)
                    for address, (provider, name) in self._given(node_devices.functions).items()
                    if shaper.reports(_pci_provider(root, provider))
                }
                self._ask(provider_tree, root, shaper.why_moving() or moving, given)
            self._recall(provider_tree, root, gpus, left)
            shaper.shape()
            carried: dict[str, int] = {}
            if allocations is not None and moving:
                carried = self._move_vgpus(
                    provider_tree, root.uuid, gpus, node_devices.mdevs, allocations, left
                )
            else:
                self._release(provider_tree, root)
            self._keep_free(provider_tree, root, gpus, carried)
            if allocations is not None:
                self._heal(provider_tree, root, allocations)
        refused = [refusal.sentence for refusal in self._refused.get(root.uuid, ())]
        notices = device_notices(node_devices, self._options)
        if allocations is None:
            notices += self._unclaimed(provider_tree, root, gpus, node_devices.mdevs)
        self._notices.tell([*shaper.notices, *notices, *self._unplaced(root, gpus), *refused])

    def _disk_gib(self, tree: ProviderTree, root: ProviderData) -> int:
        disk = self._options.disk
        return self._host.disk_gib(disk) if disk is not None and counts_disk(tree, root) else 0

    def _placements(self, machine: Machine) -> Callable[[str], Placement | None]:
        """Look up the NUMA nodes of a consumer's guest; the guests are read at the first call."""
        guests: dict[str, Guest] = {}

        def of(consumer: str) -> Placement | None:
            if not guests:
                guests.update((guest.uuid, guest) for guest in self._host.guests())
            guest = guests.get(self._options.migrations.get(consumer, consumer))
            return None if guest is None else shares_of(guest, machine.capabilities.cells)

        return of

    # --- PCI functions of guests ------------------------------------------------------------------

    def _given(self, functions: Sequence[Function]) -> dict[str, tuple[str, str]]:
        return functions_given(functions, self._options.pci) if self._options.pci else {}

    def _ask(
        self,
        tree: ProviderTree,
        root: ProviderData,
        why_moving: str,
        given: Mapping[str, tuple[str, str]],
    ) -> None:
        """Request the allocations if something moves, or if consumers may use more than is
        allocated to them.

        The last check remains valid while neither the guests nor any generation in the tree has
        changed:
        reducing an allocation rewrites the rest. Deleting a whole consumer changes no generation,
        but makes
        room for functions that were refused.

        Raises:
            ReshapeNeeded, HealingNeeded: to request them.
        """
        guests = self._host.guests() if given else []
        assigned = assigned_to(guests, given, self._options.migrations)
        is_checked = self._checked.get(root.uuid) == (assigned, _generations(tree, root))
        if is_checked and not self._has_new_room(root):
            assigned = {}
        else:
            # If the pass crashes, the next one checks again.
            self._checked.pop(root.uuid, None)
            self._refused.pop(root.uuid, None)
        actual_usage = actual_usage_of(assigned)
        self._asked[root.uuid] = assigned, actual_usage
        if why_moving:
            raise ReshapeNeeded(why_moving, actual_usage=actual_usage)
        if actual_usage:
            raise HealingNeeded(actual_usage)

    def _has_new_room(self, root: ProviderData) -> bool:
        """Whether functions were released on a provider where some were refused."""
        return self.used is not None and any(
            self.used(refusal.provider).get(refusal.resource_class, 0) < refusal.allocated
            for refusal in self._refused.get(root.uuid, ())
        )

    def _heal(self, tree: ProviderTree, root: ProviderData, allocations: Allocations) -> None:
        """Add to the allocations what consumers used when the allocations were requested."""
        assigned, actual_usage = self._asked.pop(root.uuid, ({}, {}))
        if not assigned:
            return
        addresses = {address for has in assigned.values() for address, _ in has}
        uuids = {
            address: tree.data(name).uuid
            for address in addresses
            if tree.exists(name := _pci_provider(root, address))
        }
        own = {uuid: tree.data(uuid) for uuid in tree.get_provider_uuids(root.uuid)}
        healing = heal(allocations, assigned, uuids, actual_usage, own=own)
        self._refused[root.uuid] = healing.refused
        if not healing.has_added:
            self._checked[root.uuid] = (assigned, _generations(tree, root))

    # --- vGPUs ------------------------------------------------------------------------------------

    def _vgpus_to_move(
        self,
        root: ProviderData,
        gpus: Sequence[GPU],
        left: Mapping[str, int],
        *,
        is_asking: bool,
    ) -> str:
        """A sentence if the root has vGPUs other than those that the last move left there."""
        for name in sorted({gpu.resource_class for gpu in gpus} & root.inventory.keys()):
            record, key = root.inventory[name], (root.uuid, name)
            if name in left and is_asking and key in self._waiting:
                # The driver was recreated while the agent runs: the next start may know more.
                self._left.setdefault(key, record["total"])
            if name not in left or record["total"] > self._left.get(key, 0):
                self._waiting.add(key)
                return f"To move: {name} from {root.name} to its GPUs"
        return ""

    def _move_vgpus(
        self,
        tree: ProviderTree,
        root: str,
        gpus: Sequence[GPU],
        mdevs: Sequence[Mdev],
        allocations: Allocations,
        left: Mapping[str, int],
    ) -> dict[str, int]:
        """Move vGPUs, with their allocations, from the root to their GPUs.

        As much as unattributed consumers have stays on the root, all of it reserved.

        Args:
            left: what an earlier move left there.

        Returns:
            By the GPU's provider, the change in what an operator has reserved of it.
        """
        self.unattributed, self._left, self._waiting = (), {}, set()
        carried: dict[str, int] = {}
        node = tree.data(root).name
        moving: dict[str, list[GPU]] = {}
        for gpu in gpus:
            if gpu.resource_class in tree.data(root).inventory:
                moving.setdefault(gpu.resource_class, []).append(gpu)
        if not moving:
            return carried
        locator = DeviceLocator(
            self._host.guests(),
            mdevs,
            migrations=self._options.migrations,
            assume=self._options.assume,
        )
        own = set(tree.get_provider_uuids(root))
        for name, gpus_of_class in moving.items():
            children = {gpu.device: tree.data(f"{node}_{gpu.device}").uuid for gpu in gpus_of_class}
            placing = locator.place(
                allocated_on(allocations, root, name),
                gpus_of_class,
                allocated_on_gpus=_allocated_on_gpus(allocations, children, name),
                elsewhere=_holding_outside(allocations, own, name),
            )
            for consumer, parts in placing.parts.items():
                to = {children[device]: part for device, part in parts.items()}
                transfer(allocations, consumer, name, source=root, parts=to)
            reserved = tree.data(root).inventory[name].get("reserved", 0) - left.get(name, 0)
            self._left[root, name] = sum(
                consumer_left.amount for consumer_left in placing.unattributed
            )
            self._leave_on_root(tree, root, name, self._left[root, name])
            self.unattributed += placing.unattributed
            carried |= self._carry(tree, allocations, name, children, placing, reserved)
        for consumer_left in self.unattributed:
            LOG.warning("%s", consumer_left)
        return carried

    def _carry(
        self,
        tree: ProviderTree,
        allocations: Allocations,
        name: str,
        children: Mapping[str, str],
        placing: Placing,
        reserved: int,
    ) -> dict[str, int]:
        """Distribute over the GPUs what an operator had reserved of a class on the root."""
        gaining = {device for parts in placing.parts.values() for device in parts}
        moved = [
            MovedTo(
                tree.data(child),
                sum(allocated_on(allocations, child, name).values()),
                placing.kept_free.get(device, 0),
                device in gaining,
            )
            for device, child in children.items()
        ]
        shares = self._kept_free.move(moved, name, reserved)
        if lost := reserved - sum(shares.values()):
            LOG.warning(
                "%d %s that were reserved on the host or its GPUs are allocated now, and not "
                "reserved any more; reserve them again when they are released: %s",
                lost,
                name,
                ", ".join(target.data.name for target in moved),
            )
        return shares

    @staticmethod
    def _leave_on_root(tree: ProviderTree, root: str, name: str, amount: int) -> None:
        left = {cls: record for cls, record in tree.data(root).inventory.items() if cls != name}
        if amount:
            left[name] = {"total": amount, "max_unit": amount, "reserved": amount}
        tree.update_inventory(root, left)

    def _release(self, tree: ProviderTree, root: ProviderData) -> None:
        """Remove from the root what was left there for consumers that are gone."""
        for name in sorted(root.inventory):
            if self.used is not None and (root.uuid, name) in self._left:
                used = self.used(root.uuid).get(name, 0)
                if used < root.inventory[name]["total"]:
                    self._leave_on_root(tree, root.uuid, name, used)

    def _recall(
        self,
        tree: ProviderTree,
        root: ProviderData,
        gpus: Sequence[GPU],
        left: Mapping[str, int],
    ) -> None:
        """Find out which part of the GPUs' `reserved` is the driver's, also after a restart."""
        for name in {gpu.resource_class for gpu in gpus}:
            children = [
                tree.data(child)
                for gpu in gpus
                if gpu.resource_class == name and tree.exists(child := f"{root.name}_{gpu.device}")
            ]
            self._kept_free.recall(children, name, left.get(name, 0))

    def _keep_free(
        self,
        tree: ProviderTree,
        root: ProviderData,
        gpus: Sequence[GPU],
        carried: Mapping[str, int],
    ) -> None:
        """Reserve room for unattributed consumers on the GPUs while the root has their vGPUs."""
        on_root = tree.data(root.uuid).inventory
        unattributed = {name: on_root.get(name, {}).get("total", 0) for _, name in self._left}
        for gpu in gpus:
            name = gpu.resource_class
            child = tree.data(f"{root.name}_{gpu.device}")
            most = min(gpu.total, unattributed.get(name, 0))
            change = carried.get(child.uuid, 0)
            kept = self._kept_free.write(tree, child, name, most=most, carried=change)
            unattributed[name] = unattributed.get(name, 0) - kept

    def _unplaced(self, root: ProviderData, gpus: Sequence[GPU]) -> Iterator[str]:
        """Inventory on the root for which there is no GPU."""
        wanted = {rule.resource_class for rule in self._options.mdev}
        for name in sorted((wanted - {gpu.resource_class for gpu in gpus}) & root.inventory.keys()):
            yield f"{root.name} has {name}, but there is no GPU to move it to"

    def _unclaimed(
        self, tree: ProviderTree, root: ProviderData, gpus: Sequence[GPU], mdevs: Sequence[Mdev]
    ) -> Iterator[str]:
        """Notices of what running guests have, and nobody has allocated."""
        dedicated = self._options.cpu_dedicated
        if self.used is None:
            return
        guests = [guest for guest in self._host.guests() if guest.is_running]
        yield from self._sums.notices(tree, root, guests, dedicated, self.used)
        if not (gpus or dedicated):
            return
        classes = {gpu.resource_class for gpu in gpus} | {"PCPU"}
        used = {
            data.uuid: self.used(data.uuid)
            for data in map(tree.data, tree.get_provider_uuids(root.uuid))
            if data.generation is not None and classes & data.inventory.keys()
        }
        has = sum(devices_by_guest(guests, mdevs).values(), Counter[str]())
        for gpu in gpus:
            name, child = gpu.resource_class, tree.data(f"{root.name}_{gpu.device}")
            places = (used.get(data.uuid, {}) for data in (root, child))
            allocated = sum(place.get(name, 0) for place in places)
            if has[gpu.device] > allocated:
                yield (
                    f"Guests have {has[gpu.device]} {name} of {child.name}, and {allocated} are "
                    "allocated: the others are offered although they are in use"
                )
        pinned = frozenset().union(*(pin for guest in guests for pin in guest.pins)) & dedicated
        allocated = sum(of_one.get("PCPU", 0) for of_one in used.values())
        if len(pinned) > allocated:
            yield (
                f"Guests are pinned to CPUs {write_id_list(pinned)} of cpu_dedicated, and "
                f"{allocated} PCPU are allocated: the others are offered although they are in use"
            )


def _pci_provider(root: ProviderData, address: str) -> str:
    return f"{root.name}_{address.upper()}"


def _generations(tree: ProviderTree, root: ProviderData) -> dict[str, int | None]:
    providers = map(tree.data, tree.get_provider_uuids(root.uuid))
    return {provider.uuid: provider.generation for provider in providers}


def _allocated_on_gpus(
    allocations: Allocations, children: Mapping[str, str], name: str
) -> dict[str, Counter[str]]:
    """The allocations on the children of devices, by consumer."""
    by_consumer: dict[str, Counter[str]] = {}
    for device, child in children.items():
        for consumer, amount in allocated_on(allocations, child, name).items():
            by_consumer.setdefault(consumer, Counter())[device] = amount
    return by_consumer


def _holding_outside(allocations: Allocations, own: Set[str], name: str) -> set[str]:
    """The consumers with allocations of a class outside of the tree."""
    return {
        consumer
        for consumer, body in allocations.items()
        for provider, part in body["allocations"].items()
        if provider not in own and name in part["resources"]
    }
