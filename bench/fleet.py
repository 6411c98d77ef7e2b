# SPDX-License-Identifier: Apache-2.0
"""Fleets, described: what `loading` puts in through the API and `bulk` straight into a database.

Everything is made from numbers, so that the same fleet can be described again at any time, and a
client knows the uuid of host 4711 without having asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

Inventories = Mapping[str, Mapping[str, float]]
Amounts = Mapping[str, int]

#: What a third of the flat hosts have, and every query with conditions asks for.
TRAIT: Final = "HW_CPU_X86_AVX2"
SHARES: Final = "MISC_SHARES_VIA_AGGREGATE"

#: Hosts of a rack, which share one provider of DISK_GB.
RACK_HOSTS: Final = 40

#: Odd, with bits all over: multiplied by it, small numbers fill a uuid and stay different.
_SCATTER: Final = 0x9E3779B97F4A7C15F39CC0605CEDC835
_HOST, _CHILD, _AGGREGATE, _POOL, _CONSUMER = range(1, 6)
_CHILDREN_MAX: Final = 1000

_HOST_INVENTORIES: Final[Inventories] = {
    "VCPU": {"total": 64, "allocation_ratio": 16.0, "max_unit": 64},
    "MEMORY_MB": {"total": 2097152, "reserved": 8192},
    "DISK_GB": {"total": 40000, "allocation_ratio": 1.0},
}
_COMPUTE_INVENTORIES: Final[Inventories] = {
    name: _HOST_INVENTORIES[name] for name in ("VCPU", "MEMORY_MB")
}
_DISK_INVENTORIES: Final[Inventories] = {"DISK_GB": _HOST_INVENTORIES["DISK_GB"]}

#: What one claim of the measurements takes from a host.
CLAIM: Final[Amounts] = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider with everything to write to it; parents come before their children."""

    uuid: str
    name: str
    parent: str | None = None
    inventories: Inventories = field(default_factory=dict)
    aggregates: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Holding:
    """The allocations of a consumer: provider uuid to class to amount."""

    consumer: str
    project: str
    allocations: Mapping[str, Amounts]


@dataclass(frozen=True, slots=True)
class Fleet:
    """A fleet whose description can be iterated repeatedly."""

    kind: str
    #: Hosts, or trees.
    size: int
    providers: Callable[[], Iterator[Provider]]
    holdings: Callable[[], Iterator[Holding]] = lambda: iter(())

    @property
    def name(self) -> str:
        """The name for people."""
        return f"{self.kind}, {self.size:,}"


def _uuid(kind: int, number: int) -> str:
    """A uuid scattered like a random one, distinct for numbers below 2^44 of up to 16 kinds."""
    digits = f"{(number * 16 + kind) * _SCATTER % 2**128:032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def host_uuid(number: int) -> str:
    """The uuid of a host, or of a tree's root."""
    return _uuid(_HOST, number)


def child_uuid(host: int, child: int) -> str:
    """The uuid of a provider below a host."""
    return _uuid(_CHILD, host * _CHILDREN_MAX + child)


@cache
def aggregate_uuid(number: int) -> str:
    """The uuid of an aggregate."""
    return _uuid(_AGGREGATE, number)


def pool_uuid(number: int) -> str:
    """The uuid of a sharing provider, or of one outside the hosts' trees."""
    return _uuid(_POOL, number)


def consumer_uuid(number: int) -> str:
    """The uuid of one of the fleet's initial consumers."""
    return _uuid(_CONSUMER, number)


def flat(size: int) -> Fleet:
    """Hosts with VCPU, MEMORY_MB and DISK_GB, each in one of three aggregates.

    Every third host of an aggregate has the trait, so that a ninth of the fleet answers to trait
    and aggregate together.
    """
    return Fleet("flat", size, lambda: (_flat_host(number) for number in range(size)))


#: Apart from the hosts of a full fleet: one provider with very many consumers.
CROWDED: Final = pool_uuid(0)
CROWDED_CLASS: Final = "IPV4_ADDRESS"
#: The projects of a full fleet: who holds a thousand allocations, and who all the others.
SMALL_PROJECT, LARGE_PROJECT = "bench-small", "bench-large"


