# SPDX-License-Identifier: Apache-2.0
"""What stands in a path, in a query and in headers.

The names of a query's parameters, and which of them must be there, are those of the schema that
validates it; the little languages of their values (`berth.api.filters`) are described here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from berth.api import filters
from berth.api.microversion import MINOR_MAX, SERVICE_TYPE, ByMicroversion
from berth.api.openapi.dialect import described, ecma
from berth.api.openapi.examples import AGGREGATE, CONSUMER, PROVIDER
from berth.api.schema import JSONSchema, Schema
from berth.api.schemas.fragments import CLASS_NAME_PATTERN, UUID

VERSION_HEADER = "OpenStack-API-Version"

_UUID = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NAME = "[A-Z0-9_]+"
_AMOUNT = f"{_NAME}:[1-9][0-9]*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What the value of a query parameter says.

    Attributes:
        means: sentences, each with the microversion from which on it holds.
        pattern: what its validating schema leaves to the parsers.
        repeats_since: from which microversion on each of several values counts.
    """

    means: tuple[tuple[int, str], ...]
    example: str
    pattern: ByMicroversion[str] | None = None
    repeats_since: int = MINOR_MAX + 1


def _always(text: str) -> tuple[tuple[int, str], ...]:
    return ((0, text),)


def _list_of(item: str) -> str:
    return f"{item}(,{item})*"


_TRAITS_PATTERNS = {
    0: f"^{_list_of(_NAME)}$",
    filters.FORBIDDEN_TRAITS_SINCE: f"^{_list_of(f'!?{_NAME}')}$",
}
_ANY_TRAITS_PATTERN = f"^(in:{_list_of(_NAME)}|{_list_of(f'!?{_NAME}')})$"

RESOURCES = Value(
    means=_always("Amounts by resource class, `CLASS:AMOUNT,...`, all of them."),
    example="VCPU:2,MEMORY_MB:4096",
    pattern=ByMicroversion({0: f"^{_list_of(_AMOUNT)}$"}),
)
REQUIRED = Value(
    means=(
        (0, "Traits that must be there, `TRAIT,...`."),
        (filters.FORBIDDEN_TRAITS_SINCE, "`!TRAIT`: one that must not."),
        (filters.ANY_TRAITS_SINCE, "`in:TRAIT,...`: one of these is enough."),
        (filters.ANY_TRAITS_SINCE, "Where it is repeated, all must hold."),
    ),
    example="HW_CPU_X86_AVX2",
    pattern=ByMicroversion({**_TRAITS_PATTERNS, filters.ANY_TRAITS_SINCE: _ANY_TRAITS_PATTERN}),
    repeats_since=filters.ANY_TRAITS_SINCE,
)
MEMBER_OF = Value(
    means=(
        (0, "An aggregate, or `in:` and several of which one is enough."),
        (filters.FORBIDDEN_MEMBER_OF_SINCE, "`!` in front: in none of them."),
        (filters.REPEATED_MEMBER_OF_SINCE, "Where it is repeated, all must hold."),
    ),
    example=AGGREGATE,
    pattern=ByMicroversion(
        {
            0: f"^({_UUID}|in:{_list_of(_UUID)})$",
            filters.FORBIDDEN_MEMBER_OF_SINCE: f"^!?({_UUID}|in:{_list_of(_UUID)})$",
        }
    ),
    repeats_since=filters.REPEATED_MEMBER_OF_SINCE,
)
IN_TREE = Value(
    means=_always("Only the tree that this provider is in."),
    example=PROVIDER,
    pattern=ByMicroversion({0: f"^{_UUID}$"}),
)
ROOT_REQUIRED = Value(
    means=_always("Traits of the root of the tree, `TRAIT,...`; `!TRAIT`: one that it must lack."),
    example="HW_CPU_X86_AVX2",
    pattern=ByMicroversion({0: _TRAITS_PATTERNS[filters.FORBIDDEN_TRAITS_SINCE]}),
)
SAME_SUBTREE = Value(
    means=_always(
        "Suffixes of groups, with commas between them: one of the providers that serve these "
        "groups is above all others. Where it is repeated, all must hold."
    ),
    example="_A,_B",
    pattern=ByMicroversion({0: f"^{_list_of('[a-zA-Z0-9_-]{1,64}')}$"}),
    repeats_since=0,
)
LIMIT = Value(means=_always("So many candidates at most."), example="10")
GROUP_POLICY = Value(
    means=_always(
        "`isolate`: each suffixed group is served by a provider of its own. Must be there where "
        "more than one group has a suffix."
    ),
    example="none",
)
PROVIDER_NAME = Value(means=_always("The provider of exactly this name."), example="cn1")
PROVIDER_UUID = Value(means=_always("The provider of this uuid."), example=PROVIDER)
TRAIT_NAME = Value(
    means=_always("`in:NAME,...`: those of these that exist; `startswith:PREFIX`."),
    example="startswith:HW_CPU_X86_AVX",
    pattern=ByMicroversion({0: "^(in|startswith):"}),
)
ASSOCIATED = Value(
    means=_always("`true`: traits that some provider has; `false`: those that none has."),
    example="true",
    pattern=ByMicroversion({0: "^(true|false)$"}),
)
PROJECT = Value(means=_always("Whose usages."), example="demo")
USER = Value(means=_always("Those of this user of the project alone."), example="alice")
CONSUMER_TYPE = Value(
    means=_always(
        "Those of consumers of this type alone; `all`: added up over all types; `unknown`: of "
        "consumers without one."
    ),
    example="INSTANCE",
)

