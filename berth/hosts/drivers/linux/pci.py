# SPDX-License-Identifier: Apache-2.0
"""The functions on the PCI bus, according to sysfs.

Source: spec/compute-side.md 5.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from berth.hosts.drivers.hosts.devices import PCI_ADDRESS
from berth.hosts.drivers.hosts.pci import Function
from berth.hosts.drivers.linux.files import HostFiles

_DEVICES: Final = "sys/bus/pci/devices"

#: The first digits of the PCI class of network devices.
_NETWORK: Final = "0x02"
#: The same of GPUs, and the vendor NVIDIA.
_DISPLAY: Final = "0x03"
_NVIDIA: Final = 0x10DE


def read_functions(files: HostFiles) -> Iterator[Function]:
    """All functions; one that disappears meanwhile is left out."""
    for address in filter(PCI_ADDRESS.fullmatch, files.names(_DEVICES)):
        path = f"{_DEVICES}/{address}"
        vendor, product = (files.number(f"{path}/{name}") for name in ("vendor", "device"))
        if vendor is not None and product is not None:
            physical, kind = files.link(f"{path}/physfn"), files.text(f"{path}/class") or ""
            yield Function(
                address,
                (f"{vendor:04x}", f"{product:04x}"),
                physical,
                is_network=kind.startswith(_NETWORK),
                node=node_of(files, address),
                is_gpu=vendor == _NVIDIA and physical is None and kind.startswith(_DISPLAY),
            )


def node_of(files: HostFiles, address: str) -> int | None:
    """The NUMA node nearest to a PCI device, if the host knows it."""
    node = files.number(f"{_DEVICES}/{address}/numa_node")
    return None if node is None or node < 0 else node
