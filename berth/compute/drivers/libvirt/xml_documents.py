# SPDX-License-Identifier: Apache-2.0
"""What libvirt tells in XML, as values: capabilities, CPUs, node devices and domains.

Pure: nothing here needs libvirt, so that recorded documents do as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree

from berth.compute.errors import HostUnreadable

#: KiB in the units that libvirt uses.
_UNITS: Final[Mapping[str, float]] = {
    "b": 1 / 1024,
    "bytes": 1 / 1024,
    "KiB": 1,
    "MiB": 1024,
    "GiB": 1024**2,
    "TiB": 1024**3,
}

_NOT_OFFERED: Final = ("disable", "forbid")


@dataclass(frozen=True, slots=True)
class Cell:
    """A NUMA node of the host; it may have no CPUs, or no memory."""

    id: int
    cpus: frozenset[int]
    memory_mib: int


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
class MdevParent:
    """A device of which mediated devices can be made."""

    #: As libvirt calls it: `pci_0000_84_00_0`.
    name: str
    #: How many more of each type could be made, were no other type made meanwhile.
    available: Mapping[str, int]


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
        has_hyperthreads=any(len(read_id_set(one.get("siblings", ""))) > 1 for one in cpus),
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


def read_cpu_features(text: str) -> frozenset[str]:
    """The features that a CPU's XML names and does not exclude."""
    return frozenset(
        feature.get("name", "")
        for feature in _parse(text).iter("feature")
        if feature.get("policy") not in _NOT_OFFERED
    )


def read_node_device(text: str) -> MdevParent | Mdev | None:
    """A node device (`virsh nodedev-dumpxml`) that has to do with mediated devices, or None."""
    device = _parse(text)
    name = device.findtext("name", "")
    mdev = device.find("capability[@type='mdev']")
    if mdev is not None:
        kind = mdev.find("type")
        return Mdev(
            uuid=(mdev.findtext("uuid") or _uuid_in(name)).lower(),
            type="" if kind is None else kind.get("id", ""),
            parent=device.findtext("parent", ""),
        )
    types = device.find(".//capability[@type='mdev_types']")
    if types is None:
        return None
    return MdevParent(
        name,
        {
            kind.get("id", ""): int(kind.findtext("availableInstances", "0"))
            for kind in types.findall("type")
        },
    )


def read_guest(text: str, *, is_running: bool) -> Guest:
    """A domain (`virsh dumpxml`)."""
    domain = _parse(text)
    memory = domain.find("numatune/memory")
    return Guest(
        uuid=domain.findtext("uuid", "").lower(),
        is_running=is_running,
        mdevs=tuple(
            address.get("uuid", "").lower()
            for address in domain.findall("devices/hostdev[@type='mdev']/source/address")
        ),
        pins=tuple(read_id_set(pin.get("cpuset", "")) for pin in domain.findall("cputune/vcpupin")),
        memory_cells=frozenset() if memory is None else read_id_set(memory.get("nodeset", "")),
    )


def read_id_set(text: str) -> frozenset[int]:
    """The numbers in a list such as `0-3,^2,8`."""
    ids: set[int] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, _, last = part.removeprefix("^").partition("-")
        some = set(range(int(first), int(last or first) + 1))
        ids = ids - some if part.startswith("^") else ids | some
    return frozenset(ids)


def _parse(text: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise HostUnreadable(f"libvirt's XML cannot be read: {error}") from error


def _cell(element: ElementTree.Element) -> Cell:
    memory = element.find("memory")
    kib = 0.0
    if memory is not None:
        kib = int(memory.text or "0") * _UNITS.get(memory.get("unit", ""), 1)
    return Cell(
        id=int(element.get("id", "0")),
        cpus=frozenset(int(cpu.get("id", "0")) for cpu in element.findall("cpus/cpu")),
        memory_mib=int(kib // 1024),
    )


def _uuid_in(name: str) -> str:
    """The uuid in `mdev_4b20d080_1b54_4048_85b3_a6a62d165c01[_0000_84_00_0]`.

    Before libvirt 7.3 it stood nowhere else.
    """
    return "-".join(name.removeprefix("mdev_").split("_")[:5])
