# SPDX-License-Identifier: Apache-2.0
"""Reports a host through libvirt.

The model is the same for all hosts (`drivers.host_model`). libvirt adds the guests: they tell on
which NUMA nodes consumers are, which PCI functions they use, and on which GPU their vGPUs are.
vGPUs on the root move to one child for each GPU, with their allocations.
Source: spec/compute-side.md 4.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from berth.hosts.drivers.host_model.devices import functions_given
from berth.hosts.drivers.host_model.facts import HostDriver
from berth.hosts.drivers.host_model.moving import allocated_on, transfer
from berth.hosts.drivers.host_model.names import write_id_list
from berth.hosts.drivers.host_model.options import LibvirtOptions, Placement
from berth.hosts.drivers.host_model.shaping import Shaper, counts_disk
from berth.hosts.drivers.libvirt.gpus import (
    GPU,
    DeviceLocator,
    KeptFree,
    MovedTo,
    Placing,
    Unattributed,
    devices_by_guest,
    gpus_of,
    left_before,
)
from berth.hosts.drivers.libvirt.host import (
    Host,
    Machine,
    read_host,
    shares_of,
)
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


@dataclass(frozen=True, slots=True)
class _Pass:
    """What one pass sees of a host's vGPUs."""

    tree: ProviderTree
    #: As the service has it.
    root: ProviderData
    #: Those on offer.
    gpus: Sequence[GPU]
    mdevs: Sequence[Mdev]
    #: What an earlier move left on the root, by class.
    left: Mapping[str, int]

    @property
    def classes(self) -> Set[str]:
        """The resource classes of the GPUs, in their order."""
        return dict.fromkeys(gpu.resource_class for gpu in self.gpus).keys()

    def child(self, gpu: GPU) -> ProviderData:
        """The provider of a GPU."""
        return self.tree.data(self.name_of(gpu))

    def name_of(self, gpu: GPU) -> str:
        """The name of a GPU's provider."""
        return f"{self.root.name}_{gpu.device}"


