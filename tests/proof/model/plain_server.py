# SPDX-License-Identifier: Apache-2.0
"""The plain model behind the API: what it answers to a request of a history.

Written from spec/rest-api.md alone, as the model is: routes, their microversions, and the forms of
requests. It does not check schemas: what it is asked is well-formed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

from compare.script.step import Step
from tests.proof.model import plain_reads as reads
from tests.proof.model.plain_model import KEEP, Claim, PlainModel, Record, Refusal


class Unjudged(Exception):
    """The model does not know this route."""


class Due(NamedTuple):
    """An answer; of a refusal the code instead of the body, None below 1.23."""

    status: int
    body: object = None


class Asked(NamedTuple):
    """A request in its parts."""

    method: str
    minor: int
    segments: tuple[str, ...]
    query: Mapping[str, list[str]]
    body: Any
    #: The uuid that the service gave to a new provider that came without one.
    given: str

    @property
    def seen(self) -> int:
        """The generation of the provider that was sent."""
        return int(self.body["resource_provider_generation"])

    def one(self, name: str) -> str | None:
        """The last value of a parameter."""
        return self.query[name][-1] if name in self.query else None


class PlainServer:
    """One deployment."""

    def __init__(self, model: PlainModel | None = None) -> None:
        self.model = model or PlainModel()

    def answer(self, step: Step, given: str = "") -> Due:
        """What a request is answered, after it has changed the model."""
        asked = asked_of(step, given)
        since, handler = _ROUTES.get(_route(asked), (0, None))
        try:
            if handler is None:
                raise Unjudged(f"{asked.method} {step.path}")
            if asked.minor < since:
                raise Refusal(404)
            return handler(self.model, asked)
        except Refusal as refusal:
            return Due(refusal.status, refusal.code if asked.minor >= 23 else None)


def asked_of(step: Step, given: str = "") -> Asked:
    """The parts of a request."""
    path, _, query = step.path.partition("?")
    minor = int((step.version or "1.0").partition(".")[2])
    body = None if step.body is None else json.loads(step.body)
    segments = tuple(path.split("/")[1:])
    return Asked(step.method, minor, segments, parse_qs(query, keep_blank_values=True), body, given)


def _route(asked: Asked) -> tuple[str, str]:
    """The method, and the path without what it names."""
    segments = asked.segments
    return asked.method, "/".join(
        name if place % 2 == 0 else "*" for place, name in enumerate(segments)
    )


# --- Providers (4) -------------------------------------------------------------------------------


def _create_provider(model: PlainModel, asked: Asked) -> Due:
    uuid = asked.body.get("uuid", asked.given)
    model.create_provider(uuid, asked.body["name"], asked.body.get("parent_provider_uuid"))
    if asked.minor < 20:
        return Due(201)
    return Due(200, reads.provider_body(model, asked.minor, model.provider(uuid)))


def _list_providers(model: PlainModel, asked: Asked) -> Due:
    return Due(200, reads.list_providers(model, asked.minor, _provider_query(asked)))


def _provider_query(asked: Asked) -> reads.ProviderQuery:
    pairs = (part.split(":") for part in (asked.one("resources") or "").split(",") if part)
    every = asked.query.get("required", [])
    traits = [
        name for text in (every if asked.minor >= 39 else every[-1:]) for name in _terms(text)
    ]
    groups = asked.query.get("member_of", [])
    return reads.ProviderQuery(
        uuid=asked.one("uuid"),
        name=asked.one("name"),
        in_tree=asked.one("in_tree"),
        resources={name: int(amount) for name, amount in pairs},
        member_of=tuple(_any_of(text) for text in groups if text[0] != "!"),
        not_member_of=frozenset().union(*(_any_of(text[1:]) for text in groups if text[0] == "!")),
        required=tuple(_any_of(text) for text in traits if text[0] != "!"),
        forbidden=frozenset(text[1:] for text in traits if text[0] == "!"),
    )


def _terms(text: str) -> list[str]:
    """The conditions of a list of traits: one set of alternatives, or one each."""
    return [text] if text.startswith("in:") else text.split(",")


def _any_of(text: str) -> frozenset[str]:
    return frozenset(text.removeprefix("in:").split(","))


def _update_provider(model: PlainModel, asked: Asked) -> Due:
    uuid, body = asked.segments[1], asked.body
    model.update_provider(asked.minor, uuid, body["name"], body.get("parent_provider_uuid", KEEP))
    return Due(200, reads.provider_body(model, asked.minor, model.provider(uuid)))


def _delete_provider(model: PlainModel, asked: Asked) -> Due:
    model.delete_provider(asked.segments[1])
    return Due(204)


# --- Inventories (5) -----------------------------------------------------------------------------


def _record(fields_sent: Mapping[str, Any]) -> Record:
    return Record(
        **{
            field.name: fields_sent[field.name]
            for field in fields(Record)
            if field.name in fields_sent
        }
    )


def _records(sent: Mapping[str, Any]) -> dict[str, Record]:
    return {name: _record(one) for name, one in sent.items()}


def _add_inventory(model: PlainModel, asked: Asked) -> Due:
    uuid, name = asked.segments[1], asked.body["resource_class"]
    model.add_inventory(asked.minor, uuid, name, _record(asked.body))
    return Due(201, reads.inventory_body(model.provider(uuid), name))


def _replace_inventories(model: PlainModel, asked: Asked) -> Due:
    uuid = asked.segments[1]
    model.replace_inventories(asked.minor, uuid, asked.seen, _records(asked.body["inventories"]))
    return Due(200, reads.inventories_body(model.provider(uuid)))


def _update_inventory(model: PlainModel, asked: Asked) -> Due:
    uuid, name = asked.segments[1], asked.segments[3]
    model.update_inventory(asked.minor, uuid, name, asked.seen, _record(asked.body))
    return Due(200, reads.inventory_body(model.provider(uuid), name))


def _delete_inventory(model: PlainModel, asked: Asked) -> Due:
    model.delete_inventory(asked.segments[1], asked.segments[3])
    return Due(204)


def _delete_inventories(model: PlainModel, asked: Asked) -> Due:
    model.delete_inventories(asked.minor, asked.segments[1])
    return Due(204)


# --- Aggregates, traits, classes (6, 7, 8) -------------------------------------------------------


def _replace_aggregates(model: PlainModel, asked: Asked) -> Due:
    uuid = asked.segments[1]
    if asked.minor < 19:
        model.replace_aggregates(asked.minor, uuid, 0, asked.body)
    else:
        model.replace_aggregates(asked.minor, uuid, asked.seen, asked.body["aggregates"])
    return Due(200, reads.aggregates_body(asked.minor, model.provider(uuid)))


def _replace_traits(model: PlainModel, asked: Asked) -> Due:
    uuid = asked.segments[1]
    model.replace_traits(uuid, asked.seen, asked.body["traits"])
    return Due(200, reads.traits_body(model.provider(uuid)))


def _delete_traits(model: PlainModel, asked: Asked) -> Due:
    model.delete_traits(asked.segments[1])
    return Due(204)


def _custom(name: str) -> str:
    if not name.startswith("CUSTOM_"):
        raise Refusal(400)
    return name


def _define_trait(model: PlainModel, asked: Asked) -> Due:
    return Due(201 if model.define_trait(_custom(asked.segments[1])) else 204)


def _delete_trait(model: PlainModel, asked: Asked) -> Due:
    model.delete_trait(asked.segments[1])
    return Due(204)


def _list_traits(model: PlainModel, asked: Asked) -> Due:
    name, associated = asked.one("name"), asked.one("associated")
    wanted = None if name is None else _any_of(name)
    flag = None if associated is None else associated.lower() == "true"
    return Due(200, reads.traits_listed(model, wanted, flag))


def _create_class(model: PlainModel, asked: Asked) -> Due:
    model.create_class(_custom(asked.body["name"]))
    return Due(201)


def _put_class(model: PlainModel, asked: Asked) -> Due:
    name = asked.segments[1]
    if asked.minor >= 7:
        return Due(201 if model.define_class(_custom(name)) else 204)
    model.rename_class(name, asked.body["name"])
    return Due(200, reads.class_body(asked.body["name"]))


def _delete_class(model: PlainModel, asked: Asked) -> Due:
    model.delete_class(asked.segments[1])
    return Due(204)


def _list_classes(model: PlainModel, asked: Asked) -> Due:
    return Due(200, {"resource_classes": [reads.class_body(name) for name in model.classes]})


# --- Allocations and reshaping (10, 12) ----------------------------------------------------------


def _claim_in(asked: Asked, body: Mapping[str, Any]) -> Claim:
    """A consumer's new allocations, in the form of the microversion (10.3)."""
    sent = body["allocations"]
    if isinstance(sent, list):
        held = {each["resource_provider"]["uuid"]: each["resources"] for each in sent}
    else:
        held = {uuid: each["resources"] for uuid, each in sent.items()}
    return Claim(
        held,
        body.get("consumer_generation"),
        body.get("project_id", ""),
        body.get("user_id", ""),
        body.get("consumer_type", ""),
    )


