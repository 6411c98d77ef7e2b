# SPDX-License-Identifier: Apache-2.0
"""A flat fleet of hosts, loaded into a server through its API."""

from __future__ import annotations

from rich.progress import Progress

from bench.client import Client
from bench.script.step import Json, uid
from bench.server import RunningServer

#: What a third of the hosts have, and every query with conditions asks for.
TRAIT = "HW_CPU_X86_AVX2"
AGGREGATES = tuple(uid(f"bench-aggregate-{number}") for number in range(3))

_INVENTORIES: Json = {
    "VCPU": {"total": 64, "allocation_ratio": 4.0, "max_unit": 64},
    "MEMORY_MB": {"total": 1048576, "reserved": 8192},
    "DISK_GB": {"total": 20000, "allocation_ratio": 1.0},
}


def load_fleet(server: RunningServer, hosts_count: int, progress: Progress) -> None:
    """Create `hosts_count` hosts.

    Each has VCPU, MEMORY_MB and DISK_GB and is in one of three aggregates; every third host of an
    aggregate has the trait, so that a ninth of the fleet answers to trait and aggregate together.
    One client does it all: to several at once the original on SQLite answers 500 ("locked").
    """
    task = progress.add_task(f"{server.name}: {hosts_count:,} hosts", total=hosts_count)
    with Client(server) as client:
        for number in range(hosts_count):
            _load_host(client, number)
            progress.advance(task)
    progress.remove_task(task)


def _load_host(client: Client, number: int) -> None:
    name = f"bench-host-{number:06}"
    path = f"/resource_providers/{uid(name)}"
    client.demand("POST", "/resource_providers", {"name": name, "uuid": uid(name)})
    client.demand(
        "PUT",
        f"{path}/inventories",
        {"resource_provider_generation": 0, "inventories": _INVENTORIES},
    )
    client.demand(
        "PUT",
        f"{path}/aggregates",
        {
            "resource_provider_generation": 1,
            "aggregates": [AGGREGATES[number % len(AGGREGATES)]],
        },
    )
    if (number // len(AGGREGATES)) % 3 == 0:
        client.demand(
            "PUT", f"{path}/traits", {"resource_provider_generation": 2, "traits": [TRAIT]}
        )
