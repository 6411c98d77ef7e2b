# SPDX-License-Identifier: Apache-2.0
"""Reads of the plain model: the bodies of responses at every microversion.

The contract leaves the order of lists open, so they are compared sorted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.proof.model.plain_model import Consumer, PlainModel, Provider, Record, Refusal

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProviderQuery:
    """Filters of GET /resource_providers (4.1); each of `required` and `member_of` is a set of
    alternatives."""

    uuid: str | None = None
    name: str | None = None
    in_tree: str | None = None
    resources: dict[str, int] = field(default_factory=dict)
    member_of: tuple[frozenset[str], ...] = ()
    not_member_of: frozenset[str] = frozenset()
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()


def list_providers(model: PlainModel, minor: int, query: ProviderQuery) -> Body:
    """4.1."""
    if any(name not in model.classes for name in query.resources):
        raise Refusal(400)
    if not query.forbidden.union(*query.required) <= model.traits:
        raise Refusal(400)
    found = [p for p in model.providers.values() if _passes(model, p, query)]
    return {"resource_providers": [provider_body(model, minor, p) for p in found]}


def provider_body(model: PlainModel, minor: int, provider: Provider) -> Body:
    """4, the representation."""
    rels = ["inventories", "usages"]
    rels += ["aggregates"] * (minor >= 1) + ["traits"] * (minor >= 6)
    rels += ["allocations"] * (minor >= 11)
    path = f"/resource_providers/{provider.uuid}"
    body: Body = {
        "uuid": provider.uuid,
        "name": provider.name,
        "generation": provider.generation,
        "links": [
            {"rel": "self", "href": path},
            *({"rel": rel, "href": f"{path}/{rel}"} for rel in rels),
        ],
    }
    if minor >= 14:
        body["parent_provider_uuid"] = provider.parent
        body["root_provider_uuid"] = model.root(provider.uuid)
    return body


def inventories_body(provider: Provider) -> Body:
    """5.1."""
    return _seen(provider) | {
        "inventories": {name: asdict(record) for name, record in provider.inventories.items()}
    }


def inventory_body(provider: Provider, name: str) -> Body:
    """5.5."""
    if name not in provider.inventories:
        raise Refusal(404)
    return _seen(provider) | asdict(provider.inventories[name])


def aggregates_body(minor: int, provider: Provider) -> Body:
    """6."""
    return {"aggregates": list(provider.aggregates)} | (_seen(provider) if minor >= 19 else {})


def traits_body(provider: Provider) -> Body:
    """7.5."""
    return _seen(provider) | {"traits": list(provider.traits)}


def usages_body(model: PlainModel, provider: Provider) -> Body:
    """9.1, including zeros."""
    return _seen(provider) | {
        "usages": {name: model.used(provider.uuid, name) for name in provider.inventories}
    }


def provider_allocations_body(model: PlainModel, minor: int, provider: Provider) -> Body:
    """10.2."""
    allocations: Body = {}
    for uuid, consumer in model.consumers.items():
        if provider.uuid in consumer.held:
            allocations[uuid] = {"resources": consumer.held[provider.uuid]}
            if minor >= 28:
                allocations[uuid]["consumer_generation"] = consumer.generation
    return _seen(provider) | {"allocations": allocations}


def consumer_allocations_body(model: PlainModel, minor: int, uuid: str) -> Body:
    """10.1."""
    consumer = model.consumers.get(uuid)
    if consumer is None:
        return {"allocations": {}}
    body: Body = {
        "allocations": {
            place: {"generation": model.providers[place].generation, "resources": some}
            for place, some in consumer.held.items()
        }
    }
    if minor >= 12:
        body |= {"project_id": consumer.project, "user_id": consumer.user}
    if minor >= 28:
        body["consumer_generation"] = consumer.generation
    if minor >= 38:
        body["consumer_type"] = consumer.type or "unknown"
    return body


def project_usages_body(
    model: PlainModel, minor: int, project: str, user: str | None, kind: str | None
) -> Body:
    """9.2."""
    counted = [
        consumer
        for consumer in model.consumers.values()
        if consumer.project == project and user in (None, consumer.user)
    ]
    if minor < 38:
        return {"usages": _sums(counted)}
    by_type: dict[str, list[Consumer]] = {}
    for consumer in counted:
        name = "all" if kind == "all" else consumer.type or "unknown"
        by_type.setdefault(name, []).append(consumer)
    return {
        "usages": {
            name: _sums(some) | {"consumer_count": len(some)}
            for name, some in by_type.items()
            if kind in (None, name)
        }
    }


def class_body(name: str) -> Body:
    """8, the representation."""
    return {"name": name, "links": [{"rel": "self", "href": f"/resource_classes/{name}"}]}


def class_body_of(model: PlainModel, name: str) -> Body:
    """8, GET."""
    if name not in model.classes:
        raise Refusal(404)
    return class_body(name)


def trait_body(model: PlainModel, name: str) -> None:
    """7.2: it exists, and the body is empty."""
    if name not in model.traits:
        raise Refusal(404)


def traits_listed(model: PlainModel, names: Set[str] | None, associated: bool | None) -> Body:
    """7.1."""
    used = {name for provider in model.providers.values() for name in provider.traits}
    return {
        "traits": [
            name
            for name in model.traits
            if (names is None or name in names) and associated in (None, name in used)
        ]
    }


def _seen(provider: Provider) -> Body:
    return {"resource_provider_generation": provider.generation}


def _sums(consumers: list[Consumer]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for consumer in consumers:
        for some in consumer.held.values():
            sums.update(some)
    return dict(sums)


def _passes(model: PlainModel, provider: Provider, query: ProviderQuery) -> bool:
    return (
        query.uuid in (None, provider.uuid)
        and query.name in (None, provider.name)
        and (
            query.in_tree is None
            or (
                query.in_tree in model.providers
                and model.root(query.in_tree) == model.root(provider.uuid)
            )
        )
        and all(provider.aggregates & some for some in query.member_of)
        and not provider.aggregates & query.not_member_of
        and all(provider.traits & some for some in query.required)
        and not provider.traits & query.forbidden
        and all(
            name in provider.inventories
            and _has_room(provider.inventories[name], model.used(provider.uuid, name), amount)
            for name, amount in query.resources.items()
        )
    )


def _has_room(record: Record, used: int, amount: int) -> bool:
    return record.has_unit(amount) and used + amount <= record.capacity