def _claims_in(asked: Asked, sent: Mapping[str, Any]) -> dict[str, Claim]:
    return {uuid: _claim_in(asked, body) for uuid, body in sent.items()}


def _claim(model: PlainModel, asked: Asked) -> Due:
    if not asked.body["allocations"] and asked.minor < 28:
        raise Refusal(400)
    model.claim(asked.minor, _claims_in(asked, {asked.segments[1]: asked.body}))
    return Due(204)


def _claim_several(model: PlainModel, asked: Asked) -> Due:
    model.claim(asked.minor, _claims_in(asked, asked.body))
    return Due(204)


def _release(model: PlainModel, asked: Asked) -> Due:
    model.release(asked.segments[1])
    return Due(204)


def _reshape(model: PlainModel, asked: Asked) -> Due:
    news = {
        uuid: (int(put["resource_provider_generation"]), _records(put["inventories"]))
        for uuid, put in asked.body["inventories"].items()
    }
    model.reshape(asked.minor, news, _claims_in(asked, asked.body["allocations"]))
    return Due(204)


def _usages(model: PlainModel, asked: Asked) -> Due:
    project, user, kind = asked.one("project_id"), asked.one("user_id"), asked.one("consumer_type")
    assert project is not None
    return Due(200, reads.project_usages_body(model, asked.minor, project, user, kind))


