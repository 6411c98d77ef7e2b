# SPDX-License-Identifier: Apache-2.0
"""JSON schemas of structs, made from the types of their members.

The structs are values that answers show unchanged (`berth.model.shown`), and objects that clients
send.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, UnsetType, structs

from berth.api.contract import Component, component, ref
from berth.api.schema import JSONSchema
from berth.api.shapes import closed_object
from berth.model.ids import AggregateUUID, ConsumerUUID, Generation, ProviderUUID
from berth.model.shown import Shown

REVISION_EXAMPLE: Final = "b1.w7rRkK2tq1MBjgI"
REVISION: JSONSchema = {
    "type": "string",
    "pattern": r"^b1\.[A-Za-z0-9_-]+\Z",
    "description": "The state of the database that the answer was made from.",
}

_UUID: JSONSchema = {"type": "string", "format": "uuid"}
_KINDS: Final[Mapping[Any, JSONSchema]] = {
    Any: {},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Generation: {"type": "integer", "minimum": 0},
    str: {"type": "string"},
    **dict.fromkeys((AggregateUUID, ConsumerUUID, ProviderUUID), _UUID),
}
#: The keyword of JSON Schema for each constraint of msgspec.
_CONSTRAINTS: Final[Mapping[str, str]] = {
    "ge": "minimum",
    "le": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
}


def shown(
    kind: type[Shown], *, example: object = None, parts: tuple[Component, ...] = ()
) -> Component:
    """The component that describes a value."""
    return component(kind.component, object_schema(kind), example=example, parts=parts)


def shown_at_revision(
    name: str,
    kind: type[Shown],
    *,
    example: Mapping[str, object],
    parts: tuple[Component, ...] = (),
) -> Component:
    """The component of an answer that begins with the revision that it was made from."""
    members = object_schema(kind)
    schema = {
        "type": "object",
        "properties": {"revision": REVISION, **members["properties"]},
        "required": ["revision", *members["required"]],
    }
    return component(name, schema, example={"revision": REVISION_EXAMPLE, **example}, parts=parts)


def object_schema(kind: type[Shown]) -> JSONSchema:
    """The schema of a value; later versions may have other members."""
    members = get_type_hints(kind, include_extras=True)
    names = kind.__struct_fields__
    return {
        "type": "object",
        "properties": {name: schema_of(members[name]) for name in names},
        "required": [name for name in names if not _is_sometimes(members[name])],
    }


class Input(msgspec.Struct):
    """An object that clients send, with these members and no others. A member with a default may be
    left out."""


def input_schema(kind: type[Input]) -> JSONSchema:
    """The schema of an object that clients send."""
    types = get_type_hints(kind, include_extras=True)
    members: dict[str, JSONSchema] = {}
    for member in structs.fields(kind):
        schema = schema_of(types[member.name])
        has_default = isinstance(member.default, (bool, int, float, str))
        members[member.encode_name] = {
            **schema,
            **({"default": member.default} if has_default else {}),
        }
    required = [member.encode_name for member in structs.fields(kind) if member.required]
    return closed_object(members, required=tuple(required))


def schema_of(kind: Any) -> JSONSchema:
    """The schema of the values of a type."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _annotated(args[0], args[1:])
    if origin in (Union, UnionType):
        return _union(args)
    if origin is Literal:
        return {"type": "string", "enum": [*args]}
    if origin is not None and issubclass(origin, Sequence):
        return {"type": "array", "items": schema_of(args[0])}
    if origin is not None:
        return _map(*args)
    if isinstance(kind, type) and issubclass(kind, Shown):
        return ref(kind.component) if kind.component else object_schema(kind)
    if isinstance(kind, type) and issubclass(kind, Input):
        return input_schema(kind)
    return _KINDS[kind]


def _annotated(kind: Any, more: Sequence[object]) -> JSONSchema:
    """The schema of a type with annotations.

    A text becomes the description. A dictionary with a type replaces the type's own schema; one
    without a type is added to it.
    """
    instead = [each for each in more if isinstance(each, dict) and "type" in each]
    schema = {**(instead[0] if instead else schema_of(kind))}
    for each in more:
        if isinstance(each, str):
            schema["description"] = each
        elif isinstance(each, dict):
            schema |= each
        elif isinstance(each, Meta):
            for name, keyword in _CONSTRAINTS.items():
                if (limit := getattr(each, name)) is not None:
                    schema[keyword] = limit
            if each.min_length is not None and schema["type"] == "object":
                schema["minProperties"] = schema.pop("minLength")
    return schema


def _union(kinds: Sequence[Any]) -> JSONSchema:
    (schema,) = [schema_of(each) for each in kinds if each not in (UnsetType, NoneType)]
    if NoneType not in kinds:
        return schema
    if schema.keys() == {"type"}:
        return {"type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _map(key: Any, value: Any) -> JSONSchema:
    pattern = schema_of(key).get("pattern")
    if pattern is None:
        return {"type": "object", "additionalProperties": schema_of(value)}
    return {
        "type": "object",
        "patternProperties": {pattern: schema_of(value)},
        "additionalProperties": False,
    }


def _is_sometimes(kind: Any) -> bool:
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return UnsetType in get_args(kind)
