# SPDX-License-Identifier: Apache-2.0
"""A fleet so small that everybody is in everybody's way, made over HTTP.

a1 .. a6      hosts: MEMORY_MB; the first four in aggregate b1
  a11, a12    NUMA nodes of a1: VCPU   (a21, a22 of a2, and so on)
a9            shares DISK_GB with b1
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.proof.history import ROOT, Begin, aggregate_uuid, provider_uuid
from tests.proof.wire import Answer, Connection

SHARES: Final = "MISC_SHARES_VIA_AGGREGATE"

#: Traits that clients give and take.
TRAITS: Final = ("HW_CPU_X86_AVX2", "STORAGE_DISK_SSD", SHARES)

HOSTS: Final = tuple(provider_uuid(number) for number in range(1, 7))
NODES: Final = tuple(provider_uuid(10 * host + node) for host in range(1, 7) for node in (1, 2))
POOL: Final = provider_uuid(9)

#: What each provider has, of the one resource class that it has.
STOCK: Final[Mapping[str, tuple[str, int]]] = {
    **dict.fromkeys(HOSTS, ("MEMORY_MB", 48)),
    **dict.fromkeys(NODES, ("VCPU", 8)),
    POOL: ("DISK_GB", 150),
}

_SHARED: Final = aggregate_uuid(1)


def name_of(uuid: str) -> str:
    """The name of a provider."""
    return f"proof {uuid}"


def _planned(uuid: str) -> Begin:
    parent = provider_uuid(int(uuid[-12:]) // 10) if uuid in NODES else ROOT
    traits = frozenset({SHARES} if uuid == POOL else ())
    aggregates = frozenset({_SHARED} if uuid == POOL or uuid in HOSTS[:4] else ())
    generation = 1 + bool(traits) + bool(aggregates)
    return Begin(generation, frozenset({STOCK[uuid]}), traits, aggregates, parent)


#: The fleet as it is made.
PLANNED: Final = {uuid: _planned(uuid) for uuid in (*HOSTS, *NODES, POOL)}


def build(connection: Connection) -> dict[str, Begin]:
    """Create the fleet; return the state of each provider."""
    for uuid, begin in PLANNED.items():
        _build_one(connection, uuid, begin)
    return dict(PLANNED)


def _build_one(connection: Connection, uuid: str, begin: Begin) -> None:
    path = f"/resource_providers/{uuid}"
    body: dict[str, Any] = {"uuid": uuid, "name": name_of(uuid)}
    if begin.parent != ROOT:
        body["parent_provider_uuid"] = begin.parent
    _done(connection.ask("POST", "/resource_providers", body))
    name, total = STOCK[uuid]
    parts: list[tuple[str, Any]] = [("inventories", {name: {"total": total}})]
    if begin.traits:
        parts.append(("traits", sorted(begin.traits)))
    if begin.aggregates:
        parts.append(("aggregates", sorted(begin.aggregates)))
    for generation, (what, value) in enumerate(parts):
        change = {what: value, "resource_provider_generation": generation}
        _done(connection.ask("PUT", f"{path}/{what}", change))


def _done(answer: Answer) -> None:
    assert answer.status in (200, 201, 204), answer
