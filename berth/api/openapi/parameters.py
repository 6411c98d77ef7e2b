# SPDX-License-Identifier: Apache-2.0
"""Path, query and header parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from berth.api.contract import Parameter, Query
from berth.api.microversion import SERVICE_TYPE
from berth.api.openapi.components import described, ecma
from berth.api.operation import Operation
from berth.api.schema import JSONSchema
from berth.api.shapes import TEXT

VERSION_HEADER = "OpenStack-API-Version"

#: For operations whose responses have an `ETag`.
TAG_PARAMETER: Final[dict[str, Any]] = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The `ETag` of an earlier response: if nothing has changed since, the response "
    "is 304, without a body.",
    "schema": {"type": "string"},
}

#: For operations that have a precondition.
PRECONDITION_PARAMETERS: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "If-Match",
        "in": "header",
        "required": False,
        "description": "The `ETag` that the client has seen: if it is another one now, the response"
        " is 412, and nothing is written.",
        "schema": {"type": "string"},
    },
    {
        "name": "If-None-Match",
        "in": "header",
        "required": False,
        "description": "With `*`, the response is 412 if the object exists.",
        "schema": {"type": "string"},
    },
)


def version_parameter(microversion: int) -> dict[str, Any]:
    """The version header; the default is 1.0."""
    return {
        "name": VERSION_HEADER,
        "in": "header",
        "required": True,
        "description": "The microversion that this document describes.",
        "schema": {"type": "string", "enum": [f"{SERVICE_TYPE} 1.{microversion}"]},
    }


def path_parameters(operation: Operation) -> list[dict[str, Any]]:
    """A parameter for each segment in braces."""
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": segment.means,
            "schema": described(segment.schema),
            "example": segment.example,
        }
        for name, segment in operation.segments.items()
    ]


def query_parameters(query: Query, microversion: int) -> list[dict[str, Any]]:
    """A query's parameters at a microversion; those of groups come last."""
    schema = query.schema.at(microversion).definition
    groups = schema.get("patternProperties", {})
    names = [*map(_parameter_of, groups), *schema["properties"]]
    required = schema.get("required", ())
    listed = [
        _query_parameter(query.parameters[name], microversion, required=name in required)
        for name in names
    ]
    return [*listed, _groups(groups, query.parameters, microversion)] if groups else listed


def _query_parameter(parameter: Parameter, microversion: int, *, required: bool) -> dict[str, Any]:
    value_schema = _value_schema(parameter.schema, parameter, microversion)
    shown: dict[str, Any] = {
        "name": parameter.name,
        "in": "query",
        "required": required,
        "description": _sentences(parameter.sentences, microversion),
        "schema": value_schema,
        "example": parameter.example,
    }
    if microversion >= parameter.repeats_since:
        several = {"type": "array", "items": value_schema, "minItems": 1}
        shown |= {
            "schema": several,
            "example": [parameter.example],
            "style": "form",
            "explode": True,
        }
    return shown


def _value_schema(schema: JSONSchema, parameter: Parameter, microversion: int) -> dict[str, Any]:
    pattern = {"pattern": parameter.pattern.at(microversion)} if parameter.pattern else {}
    return {**described(schema), **pattern}


def _groups(
    patterns: Iterable[str], parameters: Mapping[str, Parameter], microversion: int
) -> dict[str, Any]:
    """The suffixed groups: an object whose members are separate query parameters."""
    takes_letters = any(re.match(pattern, "resources_A") for pattern in patterns)
    suffixes = ("_A", "_B") if takes_letters else ("1", "2")
    return {
        "name": "groups",
        "in": "query",
        "required": False,
        "style": "form",
        "explode": True,
        "description": "Further request groups, each with its own suffix. Every member of this "
        "object is a query parameter, such as `resources1` and `required1`, with "
        "the meaning of the parameter without a suffix for its group.",
        "schema": {
            "type": "object",
            "additionalProperties": False,
            "patternProperties": {
                ecma(pattern).replace(")?$", ")$"): _value_schema(
                    TEXT, parameters[_parameter_of(pattern)], microversion
                )
                for pattern in patterns
            },
        },
        "example": {f"resources{suffix}": "VGPU:1" for suffix in suffixes},
    }


def _parameter_of(pattern: str) -> str:
    """The parameter whose suffixed names a pattern matches, such as `^resources(...)?`."""
    return pattern[1 : pattern.index("(")]


def _sentences(means: Mapping[int, str], microversion: int) -> str:
    return " ".join(text for since, text in means.items() if since <= microversion)
