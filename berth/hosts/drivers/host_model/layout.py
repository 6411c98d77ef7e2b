# SPDX-License-Identifier: Apache-2.0
"""The layout of a host: which providers it should have; pure.

    cn1                       DISK_GB, the traits of the CPUs; when flat also VCPU, PCPU, MEMORY_MB
      cn1_NUMA0               VCPU, PCPU, MEMORY_MB                     HW_NUMA_ROOT
        cn1_NUMA0_PAGES_2048  MEMORY_MB in steps of the page size       CUSTOM_MEMORY_PAGE_SIZE_2048
        cn1_pci_0000_84_00_0  VGPU
      cn1_0000:81:00.0        a device whose NUMA node is not known

When flat, pages and devices are below the root: `cn1_PAGES_2048`. Empty providers are left out.
Records set `total`, `max_unit` and configured fields; all others are the operator's.
Source: spec/compute-side.md 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from berth.hosts.drivers.host_model.devices import Device
from berth.hosts.drivers.host_model.facts import Facts, Part, share_out
from berth.hosts.drivers.host_model.names import PCI_ADDRESS
from berth.hosts.drivers.host_model.options import HostOptions, HugePages, Model
from berth.hosts.drivers.ownership import OWNER_TRAIT

NUMA_TRAIT: Final = "HW_NUMA_ROOT"
PAGE_SIZE_TRAIT: Final = "CUSTOM_MEMORY_PAGE_SIZE_"

#: The classes that move between the root and the NUMA nodes with the model.
MOVING: Final = ("VCPU", "PCPU", "MEMORY_MB")

#: The driver's own classes on the root; others are left alone.
ROOT_CLASSES: Final = (*MOVING, "DISK_GB")

#: Records by resource class.
Records = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Place:
    """The part of the host that a provider of CPUs or memory stands for."""

    #: The NUMA node; None: the whole host.
    node: int | None = None
    #: The page size in KiB; None: everything that is not in huge pages.
    pages: int | None = None


@dataclass(frozen=True, slots=True)
class HostProvider:
    """A provider as it should be."""

    name: str
    #: None for the root.
    parent: str | None
    #: Edited until they are what is offered.
    records: Records
    traits: frozenset[str]
    #: None for a device.
    place: Place | None
    #: None for a place.
    device: Device | None = None


_PLACE: Final = re.compile(r"(?:NUMA(?P<node>\d+))?(?:(?(node)_)PAGES_(?P<pages>\d+))?")
_DEVICE: Final = re.compile(
    r"[0-9A-F]{4,}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7]|pci_[0-9a-f]{4,}_[0-9a-f]{2}_[0-9a-f]{2}_[0-7]"
    r"|mdev_.+|amd_sev(?:_es)?|intel_tdx"
)


def place_of(name: str, root: str) -> Place | None:
    """The part of the host that a provider's name stands for; None if it is something else."""
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


def device_address(name: str, root: str) -> str | None:
    """The address of the PCI device whose provider this is; None if it is no PCI device."""
    digits = re.findall(r"[0-9a-f]+", _rest_of(name, root).lower().removeprefix("pci_"))
    address = "{}:{}:{}.{}".format(*digits) if len(digits) == 4 else ""
    return address if PCI_ADDRESS.fullmatch(address) else None


def local_name(name: str) -> str:
    """A provider's name without its root's name; empty if it is not a provider of the driver.

    Independent of the root's name: the longest ending that has a meaning.
    """
    parts = name.split("_")
    endings = ("_".join(parts[index:]) for index in range(1, len(parts)))
    return next(
        (ending for ending in endings if _PLACE.fullmatch(ending) or _DEVICE.fullmatch(ending)), ""
    )


