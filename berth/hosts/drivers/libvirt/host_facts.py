# SPDX-License-Identifier: Apache-2.0
"""Converts libvirt's data to what a host has: pure, no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from berth.hosts.drivers.hosts.cpus import cpu_notices, cpu_sets, nodes_of
from berth.hosts.drivers.hosts.devices import Device, each_once
from berth.hosts.drivers.hosts.encryption import encryption_devices, unknown_encryption
from berth.hosts.drivers.hosts.facts import Facts, parts_of, without_cpus
from berth.hosts.drivers.hosts.mdev import MdevParent, mdev_devices, mdev_notices
from berth.hosts.drivers.hosts.options import HostOptions, Model, Placement
from berth.hosts.drivers.hosts.pci import Function, cards_of, pci_devices, pci_notices
from berth.hosts.drivers.libvirt.cpu_traits import DETECTABLE, cpu_traits
from berth.hosts.drivers.libvirt.machine import Machine, NodeDevices
from berth.hosts.drivers.libvirt.xml_documents import Cell, Guest
from berth.hosts.errors import BadConfiguration


def node_of_cpus(machine: Machine, remembered: Mapping[int, int]) -> dict[int, int]:
    """The NUMA node of each CPU.

    Args:
        remembered: the nodes of CPUs when they were last online; libvirt may not know an offline
            one.
    """
    cells = machine.capabilities.cells
    node_of = {cpu: cell.id for cell in cells for cpu in cell.cpus}
    nodes = [cell.id for cell in cells] or [0]
    return nodes_of(machine.present_cpus, {**machine.resting_on, **remembered, **node_of}, nodes)


def facts_of(
    machine: Machine,
    devices: Sequence[Device],
    options: HostOptions,
    *,
    node_of: Mapping[int, int],
    disk_gib: int,
    functions: Sequence[Function] = (),
) -> Facts:
    """What a host has.

    Args:
        functions: all PCI functions, on offer or not.

    Raises:
        BadConfiguration: the options name something that the host does not have.
    """
    capabilities = machine.capabilities
    if options.model is Model.NUMA and not capabilities.cells:
        raise BadConfiguration(
            ["driver libvirt, options.model: libvirt reports no NUMA nodes here; use flat"]
        )
    of_gpus = [cell for cell in capabilities.cells if cell.id in machine.of_gpus and not cell.cpus]
    cells = [cell for cell in capabilities.cells if cell not in of_gpus]
    whole, nodes = parts_of(
        cpu_sets(machine.present_cpus, machine.online_cpus, options),
        node_of,
        # A CPU may be on a node of which libvirt tells nothing.
        {**dict.fromkeys(node_of.values(), 0), **{cell.id: cell.memory_kib for cell in cells}},
        {cell.id: cell.huge_kib for cell in cells},
        total_kib=machine.memory_mib * 1024 - sum(cell.memory_kib for cell in of_gpus),
    )
    traits = cpu_traits(
        machine.cpu_features, arch=capabilities.arch, has_hyperthreads=capabilities.has_hyperthreads
    )
    placed = machine.resting_on.keys() | {cpu for cell in cells for cpu in cell.cpus}
    lost = machine.online_cpus - placed if cells else frozenset()
    notices = (
        *cpu_notices(machine.present_cpus, machine.online_cpus, options, lost),
        *without_cpus(nodes, set(node_of.values()), [cell.id for cell in of_gpus]),
        *unknown_encryption(machine.encryption_slots, who="libvirt says it from 8.0 on"),
    )
    return Facts(
        whole, nodes, disk_gib, traits, DETECTABLE, tuple(devices), notices, cards_of(functions)
    )


def devices_of(
    node_devices: NodeDevices, encryption_slots: Mapping[str, int | None], options: HostOptions
) -> tuple[list[Device], list[Device]]:
    """All devices on offer, and those of them that are divided into mediated ones.

    Raises:
        BadConfiguration: a rule selects devices that cannot be offered together.
    """
    cut = list(mdev_devices(_parents(node_devices), options.mdev))
    slots = encryption_devices(encryption_slots)
    devices = list(each_once(pci_devices(node_devices.functions, options.pci), cut, slots))
    return devices, [device for device in cut if device in devices]


def device_notices(node_devices: NodeDevices, options: HostOptions) -> list[str]:
    """Notices of devices that are not offered, and of rules without a device."""
    return [
        *pci_notices(node_devices.functions, options.pci),
        *mdev_notices(_parents(node_devices), options.mdev),
    ]


def _parents(node_devices: NodeDevices) -> list[MdevParent]:
    """The parents, with the number of their mediated devices."""
    made = Counter((mdev.parent, mdev.type) for mdev in node_devices.mdevs)
    return [
        replace(
            parent,
            made={kind: count for (name, kind), count in made.items() if name == parent.name},
        )
        for parent in node_devices.parents
    ]


def shares_of(guest: Guest, cells: Sequence[Cell]) -> Placement:
    """The NUMA nodes of a guest, by its pinned vCPUs or its bound memory; none without either."""
    pinned: Counter[int] = Counter()
    for pin in guest.pins:
        pinned.update(cell.id for cell in cells if pin and pin <= cell.cpus)
    if pinned.total() == len(guest.pins) and pinned:
        return pinned
    return dict.fromkeys(sorted(guest.memory_cells), 1)
