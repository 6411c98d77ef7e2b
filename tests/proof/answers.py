# SPDX-License-Identifier: Apache-2.0
"""Parses responses of the API: the consumers, providers and reasons of refusals that they show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from tests.proof.history import (
    ROOT,
    ConsumerSight,
    Held,
    ProviderSight,
    Refusal,
    Why,
    holding,
)
from tests.proof.wire import Answer

Sights = tuple[ConsumerSight | ProviderSight, ...]

_UUID = r"([0-9a-f-]{36})"

#: What a refusal says, and what it means; the uuid in it is whose fault it is.
_REASONS: tuple[tuple[re.Pattern[str], Why], ...] = (
    (re.compile(rf"consumer generation conflict .*consumer {_UUID}"), Why.CONSUMER_MOVED),
    (re.compile(rf"Resource provider {_UUID} is at generation"), Why.PROVIDER_MOVED),
    (re.compile(rf"provider '{_UUID}'.* would exceed the capacity"), Why.NO_ROOM),
    (
        re.compile(rf"Inventory for .* on resource provider '{_UUID}[^']*' invalid"),
        Why.NO_INVENTORY,
    ),
    (
        re.compile(rf"Unable to delete inventory .* on resource provider '{_UUID}' in use"),
        Why.IN_USE,
    ),
    (
        re.compile(rf"resource provider {_UUID} has inventory of \w+ already"),
        Why.HAS_INVENTORY,
    ),
    (re.compile(r"No inventory of class \w+ found for delete: No inventory"), Why.NO_INVENTORY),
    (re.compile(rf"No inventory record .* for resource provider {_UUID}"), Why.NO_INVENTORY),
    (re.compile(rf"for resource provider '{_UUID}' that does not exist"), Why.ABSENT),
    (re.compile(rf"No resource provider with uuid {_UUID} found"), Why.ABSENT),
)

#: What a refusal says of names, trees and numbers.
_NOT_JUDGED: Final = re.compile(
    "already exists|has child resource providers|[Nn]o such (trait|resource class)"
    "|Unknown resource class|Unable to (save|create) resource provider|greater than total"
)

#: What a refusal says for a consumer that has changed between check and commit.
_RACE = "Update conflict: the allocations of consumer "

#: What a 503 says if it may have been done; any other promises that nothing was.
_MAY_BE_DONE = "read what is there before you repeat the write"

_CODES = {
    "berth.place.does_not_fit": Why.NO_PLACE,
    "berth.place.undecided": Why.NO_PLACE,
    "berth.place.lost_races": Why.NO_PLACE,
    "placement.inventory.inuse": Why.IN_USE,
    "placement.resource_provider.inuse": Why.IN_USE,
}


def refusal(answer: Answer, of: str | None) -> Refusal:
    """The reason of a refusal; `of`: the only provider that it can be about, if there is one."""
    (error,) = answer.body["errors"]
    if (why := _CODES.get(error.get("code"))) is not None:
        return Refusal(why, of)
    detail = str(error["detail"]).replace("\n", " ")
    for pattern, reason in _REASONS:
        if found := pattern.search(detail):
            return Refusal(reason, found[1] if found.groups() else of)
    if answer.status == 404 and "No allocations" in detail:
        return Refusal(Why.ABSENT)
    if _RACE in detail:
        return Refusal(Why.CONSUMER_RACE)
    return Refusal(Why.NOT_JUDGED if _NOT_JUDGED.search(detail) else Why.OTHER, detail)


def is_told_to_come_back(answer: Answer) -> bool:
    """Whether it is a 503 with a time to retry."""
    return answer.status == 503 and answer.retry_after is not None


def may_be_done(answer: Answer) -> bool:
    """Whether the response leaves open if a write took place."""
    return answer.status >= 500 and (
        answer.status != 503 or _MAY_BE_DONE in answer.body["errors"][0]["detail"]
    )


def of_allocations(consumer: str, body: Any) -> Sights:
    """`GET /allocations/{consumer}`."""
    held = held_in(body)
    generation = body.get("consumer_generation") if held else None
    return (
        ConsumerSight(consumer, generation, held),
        *(
            ProviderSight(provider, allocation["generation"])
            for provider, allocation in body["allocations"].items()
        ),
    )


def held_in(body: Any) -> Held:
    """The allocations in a response with `allocations` by provider."""
    return holding(
        {provider: allocation["resources"] for provider, allocation in body["allocations"].items()}
    )


def of_provider_allocations(provider: str, body: Any) -> Sights:
    """`GET /resource_providers/{uuid}/allocations`."""
    sums: dict[str, int] = {}
    consumers = []
    for consumer, allocation in body["allocations"].items():
        held = holding({provider: allocation["resources"]})
        consumers.append(
            ConsumerSight(consumer, allocation["consumer_generation"], held, on=provider)
        )
        for name, amount in allocation["resources"].items():
            sums[name] = sums.get(name, 0) + amount
    generation = body["resource_provider_generation"]
    return (ProviderSight(provider, generation, used=frozenset(sums.items())), *consumers)


def of_usages(provider: str, body: Any) -> Sights:
    """`GET /resource_providers/{uuid}/usages`."""
    used = frozenset(body["usages"].items())
    return (ProviderSight(provider, body["resource_provider_generation"], used=used),)


def of_inventories(provider: str, body: Any) -> Sights:
    """`GET` or `PUT /resource_providers/{uuid}/inventories`."""
    generation = body["resource_provider_generation"]
    stock = capacities(body["inventories"])
    return (ProviderSight(provider, generation, capacities=stock, whole=True),)


def of_inventory(provider: str, name: str, body: Any) -> Sights:
    """`GET /resource_providers/{uuid}/inventories/{name}`."""
    generation = body["resource_provider_generation"]
    return (ProviderSight(provider, generation, capacities=capacities({name: body})),)


def capacities(records: Mapping[str, Any]) -> frozenset[tuple[str, int]]:
    """The capacities of inventories, as they are sent or shown."""
    return frozenset((name, capacity(record)) for name, record in records.items())


def capacity(record: Mapping[str, Any]) -> int:
    """The capacity of one inventory."""
    free = record["total"] - record.get("reserved", 0)
    return int(free * record.get("allocation_ratio", 1.0))


def of_traits(provider: str, body: Any) -> Sights:
    """`GET` or `PUT /resource_providers/{uuid}/traits`."""
    generation = body["resource_provider_generation"]
    return (ProviderSight(provider, generation, traits=frozenset(body["traits"])),)


def of_aggregates(provider: str, body: Any) -> Sights:
    """`GET` or `PUT /resource_providers/{uuid}/aggregates`."""
    generation = body["resource_provider_generation"]
    return (ProviderSight(provider, generation, aggregates=frozenset(body["aggregates"])),)


def of_provider(provider: str, body: Any) -> Sights:
    """`GET /resource_providers/{uuid}`."""
    parent = body["parent_provider_uuid"] or ROOT
    return (ProviderSight(provider, body["generation"], parent=parent),)


def of_providers(body: Any) -> Sights:
    """`GET /resource_providers`: those that it shows."""
    return tuple(
        sight for each in body["resource_providers"] for sight in of_provider(each["uuid"], each)
    )


def of_candidates(body: Any) -> Sights:
    """`GET /allocation_candidates`: each provider in its summaries, and that it has what it is
    offered for."""
    most: dict[tuple[str, str], int] = {}
    for offer in body["allocation_requests"]:
        for provider, name, amount in held_in(offer):
            most[provider, name] = max(most.get((provider, name), 0), amount)
    rooms = (ProviderSight(uuid, room=(name, amount)) for (uuid, name), amount in most.items())
    summaries = (
        ProviderSight(
            provider,
            used=frozenset((name, of["used"]) for name, of in summary["resources"].items()),
            capacities=frozenset(
                (name, of["capacity"]) for name, of in summary["resources"].items()
            ),
            whole=True,
            traits=frozenset(summary["traits"]),
            parent=parent_in(summary),
        )
        for provider, summary in body["provider_summaries"].items()
    )
    return (*rooms, *summaries)


def parent_in(body: Mapping[str, Any]) -> str | None:
    """The parent that is sent or shown; None where it is left out, as in summaries below 1.29."""
    return body["parent_provider_uuid"] or ROOT if "parent_provider_uuid" in body else None


def of_offers(provider: str, name: str, amount: int, body: Any) -> Sights:
    """`GET /allocation_candidates` for an amount of one class in the tree of a provider: if this
    provider is missing, it does not have that much free."""
    offered = {uuid for request in body["allocation_requests"] for uuid in request["allocations"]}
    if provider in offered:
        return ()
    return (ProviderSight(provider, no_room=(name, amount)),)
