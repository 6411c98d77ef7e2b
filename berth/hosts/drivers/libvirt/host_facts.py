# SPDX-License-Identifier: Apache-2.0
"""From what libvirt tells of a host to what it has: pure, no I/O."""

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
from berth.hosts.drivers.libvirt.cpu_traits import TOLD, cpu_traits
from berth.hosts.drivers.libvirt.machine import Machine, NodeDevices
from berth.hosts.drivers.libvirt.xml_documents import Cell, Guest
from berth.hosts.errors import BadConfiguration


def node_of_cpus(machine: Machine, remembered: Mapping[int, int]) -> dict[int, int]:
    """On which NUMA node each CPU is.

    Args:
        remembered: where CPUs were when they last ran; libvirt may not tell of one that rests.
    """
    cells = machine.capabilities.cells
    told = {cpu: cell.id for cell in cells for cpu in cell.cpus}
    nodes = [cell.id for cell in cells] or [0]
    return nodes_of(machine.present_cpus, {**machine.resting_on, **remembered, **told}, nodes)


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
        BadConfiguration: the options name what the host does not have.
    """
    told = machine.capabilities
    if options.model is Model.NUMA and not told.cells:
        raise BadConfiguration(
            ["The libvirt driver, model: libvirt tells of no NUMA nodes here; it must be flat"]
        )
    whole, nodes = parts_of(
        cpu_sets(machine.present_cpus, machine.online_cpus, options),
        node_of,
        {cell.id: cell.memory_kib for cell in told.cells},
        {cell.id: cell.huge_kib for cell in told.cells},
        total_kib=machine.memory_mib * 1024,
    )
    traits = cpu_traits(
        machine.cpu_features, arch=told.arch, has_hyperthreads=told.has_hyperthreads
    )
    return Facts(whole, nodes, disk_gib, traits, TOLD, tuple(devices))


def devices_of(
    found: NodeDevices, encryption_slots: Mapping[str, int], options: HostOptions
) -> tuple[list[Device], list[Device]]:
    """All devices that are given out, and of those the ones that are cut into mediated ones.

    Raises:
        BadConfiguration: a rule admits what cannot be given out together.
    """
    made = Counter((mdev.parent, mdev.type) for mdev in found.mdevs)
    parents = [
        replace(
            parent,
            made={kind: count for (name, kind), count in made.items() if name == parent.name},
        )
        for parent in found.parents
    ]
    cut = list(mdev_devices(parents, options.mdev))
    slots = encryption_devices(encryption_slots)
    every = list(each_once(pci_devices(found.functions, options.pci), cut, slots))
    return every, [device for device in cut if device in every]


def shares_of(guest: Guest, cells: Sequence[Cell]) -> Placement:
    """On which NUMA nodes a guest is, by its pinned vCPUs or its bound memory; none: it floats."""
    pinned: Counter[int] = Counter()
    for pin in guest.pins:
        pinned.update(cell.id for cell in cells if pin and pin <= cell.cpus)
    if pinned.total() == len(guest.pins) and pinned:
        return pinned
    return dict.fromkeys(sorted(guest.memory_cells), 1)
