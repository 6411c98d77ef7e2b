# SPDX-License-Identifier: Apache-2.0
"""Holds real answers against the description of the API."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import jsonschema_rs

from berth.api.microversion import VERSION_MAX
from berth.api.openapi.document import describe
from tests.client import Exchange, Response
from tests.coverage_page import version_of
from tests.routes import minor, route_of

JSON: Final = "application/json"


@lru_cache
def document(minor: int) -> dict[str, Any]:
    """The document of a microversion, where callers are refused in every way there is."""
    return describe(minor, auth_strategy="token")


@lru_cache
def _validator(minor: int, reference: str) -> jsonschema_rs.Validator:
    """What holds a value against a component of the document, such as `#/components/schemas/X`."""
    schema = {"$ref": reference, "components": document(minor)["components"]}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def check_described(exchange: Exchange) -> None:
    """Fail unless the document of the answer's microversion describes the answer.

    A request that is no operation of that microversion is none of the document's.
    """
    answer = exchange.response
    version = version_of(exchange) or VERSION_MAX
    responses = _responses(exchange, minor(version))
    if responses is None:
        return
    where = f"{exchange.method} {exchange.path} at {version}, {answer.status}"
    assert str(answer.status) in responses, f"{where} is not described"
    described = responses[str(answer.status)]
    _check_headers(described, answer, minor(version), where)
    _check_content(described, answer, minor(version), where)


def _responses(exchange: Exchange, minor: int) -> dict[str, Any] | None:
    """The descriptions of an operation's answers, by status; None, if it is no operation."""
    route = route_of(exchange.path) if exchange.path else None
    if route is None or exchange.method not in route.methods:
        return None
    operation = document(minor)["paths"].get(route.template, {}).get(exchange.method.lower())
    if operation is None:
        return None
    responses: dict[str, Any] = operation["responses"]
    return responses


def _resolved(described: dict[str, Any], minor: int) -> dict[str, Any]:
    """A part of the document, or what it refers to."""
    if "$ref" not in described:
        return described
    kind, name = described["$ref"].split("/")[2:]
    found: dict[str, Any] = document(minor)["components"][kind][name]
    return found


def _check_headers(described: dict[str, Any], answer: Response, minor: int, where: str) -> None:
    for name, reference in _resolved(described, minor).get("headers", {}).items():
        header = _resolved(reference, minor)
        value = answer.headers.get(name)
        assert value is not None or not header["required"], f"{where} lacks {name}"
        if value is not None:
            schema = f"{reference['$ref']}/schema"
            assert _validator(minor, schema).is_valid(value), f"{where} has {name}: {value}"


def _check_content(described: dict[str, Any], answer: Response, minor: int, where: str) -> None:
    content = _resolved(described, minor).get("content")
    if not answer.body:
        assert content is None or answer.status >= 400, f"{where} has no body"
        return
    assert content is not None, f"{where} has a body"
    media_type = answer.headers["Content-Type"].partition(";")[0]
    assert media_type in content or answer.status >= 400, f"{where} is {media_type}"
    if media_type == JSON:
        validator = _validator(minor, content[JSON]["schema"]["$ref"])
        fault = next(validator.iter_errors(answer.json), None)
        assert fault is None, f"{where}: {fault}\n{answer.text}"
