# SPDX-License-Identifier: Apache-2.0
"""Reports a host as libvirt knows it.

What stands where is the same for all hosts (`drivers.hosts`). libvirt's own part are the guests:
they tell on which NUMA nodes consumers are, which PCI functions they have, and of which GPU they
have vGPUs. vGPUs that stand on the root move to one child for each GPU, with what consumers hold of
them.
Source: spec/compute-side.md 4.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Final

from berth.hosts.drivers import Used
from berth.hosts.drivers.hosts.moving import held_of, transfer
from berth.hosts.drivers.hosts.notices import Notices
from berth.hosts.drivers.hosts.options import Placement
from berth.hosts.drivers.hosts.pci import Function, functions_given
from berth.hosts.drivers.hosts.shaping import Shaper, counts_disk
from berth.hosts.drivers.libvirt.gpus import GPU, Placing, Teller, Untold, gpus_of
from berth.hosts.drivers.libvirt.host_facts import (
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
    assigned_to,
    heal,
    truth_of,
)
from berth.hosts.drivers.libvirt.xml_documents import Guest, Mdev
from berth.hosts.errors import HealingNeeded, ReshapeNeeded
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderData, ProviderTree

LOG = logging.getLogger(__name__)

#: What the first records of a class begin with.
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
        #: Consumers of which could not be told, at the last move, on which GPU they are.
        self.untold: tuple[Untold, ...] = ()
        self._notices = Notices()
        #: By root and resource class, what the last move left on the root for the untold ones.
        self._left: dict[tuple[str, str], int] = {}
        #: By root and resource class, those for which a move was asked for that did not come.
        self._waiting: set[tuple[str, str]] = set()
        self._kept_free = KeptFree()
        #: By root, the functions that consumers have, with which the allocations were asked for,
        #: and what was said then.
        self._asked: dict[str, tuple[Assigned, Mapping[str, Counter[str]]]] = {}
        #: By root, those with which nothing could be added, and the providers' generations then.
        self._checked: dict[str, tuple[Assigned, Mapping[str, int | None]]] = {}
        #: By root, those that could not be added.
        self._refused: dict[str, tuple[Refused, ...]] = {}
        #: On which NUMA node each CPU was in the last pass.
        self._node_of: Mapping[int, int] = {}
        #: Tells what is used of a provider, by resource class; None: known only at a reshape.
        self.used: Used | None = None

    @property
    def notices(self) -> tuple[str, ...]:
        """What the last pass found that an operator should know, a sentence each."""
        return self._notices.last

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Make the tree of a node what the host has (see `tracker.Driver`).

        Raises:
            ReshapeNeeded: inventory is to move, and `allocations` is None. Nothing is edited then.
            HealingNeeded: consumers may hold less than they have, and `allocations` is None.
            ReshapeFailed, BadProviderTree: guests have other devices than their consumers hold;
                there would be no room for those that cannot be told; or somebody is in the way.
            BadConfiguration: the options do not suit the host.
            HostUnreadable: libvirt does not answer.
        """
        machine = self._host.machine()
        found = self._host.devices()
        self._node_of = node_of_cpus(machine, self._node_of)
        devices, cut = devices_of(found, machine.encryption_slots, self._options)
        root = provider_tree.data(nodename)
        facts = facts_of(
            machine,
            devices,
            self._options,
            node_of=self._node_of,
            disk_gib=self._disk_gib(provider_tree, root),
        )
        with provider_tree.transaction():
            shaper = Shaper(
                provider_tree,
                root,
                facts,
                self._options,
                placements=self._placements(machine),
                used=self.used,
                firsts=_FIRSTS,
                movable={rule.resource_class for rule in self._options.mdev},
            )
            gpus = [gpu for gpu in gpus_of(cut) if shaper.reports(f"{root.name}_{gpu.device}")]
            left = left_before(provider_tree, root)
            moving = self._vgpus_to_move(root, gpus, left, is_asking=allocations is None)
            if allocations is None:
                given = {
                    address: (provider, name)
                    for address, (provider, name) in self._given(found.functions).items()
                    if shaper.reports(_pci_provider(root, provider))
                }
                self._ask(provider_tree, root, shaper.why_moving() or moving, given)
            self._recall(provider_tree, root, gpus, left)
            shaper.shape(allocations)
            carried: dict[str, int] = {}
            if allocations is not None and moving:
                carried = self._move_vgpus(
                    provider_tree, root.uuid, gpus, found.mdevs, allocations, left
                )
            else:
                self._release(provider_tree, root)
            self._keep_free(provider_tree, root, gpus, carried)
            if allocations is not None:
                self._heal(provider_tree, root, allocations)
        refused = [one.sentence for one in self._refused.get(root.uuid, ())]
        self._notices.tell([*shaper.notices, *self._homeless(root, gpus), *refused])

    def _disk_gib(self, tree: ProviderTree, root: ProviderData) -> int:
        disk = self._options.disk
        return self._host.disk_gib(disk) if disk is not None and counts_disk(tree, root) else 0

    def _placements(self, machine: Machine) -> Callable[[str], Placement | None]:
        """Tells on which NUMA nodes a consumer's guest is; the guests are read when it is asked."""
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
        """Ask for the allocations where something moves, or consumers may hold less than they have.

        That they do not is known as long as neither the guests have changed nor any generation in
        the tree, since it was last looked at: who takes a part of what a consumer holds writes the
        rest anew. Who deletes all of it moves no generation, and makes room for what was refused.

        Raises:
            ReshapeNeeded, HealingNeeded: for that.
        """
        guests = self._host.guests() if given else []
        assigned = assigned_to(guests, given, self._options.migrations)
        is_checked = self._checked.get(root.uuid) == (assigned, _generations(tree, root))
        if is_checked and not self._has_new_room(root):
            assigned = {}
        else:
            # A pass that falls before its end leaves it to the next to look.
            self._checked.pop(root.uuid, None)
            self._refused.pop(root.uuid, None)
        truth = truth_of(assigned)
        self._asked[root.uuid] = assigned, truth
        if why_moving:
            raise ReshapeNeeded(why_moving, truth=truth)
        if truth:
            raise HealingNeeded(truth)

    def _has_new_room(self, root: ProviderData) -> bool:
        """Whether somebody has let go of functions of which some were refused."""
        return self.used is not None and any(
            self.used(one.provider).get(one.resource_class, 0) < one.held
            for one in self._refused.get(root.uuid, ())
        )

    def _heal(self, tree: ProviderTree, root: ProviderData, allocations: Allocations) -> None:
        """Add to the allocations what consumers have, as it was when they were asked for."""
        assigned, truth = self._asked.pop(root.uuid, ({}, {}))
        if not assigned:
            return
        addresses = {address for has in assigned.values() for address, _ in has}
        uuids = {
            address: tree.data(name).uuid
            for address in addresses
            if tree.exists(name := _pci_provider(root, address))
        }
        own = {uuid: tree.data(uuid) for uuid in tree.get_provider_uuids(root.uuid)}
        healing = heal(allocations, assigned, uuids, truth, own=own)
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
        """That the root has vGPUs, other than those that the last move had to leave there."""
        for name in sorted({gpu.resource_class for gpu in gpus} & root.inventory.keys()):
            record, key = root.inventory[name], (root.uuid, name)
            if name in left and is_asking and key in self._waiting:
                # A driver that was made anew while the agent runs: the next start may tell more.
                self._left.setdefault(key, record["total"])
            if name not in left or record["total"] > self._left.get(key, 0):
                self._waiting.add(key)
                return f"To be moved: {name} from {root.name} to its GPUs"
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
        """Move vGPUs from the root to their GPUs, and what consumers hold of them.

        What is left on the root is as much as the untold ones hold, and all of it reserved.

        Args:
            left: what an earlier move left there.

        Returns:
            By GPU's provider, how much more or less an operator keeps back of it.
        """
        self.untold, self._left, self._waiting = (), {}, set()
        carried: dict[str, int] = {}
        node = tree.data(root).name
        moving: dict[str, list[GPU]] = {}
        for gpu in gpus:
            if gpu.resource_class in tree.data(root).inventory:
                moving.setdefault(gpu.resource_class, []).append(gpu)
        if not moving:
            return carried
        teller = Teller(
            self._host.guests(),
            mdevs,
            migrations=self._options.migrations,
            assume=self._options.assume,
        )
        own = set(tree.get_provider_uuids(root))
        for name, some in moving.items():
            children = {gpu.device: tree.data(f"{node}_{gpu.device}").uuid for gpu in some}
            placing = teller.place(
                held_of(allocations, root, name),
                some,
                held_of_gpus=_held_of_gpus(allocations, children, name),
                elsewhere=_holding_outside(allocations, own, name),
            )
            for consumer, parts in placing.parts.items():
                to = {children[device]: part for device, part in parts.items()}
                transfer(allocations, consumer, name, source=root, parts=to)
            reserved = tree.data(root).inventory[name].get("reserved", 0) - left.get(name, 0)
            self._left[root, name] = sum(one.amount for one in placing.untold)
            self._leave_on_root(tree, root, name, self._left[root, name])
            self.untold += placing.untold
            carried |= self._carry(tree, allocations, name, children, placing, reserved)
        for one in self.untold:
            LOG.warning("%s", one)
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
        """Share by the GPUs what an operator had reserved of a class on the root."""
        gaining = {device for parts in placing.parts.values() for device in parts}
        moved = [
            MovedTo(
                tree.data(child),
                sum(held_of(allocations, child, name).values()),
                placing.kept_free.get(device, 0),
                device in gaining,
            )
            for device, child in children.items()
        ]
        shares = self._kept_free.move(moved, name, reserved)
        if lost := reserved - sum(shares.values()):
            LOG.warning(
                "%d %s that were reserved of the host or its GPUs are held, and not reserved any "
                "more; reserve them when they are given back: %s",
                lost,
                name,
                ", ".join(one.data.name for one in moved),
            )
        return shares

    @staticmethod
    def _leave_on_root(tree: ProviderTree, root: str, name: str, amount: int) -> None:
        left = {cls: record for cls, record in tree.data(root).inventory.items() if cls != name}
        if amount:
            left[name] = {"total": amount, "max_unit": amount, "reserved": amount}
        tree.update_inventory(root, left)

    def _release(self, tree: ProviderTree, root: ProviderData) -> None:
        """Take from the root what was left there for consumers that have gone since."""
        for name in sorted(root.inventory):
            if self.used is not None and (root.uuid, name) in self._left:
                held = self.used(root.uuid).get(name, 0)
                if held < root.inventory[name]["total"]:
                    self._leave_on_root(tree, root.uuid, name, held)

    def _recall(
        self,
        tree: ProviderTree,
        root: ProviderData,
        gpus: Sequence[GPU],
        left: Mapping[str, int],
    ) -> None:
        """Tell what is the driver's of what is reserved of the GPUs, also if it was made anew."""
        for name in {gpu.resource_class for gpu in gpus}:
            there = [
                tree.data(child)
                for gpu in gpus
                if gpu.resource_class == name and tree.exists(child := f"{root.name}_{gpu.device}")
            ]
            self._kept_free.recall(there, name, left.get(name, 0))

    def _keep_free(
        self,
        tree: ProviderTree,
        root: ProviderData,
        gpus: Sequence[GPU],
        carried: Mapping[str, int],
    ) -> None:
        """Reserve of the GPUs what is kept for the untold, as long as the root has theirs."""
        on_root = tree.data(root.uuid).inventory
        untold = {name: on_root.get(name, {}).get("total", 0) for _, name in self._left}
        for gpu in gpus:
            name = gpu.resource_class
            child = tree.data(f"{root.name}_{gpu.device}")
            most = min(gpu.total, untold.get(name, 0))
            change = carried.get(child.uuid, 0)
            kept = self._kept_free.write(tree, child, name, most=most, carried=change)
            untold[name] = untold.get(name, 0) - kept

    def _homeless(self, root: ProviderData, gpus: Sequence[GPU]) -> Iterator[str]:
        """What the root has, and no GPU is there to take over."""
        wanted = {rule.resource_class for rule in self._options.mdev}
        for name in sorted((wanted - {gpu.resource_class for gpu in gpus}) & root.inventory.keys()):
            yield f"{root.name} has {name}, and no GPU with it is there to take it over"


def _pci_provider(root: ProviderData, address: str) -> str:
    return f"{root.name}_{address.upper()}"


def _generations(tree: ProviderTree, root: ProviderData) -> dict[str, int | None]:
    every = map(tree.data, tree.get_provider_uuids(root.uuid))
    return {one.uuid: one.generation for one in every}


def _held_of_gpus(
    allocations: Allocations, children: Mapping[str, str], name: str
) -> dict[str, Counter[str]]:
    """By consumer, what it holds of the children of devices."""
    held: dict[str, Counter[str]] = {}
    for device, child in children.items():
        for consumer, amount in held_of(allocations, child, name).items():
            held.setdefault(consumer, Counter())[device] = amount
    return held


def _holding_outside(allocations: Allocations, own: Set[str], name: str) -> set[str]:
    """The consumers that hold some of a class of providers outside of the tree."""
    return {
        consumer
        for consumer, body in allocations.items()
        for provider, part in body["allocations"].items()
        if provider not in own and name in part["resources"]
    }
