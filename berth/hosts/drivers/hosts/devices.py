# SPDX-License-Identifier: Apache-2.0
"""A device of a host on offer: one provider, whichever source found it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

#: In the kernel's notation: `0000:84:00.0`.
PCI_ADDRESS: Final = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


@dataclass(frozen=True, slots=True)
class Device:
    """One device, or the virtual functions of one."""

    #: The name of its provider, without the node's name.
    name: str
    #: Its PCI address; None if it is not a PCI device.
    address: str | None
    #: The nearest NUMA node, if the host knows it.
    node: int | None
    #: The number by resource class, each at least 1.
    counts: Mapping[str, int]
    traits: frozenset[str]
    #: The most that one consumer may have; None: all.
    unit_max: int | None = None


def each_once(*finds: Iterable[Device]) -> Iterator[Device]:
    """Each device once, from the first source that has it."""
    given: set[str | None] = set()
    for devices in finds:
        for device in list(devices):
            if device.address is None or device.address not in given:
                given.add(device.address)
                yield device


def libvirt_name(address: str) -> str:
    """libvirt's name of a PCI device, which is also used for the providers of its vGPUs."""
    return "pci_" + address.replace(":", "_").replace(".", "_")
