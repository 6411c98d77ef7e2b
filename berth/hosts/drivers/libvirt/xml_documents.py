# SPDX-License-Identifier: Apache-2.0
"""libvirt's XML documents as values: capabilities, CPUs, node devices and domains.

Pure: nothing here needs libvirt, so that recorded documents can be used too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.etree import ElementTree

from berth.hosts.drivers.host_model.devices import NETWORK_CLASS, Function, MdevParent
from berth.hosts.drivers.host_model.names import read_id_list
from berth.hosts.errors import HostUnreadable

#: KiB per unit, for libvirt's units.
_UNITS: Final[Mapping[str, float]] = {
    "b": 1 / 1024,
    "bytes": 1 / 1024,
    "KiB": 1,
    "MiB": 1024,
    "GiB": 1024**2,
    "TiB": 1024**3,
}

#: The parts of a PCI address.
_PLACES: Final = ("domain", "bus", "slot", "function")

_NOT_OFFERED: Final = ("disable", "forbid")


@dataclass(frozen=True, slots=True)
class Cell:
    """A NUMA node of the host; it may have no CPUs, or no memory."""

    id: int
    cpus: frozenset[int]
    memory_kib: int
    #: Memory in huge pages by page size in KiB; included in the other figure.
    huge_kib: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """libvirt's description of the host itself."""

    arch: str
    #: In ascending order of their IDs, which may have gaps.
    cells: tuple[Cell, ...]
    has_hyperthreads: bool
    #: The host's CPU, as XML; None if libvirt does not know it.
    cpu: str | None


@dataclass(frozen=True, slots=True)
class Mdev:
    """An existing mediated device."""

    uuid: str
    type: str
    #: The name of its parent device.
    parent: str


@dataclass(frozen=True, slots=True)
class Guest:
    """A domain, running or not."""

    uuid: str
    is_running: bool
    #: The UUIDs of its mediated devices; for a stopped guest, those that it would use.
    mdevs: tuple[str, ...] = ()
    #: The addresses of its passed-through PCI functions.
    functions: tuple[str, ...] = ()
    #: The number of its vCPUs that are pinned to each set of host CPUs.
    pins: tuple[frozenset[int], ...] = ()
    #: The NUMA nodes to which its memory is bound.
    memory_cells: frozenset[int] = frozenset()
    vcpus: int = 0
    memory_mib: int = 0
    #: The size of the huge pages that its memory is in; None: in others, or in the host's default.
    page_kib: int | None = None


def read_capabilities(text: str) -> Capabilities:
    """Read the host's capabilities (`virsh capabilities`)."""
    host = _parse(text).find("host")
    if host is None:
        raise HostUnreadable("libvirt's capabilities do not describe the host")
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
        has_hyperthreads=any(
            len(read_id_list(listed_cpu.get("siblings", ""))) > 1 for listed_cpu in cpus
        ),
        cpu=None
        if cpu is None or cpu.find("model") is None
        else ElementTree.tostring(cpu, encoding="unicode"),
    )


def read_host_model(text: str) -> str | None:
    """Read the CPU that guests get in mode host-model from domain capabilities, as XML."""
    for mode in _parse(text).findall("cpu/mode"):
        if mode.get("name") == "host-model" and mode.get("supported") == "yes":
            inner = "".join(ElementTree.tostring(element, encoding="unicode") for element in mode)
            return f"<cpu mode='custom' match='exact'>{inner}</cpu>"
    return None


def read_encryption_slots(text: str) -> dict[str, int | None]:
    """Read the number of guests with encrypted memory from domain capabilities, by kind; None where
    libvirt (before 8.0) says only that it is supported."""
    features = _parse(text)
    sev = features.find("features/sev[@supported='yes']")
    tdx = features.find("features/tdx[@supported='yes']")
    of_tdx: dict[str, int | None] = {} if tdx is None else {"tdx": None}
    if sev is None:
        return of_tdx
    kinds = {"sev": "maxGuests", "sev_es": "maxESGuests"}
    numbers = {kind: sev.findtext(name) for kind, name in kinds.items()}
    slots = {kind: None if number is None else int(number) for kind, number in numbers.items()}
    return slots | of_tdx


def read_cpu_features(text: str) -> frozenset[str]:
    """The features that a CPU's XML names and does not exclude."""
    return frozenset(
        feature.get("name", "")
        for feature in _parse(text).iter("feature")
        if feature.get("policy") not in _NOT_OFFERED
    )


def read_node_device(text: str) -> Iterator[MdevParent | Mdev | Function]:
    """Read a node device (`virsh nodedev-dumpxml`), if it may be offered.

    It does not say how many mediated devices a parent has.
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
    """Read a domain (`virsh dumpxml`)."""
    domain = _parse(text)
    memory = domain.find("numatune/memory")
    page = domain.find("memoryBacking/hugepages/page")
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
        vcpus=int(domain.findtext("vcpu", "0")),
        memory_mib=_kib(domain.find("memory")) // 1024,
        page_kib=None if page is None else _kib_of(page.get("size", "0"), page.get("unit")),
    )


def _parse(text: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise HostUnreadable(f"cannot parse libvirt's XML: {error}") from error


def _all(element: ElementTree.Element, path: str, attribute: str) -> Iterator[str]:
    return (child.get(attribute, "") for child in element.findall(path))


def _cell(element: ElementTree.Element) -> Cell:
    return Cell(
        id=int(element.get("id", "0")),
        cpus=frozenset(int(cpu.get("id", "0")) for cpu in element.findall("cpus/cpu")),
        memory_kib=_kib(element.find("memory")),
        huge_kib=_huge_kib(element),
    )


def _kib(amount: ElementTree.Element | None) -> int:
    return 0 if amount is None else _kib_of(amount.text or "0", amount.get("unit"))


def _kib_of(number: str, unit: str | None) -> int:
    return int(int(number) * _UNITS.get(unit or "", 1))


def _huge_kib(cell: ElementTree.Element) -> dict[int, int]:
    """Memory in pages that are larger than the smallest ones, by page size."""
    pages = {
        int(page_size.get("size", "0")): int(page_size.text or "0")
        for page_size in cell.findall("pages")
    }
    return {size: size * count for size, count in sorted(pages.items())[1:] if count}


def _function(pci: ElementTree.Element) -> Function | None:
    """A PCI function; None if the device does not say where it is, or what."""
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
        is_network=pci.findtext("class", "").startswith(NETWORK_CLASS),
        node=None if node < 0 else node,
    )


def _address(places: Mapping[str, str]) -> str:
    """A PCI address in the kernel's notation, from numbers that are decimal or begin with 0x."""
    domain, bus, slot, function = (int(places.get(name, "0"), 0) for name in _PLACES)
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"


def _uuid_in(name: str) -> str:
    """The UUID in `mdev_4b20d080_1b54_4048_85b3_a6a62d165c01[_0000_84_00_0]`.

    Before libvirt 7.3 it was nowhere else.
    """
    return "-".join(name.removeprefix("mdev_").split("_")[:5])
