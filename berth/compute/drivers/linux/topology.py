# SPDX-License-Identifier: Apache-2.0
"""Which CPUs a host has, which of them are given out how, and on which NUMA nodes they are.

NUMA nodes keep the kernel's numbers, which may have gaps. A kernel without NUMA is one node, 0.
Source: spec/compute-side.md 5.1.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from berth.compute.drivers.linux.files import HostFiles
from berth.compute.drivers.linux.names import standard_traits
from berth.compute.errors import BadConfiguration, HostUnreadable

_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node"


@dataclass(frozen=True, slots=True)
class Topology:
    """The CPUs of a host."""

    #: All that are there, whether they run or not.
    present: frozenset[int]
    online: frozenset[int]
    #: The NUMA nodes, in ascending order, also those without CPUs or without memory.
    nodes: tuple[int, ...]
    #: On which node each CPU that is present is.
    node_of: Mapping[int, int]
    #: Whether a core runs several threads.
    has_threads: bool
    #: The trait of the architecture, where there is one.
    architecture: str | None


def read_topology(files: HostFiles, *, remembered: Mapping[int, int]) -> Topology:
    """The CPUs of a host, as they are now.

    Args:
        remembered: on which node CPUs were when they last ran; the kernel does not tell of a CPU
            that rests.

    Raises:
        HostUnreadable: there is nothing to read.
    """
    online = files.id_list(f"{_CPU}/online")
    if not online:
        raise HostUnreadable(f"{files.path(_CPU)}/online does not say which CPUs the host has")
    present = (files.id_list(f"{_CPU}/present") or online) | online
    nodes = tuple(sorted(files.id_list(f"{_NODE}/online") or ())) or (0,)
    told = {
        cpu: node
        for node in nodes
        for cpu in files.id_list(f"{_NODE}/node{node}/cpulist") or frozenset()
    }
    return Topology(
        present=present,
        online=online,
        nodes=nodes,
        node_of=_nodes_of(present, {**remembered, **told}, nodes),
        has_threads=_has_threads(files),
        architecture=_architecture(files),
    )


@dataclass(frozen=True, slots=True)
class CPUSets:
    """Which CPUs are given out, and how."""

    #: As VCPU, to as many holders as the allocation ratio admits.
    shared: frozenset[int]
    #: As PCPU, one to a holder.
    dedicated: frozenset[int]


def cpu_sets(
    topology: Topology, *, shared: frozenset[int] | None, dedicated: frozenset[int]
) -> CPUSets:
    """The CPUs that are given out, as configured; all that are online where nothing is.

    A dedicated CPU counts although it rests: it wakes for its holder, and the inventory does not
    flap with the power management.

    Raises:
        BadConfiguration: the host does not have one of them.
    """
    faults = [
        f"{option} names CPU {', '.join(map(str, sorted(strange)))}, and the host has the CPUs "
        f"{_drawn(topology.present)}"
        for option, cpus in (("cpu_shared", shared or frozenset()), ("cpu_dedicated", dedicated))
        if (strange := cpus - topology.present)
    ]
    if faults:
        raise BadConfiguration(faults)
    if shared is None:
        shared = frozenset() if dedicated else topology.online
    return CPUSets(shared=shared & topology.online, dedicated=dedicated)


def _nodes_of(
    present: frozenset[int], known: Mapping[int, int], nodes: tuple[int, ...]
) -> dict[int, int]:
    """Every CPU's node: of one that was never seen to run, that of the next below it."""
    node_of: dict[int, int] = {}
    here = min((known[cpu] for cpu in present & known.keys()), default=nodes[0])
    for cpu in sorted(present):
        here = known.get(cpu, here)
        node_of[cpu] = here
    return node_of


def _has_threads(files: HostFiles) -> bool:
    if (active := files.number(f"{_CPU}/smt/active")) is not None:
        return active == 1
    return any(
        len(files.id_list(f"{path}/topology/thread_siblings_list") or ()) > 1
        for _, path in files.numbered(_CPU, "cpu")
    )


def _architecture(files: HostFiles) -> str | None:
    """Kernels before 6.1 do not tell it in procfs; then it is that of the running kernel."""
    machine = files.text("proc/sys/kernel/arch") or os.uname().machine
    trait = f"HW_ARCH_{machine.upper()}"
    return trait if trait in standard_traits() else None


def _drawn(cpus: frozenset[int]) -> str:
    """A set of CPUs as the kernel writes it."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][-1] == cpu - 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
