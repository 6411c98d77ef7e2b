# SPDX-License-Identifier: Apache-2.0
"""Allocations of one consumer (PUT), of several (POST), and those inside a reshape.

Source: spec/rest-api.md 10.3, 10.4 and 12.
"""

from __future__ import annotations

from typing import Any

from berth.api.microversion import ByMicroversion
from berth.api.schema import JSONSchema, Schema
from berth.api.schemas.fragments import (
    CLASS_NAME_PATTERN,
    CONSUMER_TYPE,
    EXTERNAL_ID,
    INTEGER,
    UUID,
    UUID_36_PATTERN,
    closed_object,
    object_by,
)
from berth.api.schemas.inventories import REPLACEMENT

_RESOURCES = object_by(CLASS_NAME_PATTERN, {"type": "integer", "minimum": 1}, at_least_one=True)
_OWNERS: dict[str, JSONSchema] = {"project_id": EXTERNAL_ID, "user_id": EXTERNAL_ID}
_GENERATION: dict[str, JSONSchema] = {"consumer_generation": {"type": ["integer", "null"]}}
_TYPE: dict[str, JSONSchema] = {"consumer_type": CONSUMER_TYPE}
#: Let in as candidates show it, and not looked at; keys without any of these characters are free.
_MAPPINGS: dict[str, JSONSchema] = {
    "mappings": {
        "type": "object",
        "minProperties": 1,
        "patternProperties": {
            "[a-zA-Z0-9_-]{1,64}": {"type": "array", "minItems": 1, "items": UUID},
        },
    }
}

_ONE_OF_LIST = closed_object(
    {
        "resource_provider": closed_object({"uuid": UUID}, required=("uuid",), extra_first=True),
        "resources": _RESOURCES,
    },
    required=("resource_provider", "resources"),
)
_AS_LIST: dict[str, JSONSchema] = {
    "allocations": {"type": "array", "minItems": 1, "items": _ONE_OF_LIST}
}
_ONE_OF_OBJECT = closed_object(
    {"resources": _RESOURCES, "generation": INTEGER}, required=("resources",)
)


def _as_object(*, at_least_one: bool) -> dict[str, JSONSchema]:
    """The form since 1.12: an object by provider, which from 1.28 (PUT) may be empty."""
    return {"allocations": object_by(UUID_36_PATTERN, _ONE_OF_OBJECT, at_least_one=at_least_one)}


def _consumer(*parts: dict[str, JSONSchema], optional: dict[str, JSONSchema]) -> JSONSchema:
    required: dict[str, JSONSchema] = {}
    for part in parts:
        required |= part
    return closed_object(
        {**required, **optional}, required=tuple(required), extra_first=_AS_LIST not in parts
    )


_NOT_EMPTY = _as_object(at_least_one=True)
_MAYBE_EMPTY = _as_object(at_least_one=False)
_AT_28 = _consumer(_MAYBE_EMPTY, _OWNERS, _GENERATION, optional={})
_AT_34 = _consumer(_MAYBE_EMPTY, _OWNERS, _GENERATION, optional=_MAPPINGS)
_AT_38 = _consumer(_MAYBE_EMPTY, _OWNERS, _GENERATION, _TYPE, optional=_MAPPINGS)

REPLACE = ByMicroversion(
    {
        0: Schema(_consumer(_AS_LIST, optional={})),
        8: Schema(_consumer(_AS_LIST, _OWNERS, optional={})),
        12: Schema(_consumer(_NOT_EMPTY, _OWNERS, optional={})),
        28: Schema(_AT_28),
        34: Schema(_AT_34),
        38: Schema(_AT_38),
    }
)


def _consumers(of_one: JSONSchema) -> Schema:
    return Schema(object_by(UUID_36_PATTERN, of_one, at_least_one=True))


MANAGE = ByMicroversion(
    {
        13: _consumers(_consumer(_MAYBE_EMPTY, _OWNERS, optional={})),
        28: _consumers(_AT_28),
        34: _consumers(_AT_34),
        38: _consumers(_AT_38),
    }
)


def _reshape(of_one_consumer: JSONSchema) -> Schema:
    parts: dict[str, Any] = {
        "inventories": object_by(UUID_36_PATTERN, REPLACEMENT, at_least_one=True),
        "allocations": object_by(UUID_36_PATTERN, of_one_consumer),
    }
    return Schema(closed_object(parts, required=tuple(parts)))


RESHAPE = ByMicroversion({30: _reshape(_AT_28), 34: _reshape(_AT_34), 38: _reshape(_AT_38)})
