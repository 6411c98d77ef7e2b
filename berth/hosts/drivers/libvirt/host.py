# SPDX-License-Identifier: Apache-2.0
"""What the driver reads from a host, and what that says of the host: pure, no I/O.

A libvirt connection implements `Host`, and so do recordings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from berth.hosts.drivers.host_model.cpus import CPU_TRAITS, Topology, nodes_of, traits_of_flags
from berth.hosts.drivers.host_model.devices import DeviceSources, Function, MdevParent
from berth.hosts.drivers.host_model.facts import Facts, Memory, facts_of
from berth.hosts.drivers.host_model.options import HostOptions, Model, Placement
from berth.hosts.drivers.libvirt.xml_documents import Capabilities, Cell, Guest, Mdev
from berth.hosts.errors import BadConfiguration

#: Features to which the kernel gives another name, beyond - and . for _.
_FLAGS: Final[Mapping[str, str]] = {
    "pclmuldq": "pclmulqdq",
    "sse3": "pni",
    "avx512vnni": "avx512_vnni",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512bitalg": "avx512_bitalg",
}


@dataclass(frozen=True, slots=True)
class Machine:
    """What a host has, except for guests and devices."""

    capabilities: Capabilities
    memory_mib: int
    #: All CPUs, online or not.
    present_cpus: frozenset[int]
    online_cpus: frozenset[int]
    #: The features of a guest's CPU, by libvirt's names.
    cpu_features: frozenset[str]
    #: The number of guests with encrypted memory, by kind (`sev`, `sev_es`); None if it is unknown.
    encryption_slots: Mapping[str, int | None] = field(default_factory=dict)
    #: The NUMA nodes of CPUs that are missing from the capabilities because they are offline.
    resting_on: Mapping[int, int] = field(default_factory=dict)
    #: The NUMA nodes that are the memory of GPUs.
    of_gpus: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of a host that may be offered."""

    #: Without the number of their mediated devices.
    parents: Sequence[MdevParent] = ()
    mdevs: Sequence[Mdev] = ()
    functions: Sequence[Function] = ()


class Host(Protocol):
    """What the driver reads from a host."""

    def machine(self) -> Machine:
        """What it has.

        Raises:
            HostUnreadable: it cannot be read; likewise for the other methods.
        """

    def devices(self) -> NodeDevices:
        """The devices on the PCI bus, and those related to mediated devices."""

    def guests(self) -> list[Guest]:
        """All domains, including stopped ones."""

    def disk_gib(self, directory: Path) -> int:
        """The size of a directory's file system, in whole GiB."""


def read_host(
    machine: Machine,
    devices: NodeDevices,
    options: HostOptions,
    *,
    disk_gib: int,
    remembered: Mapping[int, int],
) -> Facts:
    """What a host has.

    Args:
        remembered: the NUMA nodes of CPUs when they were last online; libvirt may not know an
            offline one.

    Raises:
        BadConfiguration: the options name something that the host does not have.
    """
    if options.model is Model.NUMA and not machine.capabilities.cells:
        raise BadConfiguration(
            "driver libvirt, options.model: libvirt reports no NUMA nodes here; use flat"
        )
    topology = _topology(machine, remembered)
    sources = DeviceSources(
        devices.functions,
        _parents(devices),
        machine.encryption_slots,
        "libvirt says it from 8.0 on",
    )
    return facts_of(
        topology,
        _memory(machine, topology),
        sources,
        options,
        disk_gib=disk_gib,
        traits=feature_traits(machine.cpu_features, topology.machine),
        detectable=CPU_TRAITS,
    )


def _topology(machine: Machine, remembered: Mapping[int, int]) -> Topology:
    cells = machine.capabilities.cells
    placed = {cpu: cell.id for cell in cells for cpu in cell.cpus}
    node_of_known = {**machine.resting_on, **remembered, **placed}
    nodes = tuple(cell.id for cell in cells) or (0,)
    is_placed = any(cell.cpus or cell.id not in machine.of_gpus for cell in cells)
    return Topology(
        present=machine.present_cpus,
        online=machine.online_cpus,
        nodes=nodes,
        node_of=nodes_of(machine.present_cpus, node_of_known, nodes),
        has_threads=machine.capabilities.has_hyperthreads,
        machine=machine.capabilities.arch,
        lost=machine.online_cpus - machine.resting_on.keys() - placed.keys()
        if is_placed
        else frozenset(),
    )


def _memory(machine: Machine, topology: Topology) -> Memory:
    cells = machine.capabilities.cells
    of_gpus = [cell for cell in cells if cell.id in machine.of_gpus and not cell.cpus]
    own = [cell for cell in cells if cell not in of_gpus]
    return Memory(
        total_kib=machine.memory_mib * 1024 - sum(cell.memory_kib for cell in of_gpus),
        # A CPU may be on a node of which libvirt tells nothing.
        node_kib=dict.fromkeys(topology.node_of.values(), 0)
        | {cell.id: cell.memory_kib for cell in own},
        huge_kib={cell.id: cell.huge_kib for cell in own},
        of_gpus=frozenset(cell.id for cell in of_gpus),
    )


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


def feature_traits(features: Iterable[str], machine: str) -> frozenset[str]:
    """The traits of a CPU's features, by libvirt's names.

    Source: spec/compute-side.md 5.2.
    """
    flags = frozenset(_FLAGS.get(name, re.sub("[-.]", "_", name)) for name in features)
    return traits_of_flags(flags, machine)


def shares_of(guest: Guest, cells: Sequence[Cell]) -> Placement:
    """The NUMA nodes of a guest, by its pinned vCPUs or its bound memory; none without either."""
    pinned: Counter[int] = Counter()
    for pin in guest.pins:
        pinned.update(cell.id for cell in cells if pin and pin <= cell.cpus)
    if pinned.total() == len(guest.pins) and pinned:
        return pinned
    return dict.fromkeys(sorted(guest.memory_cells), 1)
