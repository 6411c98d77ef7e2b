# SPDX-License-Identifier: Apache-2.0
"""Pieces that several schemas share.

Source: spec/rest-api.md 1.10.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from berth.api.schema import JSONSchema
from berth.model import names
from berth.model.bounds import LEASE_SECONDS_MAX
from berth.model.inventory import ALLOCATION_RATIO_MAX, MAX_INT
from berth.model.names import NAME_LENGTH_MAX, PATH_NAME_PATTERN
from berth.model.printable import CONTROLS

#: Python's `$` matches before a final newline, `\Z` does not; see `berth.api.schema`.
CLASS_NAME_PATTERN = names.CLASS_NAME_PATTERN.replace("$", r"\Z")
CUSTOM_NAME_PATTERN = names.CUSTOM_CLASS_NAME_PATTERN.replace("$", r"\Z")
CONSUMER_TYPE_PATTERN = names.CONSUMER_TYPE_PATTERN.replace("$", r"\Z")
UUID_36_PATTERN = r"^[0-9a-fA-F-]{36}\Z"

TEXT: JSONSchema = {"type": "string"}
#: The name of a provider.
PROVIDER_NAME: JSONSchema = {"type": ["string", "null"], "description": "null in old data only."}
INTEGER: JSONSchema = {"type": "integer"}
COUNT: JSONSchema = {"type": "integer", "minimum": 0}
BOOLEAN: JSONSchema = {"type": "boolean"}
GENERATION: JSONSchema = {"type": "integer", "minimum": 0}
CLASS_NAME: JSONSchema = {"type": "string", "pattern": CLASS_NAME_PATTERN}
UUID: JSONSchema = {"type": "string", "format": "uuid"}
UUID_OR_NULL: JSONSchema = {"anyOf": [UUID, {"type": "null"}]}
EXTERNAL_ID: JSONSchema = {"type": "string", "minLength": 1, "maxLength": NAME_LENGTH_MAX}
CONSUMER_TYPE: JSONSchema = {
    "type": "string",
    "pattern": CONSUMER_TYPE_PATTERN,
    "minLength": 1,
    "maxLength": NAME_LENGTH_MAX,
}
#: Of a flavor or a drain.
NAME: JSONSchema = {"type": "string", "pattern": PATH_NAME_PATTERN}
#: Without slashes and control characters: paths have it as a segment.
CONSUMER_NAME_PATTERN = rf"^[^/{CONTROLS}]+\Z"
CONSUMER_NAME: JSONSchema = {
    "type": "string",
    "minLength": 1,
    "maxLength": NAME_LENGTH_MAX,
    "pattern": CONSUMER_NAME_PATTERN,
    "description": "A name within the project, without a slash.",
}
#: Text for people: line breaks and tabs are the only control characters, and no mark of direction
#: reorders the text around it.
FREE_TEXT_PATTERN = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]*\Z"
LEASE_SECONDS: JSONSchema = {
    "type": "integer",
    "minimum": 1,
    "maximum": LEASE_SECONDS_MAX,
    "x-bound": "max_lease_seconds",
}
#: In answers.
SHOWN_TRAITS: JSONSchema = {"type": "array", "items": CLASS_NAME}
TRAIT_NAMES: JSONSchema = {
    "type": "array",
    "items": {"type": "string", "minLength": 1, "maxLength": NAME_LENGTH_MAX},
}


def closed_object(
    properties: Mapping[str, JSONSchema],
    *,
    required: tuple[str, ...] = (),
    extra_first: bool = False,
) -> JSONSchema:
    """An object with these members and no others.

    Args:
        properties: the members.
        required: the members that must be there.
        extra_first: report an extra member rather than a missing one, if both occur.
    """
    faults: list[tuple[str, Any]] = [("additionalProperties", False)]
    if required:
        faults.insert(1 if extra_first else 0, ("required", list(required)))
    return {"type": "object", "properties": dict(properties), **dict(faults)}


def object_by(pattern: str, value: JSONSchema, *, at_least_one: bool = False) -> JSONSchema:
    """An object whose keys all match a pattern and whose values all follow one schema."""
    schema: dict[str, Any] = {"type": "object"}
    if at_least_one:
        schema["minProperties"] = 1
    schema["patternProperties"] = {pattern: value}
    schema["additionalProperties"] = False
    return schema


def _bounded(least: int) -> JSONSchema:
    return {"type": "integer", "maximum": MAX_INT, "minimum": least}


def exact_object(properties: Mapping[str, JSONSchema]) -> JSONSchema:
    """An object that always has these members, and no others."""
    return closed_object(properties, required=tuple(properties))


def open_object(
    properties: Mapping[str, JSONSchema],
    *,
    optional: Mapping[str, JSONSchema] = MappingProxyType({}),
) -> JSONSchema:
    """An object that always has these members, and may have others in later versions.

    Args:
        optional: members that it has only sometimes.
    """
    every = {**properties, **optional}
    return {"type": "object", "properties": every, "required": list(properties)}


def described(schema: JSONSchema, means: str) -> JSONSchema:
    """A schema with the sentence that documents it."""
    return {**schema, "description": means}


def list_of(items: JSONSchema) -> JSONSchema:
    """An array whose items all follow one schema."""
    return {"type": "array", "items": items}


def links(*relations: str) -> JSONSchema:
    """Links to a resource and its parts, one for each relation."""
    rel = {"type": "string", "enum": list(relations)}
    count = len(relations)
    link = exact_object({"rel": rel, "href": TEXT})
    return {**list_of(link), "minItems": count, "maxItems": count}


#: The six numbers of an inventory record.
INVENTORY: Mapping[str, JSONSchema] = {
    "total": _bounded(1),
    "reserved": _bounded(0),
    "min_unit": _bounded(1),
    "max_unit": _bounded(1),
    "step_size": _bounded(1),
    "allocation_ratio": {"type": "number", "maximum": ALLOCATION_RATIO_MAX},
}

#: In responses: allocated amounts, and sums of them, by resource class.
AMOUNTS = object_by(CLASS_NAME_PATTERN, {"type": "integer", "minimum": 1})
SUMS = object_by(CLASS_NAME_PATTERN, {"type": "integer", "minimum": 0})