def full_flat(size: int, *, allocations_count: int, crowd: int) -> Fleet:
    """A flat fleet in use.

    There is one more provider, `CROWDED`, on which `crowd` consumers hold an address each; all
    other allocations are spread over the hosts, three to a consumer.
    """

    def providers() -> Iterator[Provider]:
        yield from flat(size).providers()
        yield Provider(
            CROWDED, "bench-addresses", inventories={CROWDED_CLASS: {"total": 2_000_000_000}}
        )

    def holdings() -> Iterator[Holding]:
        for number in range(crowd):
            yield Holding(consumer_uuid(number), LARGE_PROJECT, {CROWDED: {CROWDED_CLASS: 1}})
        for number in range((allocations_count - crowd) // len(CLAIM)):
            project = SMALL_PROJECT if number < 333 else LARGE_PROJECT
            allocations = {host_uuid(number % size): CLAIM}
            yield Holding(consumer_uuid(crowd + number), project, allocations)

    return Fleet("flat", size, providers, holdings)


def nested(size: int) -> Fleet:
    """Trees of seven: a host with disk, two NUMA nodes, below them three FPGAs and a GPU.

    The GPU and two of the FPGAs are below the same NUMA node, so that CPUs, an FPGA and the GPU can
    be had together in two ways.
    """
    return Fleet(
        "nested", size, lambda: (each for number in range(size) for each in _tree_of_seven(number))
    )


def sharing(size: int) -> Fleet:
    """Racks of 40 hosts with VCPU and MEMORY_MB; each rack has a provider that shares DISK_GB."""
    return Fleet("sharing", size, lambda: _racks(size))


def wide(size: int, devices_count: int) -> Fleet:
    """Hosts with equal devices below them, one PGPU each."""

    def providers() -> Iterator[Provider]:
        for host in range(size):
            yield Provider(host_uuid(host), f"bench-host-{host:07}", None, _COMPUTE_INVENTORIES)
            for device in range(devices_count):
                yield _child(host, device, f"pgpu-{device:02}", {"PGPU": {"total": 1}})

    return Fleet(f"{devices_count} devices a host", size, providers)


def _flat_host(number: int) -> Provider:
    return Provider(
        host_uuid(number),
        f"bench-host-{number:07}",
        None,
        _HOST_INVENTORIES,
        (aggregate_uuid(number % 3),),
        (TRAIT,) if number // 3 % 3 == 0 else (),
    )


def _tree_of_seven(host: int) -> Iterator[Provider]:
    yield Provider(host_uuid(host), f"bench-host-{host:07}", None, _DISK_INVENTORIES)
    yield _child(host, 0, "numa-0", _COMPUTE_INVENTORIES)
    yield _child(host, 1, "numa-1", _COMPUTE_INVENTORIES)
    for number, numa in ((2, 0), (3, 1), (4, 1)):
        yield _child(host, number, f"fpga-{number}", {"FPGA": {"total": 8}}, numa)
    yield _child(host, 5, "gpu", {"PGPU": {"total": 8}}, 1)


def _racks(size: int) -> Iterator[Provider]:
    for host in range(size):
        rack, place = divmod(host, RACK_HOSTS)
        aggregates = (aggregate_uuid(rack),)
        if place == 0:
            pool = {"DISK_GB": {"total": 2_000_000}}
            name = f"bench-pool-{rack:05}"
            yield Provider(pool_uuid(rack), name, None, pool, aggregates, (SHARES,))
        name = f"bench-host-{host:07}"
        yield Provider(host_uuid(host), name, None, _COMPUTE_INVENTORIES, aggregates)


def _child(
    host: int, child: int, name: str, inventories: Inventories, below: int | None = None
) -> Provider:
    parent = host_uuid(host) if below is None else child_uuid(host, below)
    name = f"bench-host-{host:07}-{name}"
    return Provider(child_uuid(host, child), name, parent, inventories)
