# SPDX-License-Identifier: Apache-2.0
"""What an operator may say of any host, as values; `configuration.py` reads them."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

#: By NUMA node, which share of a consumer is on it: how many of its CPUs, or 1 for each node.
Placement = Mapping[int, int]

#: Classes of which an operator may reserve a part, or give out more than there is.
SHARED_OUT: Final = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")


class Model(Enum):
    """How the host is modelled."""

    #: Everything that is the host's own stands on its root.
    FLAT = "flat"
    #: CPUs and memory stand on one child for each NUMA node.
    NUMA = "numa"


class HugePages(Enum):
    """Where the memory in huge pages is counted."""

    #: With all other memory.
    MEMORY = "memory"
    #: On a provider for each page size, and not with the other memory.
    PROVIDERS = "providers"


@dataclass(frozen=True, slots=True)
class PCIRule:
    """Which PCI devices are offered, and as what. All that is said must hold of a device."""

    #: Vendor and product, each four hexadecimal digits.
    device: tuple[str, str] | None = None
    #: May have `*` and `?` in it.
    address: str | None = None
    #: The address of the physical function whose virtual functions are meant.
    functions_of: str | None = None
    #: None: CUSTOM_PCI_ with vendor and product.
    resource_class: str | None = None
    traits: frozenset[str] = frozenset()
    physical_network: str | None = None

    def admits(self, address: str, device: tuple[str, str], physical: str | None) -> bool:
        """Whether a device is meant; `physical` is the function that it is a virtual one of."""
        return (
            (self.device is None or self.device == device)
            and (self.address is None or fnmatch.fnmatchcase(address, self.address))
            and (self.functions_of is None or self.functions_of == physical)
        )


@dataclass(frozen=True, slots=True)
class MdevRule:
    """Which type of mediated devices is offered, and of which of the devices that can make it."""

    type: str
    #: As libvirt calls them; none named: all that no other rule names.
    parents: frozenset[str] = frozenset()
    resource_class: str = "VGPU"
    traits: frozenset[str] = frozenset()
    #: The most that one device offers; None: as many as can be made.
    instances_max: int | None = None


@dataclass(frozen=True, slots=True)
class HostOptions:
    """All that may be said of any host."""

    model: Model = Model.FLAT
    #: CPUs that are given out as VCPU; None: all that are online, unless there are dedicated ones.
    cpu_shared: frozenset[int] | None = None
    #: CPUs that are given out as PCPU, one to a holder.
    cpu_dedicated: frozenset[int] = frozenset()
    huge_pages: HugePages = HugePages.MEMORY
    #: A directory of the file system that is given out as DISK_GB; None: none is.
    disk: Path | None = None
    pci: tuple[PCIRule, ...] = ()
    mdev: tuple[MdevRule, ...] = ()
    #: Of the whole host, by resource class. What is not said here is left as the service has it.
    reserved: Mapping[str, int] = field(default_factory=dict)
    allocation_ratios: Mapping[str, float] = field(default_factory=dict)
