# SPDX-License-Identifier: Apache-2.0
"""The functions on the PCI bus, and mediated devices and their parents, according to sysfs.

If NVIDIA's driver has no mediated devices, each virtual function of a GPU becomes one vGPU; its
types have the same names as the mediated ones, `nvidia-558`.
Source: spec/compute-side.md 5.1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from berth.hosts.drivers.host_model.devices import NETWORK_CLASS, Function, MdevParent
from berth.hosts.drivers.host_model.names import PCI_ADDRESS, libvirt_name
from berth.hosts.drivers.linux.files import HostFiles

_DEVICES: Final = "sys/bus/pci/devices"

#: The first digits of the PCI class of GPUs, and the vendor NVIDIA.
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
                is_network=kind.startswith(NETWORK_CLASS),
                node=node_of(files, address),
                is_gpu=vendor == _NVIDIA and physical is None and kind.startswith(_DISPLAY),
            )


def node_of(files: HostFiles, address: str) -> int | None:
    """The NUMA node nearest to a PCI device, if the host knows it."""
    node = files.number(f"{_DEVICES}/{address}/numa_node")
    return None if node is None or node < 0 else node


_PARENTS: Final = "sys/class/mdev_bus"

#: The number of attempts while mediated devices come and go.
_LOOKS_MAX: Final = 5


def read_mdev_parents(files: HostFiles) -> Iterator[MdevParent]:
    """The devices that can have mediated ones."""
    for parent in files.names(_PARENTS):
        types = f"{_PARENTS}/{parent}/mdev_supported_types"
        is_pci = PCI_ADDRESS.fullmatch(parent) is not None
        made, available = _counts(files, types)
        yield MdevParent(
            name=libvirt_name(parent) if is_pci else parent,
            address=parent if is_pci else None,
            node=node_of(files, parent) if is_pci else None,
            made=made,
            available=available,
            physical=files.link(f"{_DEVICES}/{parent}/physfn") if is_pci else None,
        )


def _counts(files: HostFiles, types: str) -> tuple[dict[str, int], dict[str, int]]:
    """The number of existing devices of each type, and of those that could still be created.

    RACE tests/hosts/test_drivers.py: a device that is created between the two reads is missing from
    both numbers, and one that is removed is in both; so the reads are repeated until they agree.
    """
    kinds = files.names(types)

    def count() -> dict[str, int]:
        return {kind: len(files.names(f"{types}/{kind}/devices")) for kind in kinds}

    made, available = count(), {}
    for _ in range(_LOOKS_MAX):
        available = {
            kind: files.number(f"{types}/{kind}/available_instances") or 0 for kind in kinds
        }
        before, made = made, count()
        if made == before:
            break
    return made, available


def read_vgpu_parents(files: HostFiles, functions: Iterable[Function]) -> Iterator[MdevParent]:
    """The GPUs whose virtual functions become vGPUs."""
    made: dict[str, Counter[str]] = {}
    available: dict[str, Counter[str]] = {}
    nodes: dict[str, int | None] = {}
    for function in functions:
        if function.physical is None:
            continue
        path = f"{_DEVICES}/{function.address}/nvidia"
        if (current := files.number(f"{path}/current_vgpu_type")) is None:
            continue
        nodes[function.physical] = function.node
        if current:
            made.setdefault(function.physical, Counter())[f"nvidia-{current}"] += 1
        else:
            listing = files.text(f"{path}/creatable_vgpu_types") or ""
            kinds = re.findall(r"^\s*(\d+)\s*:", listing, re.MULTILINE)
            available.setdefault(function.physical, Counter()).update(
                f"nvidia-{kind}" for kind in set(kinds)
            )
    for address, node in nodes.items():
        yield MdevParent(
            name=libvirt_name(address),
            address=address,
            node=node,
            made=made.get(address, {}),
            available=available.get(address, {}),
            needs_limit=True,
        )
