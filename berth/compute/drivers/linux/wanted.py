# SPDX-License-Identifier: Apache-2.0
"""From a host to the providers that it is to have: pure.

    cn1                       DISK_GB, the traits of the CPUs; when flat also VCPU, PCPU, MEMORY_MB
      cn1_NUMA0               VCPU, PCPU, MEMORY_MB                     HW_NUMA_ROOT
        cn1_NUMA0_PAGES_2048  MEMORY_MB in steps of the page size       CUSTOM_MEMORY_PAGE_SIZE_2048
        cn1_pci_0000_84_00_0  VGPU
      cn1_0000:81:00.0        a device whose NUMA node is not known

When flat, pages and devices stand below the root: `cn1_PAGES_2048`. What a host has none of is left
out. Records say `total` and `max_unit`, and what is configured; all else is the operator's.
Source: spec/compute-side.md 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from berth.compute.drivers.linux.cpu_traits import CPU_TRAITS
from berth.compute.drivers.linux.host import Host
from berth.compute.drivers.linux.names import standard_traits
from berth.compute.drivers.linux.options import HugePages, Model, Options
from berth.compute.drivers.linux.shares import share_out

OWNER_TRAIT: Final = "CUSTOM_OWNER_BERTH"
NUMA_TRAIT: Final = "HW_NUMA_ROOT"
PAGE_SIZE_TRAIT: Final = "CUSTOM_MEMORY_PAGE_SIZE_"

#: What moves between the root and the NUMA nodes with the model.
MOVING: Final = ("VCPU", "PCPU", "MEMORY_MB")

#: The root's inventory that is the driver's: other classes are left alone there.
ROOT_CLASSES: Final = (*MOVING, "DISK_GB")

#: The root's traits that are the driver's: those of them that the host does not have are removed.
ROOT_TRAITS: Final = CPU_TRAITS | {
    "HW_CPU_HYPERTHREADING",
    "STORAGE_DISK_HDD",
    "STORAGE_DISK_SSD",
    *(trait for trait in standard_traits() if trait.startswith("HW_ARCH_")),
}

#: Resource classes and their records.
Records = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Place:
    """What part of the host a provider of CPUs or memory stands for."""

    #: The NUMA node; None: the whole host.
    node: int | None = None
    #: The page size in KiB; None: what is not in huge pages.
    pages: int | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A provider as it is to be."""

    name: str
    #: None: it is the root.
    parent: str | None
    records: Records
    traits: frozenset[str]
    #: None: it is a device.
    place: Place | None


_PLACE: Final = re.compile(r"(?:NUMA(?P<node>\d+))?(?:(?(node)_)PAGES_(?P<pages>\d+))?")
_DEVICE: Final = re.compile(r"[0-9A-F]{4,}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7]|pci_\w+|mdev_.+")


def place_of(name: str, root: str) -> Place | None:
    """The part of the host that a provider's name tells of; None: another thing."""
    if name == root:
        return Place()
    match = _PLACE.fullmatch(_rest_of(name, root))
    if not match or not match[0]:
        return None
    node, pages = match["node"], match["pages"]
    return Place(None if node is None else int(node), None if pages is None else int(pages))


def is_device(name: str, root: str) -> bool:
    """Whether a provider's name is that of a device."""
    return _DEVICE.fullmatch(_rest_of(name, root)) is not None


def wanted_providers(host: Host, options: Options, root: str) -> dict[str, Wanted]:
    """The providers that a host is to have, by name, parents first."""
    listed = [
        _root(host, options, root),
        *(_nodes if options.model is Model.NUMA else _flat_pages)(host, options, root),
    ]
    nodes = {one.place.node: one.name for one in listed if one.place and one.place.pages is None}
    for device in host.devices:
        listed.append(
            Wanted(
                name=f"{root}_{device.name}",
                parent=nodes.get(device.node, root),
                records={name: _record(count) for name, count in sorted(device.counts.items())},
                traits=device.traits | {OWNER_TRAIT},
                place=None,
            )
        )
    return {one.name: one for one in listed}


def _rest_of(name: str, root: str) -> str:
    return name.removeprefix(f"{root}_") if name.startswith(f"{root}_") else ""


