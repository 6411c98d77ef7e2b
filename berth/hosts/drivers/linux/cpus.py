# SPDX-License-Identifier: Apache-2.0
"""Which CPUs a host has, and on which NUMA nodes they are.

NUMA nodes have the kernel's numbers, which may have gaps. A kernel without NUMA is one node, 0.
Source: spec/compute-side.md 5.1.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from berth.hosts.drivers.host_model.cpus import (
    CPU_TRAITS,
    VENDOR_TRAITS,
    Topology,
    nodes_of,
    traits_of_flags,
)
from berth.hosts.drivers.host_model.names import STANDARD, write_id_list
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.errors import HostUnreadable

_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node"


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


# --- The features that every CPU has, according to /proc/cpuinfo ----------------------------------
#
# What a guest sees of them is up to its hypervisor. Source: spec/compute-side.md 5.2.

_CPUINFO: Final = "proc/cpuinfo"

_POWER: Final = "HW_CPU_PPC64LE_"

#: The traits of CPUs that the driver can detect.
DETECTABLE: Final = (
    CPU_TRAITS | VENDOR_TRAITS | {trait for trait in STANDARD if trait.startswith(_POWER)}
)


def read_cpu_traits(files: HostFiles, machine: str) -> tuple[frozenset[str], frozenset[str]]:
    """The traits of the features that all CPUs of the host have, and those that only some have.

    Args:
        machine: the architecture, as `uname -m` names it.

    Raises:
        HostUnreadable: the file cannot be read: a single failure must not remove the traits.
    """
    if not files.text(_CPUINFO):
        raise HostUnreadable(f"{files.path(_CPUINFO)} does not describe the CPUs")
    traits = [_traits_of(block, machine) for block in _processors(files)]
    if not traits:
        return frozenset(), frozenset()
    of_all = frozenset.intersection(*traits)
    return of_all, frozenset.union(*traits) - of_all


def _processors(files: HostFiles) -> Iterator[dict[str, str]]:
    """The paragraphs of /proc/cpuinfo about processors, as mappings."""
    for paragraph in (files.text(_CPUINFO) or "").split("\n\n"):
        lines = (line.partition(":") for line in paragraph.splitlines())
        fields = {name.strip(): value.strip() for name, _, value in lines}
        if "processor" in fields:
            yield fields


def _traits_of(fields: Mapping[str, str], machine: str) -> frozenset[str]:
    words = fields.get("Features" if machine == "aarch64" else "flags", "")
    traits = traits_of_flags(frozenset(words.split()), machine, fields.get("vendor_id", ""))
    model = fields.get("cpu", "").split(" ")[0].rstrip(",")
    return traits | ({_POWER + model} & DETECTABLE)
