# SPDX-License-Identifier: Apache-2.0
"""Recorded hosts, described in a few lines in `machines.yaml`, and their files: a small /sys and
/proc, as its kernel would write them.

A machine is plain data. `Machine.write` creates its files below a directory, which the driver reads
in place of the root directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from berth.hosts.drivers.host_model.names import read_id_list
from berth.hosts.drivers.linux.host import FileSystem

#: A server's processor of the year 2020.
INTEL: Final = (
    "fpu vme msr pae mmx sse sse2 ht vmx pni pclmulqdq ssse3 fma sse4_1 sse4_2 aes avx f16c bmi1 "
    "avx2 bmi2 rtm avx512f avx512dq avx512cd avx512bw avx512vl avx512_vnni ssbd ibrs ibpb stibp "
    "pcid pdpe1gb md_clear"
)

MIB: Final = 1024
GIB: Final = 1024 * MIB


@dataclass(frozen=True)
class Node:
    """A NUMA node."""

    cpus: str = ""
    #: MemTotal of the node, in KiB.
    memory_kib: int = 0
    #: By page size in KiB, how many huge pages there are.
    pages: Mapping[int, int] = field(default_factory=dict)
    #: Blocks of memory; by default none are listed.
    blocks: int = 0


@dataclass(frozen=True)
class PCI:
    """A PCI device."""

    #: Vendor and product.
    device: str
    #: -1: the firmware does not tell.
    node: int = -1
    #: Digits of the PCI class.
    kind: str = "020000"
    #: The virtual functions that are enabled, by address, with their vendor and product.
    functions: Mapping[str, str] = field(default_factory=dict)
    #: By type of mediated devices: how many exist, and how many more could be made.
    mdev: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Machine:
    """A host."""

    nodes: Mapping[int, Node]
    #: MemTotal of the host in KiB; None: what the nodes add up to.
    memory_kib: int | None = None
    #: None: those of the nodes.
    online: str | None = None
    present: str | None = None
    arch: str = "x86_64"
    vendor: str = "GenuineIntel"
    flags: str = INTEL
    #: The flags of some CPUs, where they differ.
    odd_flags: Mapping[int, str] = field(default_factory=dict)
    has_threads: bool = True
    disk_gib: int = 500
    #: None: the disk stands on something that the kernel does not say this of.
    disk_turns: bool | None = False
    pci: Mapping[str, PCI] = field(default_factory=dict)
    #: By kind, for how many guests memory can be encrypted.
    encryption: Mapping[str, int] = field(default_factory=dict)

    def write(self, root: Path) -> Path:
        """Write the host's files below a directory; return that directory."""
        self._write_cpus(root)
        self._write_memory(root)
        if self.disk_turns is not None:
            disk = root / "sys/devices/pci0000:00/nvme/nvme0n1"
            _write(disk / "queue/rotational", int(self.disk_turns))
            (disk / "nvme0n1p2").mkdir()
            _link(root / "sys/dev/block/259:2", disk / "nvme0n1p2")
        if self.encryption:
            lines = "\n".join(f"{kind} {count}" for kind, count in self.encryption.items())
            _write(root / "sys/fs/cgroup/misc.capacity", lines)
        for address, device in self.pci.items():
            self._write_device(root, address, device)
        return root

    def measure(self, directory: Path) -> FileSystem:
        """The file system of any directory: the second partition of the disk."""
        return FileSystem(self.disk_gib * 2**30 + 12345, (259, 2))

    def _write_cpus(self, root: Path) -> None:
        cpus = sorted(cpu for node in self.nodes.values() for cpu in read_id_list(node.cpus))
        online = read_id_list(self.online) if self.online else frozenset(cpus)
        listed = ",".join(map(str, sorted(online)))
        system = root / "sys/devices/system/cpu"
        _write(system / "online", listed)
        _write(system / "present", self.present or listed)
        _write(system / "smt/active", int(self.has_threads))
        _write(root / "proc/sys/kernel/arch", self.arch)
        word = "Features" if self.arch == "aarch64" else "flags"
        _write(
            root / "proc/cpuinfo",
            "\n\n".join(
                f"processor\t: {cpu}\nvendor_id\t: {self.vendor}\n"
                f"{word}\t\t: {self.odd_flags.get(cpu, self.flags)}"
                for cpu in sorted(online)
            ),
        )

    def _write_memory(self, root: Path) -> None:
        total = sum(node.memory_kib for node in self.nodes.values())
        _write(root / "proc/meminfo", f"MemTotal:  {self.memory_kib or total} kB\nMemFree: 1 kB")
        system = root / "sys/devices/system/node"
        _write(system / "online", ",".join(map(str, sorted(self.nodes))))
        for number, node in self.nodes.items():
            path = system / f"node{number}"
            _write(path / "cpulist", node.cpus)
            _write(path / "meminfo", f"Node {number} MemTotal:  {node.memory_kib} kB")
            for size, count in node.pages.items():
                _write(path / f"hugepages/hugepages-{size}kB/nr_hugepages", count)
                _write(path / f"hugepages/hugepages-{size}kB/surplus_hugepages", 0)
            for block in range(node.blocks):
                (path / f"memory{block}").mkdir()

    def _write_device(self, root: Path, address: str, device: PCI) -> None:
        bus = root / "sys/bus/pci/devices"
        _write_function(bus / address, device.device, device)
        for number, (function, identity) in enumerate(device.functions.items()):
            _write_function(bus / function, identity, device)
            _link(bus / function / "physfn", bus / address)
            _link(bus / address / f"virtfn{number}", bus / function)
        for kind, (made, possible) in device.mdev.items():
            path = root / "sys/class/mdev_bus" / address / "mdev_supported_types" / kind
            _write(path / "available_instances", possible)
            for number in range(made):
                (path / f"devices/{number:08}-0000-0000-0000-000000000000").mkdir(parents=True)


def _write_function(path: Path, identity: str, device: PCI) -> None:
    vendor, _, product = identity.partition(":")
    for name, value in {
        "vendor": f"0x{vendor}",
        "device": f"0x{product}",
        "class": f"0x{device.kind}",
        "numa_node": device.node,
    }.items():
        _write(path / name, value)


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{value}\n")


def _link(path: Path, to: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)


_FILE: Final = Path(__file__).with_suffix(".yaml")

MACHINES: Final = msgspec.yaml.decode(_FILE.read_bytes(), type=dict[str, Machine])

ONE_SOCKET: Final = MACHINES["one socket"]
TWO_SOCKETS: Final = MACHINES["two sockets"]
FOUR_NODES: Final = MACHINES["four nodes"]
GPU_HOST: Final = MACHINES["GPU host"]
SRIOV_HOST: Final = MACHINES["SR-IOV host"]
