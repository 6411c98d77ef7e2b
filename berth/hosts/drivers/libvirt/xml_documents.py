# SPDX-License-Identifier: Apache-2.0
"""What libvirt tells in XML, as values: capabilities, CPUs, node devices and domains.

Pure: nothing here needs libvirt, so that recorded documents do as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.etree import ElementTree

from berth.hosts.drivers.hosts.id_lists import read_id_list
from berth.hosts.drivers.hosts.mdev import MdevParent
from berth.hosts.drivers.hosts.pci import Function
from berth.hosts.errors import HostUnreadable

#: KiB in the units that libvirt uses.
_UNITS: Final[Mapping[str, float]] = {
    "b": 1 / 1024,
    "bytes": 1 / 1024,
    "KiB": 1,
    "MiB": 1024,
    "GiB": 1024**2,
    "TiB": 1024**3,
}

#: What a PCI address is made of.
_PLACES: Final = ("domain", "bus", "slot", "function")

#: The first digits of the PCI class of what carries a network.
_NETWORK: Final = "0x02"

_NOT_OFFERED: Final = ("disable", "forbid")


@dataclass(frozen=True, slots=True)
class Cell:
    """A NUMA node of the host; it may have no CPUs, or no memory."""

    id: int
    cpus: frozenset[int]
    memory_kib: int
    #: By page size in KiB, what is in huge pages; the other figure includes it.
    huge_kib: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What libvirt says of the host itself."""

    arch: str
    #: In ascending order of their ids, which may have gaps.
    cells: tuple[Cell, ...]
    has_hyperthreads: bool
    #: The host's CPU, as XML; None where libvirt does not know it.
    cpu: str | None


@dataclass(frozen=True, slots=True)
class Mdev:
    """A mediated device that there is."""

    uuid: str
    type: str
    #: The name of the device that it is made of.
    parent: str


@dataclass(frozen=True, slots=True)
class Guest:
    """A domain, running or not."""

    uuid: str
    is_running: bool
    #: The uuids of its mediated devices; of a stopped guest, those that it would want.
    mdevs: tuple[str, ...] = ()
    #: The addresses of the PCI functions that are passed through to it.
    functions: tuple[str, ...] = ()
    #: How many of its vCPUs are pinned into each set of host CPUs.
    pins: tuple[frozenset[int], ...] = ()
    #: The NUMA nodes that its memory is bound to.
    memory_cells: frozenset[int] = frozenset()


def read_capabilities(text: str) -> Capabilities:
    """The host's capabilities (`virsh capabilities`)."""
    host = _parse(text).find("host")
    if host is None:
        raise HostUnreadable("libvirt's capabilities do not tell of the host")
    cpus = host.findall("topology/cells/cell/cpus/cpu")
    cpu = host.find("cpu")
    return Capabilities(
        arch=host.findtext("cpu/arch", ""),
        cells=tuple(
            sorted(
                (_cell(element) for element in host.findall("topology/cells/cell")),
                key=lambda cell: cell.id,
            )
        ),
        has_hyperthreads=any(len(read_id_list(one.get("siblings", ""))) > 1 for one in cpus),
        cpu=None
        if cpu is None or cpu.find("model") is None
        else ElementTree.tostring(cpu, encoding="unicode"),
    )


def read_host_model(text: str) -> str | None:
    """The CPU that guests get in mode host-model, from domain capabilities, as XML."""
    for mode in _parse(text).findall("cpu/mode"):
        if mode.get("name") == "host-model" and mode.get("supported") == "yes":
            inner = "".join(ElementTree.tostring(one, encoding="unicode") for one in mode)
            return f"<cpu mode='custom' match='exact'>{inner}</cpu>"
    return None


def read_encryption_slots(text: str) -> dict[str, int]:
    """By kind, how many guests' memory can be encrypted, from domain capabilities."""
    sev = _parse(text).find("features/sev[@supported='yes']")
    if sev is None:
        return {}
    kinds = {"sev": "maxGuests", "sev_es": "maxESGuests"}
    return {kind: int(sev.findtext(name, "0")) for kind, name in kinds.items()}


def read_cpu_features(text: str) -> frozenset[str]:
    """The features that a CPU's XML names and does not exclude."""
    return frozenset(
        feature.get("name", "")
        for feature in _parse(text).iter("feature")
        if feature.get("policy") not in _NOT_OFFERED
    )


