# SPDX-License-Identifier: Apache-2.0
"""What a host has: the same values for every driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from berth.hosts.drivers.hosts.cpus import CPUSets
from berth.hosts.drivers.hosts.devices import Device
from berth.hosts.drivers.hosts.id_lists import write_id_list


@dataclass(frozen=True, slots=True)
class Part:
    """What a NUMA node has, or the whole host."""

    vcpus: int
    pcpus: int
    memory_kib: int
    #: Memory in huge pages by page size in KiB; included in the other figure.
    huge_kib: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a host has."""

    whole: Part
    #: The NUMA nodes by number, in ascending order, including empty ones.
    nodes: Mapping[int, Part]
    #: 0: no disk is offered.
    disk_gib: int
    #: The traits of the host itself.
    traits: frozenset[str]
    #: All traits that could be detected: the host has no others of them.
    detectable: frozenset[str]
    devices: tuple[Device, ...]
    #: What is seen and not offered, or offered although it is not known, a sentence each.
    notices: tuple[str, ...] = ()
    #: The card of each PCI function, on offer or not, by address.
    cards: Mapping[str, str] = field(default_factory=dict)


def parts_of(
    cpus: CPUSets,
    node_of: Mapping[int, int],
    node_kib: Mapping[int, int],
    huge_kib: Mapping[int, Mapping[int, int]],
    *,
    total_kib: int,
) -> tuple[Part, dict[int, Part]]:
    """The whole host, and its NUMA nodes.

    Args:
        node_of: the node of each CPU.
        node_kib, huge_kib: by node, its memory, and the part of it in huge pages.
    """
    shared = Counter(node_of[cpu] for cpu in cpus.shared if cpu in node_of)
    dedicated = Counter(node_of[cpu] for cpu in cpus.dedicated if cpu in node_of)
    pages: Counter[int] = Counter()
    for of_node in huge_kib.values():
        pages.update(of_node)
    return (
        Part(len(cpus.shared), len(cpus.dedicated), total_kib, pages),
        {
            node: Part(shared[node], dedicated[node], kib, huge_kib.get(node, {}))
            for node, kib in sorted(node_kib.items())
        },
    )


def without_cpus(
    nodes: Mapping[int, Part], with_cpus: Collection[int], of_gpus: Collection[int]
) -> Iterator[str]:
    """Notices of NUMA nodes without CPUs: devices present their memory as such nodes.

    Args:
        nodes: those that are offered.
        with_cpus: those that have CPUs, on offer or not.
        of_gpus: those that are the memory of GPUs.
    """
    if of_gpus:
        yield f"NUMA node {write_id_list(of_gpus)} is memory of GPUs, and is not offered"
    for number, part in nodes.items():
        if part.memory_kib and number not in with_cpus:
            yield (
                f"NUMA node {number} has {part.memory_kib // 1024:,} MiB of memory and no CPUs; it "
                "is offered: if it belongs to a device, reserve as much"
            )
