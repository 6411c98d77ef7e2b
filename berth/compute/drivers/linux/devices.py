# SPDX-License-Identifier: Apache-2.0
"""A device of a host as it is offered: one provider, whatever found it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from berth.compute.drivers.linux.files import HostFiles


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


def node_of(files: HostFiles, address: str) -> int | None:
    """The NUMA node that a PCI device is next to, where the host tells."""
    node = files.number(f"sys/bus/pci/devices/{address}/numa_node")
    return None if node is None or node < 0 else node


def libvirt_name(address: str) -> str:
    """What libvirt calls a PCI device: so do the providers of its vGPUs."""
    return "pci_" + address.replace(":", "_").replace(".", "_")