def _of_provider(read: Callable[[PlainModel, Asked, Any], object]) -> Handler:
    """A read of a provider, or of a part of it."""
    return lambda model, asked: Due(200, read(model, asked, model.provider(asked.segments[1])))


def _named(read: Callable[[PlainModel, str], object], status: int = 200) -> Handler:
    return lambda model, asked: Due(status, read(model, asked.segments[1]))


Handler = Callable[[PlainModel, Asked], Due]

_PROVIDER: Final = "resource_providers/*"

#: Method and path -> the microversion in which the route began, and what it does.
_ROUTES: Final[Mapping[tuple[str, str], tuple[int, Handler]]] = {
    ("GET", "resource_providers"): (0, _list_providers),
    ("POST", "resource_providers"): (0, _create_provider),
    ("GET", _PROVIDER): (0, _of_provider(lambda m, a, p: reads.provider_body(m, a.minor, p))),
    ("PUT", _PROVIDER): (0, _update_provider),
    ("DELETE", _PROVIDER): (0, _delete_provider),
    ("GET", f"{_PROVIDER}/inventories"): (
        0,
        _of_provider(lambda m, a, p: reads.inventories_body(p)),
    ),
    ("POST", f"{_PROVIDER}/inventories"): (0, _add_inventory),
    ("PUT", f"{_PROVIDER}/inventories"): (0, _replace_inventories),
    ("DELETE", f"{_PROVIDER}/inventories"): (0, _delete_inventories),
    ("GET", f"{_PROVIDER}/inventories/*"): (
        0,
        _of_provider(lambda m, a, p: reads.inventory_body(p, a.segments[3])),
    ),
    ("PUT", f"{_PROVIDER}/inventories/*"): (0, _update_inventory),
    ("DELETE", f"{_PROVIDER}/inventories/*"): (0, _delete_inventory),
    ("GET", f"{_PROVIDER}/usages"): (0, _of_provider(lambda m, a, p: reads.usages_body(m, p))),
    ("GET", f"{_PROVIDER}/allocations"): (
        0,
        _of_provider(lambda m, a, p: reads.provider_allocations_body(m, a.minor, p)),
    ),
    ("GET", f"{_PROVIDER}/aggregates"): (
        1,
        _of_provider(lambda m, a, p: reads.aggregates_body(a.minor, p)),
    ),
    ("PUT", f"{_PROVIDER}/aggregates"): (1, _replace_aggregates),
    ("GET", f"{_PROVIDER}/traits"): (6, _of_provider(lambda m, a, p: reads.traits_body(p))),
    ("PUT", f"{_PROVIDER}/traits"): (6, _replace_traits),
    ("DELETE", f"{_PROVIDER}/traits"): (6, _delete_traits),
    ("GET", "traits"): (6, _list_traits),
    ("GET", "traits/*"): (6, _named(reads.trait_body, 204)),
    ("PUT", "traits/*"): (6, _define_trait),
    ("DELETE", "traits/*"): (6, _delete_trait),
    ("GET", "resource_classes"): (2, _list_classes),
    ("POST", "resource_classes"): (2, _create_class),
    ("GET", "resource_classes/*"): (2, _named(reads.class_body_of)),
    ("PUT", "resource_classes/*"): (2, _put_class),
    ("DELETE", "resource_classes/*"): (2, _delete_class),
    ("GET", "allocations/*"): (
        0,
        lambda model, asked: Due(
            200, reads.consumer_allocations_body(model, asked.minor, asked.segments[1])
        ),
    ),
    ("PUT", "allocations/*"): (0, _claim),
    ("DELETE", "allocations/*"): (0, _release),
    ("POST", "allocations"): (13, _claim_several),
    ("POST", "reshaper"): (30, _reshape),
    ("GET", "usages"): (9, _usages),
}
