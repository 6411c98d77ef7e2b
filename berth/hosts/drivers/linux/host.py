# SPDX-License-Identifier: Apache-2.0
"""Everything that one pass reads from a Linux host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from berth.hosts.drivers.hosts.cpu_traits import (
    ARCHITECTURES,
    HYPERTHREADING,
    traits_of_machine,
)
from berth.hosts.drivers.hosts.cpus import cpu_sets
from berth.hosts.drivers.hosts.devices import Device, each_once
from berth.hosts.drivers.hosts.encryption import encryption_devices
from berth.hosts.drivers.hosts.facts import Facts, parts_of
from berth.hosts.drivers.hosts.mdev import cut_up, mdev_devices
from berth.hosts.drivers.hosts.pci import pci_devices
from berth.hosts.drivers.linux.cpu_traits import CPU_TRAITS, read_cpu_traits
from berth.hosts.drivers.linux.disks import DISK_TRAITS, Measure, read_disk
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.drivers.linux.mdev import read_mdev_parents, read_vgpu_parents
from berth.hosts.drivers.linux.memory import read_memory
from berth.hosts.drivers.linux.nvml import NVML, read_nvml
from berth.hosts.drivers.linux.options import Options
from berth.hosts.drivers.linux.pci import read_functions
from berth.hosts.drivers.linux.topology import Topology, read_topology

#: The traits of the host itself that the driver can detect.
DETECTABLE: Final = CPU_TRAITS | ARCHITECTURES | DISK_TRAITS | {HYPERTHREADING}


def read_host(
    options: Options,
    *,
    measure: Measure,
    nvml: NVML | None,
    remembered: Mapping[int, int],
) -> tuple[Facts, Topology]:
    """Read a host, and the NUMA nodes of its CPUs, for the next call.

    Args:
        nvml: NVIDIA's library, if it is installed.
        remembered: the NUMA node of each CPU in the last pass.

    Raises:
        BadConfiguration: the options name something that the host does not have.
        HostUnreadable: the host's files cannot be read.
    """
    files = HostFiles(options.root)
    topology = read_topology(files, remembered=remembered)
    memory = read_memory(files, topology.nodes)
    disk = None if options.disk is None else read_disk(files, options.disk, measure)
    whole, nodes = parts_of(
        cpu_sets(topology.present, topology.online, options),
        topology.node_of,
        memory.node_kib,
        memory.huge_kib,
        total_kib=memory.total_kib,
    )
    facts = Facts(
        whole=whole,
        nodes=nodes,
        disk_gib=disk.gib if disk else 0,
        traits=read_cpu_traits(files)
        | traits_of_machine(topology.machine, has_threads=topology.has_threads)
        | ({disk.trait} if disk and disk.trait else set()),
        detectable=DETECTABLE,
        devices=tuple(_devices(files, options, nvml)),
    )
    return facts, topology


def _devices(files: HostFiles, options: Options, nvml: NVML | None) -> Iterator[Device]:
    gpus = read_nvml(files, nvml) if nvml and options.nvml else []
    functions = list(read_functions(files)) if options.pci or options.mdev or gpus else []
    parents = [*read_mdev_parents(files), *read_vgpu_parents(files, functions)]
    cut = cut_up(parents, options.mdev)
    return each_once(
        pci_devices(functions, options.pci),
        mdev_devices(parents, options.mdev),
        [gpu for gpu in gpus if gpu.address not in cut],
        encryption_devices(_encryption_slots(files)),
    )


def _encryption_slots(files: HostFiles) -> dict[str, int]:
    """The number of guests with encrypted memory, by kind."""
    lines = (files.text("sys/fs/cgroup/misc.capacity") or "").splitlines()
    matches = (re.fullmatch(r"(\w+) (\d+)", line) for line in lines)
    return {match[1]: int(match[2]) for match in matches if match}
