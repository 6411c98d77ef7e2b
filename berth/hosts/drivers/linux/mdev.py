# SPDX-License-Identifier: Apache-2.0
"""Mediated devices and the devices that they are made of, as sysfs tells of them.

Where NVIDIA's driver has no mediated devices, each virtual function of a GPU becomes one vGPU; the
types are called as the mediated ones are, `nvidia-558`.
Source: spec/compute-side.md 5.1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from berth.hosts.drivers.hosts.devices import PCI_ADDRESS, libvirt_name
from berth.hosts.drivers.hosts.mdev import MdevParent
from berth.hosts.drivers.hosts.pci import Function
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.drivers.linux.pci import node_of

_PARENTS: Final = "sys/class/mdev_bus"

#: How often it is looked again while mediated devices come and go.
_LOOKS_MAX: Final = 5


def read_mdev_parents(files: HostFiles) -> Iterator[MdevParent]:
    """The devices that mediated ones can be made of."""
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
            physical=files.link(f"sys/bus/pci/devices/{parent}/physfn") if is_pci else None,
        )


def _counts(files: HostFiles, types: str) -> tuple[dict[str, int], dict[str, int]]:
    """How many there are of each type, and how many more could be made.

    RACE tests/hosts/test_linux_reading.py: one that is made between the two looks is missing in
    both numbers, and one that goes stands in both; so it is looked again until they are of one
    moment.
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
        path = f"sys/bus/pci/devices/{function.address}/nvidia"
        current = files.number(f"{path}/current_vgpu_type")
        if function.physical is None or current is None:
            continue
        nodes[function.physical] = function.node
        if current:
            made.setdefault(function.physical, Counter())[f"nvidia-{current}"] += 1
        else:
            told = files.text(f"{path}/creatable_vgpu_types") or ""
            kinds = re.findall(r"^\s*(\d+)\s*:", told, re.MULTILINE)
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
