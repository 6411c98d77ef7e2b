# SPDX-License-Identifier: Apache-2.0
"""Writes the demo fleet, and removes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from berth.cli.columns import counted
from berth.model.paths import AGGREGATES, PERMISSIONS, path_of
from berth.model.refusals import Conflict, Forbidden, NoOwnApi, NotThere

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.demo_fleet import DemoConsumer, DemoFleet, DemoProvider

T = TypeVar("T")
R = TypeVar("R")

#: Providers or consumers in one request.
_BATCH: Final = 200
_THREADS: Final = 8


#: What loading needs; a caller who may do only some of it would leave half a fleet.
_NEEDED: Final = (
    "placement:traits:update",
    "placement:resource_providers:create",
    "placement:resource_providers:traits:update",
    "placement:resource_providers:aggregates:update",
    "placement:reshaper:reshape",
    "placement:allocations:manage",
    "berth:aggregates:update",
)


def load(client: Client, fleet: DemoFleet) -> str:
    """Write the fleet; return a sentence about it.

    Raises:
        Forbidden: the caller may not do all of it; nothing is written.
        Conflict: it is there already, or a provider has the name of one of its providers.
    """
    _check_rights(client)
    if _present(client, fleet):
        raise Conflict("the demo fleet is there already: `berth demo load --remove` takes it away")
    for trait in fleet.custom_traits:
        client.send("PUT", path_of("traits", trait))
    created = _create_all(client, fleet.providers)
    generations = dict(_at_once(lambda pair: _describe(client, *pair), created))
    for providers in _batches(fleet.providers):
        inventories = {
            provider.uuid: {
                "resource_provider_generation": generations[provider.uuid],
                "inventories": provider.inventories,
            }
            for provider in providers
        }
        client.send("POST", "/reshaper", {"inventories": inventories, "allocations": {}})
    for consumers in _batches(fleet.consumers):
        client.send(
            "POST", "/allocations", {consumer.uuid: _claim(consumer) for consumer in consumers}
        )
    has_labels = _label(client, {uuid: dict(labels) for uuid, labels in fleet.labels.items()})
    hosts = sum("COMPUTE_NODE" in provider.traits for provider in fleet.providers)
    return (
        f"loaded {counted(hosts, 'host')} with {counted(len(fleet.providers), 'provider')} and "
        f"{counted(len(fleet.consumers), 'consumer')}"
        + ("" if has_labels else "; this service has no labels for its zones and racks")
    )


def remove(client: Client, fleet: DemoFleet) -> str:
    """Remove whatever is there of the fleet, with every consumer on it; return a sentence.

    Raises:
        Conflict: a consumer also has allocations of other providers.
    """
    present = _present(client, fleet)
    consumers = {
        consumer
        for on_provider in _at_once(
            lambda uuid: client.read(f"/resource_providers/{uuid}/allocations"), present
        )
        for consumer in on_provider["allocations"]
    }
    _refuse_others(client, consumers - {consumer.uuid for consumer in fleet.consumers}, present)
    for batch in _batches(sorted(consumers)):
        read = _at_once(lambda uuid: client.read(path_of("allocations", uuid)), batch)
        bodies = dict(zip(batch, read, strict=True))
        emptied = {uuid: {**body, "allocations": {}} for uuid, body in bodies.items()}
        client.send("POST", "/allocations", emptied)
    for rank in reversed(_ranks(fleet.providers)):
        doomed = [f"/resource_providers/{item.uuid}" for item in rank if item.uuid in present]
        _at_once(lambda path: client.send("DELETE", path), doomed)
    for trait in fleet.custom_traits:
        # Other providers may have it, or nobody created it.
        with suppress(Conflict, NotThere):
            client.send("DELETE", path_of("traits", trait))
    _label(client, {uuid: {} for uuid in fleet.labels})
    return f"removed {counted(len(present), 'provider')} and {counted(len(consumers), 'consumer')}"


def _check_rights(client: Client) -> None:
    """Check that the caller may do everything, if the service says so."""
    try:
        permissions = client.read(PERMISSIONS)["permissions"]
    except NotThere:
        return
    for rule in _NEEDED:
        permission = permissions.get(rule, {})
        if not permission.get("allowed", True):
            raise Forbidden(f"you may not load the demo fleet: {permission['reason']}")


def _present(client: Client, fleet: DemoFleet) -> set[str]:
    """The UUIDs of the fleet's providers that exist."""
    listed = client.read("/resource_providers")["resource_providers"]
    return {str(item["uuid"]) for item in listed} & {item.uuid for item in fleet.providers}


