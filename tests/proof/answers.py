# SPDX-License-Identifier: Apache-2.0
"""Parses responses of the API: the consumers, providers and reasons of refusals that they show."""

from __future__ import annotations

import re
from typing import Any

from tests.proof.history import (
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
    (re.compile(rf"for resource provider '{_UUID}' that does not exist"), Why.ABSENT),
    (re.compile(rf"No resource provider with uuid {_UUID} found"), Why.ABSENT),
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
            return Refusal(reason, found[1])
    if answer.status == 404 and "No allocations" in detail:
        return Refusal(Why.ABSENT)
    if _RACE in detail:
        return Refusal(Why.CONSUMER_RACE)
    return Refusal(Why.OTHER, detail)


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
    capacities = frozenset(
        (name, int((inventory["total"] - inventory["reserved"]) * inventory["allocation_ratio"]))
        for name, inventory in body["inventories"].items()
    )
    generation = body["resource_provider_generation"]
    return (ProviderSight(provider, generation, capacities=capacities, whole=True),)


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
    return (ProviderSight(provider, body["generation"], parent=body["parent_provider_uuid"]),)


def of_candidates(body: Any) -> Sights:
    """`GET /allocation_candidates`: each provider in its summaries."""
    return tuple(
        ProviderSight(
            provider,
            used=frozenset((name, of["used"]) for name, of in summary["resources"].items()),
            capacities=frozenset(
                (name, of["capacity"]) for name, of in summary["resources"].items()
            ),
            whole=True,
            traits=frozenset(summary["traits"]),
            parent=summary["parent_provider_uuid"],
        )
        for provider, summary in body["provider_summaries"].items()
    )


def of_offers(provider: str, name: str, amount: int, body: Any) -> Sights:
    """`GET /allocation_candidates` for an amount of one class in the tree of a provider: providers
    in the response have that much free; if this provider is missing, it has not."""
    offered = {uuid for request in body["allocation_requests"] for uuid in request["allocations"]}
    room = tuple(ProviderSight(uuid, room=(name, amount)) for uuid in sorted(offered))
    return room if provider in offered else (*room, ProviderSight(provider, no_room=(name, amount)))
