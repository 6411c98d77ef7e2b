# SPDX-License-Identifier: Apache-2.0
"""A device of a host on offer: one provider, whichever source found it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from berth.hosts.drivers.hosts.names import custom_name

#: Begins the trait that says what a device is divided into.
FORM_TRAIT: Final = "CUSTOM_DIVIDED_INTO_"

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
    #: The address of the physical function, if `address` is that of a virtual one.
    physical: str | None = None
    #: The addresses of the virtual functions that it stands for, if it stands for some.
    functions: frozenset[str] = frozenset()
    #: What it is divided into: VFS, or a type of mediated devices; empty: nothing, or slices.
    form: str = ""

    @property
    def card(self) -> str:
        """What is one thing with all its functions: the address of the physical one."""
        return self.physical or self.address or self.name

    @property
    def traits_with_form(self) -> frozenset[str]:
        """Its traits, with the one that says what it is divided into."""
        return self.traits | ({custom_name(FORM_TRAIT, self.form)} if self.form else set())


def each_once(*finds: Iterable[Device]) -> Iterator[Device]:
    """Each device once, from the first source that has it.

    A physical function is the same device as each of its virtual ones.
    """
    given: dict[str, set[str]] = {}
    for devices in finds:
        for device in list(devices):
            functions = device.functions or {device.address or device.name}
            others = given.setdefault(device.card, set())
            if not others or not (functions & others or device.card in functions | others):
                others |= functions
                yield device


def libvirt_name(address: str) -> str:
    """libvirt's name of a PCI device, which is also used for the providers of its vGPUs."""
    return "pci_" + address.replace(":", "_").replace(".", "_")
