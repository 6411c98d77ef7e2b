# SPDX-License-Identifier: Apache-2.0
"""What the driver reads from a host; implemented by a libvirt connection, and by recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from berth.hosts.drivers.hosts.mdev import MdevParent
from berth.hosts.drivers.hosts.pci import Function
from berth.hosts.drivers.libvirt.xml_documents import Capabilities, Guest, Mdev


@dataclass(frozen=True, slots=True)
class Machine:
    """What a host has, except for guests and devices."""

    capabilities: Capabilities
    memory_mib: int
    #: All CPUs, online or not.
    present_cpus: frozenset[int]
    online_cpus: frozenset[int]
    #: The features of a guest's CPU, by libvirt's names.
    cpu_features: frozenset[str]
    #: The number of guests with encrypted memory, by kind (`sev`, `sev_es`); None if it is unknown.
    encryption_slots: Mapping[str, int | None] = field(default_factory=dict)
    #: The NUMA nodes of CPUs that are missing from the capabilities because they are offline.
    resting_on: Mapping[int, int] = field(default_factory=dict)
    #: The NUMA nodes that are the memory of GPUs.
    of_gpus: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of a host that may be offered."""

    #: Without the number of their mediated devices.
    parents: Sequence[MdevParent] = ()
    mdevs: Sequence[Mdev] = ()
    functions: Sequence[Function] = ()


class Host(Protocol):
    """What the driver reads from a host."""

    def machine(self) -> Machine:
        """What it has.

        Raises:
            HostUnreadable: it cannot be read; likewise for the other methods.
        """

    def devices(self) -> NodeDevices:
        """The devices on the PCI bus, and those related to mediated devices."""

    def guests(self) -> list[Guest]:
        """All domains, including stopped ones."""

    def disk_gib(self, directory: Path) -> int:
        """The size of a directory's file system, in whole GiB."""
