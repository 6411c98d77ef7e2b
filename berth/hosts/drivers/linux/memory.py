# SPDX-License-Identifier: Apache-2.0
"""How much memory a host has, on which NUMA nodes, and how much of it is in huge pages.

A node's own figure is used if the nodes' figures add up to the host's. They may not if memory was
added while the host ran; then the host's figure is distributed by the number of memory blocks of
each node. So the nodes never offer more than there is.
Source: spec/compute-side.md 5.1.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from berth.hosts.drivers.hosts.shares import share_out
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.errors import HostUnreadable

_NODE: Final = "sys/devices/system/node"
_GPUS: Final = "proc/driver/nvidia/gpus"

#: The nodes' figures add up if they differ from the host's by at most one part in this many.
_EXACTNESS: Final = 50


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a host; sizes in KiB."""

    total_kib: int
    #: By NUMA node.
    node_kib: Mapping[int, int]
    #: Memory in huge pages by NUMA node and page size; included in the other figures.
    huge_kib: Mapping[int, Mapping[int, int]]


def device_nodes(files: HostFiles) -> frozenset[int]:
    """The NUMA nodes that are the memory of GPUs, as on POWER9 and Grace: only their driver may
    give it out."""
    states = (files.text(f"{_GPUS}/{gpu}/numa_status") or "" for gpu in files.names(_GPUS))
    matches = (re.search(r"^Node:\s*(\d+)\s*$", state, re.MULTILINE) for state in states)
    return frozenset(int(match[1]) for match in matches if match)


def read_memory(files: HostFiles, nodes: Sequence[int], of_devices: Collection[int] = ()) -> Memory:
    """Read the memory of a host with these NUMA nodes.

    Args:
        of_devices: other nodes, whose memory is not the host's, although the kernel counts it.

    Raises:
        HostUnreadable: it cannot be read.
    """
    total = _meminfo(files, "proc/meminfo")
    if total is None:
        raise HostUnreadable(f"{files.path('proc/meminfo')} does not say how much memory there is")
    total -= sum(_meminfo(files, f"{_NODE}/node{node}/meminfo") or 0 for node in of_devices)
    return Memory(
        total_kib=total,
        node_kib=dict(zip(nodes, _shares(files, total, nodes), strict=True)),
        huge_kib={node: _huge_pages(files, _pages_path(files, node)) for node in nodes},
    )


def _shares(files: HostFiles, total: int, nodes: Sequence[int]) -> list[int]:
    totals = [_meminfo(files, f"{_NODE}/node{node}/meminfo") or 0 for node in nodes]
    if abs(sum(totals) - total) * _EXACTNESS <= total:
        return totals if sum(totals) <= total else share_out(total, totals)
    blocks = [sum(1 for _ in files.numbered(f"{_NODE}/node{node}", "memory")) for node in nodes]
    return share_out(total, blocks if any(blocks) else totals if any(totals) else [1] * len(nodes))


def _meminfo(files: HostFiles, path: str) -> int | None:
    match = re.search(r"\bMemTotal:\s*(\d+) kB", files.text(path) or "")
    return int(match[1]) if match else None


def _pages_path(files: HostFiles, node: int) -> str:
    """The directory of the huge pages, which is elsewhere on a kernel without NUMA."""
    path = f"{_NODE}/node{node}/hugepages"
    return path if files.path(_NODE).is_dir() else "sys/kernel/mm/hugepages"


def _huge_pages(files: HostFiles, path: str) -> dict[int, int]:
    """Memory in permanent huge pages, by page size: surplus pages come and go with their users."""
    kib_by_size: dict[int, int] = {}
    for name in files.names(path):
        if match := re.fullmatch(r"hugepages-(\d+)kB", name):
            size = int(match[1])
            pages = files.number(f"{path}/{name}/nr_hugepages") or 0
            surplus = files.number(f"{path}/{name}/surplus_hugepages") or 0
            if pages > surplus:
                kib_by_size[size] = (pages - surplus) * size
    return kib_by_size
