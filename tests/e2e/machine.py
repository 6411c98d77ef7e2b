# SPDX-License-Identifier: Apache-2.0
"""This machine, read from /proc and /sys: the end-to-end tests register it."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from pathlib import Path

NODES = Path("/sys/devices/system/node")
DISKS = Path("/sys/block")
CPUINFO = Path("/proc/cpuinfo")

#: Bytes of a sector in /sys/block/*/size, whatever the disk's own are.
SECTOR = 512

GIB = 1024**3


@dataclass(frozen=True)
class NumaNode:
    """A NUMA node: its number, its CPUs, its memory in MiB."""

    number: int
    cpus: int
    memory_mib: int


@dataclass(frozen=True)
class Machine:
    """A machine: its name, its NUMA nodes, its disks in GiB by name, its CPUs' flags."""

    name: str
    nodes: tuple[NumaNode, ...]
    disks_gib: dict[str, int]
    cpu_flags: frozenset[str]


def read_machine() -> Machine:
    """Read this machine. If /sys has no NUMA nodes, the whole machine is one node."""
    nodes = tuple(
        NumaNode(int(path.name[4:]), cpus, memory)
        for path in sorted(NODES.glob("node[0-9]*"))
        if (cpus := count_cpus((path / "cpulist").read_text()))
        and (memory := memory_mib((path / "meminfo").read_text()))
    )
    if not nodes:
        cpus = CPUINFO.read_text().count("processor\t:")
        nodes = (NumaNode(0, cpus, memory_mib(Path("/proc/meminfo").read_text())),)
    return Machine(socket.gethostname(), nodes, _disks_gib(), _cpu_flags())


def count_cpus(cpulist: str) -> int:
    """The number of CPUs in a list such as `0-3,8`."""
    count = 0
    for part in filter(None, cpulist.strip().split(",")):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def memory_mib(meminfo: str) -> int:
    """MemTotal of a meminfo file, in MiB."""
    match = re.search(r"MemTotal:\s+(\d+) kB", meminfo)
    assert match, "a meminfo file without MemTotal"
    return int(match[1]) // 1024


def _disks_gib() -> dict[str, int]:
    """Disks of at least a GiB, by name; the root file system if there is none."""
    sizes = {
        path.name: int((path / "size").read_text()) * SECTOR // GIB
        for path in sorted(DISKS.iterdir() if DISKS.is_dir() else ())
        if not path.name.startswith(("loop", "ram", "zram"))
    }
    disks = {name: size for name, size in sizes.items() if size >= 1}
    return disks or {"root": 1}


def _cpu_flags() -> frozenset[str]:
    match = re.search(r"^flags\s*:\s*(.*)$", CPUINFO.read_text(), re.MULTILINE)
    return frozenset(match[1].split()) if match else frozenset()