def layout_of(facts: Facts, options: HostOptions, root: str) -> dict[str, HostProvider]:
    """The providers that a host should have, by name, parents first."""
    listed = [_root(facts, options, root)]
    if options.model is Model.NUMA:
        listed += _nodes(facts, options, root)
    else:
        listed += _pages(facts.whole, options, root, None)
    nodes = {
        provider.place.node: provider.name
        for provider in listed
        if provider.place and provider.place.pages is None
    }
    for device in facts.devices:
        listed.append(
            HostProvider(
                name=f"{root}_{device.name}",
                parent=nodes.get(device.node, root),
                records={
                    name: _record(count, max_unit=device.unit_max or count)
                    for name, count in sorted(device.counts.items())
                },
                traits=device.traits_with_form | {OWNER_TRAIT},
                place=None,
                device=device,
            )
        )
    return {provider.name: provider for provider in listed}


def _rest_of(name: str, root: str) -> str:
    return name.removeprefix(f"{root}_") if name.startswith(f"{root}_") else ""


def _root(facts: Facts, options: HostOptions, root: str) -> HostProvider:
    totals = {"DISK_GB": facts.disk_gib}
    if options.model is Model.FLAT:
        totals |= _totals_of(facts.whole, options)
    records = {
        name: _record(total, **_configured(options, name))
        for name, total in totals.items()
        if total
    }
    return HostProvider(root, None, records, facts.traits, Place())


def _nodes(facts: Facts, options: HostOptions, root: str) -> Iterator[HostProvider]:
    """The NUMA nodes that have CPUs on offer, or memory."""
    totals = {node: _totals_of(part, options) for node, part in facts.nodes.items()}
    reserved = {name: _reserved(options, name, totals) for name in MOVING}
    for node, of_node in totals.items():
        name = f"{root}_NUMA{node}"
        records = {}
        for resource_class, total in of_node.items():
            if total:
                fields = _configured(options, resource_class)
                if "reserved" in fields:
                    fields["reserved"] = reserved[resource_class][node]
                records[resource_class] = _record(total, **fields)
        pages = list(_pages(facts.nodes[node], options, name, node))
        if records or pages:
            yield HostProvider(
                name, root, records, frozenset({OWNER_TRAIT, NUMA_TRAIT}), Place(node)
            )
            yield from pages


def _pages(
    part: Part, options: HostOptions, parent: str, node: int | None
) -> Iterator[HostProvider]:
    """The providers of huge pages; amounts are whole numbers of pages."""
    for size, kib in sorted(_huge_kib(part, options).items()):
        step = max(1, size // 1024)
        if total := kib // 1024 // step * step:
            yield HostProvider(
                name=f"{parent}_PAGES_{size}",
                parent=parent,
                records={"MEMORY_MB": _record(total, min_unit=step, step_size=step)},
                traits=frozenset({OWNER_TRAIT, f"{PAGE_SIZE_TRAIT}{size}"}),
                place=Place(node, size),
            )


def _totals_of(part: Part, options: HostOptions) -> dict[str, int]:
    memory_kib = part.memory_kib - sum(_huge_kib(part, options).values())
    return {"VCPU": part.vcpus, "PCPU": part.pcpus, "MEMORY_MB": max(0, memory_kib) // 1024}


def _huge_kib(part: Part, options: HostOptions) -> Mapping[int, int]:
    """Memory on providers of its own, by page size."""
    return part.huge_kib if options.huge_pages is HugePages.PROVIDERS else {}


def _reserved(
    options: HostOptions, name: str, totals: Mapping[int, Mapping[str, int]]
) -> dict[int, int]:
    """The part of the host's reserved amount for each node."""
    weights = [of_node[name] for of_node in totals.values()]
    if not any(weights):
        return dict.fromkeys(totals, 0)
    return dict(zip(totals, share_out(options.reserved.get(name, 0), weights), strict=True))


def _configured(options: HostOptions, name: str) -> dict[str, int | float]:
    fields: dict[str, int | float] = {}
    if name in options.reserved:
        fields["reserved"] = options.reserved[name]
    if name in options.allocation_ratios:
        fields["allocation_ratio"] = options.allocation_ratios[name]
    return fields


def _record(total: int, **fields: int | float) -> dict[str, Any]:
    return {"total": total, "max_unit": total, **fields}
