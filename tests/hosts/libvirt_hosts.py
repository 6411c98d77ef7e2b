# SPDX-License-Identifier: Apache-2.0
"""Hosts with libvirt, for tests without libvirt: documents in the form that libvirt writes.

The capabilities are in `tests/data/libvirt/`: `test-default` is from libvirt's own test driver, the
others describe machines of several kinds in the same form. Guests and devices are generated here,
one per line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from uuid import UUID, uuid5

from berth.hosts.drivers.host_model.devices import Function, MdevParent
from berth.hosts.drivers.libvirt.host import Machine, NodeDevices
from berth.hosts.drivers.libvirt.xml_documents import (
    Cell,
    Guest,
    Mdev,
    read_capabilities,
    read_cpu_features,
    read_guest,
    read_node_device,
)
from tests.hosts.stage import consumer_uuid

RECORDED: Final = Path(__file__).parent.parent / "data" / "libvirt"

_MDEVS: Final = UUID("6f1d0c55-19a1-4c53-8f0a-4f7a3c1f2b10")


@dataclass
class RecordedHost:
    """A host whose libvirt returns the same documents until a test changes its fields."""

    capabilities: str = "one-socket"
    gib: int = 100
    node_devices: list[str] = field(default_factory=list)
    domains: list[tuple[str, bool]] = field(default_factory=list)
    #: CPUs that are there and do not run.
    resting: frozenset[int] = frozenset()
    encryption: Mapping[str, int | None] = field(default_factory=dict)
    #: By CPU that libvirt does not tell of, the NUMA node on which the kernel has it.
    resting_on: Mapping[int, int] = field(default_factory=dict)
    #: NUMA nodes that are the memory of GPUs.
    of_gpus: frozenset[int] = frozenset()
    #: By NUMA node without CPUs, its memory in KiB.
    memory_kib: Mapping[int, int] = field(default_factory=dict)
    #: NUMA nodes of which libvirt does not tell.
    unlisted: frozenset[int] = frozenset()
    #: The memory of each node in huge pages, by page size in KiB.
    huge_kib: dict[int, int] = field(default_factory=dict)

    def machine(self) -> Machine:
        read = read_capabilities((RECORDED / f"{self.capabilities}.xml").read_text())
        cpus = frozenset(cpu for cell in read.cells for cpu in cell.cpus)
        online = cpus - self.resting_on.keys()
        cells = tuple(
            replace(cell, cpus=cell.cpus & online, huge_kib={**cell.huge_kib, **self.huge_kib})
            for cell in read.cells
            if cell.id not in self.unlisted
        ) + tuple(Cell(number, frozenset(), kib) for number, kib in self.memory_kib.items())
        return Machine(
            replace(read, cells=cells),
            sum(cell.memory_kib for cell in cells) // 1024,
            cpus,
            cpus - self.resting,
            read_cpu_features(read.cpu) if read.cpu else frozenset(),
            self.encryption,
            self.resting_on,
            self.of_gpus,
        )

    def devices(self) -> NodeDevices:
        read = [device for text in self.node_devices for device in read_node_device(text)]
        return NodeDevices(
            [device for device in read if isinstance(device, MdevParent)],
            [device for device in read if isinstance(device, Mdev)],
            [device for device in read if isinstance(device, Function)],
        )

    def guests(self) -> list[Guest]:
        return [read_guest(text, is_running=is_running) for text, is_running in self.domains]

    def disk_gib(self, directory: Path) -> int:
        """The same size for every directory."""
        return self.gib


def gpu_host(
    guests: Mapping[str, str], *, size: int = 4, stopped: str = "", names_uuid: bool = True
) -> RecordedHost:
    """A host with the GPUs 84 and 85.

    Args:
        guests: by the name of a consumer, the GPUs of its vGPUs: `"84 84 85"`.
        size: how many vGPUs each GPU has.
        stopped: names of guests that do not run; theirs are not made.
        names_uuid: see `mdev_xml`.
    """
    host = RecordedHost()
    made = {"84": 0, "85": 0}
    for name, gpus in guests.items():
        mdevs = []
        for number, gpu in enumerate(gpus.split()):
            mdev = str(uuid5(_MDEVS, f"{name} {number}"))
            mdevs.append(mdev)
            if name not in stopped.split():
                made[gpu] += 1
                parent = f"pci_0000_{gpu}_00_0"
                host.node_devices.append(mdev_xml(mdev, parent, names_uuid=names_uuid))
        text = domain_xml(consumer_uuid(name), mdevs=mdevs)
        host.domains.append((text, name not in stopped.split()))
    for gpu, count in made.items():
        host.node_devices.append(gpu_xml(gpu, available=size - count))
    return host


def gpu_xml(bus: str, *, available: int, kind: str = "nvidia-35") -> str:
    """The node device of a GPU."""
    return f"""
    <device>
      <name>pci_0000_{bus}_00_0</name>
      <path>/sys/devices/pci0000:80/0000:{bus}:00.0</path>
      <parent>pci_0000_80_02_0</parent>
      <driver><name>nvidia</name></driver>
      <capability type='pci'>
        <class>0x030200</class>
        <domain>0</domain><bus>{int(bus, 16)}</bus><slot>0</slot><function>0</function>
        <product id='0x1eb8'>TU104GL [Tesla T4]</product>
        <vendor id='0x10de'>NVIDIA Corporation</vendor>
        <capability type='mdev_types'>
          <type id='{kind}'>
            <name>GRID T4-1B</name>
            <deviceAPI>vfio-pci</deviceAPI>
            <availableInstances>{available}</availableInstances>
          </type>
          <type id='nvidia-36'>
            <name>GRID T4-2B</name>
            <deviceAPI>vfio-pci</deviceAPI>
            <availableInstances>2</availableInstances>
          </type>
        </capability>
        <iommuGroup number='14'/>
        <numa node='0'/>
      </capability>
    </device>"""


def mdev_xml(uuid: str, parent: str, *, kind: str = "nvidia-35", names_uuid: bool = True) -> str:
    """The node device of a mediated device; before libvirt 7.3 only its name contained the uuid."""
    return f"""
    <device>
      <name>mdev_{uuid.replace("-", "_")}{parent.removeprefix("pci") if names_uuid else ""}</name>
      <path>/sys/devices/pci0000:80/{uuid}</path>
      <parent>{parent}</parent>
      <driver><name>vfio_mdev</name></driver>
      <capability type='mdev'>
        <type id='{kind}'/>
        {f"<uuid>{uuid}</uuid>" if names_uuid else ""}
        <iommuGroup number='52'/>
      </capability>
    </device>"""


def pci_xml(address: str, device: str, *, physical: str = "", node: int | None = None) -> str:
    """The node device of a PCI function of a network card.

    Args:
        physical: the address of the physical function, where this is a virtual one.
    """
    places = "".join(f"<{name}>{int(n, 16)}</{name}>" for name, n in _places(address).items())
    vendor, product = device.split(":")
    above = f"<capability type='phys_function'>{_address_xml(physical)}</capability>"
    return f"""
    <device>
      <name>pci_{address.replace(":", "_").replace(".", "_")}</name>
      <capability type='pci'>
        <class>0x020000</class>
        {places}
        <product id='0x{product}'>Ethernet</product>
        <vendor id='0x{vendor}'>Somebody</vendor>
        {above if physical else ""}
        {"" if node is None else f"<numa node='{node}'/>"}
      </capability>
    </device>"""


def domain_xml(
    uuid: str,
    *,
    mdevs: list[str] | None = None,
    functions: str = "",
    pins: str = "",
    memory: str = "",
    size: tuple[int, int] = (0, 0),
    page_kib: int = 0,
) -> str:
    """A domain.

    Args:
        size: its vCPUs and MiB; none, unless the test is about them.
        page_kib: the size of the pages that its memory is in.
        functions: the addresses of the PCI functions that it has.
        pins: by vCPU, the host CPUs that it is pinned to: `"0-7 8"`.
        memory: the NUMA nodes that its memory is bound to.
    """
    vcpupins = "".join(
        f"<vcpupin vcpu='{vcpu}' cpuset='{cpus}'/>" for vcpu, cpus in enumerate(pins.split())
    )
    devices = "".join(
        f"<hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci'>"
        f"<source><address uuid='{mdev}'/></source></hostdev>"
        for mdev in mdevs or ()
    ) + "".join(
        f"<hostdev mode='subsystem' type='pci' managed='yes'>"
        f"<source>{_address_xml(address)}</source></hostdev>"
        for address in functions.split()
    )
    pages = f"<hugepages><page size='{page_kib}' unit='KiB'/></hugepages>"
    return f"""
    <domain type='test'>
      <name>{uuid}</name>
      <uuid>{uuid}</uuid>
      <memory unit='MiB'>{size[1]}</memory>
      {f"<memoryBacking>{pages}</memoryBacking>" if page_kib else ""}
      <vcpu>{size[0]}</vcpu>
      {f"<cputune>{vcpupins}</cputune>" if pins else ""}
      {f"<numatune><memory mode='strict' nodeset='{memory}'/></numatune>" if memory else ""}
      <os><type>hvm</type></os>
      <devices>{devices}</devices>
    </domain>"""


def _places(address: str) -> dict[str, str]:
    domain, bus, rest = address.split(":")
    slot, function = rest.split(".")
    return {"domain": domain, "bus": bus, "slot": slot, "function": function}


def _address_xml(address: str) -> str:
    if not address:
        return ""
    places = " ".join(f"{name}='0x{number}'" for name, number in _places(address).items())
    return f"<address {places}/>"
