# SPDX-License-Identifier: Apache-2.0
"""What the driver asks of a host; a connection to libvirt answers it, and so do recordings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from berth.compute.drivers.libvirt.xml_documents import Capabilities, Guest, Mdev, MdevParent


@dataclass(frozen=True, slots=True)
class Machine:
    """What a host has, guests and devices aside."""

    capabilities: Capabilities
    memory_mib: int
    online_cpus: frozenset[int]
    #: What a guest's CPU can do, as libvirt calls it.
    cpu_features: frozenset[str]


class Host(Protocol):
    """What the driver asks of a host."""

    def machine(self) -> Machine:
        """What it has.

        Raises:
            HostUnreadable: it does not tell; so with the others.
        """

    def mdev_devices(self) -> tuple[list[MdevParent], list[Mdev]]:
        """The devices that can be cut into mediated ones, and the mediated ones that there are."""

    def guests(self) -> list[Guest]:
        """All domains, the stopped ones too."""

    def disk_gib(self, directory: Path) -> int:
        """How large the file system of a directory is, in whole GiB."""
