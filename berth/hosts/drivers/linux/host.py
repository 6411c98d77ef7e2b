# SPDX-License-Identifier: Apache-2.0
"""Everything that one pass reads from a Linux host: its parts, memory and disk.

Source: spec/compute-side.md 5.1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from berth.hosts.drivers.host_model.cpus import Topology
from berth.hosts.drivers.host_model.devices import Device, DeviceSources
from berth.hosts.drivers.host_model.facts import Facts, Memory, facts_of, share_out
from berth.hosts.drivers.host_model.options import LinuxOptions
from berth.hosts.drivers.linux import cpus
from berth.hosts.drivers.linux.devices import read_functions, read_mdev_parents, read_vgpu_parents
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.drivers.linux.nvml import NVML, read_nvml
from berth.hosts.errors import HostUnreadable
from berth.hosts.files import refusing

_NODE: Final = "sys/devices/system/node"
_GPUS: Final = "proc/driver/nvidia/gpus"

#: The nodes' figures add up if they differ from the host's by at most one part in this many.
_EXACTNESS: Final = 50

_GIB: Final = 2**30

_BY_ROTATION: Final = {"0": "STORAGE_DISK_SSD", "1": "STORAGE_DISK_HDD"}

#: The traits of the host itself that the driver can detect.
DETECTABLE: Final = cpus.DETECTABLE | frozenset(_BY_ROTATION.values())

#: What says whether the kernel supports a kind of encrypted memory.
_SUPPORTED: Final = {
    "sev": "sys/module/kvm_amd/parameters/sev",
    "sev_es": "sys/module/kvm_amd/parameters/sev_es",
    "tdx": "sys/module/kvm_intel/parameters/tdx",
}


@dataclass(frozen=True, slots=True)
class FileSystem:
    """The kernel's data on a directory's file system."""

    size: int
    #: The major and minor number of its device.
    device: tuple[int, int]


#: Reads a directory's file system; OSError if there is none. Tests replace it.
Measure = Callable[[Path], FileSystem]


def measure(directory: Path) -> FileSystem:
    """Ask the running kernel."""
    stats = os.statvfs(directory)
    device = directory.stat().st_dev
    return FileSystem(stats.f_frsize * stats.f_blocks, (os.major(device), os.minor(device)))


def read_host(
    options: LinuxOptions,
    *,
    measure: Measure,
    nvml: NVML | None,
    remembered: Mapping[int, int],
) -> Facts:
    """Read a host.

    Args:
        nvml: NVIDIA's library, if it is installed.
        remembered: the NUMA node of each CPU in the last pass.

    Raises:
        BadConfiguration: the options name something that the host does not have.
        HostUnreadable: the host's files cannot be read.
    """
    files = HostFiles(options.root)
    topology = cpus.read_topology(files, remembered=remembered)
    memory = _read_memory(files, topology)
    disk_gib, disk_trait = 0, None
    if options.disk is not None:
        disk_gib, disk_trait = _read_disk(files, options.disk, measure)
    traits, of_some = cpus.read_cpu_traits(files, topology.machine)
    sources = _read_sources(files, options)
    notices: list[str] = []

    def find_gpus(taken: Collection[str]) -> list[Device]:
        unclaimed = {each.address for each in sources.functions if each.is_gpu} - set(taken)
        return read_nvml(files, nvml, notices.append, unclaimed) if options.nvml else []

    if of_some:
        notices.append(f"Only some CPUs have {', '.join(sorted(of_some))}: it is not reported")
    return facts_of(
        topology,
        memory,
        sources,
        options,
        disk_gib=disk_gib,
        traits=traits | ({disk_trait} if disk_trait else set()),
        detectable=DETECTABLE,
        notices=notices,
        find_gpus=find_gpus,
    )


def _read_sources(files: HostFiles, options: LinuxOptions) -> DeviceSources:
    functions = list(read_functions(files)) if options.pci or options.mdev or options.nvml else []
    return DeviceSources(
        functions,
        [*read_mdev_parents(files), *read_vgpu_parents(files, functions)],
        _encryption_slots(files),
        "the kernel says it in misc.capacity, from 5.13 on",
    )


def _encryption_slots(files: HostFiles) -> dict[str, int | None]:
    """The number of guests with encrypted memory, by kind; None if only that it is supported is
    known."""
    lines = (files.text("sys/fs/cgroup/misc.capacity") or "").splitlines()
    matches = (re.fullmatch(r"(\w+) (\d+)", line) for line in lines)
    slots = {match[1]: int(match[2]) for match in matches if match}
    supported = (kind for kind, path in _SUPPORTED.items() if files.text(path) in ("Y", "1"))
    return {**dict.fromkeys(supported), **slots}


# --- Memory ---------------------------------------------------------------------------------------


def device_nodes(files: HostFiles) -> frozenset[int]:
    """The NUMA nodes that are the memory of GPUs, as on POWER9 and Grace: only their driver may
    give it out."""
    states = (files.text(f"{_GPUS}/{gpu}/numa_status") or "" for gpu in files.names(_GPUS))
    matches = (re.search(r"^Node:\s*(\d+)\s*$", state, re.MULTILINE) for state in states)
    return frozenset(int(match[1]) for match in matches if match)


def _read_memory(files: HostFiles, topology: Topology) -> Memory:
    """Read the memory of a host.

    A node's own figure is used if the nodes' figures add up to the host's. They may not if memory
    was added while the host ran; then the host's figure is distributed by the number of memory
    blocks of each node. So the nodes never offer more than there is.

    Raises:
        HostUnreadable: it cannot be read.
    """
    total = _meminfo(files, "proc/meminfo")
    if total is None:
        raise HostUnreadable(f"{files.path('proc/meminfo')} does not say how much memory there is")
    # The kernel counts their memory too.
    of_gpus = device_nodes(files) & set(topology.nodes) - set(topology.node_of.values())
    total -= sum(_meminfo(files, f"{_NODE}/node{node}/meminfo") or 0 for node in of_gpus)
    nodes = sorted(set(topology.nodes) - of_gpus)
    return Memory(
        total_kib=total,
        node_kib=dict(zip(nodes, _shares(files, total, nodes), strict=True)),
        huge_kib={node: _huge_pages(files, _pages_path(files, node)) for node in nodes},
        of_gpus=of_gpus,
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


# --- The disk -------------------------------------------------------------------------------------


def _read_disk(files: HostFiles, directory: Path, measure: Measure) -> tuple[int, str | None]:
    """The size in GiB of the file system of one of the host's directories, and the trait of its
    device, if the kernel knows it.

    Raises:
        BadConfiguration: there is no such directory.
    """
    with refusing(f"options.disk: cannot read {directory}"):
        system = measure(files.path(str(directory).lstrip("/")))
    return system.size // _GIB, _trait(files, system.device)


def _trait(files: HostFiles, device: tuple[int, int]) -> str | None:
    """The trait of a device; for a partition, that of its disk."""
    path = files.path(f"sys/dev/block/{device[0]}:{device[1]}").resolve()
    for place in (path, path.parent):
        try:
            turns = (place / "queue/rotational").read_text(errors="replace").strip()
        except OSError:
            continue
        return _BY_ROTATION.get(turns)
    return None
