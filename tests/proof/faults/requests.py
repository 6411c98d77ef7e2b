# SPDX-License-Identifier: Apache-2.0
"""One world, and for every route that writes the requests that are worth breaking in the middle.

    host    VCPU=16(used:6)  MEMORY_MB=4096(used:1024)  CUSTOM_GPU=4(used:2)  HW_CPU_X86_AVX2  @A
      numa0   VCPU=8(used:2)  CUSTOM_FAST
      numa1   PCPU=8
        port  SRIOV_NET_VF=8(used:1)
    pool    DISK_GB=1000(used:30)  MISC_SHARES_VIA_AGGREGATE  @A
    spare   VCPU=8  MEMORY_MB=1024  CUSTOM_FAST  @A  @B

Three consumers hold what is used. Every generation in a request is the one of this world.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.client import LATEST, NOTHING, Client, Response
from tests.worlds import aggregate_uuid, consumer_uuid, provider_uuid

HOST, NUMA0, NUMA1, PORT, POOL, SPARE = (
    provider_uuid(name) for name in ("host", "numa0", "numa1", "port", "pool", "spare")
)
NEW_PROVIDER: Final = provider_uuid("new")
FIRST, SECOND, THIRD, NEW_CONSUMER = (
    consumer_uuid(name) for name in ("first", "second", "third", "new")
)
AGGREGATE_A, AGGREGATE_B, AGGREGATE_C = (aggregate_uuid(name) for name in "ABC")


@dataclass(frozen=True, slots=True)
class Request:
    """One request, whole."""

    name: str
    method: str
    path: str
    body: Any = NOTHING
    version: str = LATEST

    def send(self, client: Client) -> Response:
        """Send it."""
        return client.request(self.method, self.path, json=self.body, version=self.version)

    def __str__(self) -> str:
        return self.name


def claim(
    held: Mapping[str, Mapping[str, int]],
    *,
    seen: int | None,
    project: str = "project",
    consumer_type: str = "INSTANCE",
) -> dict[str, Any]:
    """The body of a claim at the newest microversion."""
    return {
        "allocations": {uuid: {"resources": dict(some)} for uuid, some in held.items()},
        "project_id": project,
        "user_id": "user",
        "consumer_generation": seen,
        "consumer_type": consumer_type,
    }


#: What the three consumers hold.
HELD: Final = {
    FIRST: {HOST: {"VCPU": 4, "MEMORY_MB": 1024}, POOL: {"DISK_GB": 20}},
    SECOND: {HOST: {"VCPU": 2, "CUSTOM_GPU": 2}, POOL: {"DISK_GB": 10}},
    THIRD: {NUMA0: {"VCPU": 2}, PORT: {"SRIOV_NET_VF": 1}},
}


def build(client: Client) -> None:
    """Create the world on an empty server."""
    for path in (
        "/resource_classes/CUSTOM_GPU",
        "/resource_classes/CUSTOM_IDLE",
        "/traits/CUSTOM_FAST",
        "/traits/CUSTOM_IDLE",
    ):
        _done(client.put(path))
    _provider(client, "host", {"VCPU": 16, "MEMORY_MB": 4096, "CUSTOM_GPU": 4})
    _provider(client, "numa0", {"VCPU": 8}, parent=HOST)
    _provider(client, "numa1", {"PCPU": 8}, parent=HOST)
    _provider(client, "port", {"SRIOV_NET_VF": 8}, parent=NUMA1)
    _provider(client, "pool", {"DISK_GB": 1000})
    _provider(client, "spare", {"VCPU": 8, "MEMORY_MB": 1024})
    _describe(client, HOST, ["HW_CPU_X86_AVX2"], [AGGREGATE_A])
    _describe(client, NUMA0, ["CUSTOM_FAST"], [])
    _describe(client, POOL, ["MISC_SHARES_VIA_AGGREGATE"], [AGGREGATE_A])
    _describe(client, SPARE, ["CUSTOM_FAST"], [AGGREGATE_A, AGGREGATE_B])
    for consumer, held in HELD.items():
        _done(client.put(f"/allocations/{consumer}", json=claim(held, seen=None)))


def _provider(
    client: Client, name: str, totals: Mapping[str, int], parent: str | None = None
) -> None:
    uuid = provider_uuid(name)
    body = {"name": name, "uuid": uuid, "parent_provider_uuid": parent}
    _done(client.post("/resource_providers", json=body))
    stock = inventories(0, totals)
    _done(client.put(f"/resource_providers/{uuid}/inventories", json=stock))


def _describe(client: Client, uuid: str, traits: list[str], aggregates: list[str]) -> None:
    """Set traits and aggregates of a provider at generation 1; it is at 3 afterwards."""
    path = f"/resource_providers/{uuid}"
    body = {"traits": traits, "resource_provider_generation": 1}
    _done(client.put(f"{path}/traits", json=body))
    changed = {"aggregates": aggregates, "resource_provider_generation": 2}
    _done(client.put(f"{path}/aggregates", json=changed))


def _done(response: Response) -> None:
    assert response.status in (200, 201, 204), response.text


def inventories(seen: int, totals: Mapping[str, int]) -> dict[str, Any]:
    """The body of PUT inventories."""
    records = {name: {"total": total} for name, total in totals.items()}
    return {"inventories": records, "resource_provider_generation": seen}


_OF_HOST: Final = f"/resource_providers/{HOST}"
_OF_SPARE: Final = f"/resource_providers/{SPARE}"
_OF_NEW: Final = {"name": "new", "uuid": NEW_PROVIDER}
_SEEN_HOST: Final = {"resource_provider_generation": 5}
_SEEN_SPARE: Final = {"resource_provider_generation": 3}

#: For every route that writes, requests that are accepted; and some that are refused at their end.
WRITES: Final = [
    Request("create a root", "POST", "/resource_providers", _OF_NEW),
    Request(
        "create a child", "POST", "/resource_providers", _OF_NEW | {"parent_provider_uuid": NUMA1}
    ),
    Request("rename a provider", "PUT", _OF_HOST, {"name": "renamed"}),
    Request(
        "move a subtree",
        "PUT",
        f"/resource_providers/{NUMA1}",
        {"name": "moved", "parent_provider_uuid": SPARE},
    ),
    Request(
        "make a subtree a tree",
        "PUT",
        f"/resource_providers/{NUMA1}",
        {"name": "numa1", "parent_provider_uuid": None},
    ),
    Request("delete a provider", "DELETE", _OF_SPARE),
    Request(
        "add an inventory",
        "POST",
        f"{_OF_HOST}/inventories",
        {"resource_class": "CUSTOM_IDLE", "total": 7},
    ),
    Request(
        "replace inventories",
        "PUT",
        f"{_OF_SPARE}/inventories",
        inventories(3, {"VCPU": 4, "CUSTOM_GPU": 1, "DISK_GB": 10}),
    ),
    Request(
        "shrink an inventory below its use",
        "PUT",
        f"{_OF_HOST}/inventories/VCPU",
        _SEEN_HOST | {"total": 3},
    ),
    Request("delete an inventory", "DELETE", f"{_OF_SPARE}/inventories/MEMORY_MB"),
    Request("delete all inventories", "DELETE", f"{_OF_SPARE}/inventories"),
    Request(
        "replace aggregates",
        "PUT",
        f"{_OF_SPARE}/aggregates",
        _SEEN_SPARE | {"aggregates": [AGGREGATE_B, AGGREGATE_C]},
    ),
    Request(
        "replace aggregates, the old way",
        "PUT",
        f"{_OF_SPARE}/aggregates",
        [AGGREGATE_C, AGGREGATE_A],
        "1.18",
    ),
    Request(
        "replace traits",
        "PUT",
        f"{_OF_SPARE}/traits",
        _SEEN_SPARE | {"traits": ["CUSTOM_IDLE", "HW_CPU_X86_AVX2"]},
    ),
    Request("delete traits", "DELETE", f"{_OF_SPARE}/traits"),
    Request("define a trait", "PUT", "/traits/CUSTOM_NEW"),
    Request("confirm a trait", "PUT", "/traits/CUSTOM_FAST"),
    Request("forget a trait", "DELETE", "/traits/CUSTOM_IDLE"),
    Request("create a class", "POST", "/resource_classes", {"name": "CUSTOM_NEW"}),
    Request("define a class", "PUT", "/resource_classes/CUSTOM_NEW"),
    Request("confirm a class", "PUT", "/resource_classes/CUSTOM_GPU"),
    Request("rename a class", "PUT", "/resource_classes/CUSTOM_GPU", {"name": "CUSTOM_NEW"}, "1.6"),
    Request("forget a class", "DELETE", "/resource_classes/CUSTOM_IDLE"),
    Request(
        "claim for a new consumer",
        "PUT",
        f"/allocations/{NEW_CONSUMER}",
        claim(
            {HOST: {"VCPU": 1, "CUSTOM_GPU": 1}, POOL: {"DISK_GB": 5}, SPARE: {"VCPU": 2}},
            seen=None,
            project="new",
            consumer_type="NEW",
        ),
    ),
    Request(
        "move a consumer",
        "PUT",
        f"/allocations/{FIRST}",
        claim({SPARE: {"VCPU": 4, "MEMORY_MB": 1024}, POOL: {"DISK_GB": 40}}, seen=1),
    ),
    Request("empty a consumer", "PUT", f"/allocations/{SECOND}", claim({}, seen=1)),
    Request(
        "claim, the old way",
        "PUT",
        f"/allocations/{FIRST}",
        {"allocations": [{"resource_provider": {"uuid": SPARE}, "resources": {"VCPU": 3}}]},
        "1.0",
    ),
    Request(
        "claim for several",
        "POST",
        "/allocations",
        {
            FIRST: claim({HOST: {"VCPU": 2, "CUSTOM_GPU": 2}}, seen=1),
            SECOND: claim({HOST: {"VCPU": 4, "MEMORY_MB": 512}}, seen=1, project="new"),
            THIRD: claim({}, seen=1),
            NEW_CONSUMER: claim({NUMA0: {"VCPU": 8}}, seen=None, consumer_type="NEW"),
        },
    ),
    Request("release a consumer", "DELETE", f"/allocations/{FIRST}"),
    Request(
        "reshape a host",
        "POST",
        "/reshaper",
        {
            "inventories": {
                HOST: inventories(5, {"MEMORY_MB": 2048}),
                NUMA0: inventories(4, {"VCPU": 16, "CUSTOM_GPU": 4}),
                NUMA1: inventories(1, {}),
            },
            "allocations": {
                FIRST: claim(
                    {
                        HOST: {"MEMORY_MB": 1024},
                        NUMA0: {"VCPU": 4},
                        POOL: {"DISK_GB": 20},
                    },
                    seen=1,
                ),
                SECOND: claim({NUMA0: {"VCPU": 2, "CUSTOM_GPU": 2}}, seen=1),
                THIRD: claim({}, seen=1),
                NEW_CONSUMER: claim({SPARE: {"VCPU": 1}}, seen=None),
            },
        },
    ),
    Request(
        "a claim that does not fit",
        "PUT",
        f"/allocations/{FIRST}",
        claim({POOL: {"DISK_GB": 1}, SPARE: {"VCPU": 9}}, seen=1, project="new"),
    ),
    Request(
        "a reshape that leaves a consumer without inventory",
        "POST",
        "/reshaper",
        {
            "inventories": {
                SPARE: inventories(3, {"CUSTOM_GPU": 1}),
                HOST: inventories(5, {"VCPU": 16}),
            },
            "allocations": {NEW_CONSUMER: claim({SPARE: {"CUSTOM_GPU": 1}}, seen=None)},
        },
    ),
    Request("a delete of what is held", "DELETE", f"/resource_providers/{POOL}"),
    Request(
        "inventories put with an old generation",
        "PUT",
        f"{_OF_HOST}/inventories",
        inventories(4, {"VCPU": 32}),
    ),
]

#: Requests that read what stands in tables and what stands in the index.
READS: Final = [
    Request("list providers", "GET", f"/resource_providers?in_tree={HOST}&resources=VCPU:1"),
    Request("get a provider", "GET", _OF_HOST),
    Request("get inventories", "GET", f"{_OF_HOST}/inventories"),
    Request("get an inventory", "GET", f"{_OF_HOST}/inventories/VCPU"),
    Request("get usages", "GET", f"{_OF_HOST}/usages"),
    Request("get the allocations on a provider", "GET", f"{_OF_HOST}/allocations"),
    Request("get aggregates", "GET", f"{_OF_HOST}/aggregates"),
    Request("get a provider's traits", "GET", f"{_OF_HOST}/traits"),
    Request("list traits", "GET", "/traits?name=startswith:CUSTOM_&associated=true"),
    Request("get a trait", "GET", "/traits/CUSTOM_NEW"),
    Request("list classes", "GET", "/resource_classes"),
    Request("get a class", "GET", "/resource_classes/CUSTOM_NEW"),
    Request("get usages of a project", "GET", "/usages?project_id=new"),
    Request("get the allocations of a consumer", "GET", f"/allocations/{FIRST}"),
    Request(
        "find candidates",
        "GET",
        f"/allocation_candidates?resources=VCPU:1&in_tree={HOST}&resources_G=CUSTOM_NEW:1"
        f"&in_tree_G={HOST}",
    ),
]
