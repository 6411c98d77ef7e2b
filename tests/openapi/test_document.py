# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document is valid and complete, and its examples match it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from berth.api.openapi.document import describe
from berth.config.options import AuthStrategy
from tests.openapi.conformance import document

MINORS = range(40)

#: Every document: one for each microversion, and that of berth's own API.
DOCUMENTS: list[int | None] = [*MINORS, None]

#: Those at which whole parts of the document change.
MILESTONES: list[int | None] = [0, 1, 12, 19, 25, 39, None]


def operations(minor: int | None) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and description of each operation in the document."""
    for path, methods in document(minor)["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def validator(minor: int | None, schema: dict[str, Any]) -> jsonschema_rs.Validator:
    """A validator of one of the document's schemas."""
    whole = {**schema, "components": document(minor)["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


@pytest.mark.parametrize("minor", MILESTONES)
def test_the_document_is_valid_openapi(minor: int | None) -> None:
    """Checked by another validator, including its schemas and defaults."""
    OpenAPIV31SpecValidator(document(minor)).validate()


@pytest.mark.parametrize("minor", DOCUMENTS)
def test_its_examples_are_what_it_says(minor: int | None) -> None:
    """The examples of bodies, responses and parameters."""
    shown = [
        (f"{method} {path}", media["schema"], media["example"])
        for path, method, operation in operations(minor)
        for holder in [operation.get("requestBody", {}), *operation["responses"].values()]
        for media in holder.get("content", {}).values()
        if "example" in media
    ] + [
        (f"{method} {path}: {parameter['name']}", parameter["schema"], parameter["example"])
        for path, method, operation in operations(minor)
        for parameter in operation["parameters"]
        if "example" in parameter
    ]
    assert len(shown) > (20 if minor is not None else 5)
    for where, schema, example in shown:
        assert validator(minor, schema).is_valid(example), where


@pytest.mark.parametrize("minor", MILESTONES)
def test_every_body_has_an_example(minor: int | None) -> None:
    """Readers learn from it faster than from the schema."""
    for path, method, operation in operations(minor):
        if "requestBody" in operation:
            assert operation["requestBody"]["content"]["application/json"]["example"]
        for status, response in operation["responses"].items():
            if (
                status.startswith("2")
                and "content" in response
                and not path.endswith("/openapi.json")
            ):
                for content in response["content"].values():
                    assert content["example"], (path, method)


@pytest.mark.parametrize("minor", MILESTONES)
def test_patterns_are_everybodys(minor: int | None) -> None:
    r"""Python's `\Z` is unknown elsewhere; there, `$` does not match before a final newline."""
    assert r"\Z" not in str(document(minor)).replace(r"\\", "\\")


@pytest.mark.parametrize("strategy", get_args(AuthStrategy))
def test_it_says_how_this_service_wants_its_callers_named(strategy: str) -> None:
    """With the scheme of its authentication strategy, except on public paths."""
    told = describe(39, auth_strategy=strategy)
    schemes = set(told["components"]["securitySchemes"])
    for path, methods in told["paths"].items():
        for operation in methods.values():
            named = {scheme for one in operation["security"] for scheme in one}
            assert named == (set() if path in ("/", "/openapi.json") else schemes)
