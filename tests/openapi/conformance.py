# SPDX-License-Identifier: Apache-2.0
"""Checks responses against the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import jsonschema_rs

from berth.api.microversion import MINOR_MAX, VERSION_MAX
from berth.api.namespaces import BERTH
from berth.api.openapi.document import describe
from tests.client import Exchange, Headers, Response
from tests.coverage_page import version_of
from tests.routes import BERTH_ROUTES, ROUTES, minor, route_of

JSON: Final = "application/json"
JSON_LINES: Final = "application/jsonl"


@cache
def document(minor: int | None) -> dict[str, Any]:
    """The document of a microversion, or, for None, of berth's own API; for the authentication
    strategy with the most kinds of errors."""
    if minor is None:
        return describe(MINOR_MAX, auth_strategy="token", namespace=BERTH)
    return describe(minor, auth_strategy="token")


@dataclass(frozen=True)
class DescribedHeader:
    """A header of a response."""

    name: str
    required: bool
    validator: jsonschema_rs.Validator


@dataclass(frozen=True)
class Described:
    """The description of an operation's responses with one status."""

    headers: tuple[DescribedHeader, ...]
    #: Empty if the response has no body.
    media_types: frozenset[str]
    #: For a body in JSON.
    body: jsonschema_rs.Validator | None


def check_described(exchange: Exchange) -> None:
    """Fail unless the document of the response's microversion describes the response.

    Requests that are no operation of that microversion are not in the document.
    """
    answer = exchange.response
    version = version_of(exchange) or VERSION_MAX
    route = route_of(exchange.path, ROUTES + BERTH_ROUTES) if exchange.path else None
    if route is None or exchange.method not in route.methods:
        return
    number = None if route in BERTH_ROUTES else minor(version)
    responses = _responses(number, route.template, exchange.method.lower())
    if responses is None:
        return
    where = f"{exchange.method} {exchange.path} at {version}, {answer.status}"
    assert answer.status in responses, f"{where} is not described"
    described = responses[answer.status]
    _check_headers(described, answer, where)
    _check_content(described, answer, where)


def check_body(method: str, template: str, body: bytes) -> None:
    """Fail unless this may be the body of an operation's 200, at the latest microversion."""
    of_berth = any(route.template == template for route in BERTH_ROUTES)
    responses = _responses(None if of_berth else MINOR_MAX, template, method.lower())
    assert responses is not None, f"{method} {template} is no operation"
    answer = Response(200, Headers([("Content-Type", JSON)]), body)
    _check_content(responses[200], answer, f"{method} {template}")


def _check_headers(described: Described, answer: Response, where: str) -> None:
    for header in described.headers:
        value = answer.headers.get(header.name)
        assert value is not None or not header.required, f"{where} lacks {header.name}"
        if value is not None:
            assert header.validator.is_valid(value), f"{where} has {header.name}: {value}"


def _check_content(described: Described, answer: Response, where: str) -> None:
    if not answer.body:
        assert not described.media_types or answer.status >= 400, f"{where} has no body"
        return
    assert described.media_types, f"{where} has a body"
    media_type = answer.headers["Content-Type"].partition(";")[0]
    assert media_type in described.media_types or answer.status >= 400, f"{where} is {media_type}"
    lines = answer.text.rstrip("\n").split("\n")
    values = {JSON: [answer.text], JSON_LINES: lines}.get(media_type, [])
    for text in values:
        assert described.body is not None, f"{where} is JSON"
        fault = next(described.body.iter_errors(json.loads(text)), None)
        assert fault is None, f"{where}: {fault}\n{text}"


@cache
def _responses(minor: int | None, template: str, method: str) -> Mapping[int, Described] | None:
    """The descriptions of an operation's responses by status; None if it is no operation."""
    operation = document(minor)["paths"].get(template, {}).get(method)
    if operation is None:
        return None
    return {
        int(status): _described(_resolved(answer, minor), minor)
        for status, answer in operation["responses"].items()
    }


def _described(answer: Mapping[str, Any], minor: int | None) -> Described:
    headers = tuple(
        DescribedHeader(
            name,
            _resolved(reference, minor)["required"],
            _validator(f"{reference['$ref']}/schema", minor),
        )
        for name, reference in answer.get("headers", {}).items()
    )
    content = answer.get("content", {})
    of_json = next((content[name] for name in (JSON, JSON_LINES) if name in content), None)
    body = None if of_json is None else _validator(of_json["schema"]["$ref"], minor)
    return Described(headers, frozenset(content), body)


def _resolved(described: Mapping[str, Any], minor: int | None) -> Mapping[str, Any]:
    """A part of the document with its reference resolved."""
    if "$ref" not in described:
        return described
    kind, name = _component(described["$ref"])
    component: Mapping[str, Any] = document(minor)["components"][kind][name]
    return component


@cache
def _validator(reference: str, minor: int | None) -> jsonschema_rs.Validator:
    """A validator for a component of the document, such as `#/components/schemas/X`."""
    components: dict[str, dict[str, Any]] = {}
    ahead = [reference]
    while ahead:
        kind, name = _component(ahead.pop())
        if name not in components.setdefault(kind, {}):
            component = document(minor)["components"][kind][name]
            components[kind][name] = component
            ahead += _references(component)
    return _validator_of(json.dumps({"$ref": reference, "components": components}, sort_keys=True))


@cache
def _validator_of(schema: str) -> jsonschema_rs.Validator:
    """Made once for all microversions that describe a component in the same way."""
    return jsonschema_rs.Draft202012Validator(json.loads(schema), validate_formats=True)


def _component(reference: str) -> tuple[str, str]:
    """The kind and the name in a reference such as `#/components/schemas/X`."""
    kind, name = reference.split("/")[2:4]
    return kind, name


def _references(value: object) -> Iterator[str]:
    """Every reference in a part of the document."""
    if isinstance(value, Mapping):
        if isinstance(reference := value.get("$ref"), str):
            yield reference
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
