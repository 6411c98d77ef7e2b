# SPDX-License-Identifier: Apache-2.0
"""What the driver asks of a host; a connection to libvirt answers it, and so do recordings."""

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
    """What a host has, guests and devices aside."""

    capabilities: Capabilities
    memory_mib: int
    #: All that are there, whether they run or not.
    present_cpus: frozenset[int]
    online_cpus: frozenset[int]
    #: What a guest's CPU can do, as libvirt calls it.
    cpu_features: frozenset[str]
    #: By kind (`sev`, `sev_es`), how many guests' memory can be encrypted.
    encryption_slots: Mapping[str, int] = field(default_factory=dict)
    #: On which NUMA node CPUs are of which the capabilities do not tell, since they rest.
    resting_on: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of a host, of those that may be given out."""

    #: How many mediated devices they have is not said here.
    parents: Sequence[MdevParent] = ()
    mdevs: Sequence[Mdev] = ()
    functions: Sequence[Function] = ()


class Host(Protocol):
    """What the driver asks of a host."""

    def machine(self) -> Machine:
        """What it has.

        Raises:
            HostUnreadable: it does not tell; so with the others.
        """

    def devices(self) -> NodeDevices:
        """The devices on the PCI bus, and those that have to do with mediated ones."""

    def guests(self) -> list[Guest]:
        """All domains, the stopped ones too."""

    def disk_gib(self, directory: Path) -> int:
        """How large the file system of a directory is, in whole GiB."""
