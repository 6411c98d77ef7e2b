# SPDX-License-Identifier: Apache-2.0
"""All that is read of a host in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from berth.compute.drivers.linux.cpu_traits import read_cpu_traits
from berth.compute.drivers.linux.devices import Device
from berth.compute.drivers.linux.disks import Disk, Measure, read_disk
from berth.compute.drivers.linux.files import HostFiles
from berth.compute.drivers.linux.mdev import read_mdev
from berth.compute.drivers.linux.memory import Memory, read_memory
from berth.compute.drivers.linux.nvml import NVML, read_nvml
from berth.compute.drivers.linux.options import Options
from berth.compute.drivers.linux.pci import read_pci
from berth.compute.drivers.linux.topology import CPUSets, Topology, cpu_sets, read_topology


@dataclass(frozen=True, slots=True)
class Host:
    """A host, and what of it is given out."""

    topology: Topology
    cpus: CPUSets
    cpu_traits: frozenset[str]
    memory: Memory
    disk: Disk | None
    devices: tuple[Device, ...]


def read_host(
    options: Options,
    *,
    measure: Measure,
    nvml: NVML | None,
    remembered: Mapping[int, int],
) -> Host:
    """A host as it is now.

    Args:
        nvml: the library that tells of NVIDIA GPUs, if it is there.
        remembered: on which NUMA node each CPU was at the last pass.

    Raises:
        BadConfiguration: the options name what the host does not have.
        HostUnreadable: the host does not tell what it has.
    """
    files = HostFiles(options.root)
    topology = read_topology(files, remembered=remembered)
    return Host(
        topology=topology,
        cpus=cpu_sets(topology, shared=options.cpu_shared, dedicated=options.cpu_dedicated),
        cpu_traits=read_cpu_traits(files),
        memory=read_memory(files, topology.nodes),
        disk=None if options.disk is None else read_disk(files, options.disk, measure),
        devices=tuple(_devices(files, options, nvml)),
    )


def _devices(files: HostFiles, options: Options, nvml: NVML | None) -> Iterator[Device]:
    """Each device once: as what the operator calls it, before what it could be besides."""
    given: set[str | None] = set()
    for some in (
        read_pci(files, options.pci),
        read_mdev(files, options.mdev),
        read_nvml(files, nvml) if nvml and options.nvml else (),
    ):
        for device in list(some):
            if device.address is None or device.address not in given:
                given.add(device.address)
                yield device
