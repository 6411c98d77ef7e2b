# SPDX-License-Identifier: Apache-2.0
"""From the JSON Schemas that validate in Python to those that everybody's tools can read.

Patterns end in `$` as ECMA 262 has it, an object by name becomes one that code generators know as a
map, and every member gets its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.api.openapi.meanings import MEANINGS
from berth.api.schema import JSONSchema


def described(schema: JSONSchema) -> dict[str, Any]:
    """A schema in the dialect of the document; it admits the same values."""
    return {key: _keyword(key, value) for key, value in _as_map(schema).items()}


def _keyword(key: str, value: Any) -> Any:
    if key == "pattern":
        return ecma(value)
    if key == "properties":
        return {name: _member(name, one) for name, one in value.items()}
    if key == "patternProperties":
        return {ecma(pattern): described(one) for pattern, one in value.items()}
    if key in ("anyOf", "allOf"):
        return [described(one) for one in value]
    return described(value) if isinstance(value, Mapping) else value


def _member(name: str, schema: JSONSchema) -> dict[str, Any]:
    """The schema of a member, with what it means."""
    return {"description": MEANINGS[name], **described(schema)}


def ecma(pattern: str) -> str:
    """A pattern of Python's as JSON Schema wants it: see `berth.api.schema`."""
    return pattern.replace(r"\Z", "$")


def _as_map(schema: JSONSchema) -> JSONSchema:
    """An object whose keys all match one pattern: said of the names, not by the pattern."""
    patterns = schema.get("patternProperties", {})
    if len(patterns) != 1 or schema.get("additionalProperties") is not False:
        return schema
    ((pattern, value),) = patterns.items()
    rest = {key: one for key, one in schema.items() if key != "patternProperties"}
    return {**rest, "propertyNames": {"pattern": pattern}, "additionalProperties": value}