def _create_all(
    client: Client, providers: Iterable[DemoProvider]
) -> list[tuple[DemoProvider, int]]:
    """Create providers; return each with its generation.

    The order of candidates follows that of creation. So the roots are created one after another,
    then the first provider below each root, then the second, and so on.
    """
    roots, *ranks = _ranks(providers)
    created = [_create(client, provider) for provider in roots]
    for rank in ranks:
        created += _at_once(lambda provider: _create(client, provider), rank)
    return created


def _create(client: Client, provider: DemoProvider) -> tuple[DemoProvider, int]:
    """Create a provider; return it with its generation."""
    body = {
        "uuid": provider.uuid,
        "name": provider.name,
        "parent_provider_uuid": provider.parent,
    }
    return provider, client.send("POST", "/resource_providers", body).json()["generation"]


def _describe(client: Client, provider: DemoProvider, generation: int) -> tuple[str, int]:
    """Set the traits and aggregates of a provider; return its UUID and generation."""
    for part, names in ("traits", provider.traits), ("aggregates", provider.aggregates):
        if names:
            body = {part: list(names), "resource_provider_generation": generation}
            path = f"/resource_providers/{provider.uuid}/{part}"
            generation = client.send("PUT", path, body).json()["resource_provider_generation"]
    return provider.uuid, generation


def _claim(consumer: DemoConsumer) -> dict[str, Any]:
    return {
        "allocations": {
            uuid: {"resources": resources} for uuid, resources in consumer.allocations.items()
        },
        "project_id": consumer.project,
        "user_id": "demo",
        "consumer_type": "INSTANCE",
        "consumer_generation": None,
    }


def _label(client: Client, labels: dict[str, dict[str, str]]) -> bool:
    """Replace the labels of aggregates; return whether the service has labels."""
    try:
        client.get(AGGREGATES)
    except NoOwnApi:
        return False
    for uuid, of_aggregate in labels.items():
        client.send("PUT", f"{AGGREGATES}/{uuid}", {"labels": of_aggregate})
    return True


def _refuse_others(client: Client, consumers: Iterable[str], providers: set[str]) -> None:
    """Check that consumers have allocations of these providers only.

    Raises:
        Conflict: one has others.
    """
    for uuid in sorted(consumers):
        allocations = client.read(path_of("allocations", uuid))["allocations"]
        if set(allocations) - providers:
            raise Conflict(
                f"consumer {uuid} has allocations of other providers too: `berth release` it first"
            )


def _ranks(providers: Iterable[DemoProvider]) -> list[list[DemoProvider]]:
    """The roots, the first provider below each root, the second, and so on; parents first."""
    roots: dict[str, str] = {}
    sizes: dict[str, int] = {}
    ranks: list[list[DemoProvider]] = []
    for provider in providers:
        root = provider.uuid if provider.parent is None else roots[provider.parent]
        roots[provider.uuid] = root
        rank = sizes.get(root, 0)
        sizes[root] = rank + 1
        if rank == len(ranks):
            ranks.append([])
        ranks[rank].append(provider)
    return ranks


def _at_once(send: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Send requests that do not depend on each other, some of them at the same time.

    The service writes them to its disk together.
    """
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(send, items))


def _batches(items: Sequence[T]) -> Iterator[list[T]]:
    """The items in their order, some at a time."""
    rest = iter(items)
    while batch := list(islice(rest, _BATCH)):
        yield batch
