# SPDX-License-Identifier: Apache-2.0
"""Converts libvirt's data to what a host has: pure, no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from berth.hosts.drivers.hosts.cpus import cpu_sets, nodes_of
from berth.hosts.drivers.hosts.devices import Device, each_once
from berth.hosts.drivers.hosts.encryption import encryption_devices
from berth.hosts.drivers.hosts.facts import Facts, parts_of
from berth.hosts.drivers.hosts.mdev import mdev_devices
from berth.hosts.drivers.hosts.options import HostOptions, Model, Placement
from berth.hosts.drivers.hosts.pci import pci_devices
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
) -> Facts:
    """What a host has.

    Raises:
        BadConfiguration: the options name something that the host does not have.
    """
    capabilities = machine.capabilities
    if options.model is Model.NUMA and not capabilities.cells:
        raise BadConfiguration(
            ["driver libvirt, options.model: libvirt reports no NUMA nodes here; use flat"]
        )
    whole, nodes = parts_of(
        cpu_sets(machine.present_cpus, machine.online_cpus, options),
        node_of,
        {cell.id: cell.memory_kib for cell in capabilities.cells},
        {cell.id: cell.huge_kib for cell in capabilities.cells},
        total_kib=machine.memory_mib * 1024,
    )
    traits = cpu_traits(
        machine.cpu_features, arch=capabilities.arch, has_hyperthreads=capabilities.has_hyperthreads
    )
    return Facts(whole, nodes, disk_gib, traits, DETECTABLE, tuple(devices))


def devices_of(
    node_devices: NodeDevices, encryption_slots: Mapping[str, int], options: HostOptions
) -> tuple[list[Device], list[Device]]:
    """All devices on offer, and those of them that are divided into mediated ones.

    Raises:
        BadConfiguration: a rule selects devices that cannot be offered together.
    """
    made = Counter((mdev.parent, mdev.type) for mdev in node_devices.mdevs)
    parents = [
        replace(
            parent,
            made={kind: count for (name, kind), count in made.items() if name == parent.name},
        )
        for parent in node_devices.parents
    ]
    cut = list(mdev_devices(parents, options.mdev))
    slots = encryption_devices(encryption_slots)
    devices = list(each_once(pci_devices(node_devices.functions, options.pci), cut, slots))
    return devices, [device for device in cut if device in devices]


def shares_of(guest: Guest, cells: Sequence[Cell]) -> Placement:
    """The NUMA nodes of a guest, by its pinned vCPUs or its bound memory; none without either."""
    pinned: Counter[int] = Counter()
    for pin in guest.pins:
        pinned.update(cell.id for cell in cells if pin and pin <= cell.cpus)
    if pinned.total() == len(guest.pins) and pinned:
        return pinned
    return dict.fromkeys(sorted(guest.memory_cells), 1)
