# SPDX-License-Identifier: Apache-2.0
"""Reports a host as libvirt knows it.

The root has the CPUs, the memory, the disk and the CPU's traits; where NUMA nodes are modelled,
each is a child `<node>_NUMA<id>` with its CPUs and memory. Each GPU that is cut into mediated
devices is a child `<node>_<libvirt's name of the device>`. Inventory that stands elsewhere moves
there, with what its consumers hold.
Source: spec/compute-side.md 4.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

from berth.compute.drivers.first_fit import held_of, transfer
from berth.compute.drivers.libvirt import cells
from berth.compute.drivers.libvirt.cpu_traits import TOLD, cpu_traits
from berth.compute.drivers.libvirt.gpus import GPU, Teller, Untold, list_gpus
from berth.compute.drivers.libvirt.inventories import (
    OF_CELLS,
    cell_records,
    cell_totals,
    host_totals,
    records,
)
from berth.compute.drivers.libvirt.machine import Host, Machine
from berth.compute.drivers.libvirt.options import SHARED_OUT, Model, Options
from berth.compute.drivers.libvirt.xml_documents import Mdev
from berth.compute.drivers.owned import OWNER_TRAIT
from berth.compute.errors import ReshapeNeeded
from berth.compute.plan import Allocations
from berth.compute.provider_tree import ProviderData, ProviderTree

LOG = logging.getLogger(__name__)

_NUMA_TRAIT: Final = "HW_NUMA_ROOT"


class LibvirtDriver:
    """Reports a host with libvirt."""

    def __init__(self, host: Host, options: Options) -> None:
        self._host = host
        self._options = options
        #: Consumers of which could not be told, at the last move, on which GPU they are.
        self.untold: tuple[Untold, ...] = ()
        #: What else is not as it should be, of the last pass, as sentences.
        self.problems: tuple[str, ...] = ()
        #: By root and resource class, what the last move left on the root for the untold ones.
        self._left: dict[tuple[str, str], int] = {}
        #: By provider, what the last move keeps free for them.
        self._kept_free: dict[str, int] = {}
        #: Tells what is used of a provider, by resource class; None: known only at a reshape.
        self.used: Callable[[str], Mapping[str, int]] | None = None

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Make the tree of a node what the host has (see `tracker.Driver`).

        Raises:
            ReshapeNeeded: inventory is to move, and `allocations` is None. Nothing is edited then.
            ReshapeFailed: guests have other devices than their consumers hold; there would be no
                room for those that cannot be told; or it does not fit on the NUMA nodes.
            BadConfiguration: the options do not suit the host.
            HostUnreadable: libvirt does not answer.
        """
        machine = self._host.machine()
        parents, mdevs = self._host.mdev_devices()
        gpus = list_gpus(parents, mdevs, self._options.mdev)
        root = provider_tree.data(nodename)
        must_move = self._must_move_vgpus(root, gpus) or self._must_move_cells(provider_tree, root)
        if must_move and allocations is None:
            raise ReshapeNeeded
        with provider_tree.transaction():
            if self._options.model is Model.NUMA:
                self._report_cells(provider_tree, root, machine, allocations)
            else:
                self._report_flat(provider_tree, root, machine, allocations)
            self._report_traits(provider_tree, root.uuid, machine)
            if allocations is not None:
                self._move_vgpus(provider_tree, root.uuid, gpus, mdevs, allocations)
            else:
                self._release(provider_tree, root)
            problems = self._report_gpus(provider_tree, root, gpus, {one.name for one in parents})
        self._tell(problems)

    # --- CPUs, memory and disk --------------------------------------------------------------------

    def _must_move_cells(self, tree: ProviderTree, root: ProviderData) -> bool:
        if self._options.model is Model.NUMA:
            return bool(root.inventory.keys() & set(OF_CELLS))
        return any(tree.has_inventory(cell.uuid) for cell in _cells_of(tree, root))

    def _report_flat(
        self,
        tree: ProviderTree,
        root: ProviderData,
        machine: Machine,
        allocations: Allocations | None,
    ) -> None:
        """Everything on the root; NUMA nodes that were modelled before go."""
        carried: dict[str, dict[str, Any]] = {}
        for cell in _cells_of(tree, root):
            for name, record in cell.inventory.items():
                first = carried.setdefault(name, {**record, "reserved": 0})
                first["reserved"] += record.get("reserved", 0)
            if allocations is not None:
                cells.move_to_root(allocations, cell.uuid, root.uuid)
            _drop(tree, cell.uuid)
        totals = self._totals(tree, root, machine)
        made = records(totals, {**root.inventory, **carried}, self._options)
        _replace(tree, root.uuid, {name: {**carried.get(name, {}), **made[name]} for name in made})

    def _report_cells(
        self,
        tree: ProviderTree,
        root: ProviderData,
        machine: Machine,
        allocations: Allocations | None,
    ) -> None:
        """CPUs and memory on the NUMA nodes, the disk on the root."""
        totals = cell_totals(machine, self._options)
        names = {cell: f"{root.name}_NUMA{cell}" for cell in totals}
        for name in names.values():
            _ensure_child(tree, name, root.uuid, _NUMA_TRAIT)
        there = {cell: tree.data(name).inventory for cell, name in names.items()}
        made = cell_records(totals, there, self._options, root.inventory)
        for cell, name in names.items():
            tree.update_inventory(name, made[cell])
        for gone in _cells_of(tree, root):
            if gone.name not in names.values():
                _drop(tree, gone.uuid)
        if allocations is not None:
            targets = [
                cells.Target(cell, data.uuid, data.inventory)
                for cell, data in ((cell, tree.data(name)) for cell, name in names.items())
            ]
            cells.move_to_cells(allocations, root.uuid, targets, self._shares(machine, allocations))
        of_root = self._totals(tree, root, machine)
        for name in OF_CELLS:
            of_root.pop(name, None)
        _replace(tree, root.uuid, records(of_root, root.inventory, self._options))

    def _totals(self, tree: ProviderTree, root: ProviderData, machine: Machine) -> dict[str, int]:
        """What the host has; its disk is left out where another provider shares one with it.

        Where the root has a disk in the service, it stays: somebody may hold of it.
        """
        disk = self._options.disk
        if "DISK_GB" not in root.inventory and tree.has_sharing_provider("DISK_GB"):
            disk = None
        gib = self._host.disk_gib(disk) if disk is not None else 0
        return host_totals(machine, self._options, gib)

    def _shares(self, machine: Machine, allocations: Allocations) -> dict[str, cells.Shares]:
        guests = {guest.uuid: guest for guest in self._host.guests()}
        found = {
            consumer: guests.get(self._options.migrations.get(consumer, consumer))
            for consumer in allocations
        }
        return {
            consumer: cells.shares_of(guest, machine.capabilities.cells)
            for consumer, guest in found.items()
            if guest is not None
        }

    def _report_traits(self, tree: ProviderTree, root: str, machine: Machine) -> None:
        traits = cpu_traits(
            machine.cpu_features,
            arch=machine.capabilities.arch,
            has_hyperthreads=machine.capabilities.has_hyperthreads,
        )
        tree.remove_traits(root, *(TOLD - traits))
        tree.add_traits(root, *traits)

    # --- vGPUs ------------------------------------------------------------------------------------

    def _must_move_vgpus(self, root: ProviderData, gpus: Sequence[GPU]) -> bool:
        """Whether the root has vGPUs, other than those that the last move had to leave there."""
        offered = {gpu.resource_class for gpu in gpus if gpu.total}
        for name in offered & root.inventory.keys():
            record = root.inventory[name]
            is_left = record["total"] == record.get("reserved")
            if not is_left or record["total"] > self._left.get((root.uuid, name), 0):
                return True
        return False

    def _move_vgpus(
        self,
        tree: ProviderTree,
        root: str,
        gpus: Sequence[GPU],
        mdevs: Sequence[Mdev],
        allocations: Allocations,
    ) -> None:
        """Move vGPUs from the root to their GPUs, and what consumers hold of them.

        What is left on the root is as much as the untold ones hold, and all of it reserved.
        """
        self.untold, self._left, self._kept_free = (), {}, {}
        node = tree.data(root).name
        moving: dict[str, list[GPU]] = {}
        for gpu in gpus:
            if gpu.total and gpu.resource_class in tree.data(root).inventory:
                moving.setdefault(gpu.resource_class, []).append(gpu)
        if not moving:
            return
        teller = Teller(
            self._host.guests(),
            mdevs,
            migrations=self._options.migrations,
            assume=self._options.assume,
        )
        own = set(tree.get_provider_uuids(root))
        for name, some in moving.items():
            children = {
                gpu.device: _ensure_child(tree, f"{node}_{gpu.device}", root) for gpu in some
            }
            placing = teller.place(
                held_of(allocations, root, name),
                some,
                held_of_gpus=_held_of_gpus(allocations, children, name),
                elsewhere=_holding_outside(allocations, own, name),
            )
            for consumer, parts in placing.parts.items():
                to = {children[device]: part for device, part in parts.items()}
                transfer(allocations, consumer, name, source=root, parts=to)
            self._left[root, name] = sum(one.amount for one in placing.untold)
            self._leave_on_root(tree, root, name, self._left[root, name])
            self.untold += placing.untold
            for device, amount in placing.kept_free.items():
                self._kept_free[children[device]] = amount
        for one in self.untold:
            LOG.warning("%s", one)

    @staticmethod
    def _leave_on_root(tree: ProviderTree, root: str, name: str, amount: int) -> None:
        left = {cls: record for cls, record in tree.data(root).inventory.items() if cls != name}
        if amount:
            left[name] = {**_gpu_record(amount), "reserved": amount}
        tree.update_inventory(root, left)

    def _release(self, tree: ProviderTree, root: ProviderData) -> None:
        """Take from the root what was left there for consumers that have gone since."""
        for name in sorted(root.inventory):
            if self.used is not None and (root.uuid, name) in self._left:
                held = self.used(root.uuid).get(name, 0)
                if held < root.inventory[name]["total"]:
                    self._leave_on_root(tree, root.uuid, name, held)

    def _report_gpus(
        self, tree: ProviderTree, root: ProviderData, gpus: Sequence[GPU], devices: Set[str]
    ) -> list[str]:
        """Give each GPU its child; what is wrong with some of them, as sentences.

        A GPU that is not seen, or that has nothing at the moment, keeps its child, and offers
        nothing more: one look at a driver that is being loaded must not free what guests hold. It
        goes where nobody is known to hold any.
        """
        problems = []
        inventory = tree.data(root.uuid).inventory
        untold = {name: inventory.get(name, {}).get("total", 0) for _, name in self._left}
        names = {f"{root.name}_{gpu.device}": gpu for gpu in gpus}
        for name, gpu in names.items():
            if gpu.total:
                child = _ensure_child(tree, name, root.uuid)
                kept = min(
                    self._kept_free.get(child, 0), gpu.total, untold.get(gpu.resource_class, 0)
                )
                untold[gpu.resource_class] = untold.get(gpu.resource_class, 0) - kept
                record = {**_gpu_record(gpu.total), "reserved": kept}
                tree.update_inventory(child, {gpu.resource_class: record})
        for data in _gpu_children(tree, root):
            device = data.name.removeprefix(f"{root.name}_")
            if data.name in names and names[data.name].total:
                continue
            is_free = self.used is not None and not any(self.used(data.uuid).values())
            if data.name not in names and (device in devices or is_free):
                _drop(tree, data.uuid)
                continue
            what = "offers no mediated device" if device in devices else "is not there"
            problems.append(f"{data.name}: the device {what}; nothing more of it is given out")
            tree.update_inventory(
                data.uuid,
                {cls: {**rec, "reserved": rec["total"]} for cls, rec in data.inventory.items()},
            )
        unseen = {rule.resource_class for rule in self._options.mdev} - {
            gpu.resource_class for gpu in gpus if gpu.total
        }
        problems += [
            f"{root.name} has {name}, and no GPU with it is there to take it over"
            for name in sorted(unseen & root.inventory.keys())
        ]
        return problems

    def _tell(self, problems: Sequence[str]) -> None:
        """Warn of what was not so before."""
        for problem in problems:
            if problem not in self.problems:
                LOG.warning("%s", problem)
        self.problems = tuple(problems)


