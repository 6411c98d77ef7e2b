# SPDX-License-Identifier: Apache-2.0
"""What a host has: every driver reads it into the same values, and gives the same notices of it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from berth.hosts.drivers import Used
from berth.hosts.drivers.host_model.cpus import (
    Topology,
    cpu_notices,
    cpu_sets,
    traits_of_machine,
)
from berth.hosts.drivers.host_model.devices import Device, DeviceSources
from berth.hosts.drivers.host_model.names import write_id_list
from berth.hosts.drivers.host_model.options import HostOptions
from berth.hosts.drivers.kept_settings import Keeping

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a host; sizes in KiB."""

    total_kib: int
    #: By NUMA node.
    node_kib: Mapping[int, int]
    #: Memory in huge pages by NUMA node and page size; included in the other figures.
    huge_kib: Mapping[int, Mapping[int, int]]
    #: The NUMA nodes that are the memory of GPUs; they are missing from the other figures.
    of_gpus: frozenset[int]


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
    #: The NUMA node of each CPU.
    node_of: Mapping[int, int] = field(default_factory=dict)


def facts_of(
    topology: Topology,
    memory: Memory,
    sources: DeviceSources,
    options: HostOptions,
    *,
    disk_gib: int,
    traits: frozenset[str],
    detectable: frozenset[str],
    notices: Sequence[str] = (),
    find_gpus: Callable[[Collection[str]], Iterable[Device]] = lambda taken: (),
) -> Facts:
    """What a host has, of what was read.

    Args:
        traits: those of its CPUs' flags, and of its disk.
        notices: further ones, which `find_gpus` may add to.
        find_gpus: see `DeviceSources.on_offer`.

    Raises:
        BadConfiguration: the options name something that the host does not have.
    """
    devices = tuple(sources.on_offer(options, find_gpus))
    shared, dedicated = cpu_sets(topology, options)
    vcpus, pcpus = (Counter(topology.node_of[cpu] for cpu in cpus) for cpus in (shared, dedicated))
    pages: Counter[int] = Counter()
    for of_node in memory.huge_kib.values():
        pages.update(of_node)
    nodes = {
        node: Part(vcpus[node], pcpus[node], kib, memory.huge_kib.get(node, {}))
        for node, kib in sorted(memory.node_kib.items())
    }
    return Facts(
        whole=Part(len(shared), len(dedicated), memory.total_kib, pages),
        nodes=nodes,
        disk_gib=disk_gib,
        traits=traits | traits_of_machine(topology),
        detectable=detectable,
        devices=devices,
        notices=(
            *topology.notices,
            *cpu_notices(topology, options),
            *_without_cpus(nodes, topology, memory),
            *sources.notices(options),
            *notices,
        ),
        cards=sources.cards,
        node_of=topology.node_of,
    )


def _without_cpus(nodes: Mapping[int, Part], topology: Topology, memory: Memory) -> Iterator[str]:
    """Notices of NUMA nodes without CPUs: devices present their memory as such nodes."""
    if memory.of_gpus:
        yield f"NUMA node {write_id_list(memory.of_gpus)} is memory of GPUs, and is not offered"
    with_cpus = set(topology.node_of.values())
    for number, part in nodes.items():
        if part.memory_kib and number not in with_cpus:
            yield (
                f"NUMA node {number} has {part.memory_kib // 1024:,} MiB of memory and no CPUs; it "
                "is offered: if it belongs to a device, reserve as much"
            )


def share_out(amount: int, weights: Sequence[int]) -> list[int]:
    """Split an amount in proportion to weights, which are not all 0.

    Each part differs from its exact share by less than one, and is at most its weight if the amount
    is at most the sum of the weights.
    """
    whole = sum(weights)
    marks = [amount * reached // whole for reached in accumulate(weights)]
    return [mark - before for mark, before in zip(marks, [0, *marks], strict=False)]


class HostDriver:
    """What the drivers of machines have in common.

    Attributes:
        keeping: how long what was set on providers is kept while their devices are away.
        used: reads the usage of a provider, so that a device that is gone is removed from the
            service as soon as it is free; None: it stays until a pass provides the allocations.
        notices: those of the last pass for the operator, a sentence each.
    """

    def __init__(self, options: HostOptions) -> None:
        self.keeping = Keeping(options.keep_days)
        self.used: Used | None = None
        self.notices: tuple[str, ...] = ()
        #: The NUMA node of each CPU in the last pass.
        self._node_of: Mapping[int, int] = {}

    def _tell(self, notices: Iterable[str]) -> None:
        """Log the notices that the previous pass did not have."""
        current = tuple(notices)
        for notice in current:
            if notice not in self.notices:
                LOG.warning("%s", notice)
        self.notices = current