class LibvirtDriver(HostDriver):
    """Reports a host with libvirt."""

    #: See `drivers.KnowsOneHost`.
    one_host = "the one that libvirt runs on"

    def __init__(self, host: Host, options: LibvirtOptions) -> None:
        super().__init__(options)
        self._host = host
        self._options = options
        self._forget("")

    def _forget(self, root: str) -> None:
        """Begin with a root, of which nothing is remembered yet."""
        #: The UUID of the root in the last pass, of which the rest is remembered.
        self._root = root
        #: Consumers whose GPU was unknown at the last move.
        self.unattributed: tuple[Unattributed, ...] = ()
        #: By resource class, what the last move left on the root for unattributed consumers.
        self._left: dict[str, int] = {}
        #: The resource classes of moves that were requested but did not happen.
        self._waiting: set[str] = set()
        self._kept_free = KeptFree()
        self._sums = Unclaimed()
        #: The functions that consumers use, and their totals, when the allocations were requested.
        self._asked: tuple[Assigned, Mapping[str, Counter[str]]] = {}, {}
        #: Assignments to which nothing could be added, with the providers' generations.
        self._checked: tuple[Assigned, Mapping[str, int | None]] | None = None
        #: Functions that could not be added to allocations.
        self._refused: tuple[Refused, ...] = ()

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Update the tree of a node to what the host has (see `tracker.Driver`).

        Raises:
            ReshapeNeeded: inventory has to move, and `allocations` is None. Nothing is edited then.
            HealingNeeded: consumers may have less allocated than they use, and `allocations` is
                None.
            ReshapeFailed, BadProviderTree: guests have other devices than are allocated to them;
                there is no room for unattributed consumers; or a provider of others is in the way.
            BadConfiguration: the options do not suit the host.
            HostUnreadable: libvirt does not answer.
        """
        machine = self._host.machine()
        node_devices = self._host.devices()
        root = provider_tree.data(nodename)
        if root.uuid != self._root:
            # The host was deleted, and registered again.
            self._forget(root.uuid)
        facts = read_host(
            machine,
            node_devices,
            self._options,
            disk_gib=self._disk_gib(provider_tree, root),
            remembered=self._node_of,
        )
        self._node_of = facts.node_of
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
                for gpu in gpus_of(facts.devices)
                if (total := shaper.offers(f"{root.name}_{gpu.device}", gpu.resource_class))
            ]
            of_pass = _Pass(
                provider_tree, root, gpus, node_devices.mdevs, left_before(provider_tree, root)
            )
            moving = self._vgpus_to_move(of_pass, is_asking=allocations is None)
            if allocations is None:
                given = {
                    address: (provider, name)
                    for address, (provider, name) in functions_given(
                        node_devices.functions, self._options.pci
                    ).items()
                    if shaper.reports(_pci_provider(root, provider))
                }
                self._ask(of_pass, shaper.why_moving() or moving, given)
            self._recall(of_pass)
            shaper.shape()
            carried: dict[str, int] = {}
            if allocations is not None and moving:
                carried = self._move_vgpus(of_pass, allocations)
            else:
                self._release(of_pass)
            self._keep_free(of_pass, carried)
            if allocations is not None:
                self._heal(provider_tree, root, allocations)
        refused = [refusal.sentence for refusal in self._refused]
        notices = [*shaper.notices]
        if allocations is None:
            notices += self._unclaimed(of_pass)
        self._tell([*notices, *self._unplaced(of_pass), *refused])

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

    def _ask(self, of_pass: _Pass, why: str, given: Mapping[str, tuple[str, str]]) -> None:
        """Request the allocations if something moves, or if consumers may use more than is
        allocated to them.

        The last check remains valid while neither the guests nor any generation in the tree has
        changed: reducing an allocation rewrites the rest. Deleting a whole consumer changes no
        generation, but makes room for functions that were refused.

        Raises:
            ReshapeNeeded, HealingNeeded: to request them.
        """
        guests = self._host.guests() if given else []
        assigned = assigned_to(guests, given, self._options.migrations)
        generations = _generations(of_pass.tree, of_pass.root)
        is_checked = self._checked == (assigned, generations)
        if is_checked and not self._has_new_room():
            assigned = {}
        else:
            # If the pass crashes, the next one checks again.
            self._checked, self._refused = None, ()
        actual_usage = actual_usage_of(assigned)
        self._asked = assigned, actual_usage
        if why:
            raise ReshapeNeeded(why, actual_usage=actual_usage)
        if actual_usage:
            raise HealingNeeded(actual_usage)

    def _has_new_room(self) -> bool:
        """Whether functions were released on a provider where some were refused."""
        return self.used is not None and any(
            self.used(refusal.provider).get(refusal.resource_class, 0) < refusal.allocated
            for refusal in self._refused
        )

    def _heal(self, tree: ProviderTree, root: ProviderData, allocations: Allocations) -> None:
        """Add to the allocations what consumers used when the allocations were requested."""
        (assigned, actual_usage), self._asked = self._asked, ({}, {})
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
        self._refused = healing.refused
        if not healing.has_added:
            self._checked = (assigned, _generations(tree, root))

    # --- vGPUs ------------------------------------------------------------------------------------

    def _vgpus_to_move(self, of_pass: _Pass, *, is_asking: bool) -> str:
        """A sentence if the root has vGPUs other than those that the last move left there."""
        root, left = of_pass.root, of_pass.left
        for name in sorted(of_pass.classes & root.inventory.keys()):
            total = root.inventory[name]["total"]
            if name in left and is_asking and name in self._waiting:
                # The driver was recreated while the agent runs: the next start may know more.
                self._left.setdefault(name, total)
            if name not in left or total > self._left.get(name, 0):
                self._waiting.add(name)
                return f"To move: {name} from {root.name} to its GPUs"
        return ""

    def _move_vgpus(self, of_pass: _Pass, allocations: Allocations) -> dict[str, int]:
        """Move vGPUs, with their allocations, from the root to their GPUs.

        As much as unattributed consumers have stays on the root, all of it reserved.

        Returns:
            By the GPU's provider, the change in what an operator has reserved of it.
        """
        self.unattributed, self._left, self._waiting = (), {}, set()
        carried: dict[str, int] = {}
        tree, root = of_pass.tree, of_pass.root.uuid
        moving = [name for name in of_pass.classes if name in tree.data(root).inventory]
        if not moving:
            return carried
        own = set(tree.get_provider_uuids(root))
        locator = DeviceLocator(
            self._host.guests(),
            of_pass.mdevs,
            migrations=self._options.migrations,
            assume=self._options.assume,
        )
        for name in moving:
            gpus = [gpu for gpu in of_pass.gpus if gpu.resource_class == name]
            children = {gpu.device: of_pass.child(gpu).uuid for gpu in gpus}
            placing = locator.place(
                allocated_on(allocations, root, name),
                gpus,
                allocated_on_gpus=_allocated_on_gpus(allocations, children, name),
                elsewhere=_holding_outside(allocations, own, name),
            )
            for consumer, parts in placing.parts.items():
                to = {children[device]: part for device, part in parts.items()}
                transfer(allocations, consumer, name, source=root, parts=to)
            reserved = tree.data(root).inventory[name].get("reserved", 0)
            self._left[name] = sum(each.amount for each in placing.unattributed)
            self._leave_on_root(tree, root, name, self._left[name])
            self.unattributed += placing.unattributed
            reserved -= of_pass.left.get(name, 0)
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

    def _release(self, of_pass: _Pass) -> None:
        """Remove from the root what was left there for consumers that are gone."""
        root = of_pass.root
        for name in sorted(root.inventory):
            if self.used is not None and name in self._left:
                used = self.used(root.uuid).get(name, 0)
                if used < root.inventory[name]["total"]:
                    self._leave_on_root(of_pass.tree, root.uuid, name, used)

    def _recall(self, of_pass: _Pass) -> None:
        """Find out which part of the GPUs' `reserved` is the driver's, also after a restart."""
        for name in of_pass.classes:
            children = [
                of_pass.child(gpu)
                for gpu in of_pass.gpus
                if gpu.resource_class == name and of_pass.tree.exists(of_pass.name_of(gpu))
            ]
            self._kept_free.recall(children, name, of_pass.left.get(name, 0))

    def _keep_free(self, of_pass: _Pass, carried: Mapping[str, int]) -> None:
        """Reserve room for unattributed consumers on the GPUs while the root has their vGPUs."""
        on_root = of_pass.tree.data(of_pass.root.uuid).inventory
        unattributed = {name: on_root.get(name, {}).get("total", 0) for name in self._left}
        for gpu in of_pass.gpus:
            name, child = gpu.resource_class, of_pass.child(gpu)
            most = min(gpu.total, unattributed.get(name, 0))
            change = carried.get(child.uuid, 0)
            kept = self._kept_free.write(of_pass.tree, child, name, most=most, carried=change)
            unattributed[name] = unattributed.get(name, 0) - kept

    def _unplaced(self, of_pass: _Pass) -> Iterator[str]:
        """Inventory on the root for which there is no GPU."""
        wanted = {rule.resource_class for rule in self._options.mdev}
        for name in sorted((wanted - of_pass.classes) & of_pass.root.inventory.keys()):
            yield f"{of_pass.root.name} has {name}, but there is no GPU to move it to"

    def _unclaimed(self, of_pass: _Pass) -> Iterator[str]:
        """Notices of what running guests have, and nobody has allocated."""
        tree, root = of_pass.tree, of_pass.root
        dedicated = self._options.cpu_dedicated
        if self.used is None:
            return
        guests = [guest for guest in self._host.guests() if guest.is_running]
        providers = [
            data
            for data in map(tree.data, tree.get_provider_uuids(root.uuid))
            if data.generation is not None
        ]
        yield from self._sums.notices(providers, guests, dedicated, self.used)
        if not (of_pass.gpus or dedicated):
            return
        classes = of_pass.classes | {"PCPU"}
        used = {
            data.uuid: self.used(data.uuid) for data in providers if classes & data.inventory.keys()
        }
        has = sum(devices_by_guest(guests, of_pass.mdevs).values(), Counter[str]())
        for gpu in of_pass.gpus:
            name, child = gpu.resource_class, of_pass.child(gpu)
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
