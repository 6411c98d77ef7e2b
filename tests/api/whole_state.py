# SPDX-License-Identifier: Apache-2.0
"""A small world that bad requests are thrown at, and all that they could have changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from json import loads
from typing import Any

from tests.api.claims import claim_body, consumer
from tests.api.worlds import (
    custom_class,
    custom_trait,
    generation,
    new_custom_name,
    new_name,
    new_uuid,
    provider,
)
from tests.client import Client


@dataclass(frozen=True)
class World:
    """A host with a child, and somebody on it.

    host     CLASS=8(used:4)  VCPU=8  TRAIT  @AGGREGATE
      child
    """

    host: str
    child: str
    holder: str
    resource_class: str
    trait: str
    aggregate: str
    project: str


@dataclass(frozen=True)
class Write:
    """A request with a body that would be accepted."""

    method: str
    path: str
    body: Any


def small_world(api: Client) -> World:
    """A new world; its project has no other consumer."""
    name, trait, aggregate, project = (
        custom_class(api),
        custom_trait(api),
        new_uuid(),
        new_uuid(),
    )
    host = provider(api, {name: 8, "VCPU": 8}, traits=[trait], aggregates=[aggregate])
    child = provider(api, parent=host)
    holder = consumer(api, {host: {name: 4}}, project=project)
    return World(host, child, holder, name, trait, aggregate, project)


#: The names of the requests of `writes`, for tests that go through them one by one.
WRITES = [
    "create a provider",
    "update a provider",
    "add an inventory",
    "replace inventories",
    "update an inventory",
    "replace aggregates",
    "replace traits",
    "create a class",
    "claim",
    "claim for several",
    "reshape",
]


def writes(api: Client, world: World) -> dict[str, Write]:
    """For every route that takes a body, a request that would succeed now."""
    seen = {"resource_provider_generation": generation(api, world.host)}
    seen_child = {"resource_provider_generation": generation(api, world.child)}
    host = f"/resource_providers/{world.host}"
    record = {
        "total": 8,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": 8,
        "step_size": 1,
        "allocation_ratio": 1.0,
    }
    inventories = {world.resource_class: record, "VCPU": {"total": 8}}
    claim = claim_body(
        "1.39",
        {world.host: {world.resource_class: 3}},
        project=world.project,
        consumer_generation=1,
    )
    claim["mappings"] = {"": [world.host]}
    new_provider = {
        "name": new_name(),
        "uuid": new_uuid(),
        "parent_provider_uuid": world.host,
    }
    renamed = {"name": new_name(), "parent_provider_uuid": None}
    reshaped = {
        "inventories": {world.host: seen | {"inventories": inventories}},
        "allocations": {world.holder: claim},
    }
    added = {"resource_class": "DISK_GB"} | record
    return {
        "create a provider": Write("POST", "/resource_providers", new_provider),
        "update a provider": Write("PUT", host, renamed),
        "add an inventory": Write("POST", f"{host}/inventories", added),
        "replace inventories": Write(
            "PUT", f"{host}/inventories", seen | {"inventories": inventories}
        ),
        "update an inventory": Write(
            "PUT", f"{host}/inventories/{world.resource_class}", seen | record
        ),
        "replace aggregates": Write(
            "PUT", f"{host}/aggregates", seen | {"aggregates": [new_uuid()]}
        ),
        "replace traits": Write(
            "PUT",
            f"/resource_providers/{world.child}/traits",
            seen_child | {"traits": [world.trait]},
        ),
        "create a class": Write("POST", "/resource_classes", {"name": new_custom_name()}),
        "claim": Write("PUT", f"/allocations/{world.holder}", claim),
        "claim for several": Write("POST", "/allocations", {world.holder: claim}),
        "reshape": Write("POST", "/reshaper", reshaped),
    }


def whole_state(api: Client, world: World) -> object:
    """All that can be read of a world, every provider with its generation, and every name."""
    return everything_read(api, [world.host, world.child], [world.holder], [world.project])


#: What berth's own API lists.
_OWN_LISTS = ("aggregates", "consumers", "leases", "flavors", "drains")


def everything_read(
    api: Client,
    providers: Sequence[str],
    consumers: Sequence[str],
    projects: Sequence[str],
    *,
    own: bool = False,
) -> object:
    """All that can be read of some providers and consumers, every provider, and every name.

    Every change of inventories, traits, aggregates or allocations moves some provider's generation,
    but DELETE of allocations and moves in the tree, which are seen in what else is read here.

    Args:
        own: also what berth's own API lists.
    """
    paths = ["/resource_providers", "/traits", "/resource_classes"]
    for uuid in providers:
        paths += [
            f"/resource_providers/{uuid}{part}"
            for part in ("", "/inventories", "/usages", "/allocations", "/aggregates", "/traits")
        ]
    paths += [f"/allocations/{uuid}" for uuid in consumers]
    paths += [f"/usages?project_id={uuid}" for uuid in projects]
    if own:
        paths += [f"/berth/v1/{name}" for name in _OWN_LISTS]
    answers = [api.get(path) for path in paths]
    return [_read(answer.body) if answer.status == 200 else answer.status for answer in answers]


@lru_cache(maxsize=100)
def _read(body: bytes) -> Any:
    return [_in_order(loads(line)) for line in body.splitlines()]


def _in_order(value: Any) -> Any:
    """The value with its lists sorted, whose order is not part of the contract, and without what
    time alone changes."""
    if isinstance(value, dict):
        return {key: _in_order(item) for key, item in value.items() if key != "seconds_left"}
    if isinstance(value, list):
        return sorted((_in_order(item) for item in value), key=repr)
    return value
