# SPDX-License-Identifier: Apache-2.0
"""Which CPUs a host has, and on which NUMA nodes they are.

NUMA nodes have the kernel's numbers, which may have gaps. A kernel without NUMA is one node, 0.
Source: spec/compute-side.md 5.1.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from berth.hosts.drivers.hosts.cpus import nodes_of
from berth.hosts.drivers.hosts.id_lists import write_id_list
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.errors import HostUnreadable

_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node"


@dataclass(frozen=True, slots=True)
class Topology:
    """The CPUs of a host."""

    #: All CPUs, online or not.
    present: frozenset[int]
    online: frozenset[int]
    #: The NUMA nodes, in ascending order, including those without CPUs or without memory.
    nodes: tuple[int, ...]
    #: The node of each CPU.
    node_of: Mapping[int, int]
    #: Whether a core runs several threads.
    has_threads: bool
    #: The architecture, as `uname -m` names it.
    machine: str
    #: What the kernel leaves open, a sentence each.
    notices: tuple[str, ...] = ()
    #: The CPUs that run on an unknown node.
    lost: frozenset[int] = frozenset()


def read_topology(files: HostFiles, *, remembered: Mapping[int, int]) -> Topology:
    """Read the current CPUs of a host.

    Args:
        remembered: the nodes of CPUs when they were last online: for an offline CPU, some kernels
            report the first node.

    Raises:
        HostUnreadable: the files cannot be read.
    """
    online = files.id_list(f"{_CPU}/online")
    if not online:
        raise HostUnreadable(f"{files.path(_CPU)}/online does not say which CPUs the host has")
    present = (files.id_list(f"{_CPU}/present") or online) | online
    listed = files.id_list(f"{_NODE}/online")
    if listed is None:
        listed = frozenset(node for node, _ in files.numbered(_NODE, "node"))
    node_of_cpu = {
        cpu: node
        for node in sorted(listed)
        for cpu in files.id_list(f"{_NODE}/node{node}/cpulist") or frozenset()
    }
    linked = linked_nodes(files, present - node_of_cpu.keys())
    unlisted = {cpu: node for cpu, node in linked.items() if cpu in online and node not in listed}
    nodes = tuple(sorted(listed | set(unlisted.values()))) or (0,)
    return Topology(
        present=present,
        online=online,
        nodes=nodes,
        node_of=nodes_of(present, {**linked, **remembered, **node_of_cpu}, nodes),
        has_threads=_has_threads(files),
        # Kernels before 6.1 do not have it in procfs; use the running kernel's.
        machine=files.text("proc/sys/kernel/arch") or os.uname().machine,
        notices=tuple(_notices(unlisted)),
        lost=online - node_of_cpu.keys() - linked.keys() if node_of_cpu else frozenset(),
    )


def _notices(unlisted: Mapping[int, int]) -> Iterator[str]:
    for node in sorted(set(unlisted.values())):
        cpus = write_id_list(cpu for cpu, theirs in unlisted.items() if theirs == node)
        yield (
            f"CPUs {cpus} are on NUMA node {node}, which the kernel does not list as online: they "
            "are offered there, without memory"
        )


def linked_nodes(files: HostFiles, cpus: Iterable[int]) -> dict[int, int]:
    """The NUMA nodes of some CPUs, as far as the kernel reports them for offline CPUs too."""
    return {cpu: node for cpu in cpus for node, _ in files.numbered(f"{_CPU}/cpu{cpu}", "node")}


def _has_threads(files: HostFiles) -> bool:
    if (active := files.number(f"{_CPU}/smt/active")) is not None:
        return active == 1
    return any(
        len(files.id_list(f"{path}/topology/thread_siblings_list") or ()) > 1
        for _, path in files.numbered(_CPU, "cpu")
    )
