# SPDX-License-Identifier: Apache-2.0
"""The fleet of `berth demo`: for a number of hosts always the same names, UUIDs, amounts and use.

A rack has eight hosts. Of the 25 racks of 200 hosts, 1-9 are in zone z1, 10-17 in z2, and 18-25 in
z3; in a larger fleet, the zones have the same shares. The hosts of z3 have no disk of their own;
they share a pool by way of the zone's aggregate.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

_NAMESPACE: Final = uuid.UUID("6d3f4a52-7c1e-5b0e-9a86-0d5c1f2e7b44")

#: Hosts of the fleet unless somebody wants more.
HOSTS: Final = 200

_HOSTS_IN_RACK: Final = 8
#: How many racks of 25 are in zones before each.
_ZONES: Final[Mapping[str, int]] = {"z1": 0, "z2": 9, "z3": 17}
_POOL_ZONE: Final = "z3"
#: DISK_GB of the pool for each host of the fleet.
_POOL_GB: Final = 1_000

_VCPU: Final = 32
_MEMORY_MB: Final = 131_072
_VGPU: Final = 4

#: Who the virtual machines belong to.
PROJECTS: Final = ("web", "batch", "lab")

#: VCPU, MEMORY_MB and DISK_GB, with the share of virtual machines that are at most so large.
_FLAVORS: Final = (
    (0.2, (2, 4_096, 20)),
    (0.5, (4, 8_192, 40)),
    (0.9, (8, 32_768, 80)),
    (1.0, (16, 65_536, 160)),
)


@dataclass(frozen=True, slots=True)
class DemoProvider:
    """A provider of the fleet; `parent` and `aggregates` are UUIDs."""

    uuid: str
    name: str
    parent: str | None
    inventories: Mapping[str, Mapping[str, float]]
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DemoConsumer:
    """A virtual machine: what it has of each provider, by UUID and resource class."""

    uuid: str
    project: str
    allocations: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class DemoFleet:
    """Parents come before their children."""

    providers: tuple[DemoProvider, ...]
    consumers: tuple[DemoConsumer, ...]
    #: The labels of each aggregate.
    labels: Mapping[str, Mapping[str, str]]

    @property
    def custom_traits(self) -> list[str]:
        """The traits that only this fleet needs."""
        traits = {trait for provider in self.providers for trait in provider.traits}
        return sorted(trait for trait in traits if trait.startswith("CUSTOM_"))


def demo_fleet(hosts: int = HOSTS) -> DemoFleet:
    """The fleet: of 200 hosts, it has 681 providers."""
    rng = Random(200)
    size = _Size(hosts)
    racked = [_Host(number, size) for number in range(1, hosts + 1)]
    pool = DemoProvider(
        _uuid("pool"),
        f"pool-{_POOL_ZONE}",
        None,
        {"DISK_GB": {"total": _POOL_GB * hosts}},
        ("MISC_SHARES_VIA_AGGREGATE", "STORAGE_DISK_SSD"),
        (_uuid(_POOL_ZONE),),
    )
    machines = [machine for host in racked for machine in _machines(host, rng)]
    return DemoFleet(
        (pool, *(provider for host in racked for provider in host.providers())),
        tuple(
            DemoConsumer(_uuid(f"vm{number}"), PROJECTS[number % 3], allocations)
            for number, allocations in enumerate(machines)
        ),
        dict(_labels(size)),
    )


@dataclass(frozen=True, slots=True)
class _Size:
    """How many hosts there are."""

    hosts: int

    @property
    def racks(self) -> int:
        return -(-self.hosts // _HOSTS_IN_RACK)

    def zone(self, rack: int) -> str:
        """The zone of a rack, from 1."""
        return [zone for zone, before in _ZONES.items() if before * self.racks <= 25 * (rack - 1)][
            -1
        ]


@dataclass(frozen=True, slots=True)
class _Host:
    """A host by its number, from 1."""

    number: int
    size: _Size

    @property
    def name(self) -> str:
        return f"cn{self.number:0{max(3, len(str(self.size.hosts)))}}"

    @property
    def rack(self) -> str:
        return _rack((self.number - 1) // _HOSTS_IN_RACK + 1)

    @property
    def zone(self) -> str:
        return self.size.zone((self.number - 1) // _HOSTS_IN_RACK + 1)

    @property
    def disk(self) -> str:
        """The UUID of the provider of its disk."""
        return _uuid("pool" if self.zone == _POOL_ZONE else self.name)

    def numa_node(self, node: int) -> str:
        return f"{self.name}_numa{node}"

    def providers(self) -> Iterator[DemoProvider]:
        """Its tree, parents first."""
        has_disk = self.zone != _POOL_ZONE
        yield DemoProvider(
            _uuid(self.name),
            self.name,
            None,
            {"DISK_GB": {"total": 2_000, "reserved": 140}} if has_disk else {},
            ("COMPUTE_NODE", *(["STORAGE_DISK_SSD"] if has_disk else [])),
            (_uuid(self.zone), _uuid(self.rack)),
        )
        for node in range(2):
            yield self._numa(node)
            if self.number % 5 == 0:
                yield self._gpu(node)

    def _numa(self, node: int) -> DemoProvider:
        # Only the hosts of z1 are of an older generation.
        newer = () if self.zone == "z1" else ("HW_CPU_X86_AVX512F",)
        return DemoProvider(
            _uuid(self.numa_node(node)),
            self.numa_node(node),
            _uuid(self.name),
            {
                "VCPU": {"total": _VCPU},
                "MEMORY_MB": {"total": _MEMORY_MB, "reserved": 2_048},
            },
            ("HW_NUMA_ROOT", "HW_CPU_X86_AVX2", *newer),
        )

    def _gpu(self, node: int) -> DemoProvider:
        name = f"{self.name}_gpu{node}"
        model = "CUSTOM_A100" if self.number % 10 == 0 else "CUSTOM_T4"
        return DemoProvider(
            _uuid(name), name, _uuid(self.numa_node(node)), {"VGPU": {"total": _VGPU}}, (model,)
        )


def _machines(host: _Host, rng: Random) -> Iterator[dict[str, dict[str, int]]]:
    """The virtual machines on a host, until its nodes are as full as they should be."""
    for node in range(2):
        vcpu_max = _VCPU * min(1.0, 0.3 + 0.8 * rng.random())
        vcpu_used = memory_used = gpus_used = 0
        while True:
            vcpu, memory, disk = _flavor(rng.random())
            vcpu_used, memory_used = vcpu_used + vcpu, memory_used + memory
            if vcpu_used > vcpu_max or memory_used > _MEMORY_MB - 2_048:
                break
            allocations = {_uuid(host.numa_node(node)): {"VCPU": vcpu, "MEMORY_MB": memory}}
            if host.number % 5 == 0 and gpus_used < _VGPU and rng.random() < 0.4:
                gpus_used += 1
                allocations[_uuid(f"{host.name}_gpu{node}")] = {"VGPU": 1}
            yield {**allocations, host.disk: {"DISK_GB": disk}}


def _flavor(fraction: float) -> tuple[int, int, int]:
    return next(flavor for share, flavor in _FLAVORS if fraction < share)


def _labels(size: _Size) -> Iterator[tuple[str, dict[str, str]]]:
    for number, zone in enumerate(_ZONES, start=1):
        yield _uuid(zone), {"name": f"az-{number}", "zone": zone}
    for rack in range(1, size.racks + 1):
        yield _uuid(_rack(rack)), {"name": f"rack-{_rack(rack)}", "rack": _rack(rack)}


def _rack(number: int) -> str:
    return f"r{number:02}"


def _uuid(name: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, name))
