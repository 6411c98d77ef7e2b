# SPDX-License-Identifier: Apache-2.0
"""The description of the API is valid OpenAPI, whole, and agrees with its own examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from berth.api.openapi.document import describe
from berth.api.routes import ROUTES
from berth.config.options import AuthStrategy
from tests.openapi.conformance import document

MINORS = range(40)

#: Those at which whole parts of the document change.
MILESTONES = [0, 1, 12, 19, 25, 39]


def operations(minor: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and description of each operation that the document has."""
    for path, methods in document(minor)["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def validator(minor: int, schema: dict[str, Any]) -> jsonschema_rs.Validator:
    """A validator of one of the document's schemas."""
    whole = {**schema, "components": document(minor)["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


@pytest.mark.parametrize("minor", MILESTONES)
def test_the_document_is_valid_openapi(minor: int) -> None:
    """Its schemas and defaults included, as a validator of others sees it."""
    OpenAPIV31SpecValidator(document(minor)).validate()


@pytest.mark.parametrize("minor", MINORS)
def test_it_has_every_operation_of_its_microversion_and_no_other(minor: int) -> None:
    """With the policy's rule, and since when it is there."""
    assert {
        (path, method, one["operationId"], one.get("x-policy-rule"), one["x-since"])
        for path, method, one in operations(minor)
    } == {
        (route.path, method.lower(), one.handler.__name__, one.rule, f"1.{one.since}")
        for route in ROUTES
        for method, served in route.methods.items()
        for one in served
        if one.since <= minor <= one.until
    }


@pytest.mark.parametrize("minor", MINORS)
def test_its_examples_are_what_it_says(minor: int) -> None:
    """Those of bodies, of answers and of parameters."""
    shown = [
        (f"{method} {path}", media["schema"], media["example"])
        for path, method, one in operations(minor)
        for holder in [one.get("requestBody", {}), *one["responses"].values()]
        for media in holder.get("content", {}).values()
        if "example" in media
    ] + [
        (f"{method} {path}: {parameter['name']}", parameter["schema"], parameter["example"])
        for path, method, one in operations(minor)
        for parameter in one["parameters"]
        if "example" in parameter
    ]
    assert len(shown) > 20
    for where, schema, example in shown:
        assert validator(minor, schema).is_valid(example), where


@pytest.mark.parametrize("minor", MILESTONES)
def test_every_body_has_an_example(minor: int) -> None:
    """A reader learns from it faster than from the schema."""
    for path, method, one in operations(minor):
        if "requestBody" in one:
            assert one["requestBody"]["content"]["application/json"]["example"]
        for status, response in one["responses"].items():
            if status.startswith("2") and "content" in response and path != "/openapi.json":
                assert response["content"]["application/json"]["example"], (path, method)


@pytest.mark.parametrize("minor", MILESTONES)
def test_patterns_are_everybodys(minor: int) -> None:
    r"""Python's `\Z` is unknown elsewhere; `$` does not let a final newline pass there."""
    assert r"\Z" not in str(document(minor)).replace(r"\\", "\\")


@pytest.mark.parametrize("strategy", get_args(AuthStrategy))
def test_it_says_how_this_service_wants_its_callers_named(strategy: str) -> None:
    """By the scheme of its way of authentication, everywhere but on the public paths."""
    told = describe(39, auth_strategy=strategy)
    schemes = set(told["components"]["securitySchemes"])
    for path, methods in told["paths"].items():
        for operation in methods.values():
            named = {scheme for one in operation["security"] for scheme in one}
            assert named == (set() if path in ("/", "/openapi.json") else schemes)
