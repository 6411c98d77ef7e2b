# SPDX-License-Identifier: Apache-2.0
"""Everything that one pass reads from a Linux host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from berth.hosts.drivers.hosts.cpu_traits import (
    ARCHITECTURES,
    HYPERTHREADING,
    traits_of_machine,
)
from berth.hosts.drivers.hosts.cpus import cpu_notices, cpu_sets
from berth.hosts.drivers.hosts.devices import Device, each_once
from berth.hosts.drivers.hosts.encryption import encryption_devices, unknown_encryption
from berth.hosts.drivers.hosts.facts import Facts, parts_of, without_cpus
from berth.hosts.drivers.hosts.mdev import cut_up, mdev_devices, mdev_notices
from berth.hosts.drivers.hosts.pci import cards_of, pci_devices, pci_notices
from berth.hosts.drivers.linux.cpu_traits import CPU_TRAITS, read_cpu_traits
from berth.hosts.drivers.linux.disks import DISK_TRAITS, Measure, read_disk
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.drivers.linux.mdev import read_mdev_parents, read_vgpu_parents
from berth.hosts.drivers.linux.memory import device_nodes, read_memory
from berth.hosts.drivers.linux.nvml import NVML, read_nvml
from berth.hosts.drivers.linux.options import Options
from berth.hosts.drivers.linux.pci import read_functions
from berth.hosts.drivers.linux.topology import Topology, read_topology

#: The traits of the host itself that the driver can detect.
DETECTABLE: Final = CPU_TRAITS | ARCHITECTURES | DISK_TRAITS | {HYPERTHREADING}

#: What says whether the kernel supports a kind of encrypted memory.
_SUPPORTED: Final = {
    "sev": "sys/module/kvm_amd/parameters/sev",
    "sev_es": "sys/module/kvm_amd/parameters/sev_es",
    "tdx": "sys/module/kvm_intel/parameters/tdx",
}


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
    with_cpus = frozenset(topology.node_of.values())
    of_gpus = device_nodes(files) & set(topology.nodes) - with_cpus
    memory = read_memory(files, sorted(set(topology.nodes) - of_gpus), of_gpus)
    disk = None if options.disk is None else read_disk(files, options.disk, measure)
    whole, nodes = parts_of(
        cpu_sets(topology.present, topology.online, options),
        topology.node_of,
        memory.node_kib,
        memory.huge_kib,
        total_kib=memory.total_kib,
    )
    slots = _encryption_slots(files)
    traits, of_some = read_cpu_traits(files, topology.machine)
    devices, notices, cards = _devices(files, options, nvml, slots)
    if of_some:
        notices.append(f"Only some CPUs have {', '.join(sorted(of_some))}: it is not reported")
    facts = Facts(
        whole=whole,
        nodes=nodes,
        disk_gib=disk.gib if disk else 0,
        traits=traits
        | traits_of_machine(topology.machine, has_threads=topology.has_threads)
        | ({disk.trait} if disk and disk.trait else set()),
        detectable=DETECTABLE,
        devices=tuple(devices),
        cards=cards,
        notices=(
            *topology.notices,
            *cpu_notices(topology.present, topology.online, options, topology.lost),
            *without_cpus(nodes, with_cpus, of_gpus),
            *unknown_encryption(slots, who="the kernel says it in misc.capacity, from 5.13 on"),
            *notices,
        ),
    )
    return facts, topology


def _devices(
    files: HostFiles, options: Options, nvml: NVML | None, slots: Mapping[str, int | None]
) -> tuple[list[Device], list[str], dict[str, str]]:
    """The devices on offer, notices of those that are not, and the card of each PCI function."""
    functions = list(read_functions(files)) if options.pci or options.mdev or options.nvml else []
    parents = [*read_mdev_parents(files), *read_vgpu_parents(files, functions)]
    cut = cut_up(parents, options.mdev)
    passed = list(pci_devices(functions, options.pci))
    notices = [*pci_notices(functions, options.pci), *mdev_notices(parents, options.mdev)]
    gpus = []
    if options.nvml:
        elsewhere = cut | {device.address for device in passed}
        unclaimed = {function.address for function in functions if function.is_gpu} - elsewhere
        gpus = read_nvml(files, nvml, notices.append, unclaimed)
    mediated = mdev_devices(parents, options.mdev)
    whole = [gpu for gpu in gpus if gpu.address not in cut]
    devices = list(each_once(passed, mediated, whole, encryption_devices(slots)))
    return devices, notices, cards_of(functions)


def _encryption_slots(files: HostFiles) -> dict[str, int | None]:
    """The number of guests with encrypted memory, by kind; None if only that it is supported is
    known."""
    lines = (files.text("sys/fs/cgroup/misc.capacity") or "").splitlines()
    matches = (re.fullmatch(r"(\w+) (\d+)", line) for line in lines)
    slots = {match[1]: int(match[2]) for match in matches if match}
    supported = (kind for kind, path in _SUPPORTED.items() if files.text(path) in ("Y", "1"))
    return {**dict.fromkeys(supported), **slots}