#: In paths: what the name between the braces stands for.
_IN_PATHS: Mapping[str, tuple[str, JSONSchema, str]] = {
    "uuid": ("The uuid of a provider.", UUID, PROVIDER),
    "consumer_uuid": ("The uuid of a consumer.", UUID, CONSUMER),
    "resource_class": (
        "The name of a resource class.",
        {"type": "string", "pattern": CLASS_NAME_PATTERN},
        "VCPU",
    ),
}
#: The names of what users may create.
_NAMES: Mapping[str, tuple[str, JSONSchema, str]] = {
    "/traits/{name}": (
        "The name of a trait.",
        {"type": "string", "pattern": CLASS_NAME_PATTERN},
        "CUSTOM_RACK_7",
    ),
    "/resource_classes/{name}": (
        "The name of a resource class.",
        {"type": "string", "pattern": CLASS_NAME_PATTERN},
        "CUSTOM_LICENCE",
    ),
}


@dataclass(frozen=True, slots=True)
class Query:
    """The parameters of a query: the schema that validates them, and what their values say."""

    schema: ByMicroversion[Schema]
    values: Mapping[str, Value]


def version_parameter(microversion: int) -> dict[str, Any]:
    """The header without which a request would be of 1.0."""
    return {
        "name": VERSION_HEADER,
        "in": "header",
        "required": True,
        "description": "The microversion that this document describes.",
        "schema": {"type": "string", "enum": [f"{SERVICE_TYPE} 1.{microversion}"]},
    }


def path_parameters(path: str) -> list[dict[str, Any]]:
    """A parameter for each pair of braces."""
    names = [segment[1:-1] for segment in path.split("/") if segment.startswith("{")]
    found = []
    for name in names:
        means, schema, example = _NAMES[path] if name == "name" else _IN_PATHS[name]
        found.append(
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": means,
                "schema": described(schema),
                "example": example,
            }
        )
    return found


def query_parameters(query: Query, microversion: int) -> list[dict[str, Any]]:
    """The parameters that a query may have at a microversion; those of groups at the end."""
    schema = query.schema.at(microversion).definition
    groups = schema.get("patternProperties", {})
    known = {**dict.fromkeys(map(_parameter_of, groups), _TEXT), **schema["properties"]}
    required = schema.get("required", ())
    listed = [
        _query_parameter(name, one, query.values[name], microversion, required=name in required)
        for name, one in known.items()
    ]
    return [*listed, _groups(groups, query.values, microversion)] if groups else listed


_TEXT: JSONSchema = {"type": "string"}


def _query_parameter(
    name: str, schema: JSONSchema, value: Value, microversion: int, *, required: bool
) -> dict[str, Any]:
    one = _value_schema(schema, value, microversion)
    shown: dict[str, Any] = {
        "name": name,
        "in": "query",
        "required": required,
        "description": _sentences(value.means, microversion),
        "schema": one,
        "example": value.example,
    }
    if microversion >= value.repeats_since:
        several = {"type": "array", "items": one, "minItems": 1}
        shown |= {"schema": several, "example": [value.example], "style": "form", "explode": True}
    return shown


def _value_schema(schema: JSONSchema, value: Value, microversion: int) -> dict[str, Any]:
    pattern = {"pattern": value.pattern.at(microversion)} if value.pattern else {}
    return {**described(schema), **pattern}


def _groups(
    patterns: Iterable[str], values: Mapping[str, Value], microversion: int
) -> dict[str, Any]:
    """The suffixed groups: an object whose members are parameters of the query by themselves."""
    takes_letters = any(re.match(pattern, "resources_A") for pattern in patterns)
    suffixes = ("_A", "_B") if takes_letters else ("1", "2")
    return {
        "name": "groups",
        "in": "query",
        "required": False,
        "style": "form",
        "explode": True,
        "description": "Further groups of resources, each with a suffix of its own: every member "
        "of this object is a parameter of the query, such as `resources1` and `required1`, and "
        "means for its group what the parameter without a suffix means for the group without one.",
        "schema": {
            "type": "object",
            "additionalProperties": False,
            "patternProperties": {
                ecma(pattern).replace(")?$", ")$"): _value_schema(
                    _TEXT, values[_parameter_of(pattern)], microversion
                )
                for pattern in patterns
            },
        },
        "example": {f"resources{suffix}": "VGPU:1" for suffix in suffixes},
    }


def _parameter_of(pattern: str) -> str:
    """The parameter whose suffixed names a pattern matches: `^resources(...)?` and the like."""
    return pattern[1 : pattern.index("(")]


def _sentences(means: tuple[tuple[int, str], ...], microversion: int) -> str:
    return " ".join(text for since, text in means if since <= microversion)
