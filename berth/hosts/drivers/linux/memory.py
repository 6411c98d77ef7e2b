# SPDX-License-Identifier: Apache-2.0
"""How much memory a host has, on which NUMA nodes, and how much of it is in huge pages.

A node's own figure is taken where the nodes' figures add up to the host's. Where memory was added
while the host ran they may not; then the host's figure is shared out by the blocks of memory that
each node has. So the nodes never promise more than there is.
Source: spec/compute-side.md 5.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from berth.hosts.drivers.hosts.shares import share_out
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.errors import HostUnreadable

_NODE: Final = "sys/devices/system/node"

#: The nodes' figures add up where they miss the host's by no more than one part in so many.
_EXACTNESS: Final = 50


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a host; sizes in KiB."""

    total_kib: int
    #: By NUMA node.
    node_kib: Mapping[int, int]
    #: By NUMA node and page size: what is in huge pages, which the other figures include.
    huge_kib: Mapping[int, Mapping[int, int]]


def read_memory(files: HostFiles, nodes: Sequence[int]) -> Memory:
    """The memory of a host with these NUMA nodes.

    Raises:
        HostUnreadable: the host does not tell.
    """
    total = _meminfo(files, "proc/meminfo")
    if total is None:
        raise HostUnreadable(f"{files.path('proc/meminfo')} does not say how much memory there is")
    return Memory(
        total_kib=total,
        node_kib=dict(zip(nodes, _shares(files, total, nodes), strict=True)),
        huge_kib={node: _huge_pages(files, _pages_path(files, node)) for node in nodes},
    )


def _shares(files: HostFiles, total: int, nodes: Sequence[int]) -> list[int]:
    told = [_meminfo(files, f"{_NODE}/node{node}/meminfo") or 0 for node in nodes]
    if abs(sum(told) - total) * _EXACTNESS <= total:
        return told if sum(told) <= total else share_out(total, told)
    blocks = [sum(1 for _ in files.numbered(f"{_NODE}/node{node}", "memory")) for node in nodes]
    return share_out(total, blocks if any(blocks) else told if any(told) else [1] * len(nodes))


def _meminfo(files: HostFiles, path: str) -> int | None:
    match = re.search(r"\bMemTotal:\s*(\d+) kB", files.text(path) or "")
    return int(match[1]) if match else None


def _pages_path(files: HostFiles, node: int) -> str:
    """A kernel without NUMA tells of its pages elsewhere."""
    path = f"{_NODE}/node{node}/hugepages"
    return path if files.path(_NODE).is_dir() else "sys/kernel/mm/hugepages"


def _huge_pages(files: HostFiles, path: str) -> dict[int, int]:
    """By page size, what is in huge pages that stay: surplus ones come and go with their users."""
    found: dict[int, int] = {}
    for name in files.names(path):
        if match := re.fullmatch(r"hugepages-(\d+)kB", name):
            size = int(match[1])
            pages = files.number(f"{path}/{name}/nr_hugepages") or 0
            surplus = files.number(f"{path}/{name}/surplus_hugepages") or 0
            if pages > surplus:
                found[size] = (pages - surplus) * size
    return found
