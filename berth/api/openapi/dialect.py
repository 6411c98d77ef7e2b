# SPDX-License-Identifier: Apache-2.0
"""Convert the JSON Schemas that validate in Python to ones that all tools can read.

Patterns end in `$` as in ECMA 262, objects with keys by pattern take the form that code generators
read as a map, and every member gets a description.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.api.openapi.meanings import MEANINGS
from berth.api.schema import JSONSchema


def described(schema: JSONSchema) -> dict[str, Any]:
    """A schema in the document's dialect; it accepts the same values."""
    return {key: _keyword(key, value) for key, value in _as_map(schema).items()}


def _keyword(key: str, value: Any) -> Any:
    if key == "pattern":
        return ecma(value)
    if key == "properties":
        return {name: _member(name, schema) for name, schema in value.items()}
    if key == "patternProperties":
        return {ecma(pattern): described(schema) for pattern, schema in value.items()}
    if key in ("anyOf", "allOf"):
        return [described(schema) for schema in value]
    return described(value) if isinstance(value, Mapping) else value


def _member(name: str, schema: JSONSchema) -> dict[str, Any]:
    """A member's schema with a description: the schema's own, or one by name."""
    if "description" in schema:
        return described(schema)
    return {"description": MEANINGS[name], **described(schema)}


def ecma(pattern: str) -> str:
    """Convert a Python pattern for JSON Schema: see `berth.api.schema`."""
    return pattern.replace(r"\Z", "$")


def _as_map(schema: JSONSchema) -> JSONSchema:
    """Move the pattern of an object with only one to `propertyNames`."""
    patterns = schema.get("patternProperties", {})
    if len(patterns) != 1 or schema.get("additionalProperties") is not False:
        return schema
    ((pattern, value),) = patterns.items()
    rest = {
        key: keyword_value for key, keyword_value in schema.items() if key != "patternProperties"
    }
    return {**rest, "propertyNames": {"pattern": pattern}, "additionalProperties": value}