def _root(host: Host, options: Options, root: str) -> Wanted:
    totals = {"DISK_GB": host.disk.gib if host.disk else 0}
    if options.model is Model.FLAT:
        totals |= {
            "VCPU": len(host.cpus.shared),
            "PCPU": len(host.cpus.dedicated),
            "MEMORY_MB": _plain_kib(host, options) // 1024,
        }
    traits = {
        host.topology.architecture,
        host.disk.trait if host.disk else None,
        "HW_CPU_HYPERTHREADING" if host.topology.has_threads else None,
    } - {None}
    return Wanted(
        name=root,
        parent=None,
        records={
            name: _record(total, **_configured(options, name))
            for name, total in totals.items()
            if total
        },
        traits=host.cpu_traits | {trait for trait in traits if trait},
        place=Place(),
    )


# --- Flat -----------------------------------------------------------------------------------------


def _plain_kib(host: Host, options: Options) -> int:
    """The memory that is counted with no page size."""
    return max(0, host.memory.total_kib - sum(_huge_kib(host, options).values()))


def _huge_kib(host: Host, options: Options) -> dict[int, int]:
    """By page size, the memory that stands on providers of its own."""
    sizes: dict[int, int] = {}
    if options.huge_pages is HugePages.PROVIDERS:
        for of_node in host.memory.huge_kib.values():
            for size, kib in of_node.items():
                sizes[size] = sizes.get(size, 0) + kib
    return dict(sorted(sizes.items()))


def _flat_pages(host: Host, options: Options, root: str) -> Iterator[Wanted]:
    for size, kib in _huge_kib(host, options).items():
        yield from _pages(size, kib, parent=root, node=None)


def _pages(size: int, kib: int, *, parent: str, node: int | None) -> Iterator[Wanted]:
    """A provider of huge pages; amounts are whole numbers of pages."""
    step = max(1, size // 1024)
    if total := kib // 1024 // step * step:
        yield Wanted(
            name=f"{parent}_PAGES_{size}",
            parent=parent,
            records={"MEMORY_MB": _record(total, min_unit=step, step_size=step)},
            traits=frozenset({OWNER_TRAIT, f"{PAGE_SIZE_TRAIT}{size}"}),
            place=Place(node, size),
        )


# --- By NUMA node ---------------------------------------------------------------------------------


def _nodes(host: Host, options: Options, root: str) -> Iterator[Wanted]:
    """The NUMA nodes that have CPUs that are given out, or memory."""
    totals = {node: _totals_of(host, options, node) for node in host.topology.nodes}
    reserved = {name: _reserved(options, name, totals) for name in MOVING}
    for node, of_node in totals.items():
        records = {}
        for name, total in of_node.items():
            if total:
                shares = {"reserved": reserved[name][node]} if name in options.reserved else {}
                records[name] = _record(total, **{**_configured(options, name), **shares})
        pages: list[Wanted] = []
        if options.huge_pages is HugePages.PROVIDERS:
            for size, kib in sorted(host.memory.huge_kib[node].items()):
                pages += _pages(size, kib, parent=f"{root}_NUMA{node}", node=node)
        if records or pages:
            traits = frozenset({OWNER_TRAIT, NUMA_TRAIT})
            yield Wanted(f"{root}_NUMA{node}", root, records, traits, Place(node))
            yield from pages


def _totals_of(host: Host, options: Options, node: int) -> dict[str, int]:
    on_node = {cpu for cpu, its in host.topology.node_of.items() if its == node}
    memory = host.memory.node_kib[node]
    if options.huge_pages is HugePages.PROVIDERS:
        memory -= sum(host.memory.huge_kib[node].values())
    return {
        "VCPU": len(host.cpus.shared & on_node),
        "PCPU": len(host.cpus.dedicated & on_node),
        "MEMORY_MB": max(0, memory // 1024),
    }


def _reserved(
    options: Options, name: str, totals: Mapping[int, Mapping[str, int]]
) -> dict[int, int]:
    """What is reserved on each node, of what is reserved on the host."""
    weights = [of_node[name] for of_node in totals.values()]
    if not any(weights):
        return dict.fromkeys(totals, 0)
    return dict(zip(totals, share_out(options.reserved.get(name, 0), weights), strict=True))


# --- Records --------------------------------------------------------------------------------------


def _configured(options: Options, name: str) -> dict[str, int | float]:
    fields: dict[str, int | float] = {}
    if name in options.reserved:
        fields["reserved"] = options.reserved[name]
    if name in options.allocation_ratios:
        fields["allocation_ratio"] = options.allocation_ratios[name]
    return fields


def _record(total: int, **fields: int | float) -> dict[str, Any]:
    return {"total": total, "max_unit": total, **fields}