def _replace(tree: ProviderTree, root: str, made: Mapping[str, Mapping[str, Any]]) -> None:
    """Give the root the records of the driver's own classes; all others stay."""
    others = {
        name: record for name, record in tree.data(root).inventory.items() if name not in SHARED_OUT
    }
    tree.update_inventory(root, {**others, **made})


def _ensure_child(tree: ProviderTree, name: str, root: str, *traits: str) -> str:
    """A child of the root that is the driver's own; its uuid."""
    uuid = tree.data(name).uuid if tree.exists(name) else tree.new_child(name, root)
    tree.add_traits(uuid, OWNER_TRAIT, *traits)
    return uuid


def _drop(tree: ProviderTree, provider: str) -> None:
    """Remove a child, or where others' providers stand below it, all of its inventory."""
    if len(tree.get_provider_uuids(provider)) == 1:
        tree.remove(provider)
    else:
        tree.update_inventory(provider, {})


def _gpu_record(total: int) -> dict[str, Any]:
    return {
        "total": total,
        "min_unit": 1,
        "max_unit": total,
        "step_size": 1,
        "allocation_ratio": 1.0,
    }


def _own_children(tree: ProviderTree, root: ProviderData) -> Iterator[ProviderData]:
    for uuid in tree.get_provider_uuids(root.uuid):
        data = tree.data(uuid)
        if data.parent_uuid == root.uuid and OWNER_TRAIT in data.traits:
            yield data


def _cells_of(tree: ProviderTree, root: ProviderData) -> list[ProviderData]:
    """The children that are NUMA nodes."""
    return [
        data
        for data in _own_children(tree, root)
        if _NUMA_TRAIT in data.traits and data.name.startswith(f"{root.name}_NUMA")
    ]


def _gpu_children(tree: ProviderTree, root: ProviderData) -> list[ProviderData]:
    """The children that are GPUs, as their names tell."""
    return [
        data
        for data in _own_children(tree, root)
        if _NUMA_TRAIT not in data.traits and data.name.startswith(f"{root.name}_")
    ]


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