def read_node_device(text: str) -> Iterator[MdevParent | Mdev | Function]:
    """What a node device (`virsh nodedev-dumpxml`) is, of that which may be given out.

    How many mediated devices a parent has, it does not say.
    """
    device = _parse(text)
    name = device.findtext("name", "")
    mdev = device.find("capability[@type='mdev']")
    if mdev is not None:
        kind = mdev.find("type")
        yield Mdev(
            uuid=(mdev.findtext("uuid") or _uuid_in(name)).lower(),
            type="" if kind is None else kind.get("id", ""),
            parent=device.findtext("parent", ""),
        )
    pci = device.find("capability[@type='pci']")
    function = None if pci is None else _function(pci)
    if function is not None:
        yield function
    types = device.find(".//capability[@type='mdev_types']")
    if types is not None:
        yield MdevParent(
            name=name,
            address=function.address if function else None,
            node=function.node if function else None,
            made={},
            available={
                kind.get("id", ""): int(kind.findtext("availableInstances", "0"))
                for kind in types.findall("type")
            },
            physical=function.physical if function else None,
        )


def read_guest(text: str, *, is_running: bool) -> Guest:
    """A domain (`virsh dumpxml`)."""
    domain = _parse(text)
    memory = domain.find("numatune/memory")
    return Guest(
        uuid=domain.findtext("uuid", "").lower(),
        is_running=is_running,
        mdevs=tuple(
            uuid.lower()
            for uuid in _all(domain, "devices/hostdev[@type='mdev']/source/address", "uuid")
        ),
        functions=tuple(
            _address(address.attrib)
            for path in ("hostdev[@type='pci']", "interface[@type='hostdev']")
            for address in domain.findall(f"devices/{path}/source/address")
        ),
        pins=tuple(map(read_id_list, _all(domain, "cputune/vcpupin", "cpuset"))),
        memory_cells=frozenset() if memory is None else read_id_list(memory.get("nodeset", "")),
    )


def _parse(text: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise HostUnreadable(f"libvirt's XML cannot be read: {error}") from error


def _all(element: ElementTree.Element, path: str, attribute: str) -> Iterator[str]:
    return (one.get(attribute, "") for one in element.findall(path))


def _cell(element: ElementTree.Element) -> Cell:
    memory = element.find("memory")
    kib = 0.0
    if memory is not None:
        kib = int(memory.text or "0") * _UNITS.get(memory.get("unit", ""), 1)
    return Cell(
        id=int(element.get("id", "0")),
        cpus=frozenset(int(cpu.get("id", "0")) for cpu in element.findall("cpus/cpu")),
        memory_kib=int(kib),
        huge_kib=_huge_kib(element),
    )


def _huge_kib(cell: ElementTree.Element) -> dict[int, int]:
    """By page size, what is in pages of more than the least size."""
    pages = {int(one.get("size", "0")): int(one.text or "0") for one in cell.findall("pages")}
    return {size: size * count for size, count in sorted(pages.items())[1:] if count}


def _function(pci: ElementTree.Element) -> Function | None:
    """A function on the bus; None where the device does not say where it is, or what."""
    vendor, product = pci.find("vendor"), pci.find("product")
    places = {name: pci.findtext(name, "") for name in _PLACES}
    if vendor is None or product is None or not all(places.values()):
        return None
    numa = pci.find("numa")
    node = -1 if numa is None else int(numa.get("node", "-1"))
    physical = pci.find("capability[@type='phys_function']/address")
    return Function(
        address=_address(places),
        device=(f"{int(vendor.get('id', '0'), 0):04x}", f"{int(product.get('id', '0'), 0):04x}"),
        physical=None if physical is None else _address(physical.attrib),
        is_network=pci.findtext("class", "").startswith(_NETWORK),
        node=None if node < 0 else node,
    )


def _address(places: Mapping[str, str]) -> str:
    """A PCI address as the kernel writes it, of numbers that are decimal or have 0x before them."""
    domain, bus, slot, function = (int(places.get(name, "0"), 0) for name in _PLACES)
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"


def _uuid_in(name: str) -> str:
    """The uuid in `mdev_4b20d080_1b54_4048_85b3_a6a62d165c01[_0000_84_00_0]`.

    Before libvirt 7.3 it stood nowhere else.
    """
    return "-".join(name.removeprefix("mdev_").split("_")[:5])
