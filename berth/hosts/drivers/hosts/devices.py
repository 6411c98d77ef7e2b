# SPDX-License-Identifier: Apache-2.0
"""A device of a host as it is offered: one provider, whatever found it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

#: As the kernel writes it: `0000:84:00.0`.
PCI_ADDRESS: Final = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


@dataclass(frozen=True, slots=True)
class Device:
    """One device, or the virtual functions of one."""

    #: What its provider is called, after the name of the node.
    name: str
    #: Where it is plugged in; None where it is not a PCI device.
    address: str | None
    #: The NUMA node that it is next to, where the host tells.
    node: int | None
    #: How many it has, by resource class, each at least 1.
    counts: Mapping[str, int]
    traits: frozenset[str]
    #: The most that one holder may have; None: all.
    unit_max: int | None = None


def each_once(*finds: Iterable[Device]) -> Iterator[Device]:
    """Each device as what it was found first: what an operator calls it before all else."""
    given: set[str | None] = set()
    for some in finds:
        for device in list(some):
            if device.address is None or device.address not in given:
                given.add(device.address)
                yield device


def libvirt_name(address: str) -> str:
    """What libvirt calls a PCI device: so do the providers of its vGPUs."""
    return "pci_" + address.replace(":", "_").replace(".", "_")
