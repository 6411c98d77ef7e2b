# SPDX-License-Identifier: Apache-2.0
"""The schema of a request: the grammar that all questions share.

`berth.api.berth_v1.questions` checks what a schema cannot say. `x-bound` names the bound that a
limit on a length stands for.

Source: spec/beyond.md 2.2 and 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

from berth.api.schema import JSONSchema
from berth.api.shapes import CLASS_NAME, CLASS_NAME_PATTERN, closed_object, list_of, object_by
from berth.api.struct_schema import Input
from berth.model.bounds import BOUNDS
from berth.model.ids import ConsumerUUID
from berth.model.inventory import ALLOCATION_RATIO_MAX, MAX_INT
from berth.model.names import NAME_LENGTH_MAX, PATH_NAME_PATTERN

#: Names, or references.
Names: TypeAlias = Sequence[str]
#: A conjunction.
Items: TypeAlias = Sequence[str | Sequence[str]]
Number: TypeAlias = int | float

GROUP_NAME_PATTERN: Final = r"^[a-zA-Z0-9_-]{0,64}\Z"

#: A label is `key=value`, each at most this long.
_REFERENCE_LENGTH_MAX: Final = 2 * NAME_LENGTH_MAX + 1
#: A query string, as long as a server of the old routes reads it.
_QUERY_LENGTH_MAX: Final = 65_536


def counted(bound: str) -> dict[str, Any]:
    """A list of at most so many items as a bound says."""
    return {"maxItems": BOUNDS[bound], "x-bound": bound}


def counted_map(
    pattern: str, value: JSONSchema, bound: str, *, at_least_one: bool = False
) -> dict[str, Any]:
    """An object with at most so many members as a bound says."""
    counted = {"maxProperties": BOUNDS[bound], "x-bound": bound}
    return {**object_by(pattern, value, at_least_one=at_least_one), **counted}


def _name(length_max: int, *, may_be_negated: bool = False) -> dict[str, Any]:
    pattern = r"^!?[^!]" if may_be_negated else r"^[^!]"
    return {"type": "string", "pattern": pattern, "minLength": 1, "maxLength": length_max}


def _items(length_max: int, alternatives: str, means: str) -> JSONSchema:
    """A conjunction: names, negated with `!`, and lists of alternatives."""
    name = _name(length_max, may_be_negated=True)
    item = {
        **name,
        "type": ["string", "array"],
        "items": _name(length_max),
        "minItems": 1,
        **counted(alternatives),
    }
    return {"type": "array", "items": item, "description": means, **counted("max_items")}


_REFERENCE: Final[dict[str, Any]] = {
    "type": "string",
    "minLength": 1,
    "maxLength": _REFERENCE_LENGTH_MAX,
}


def references(means: str, of: JSONSchema = _REFERENCE) -> JSONSchema:
    """A list of references to providers."""
    return {"type": "array", "items": of, "description": means, **counted("max_references")}


def integer(least: int, most: int, *, default: int | None = None) -> dict[str, Any]:
    """An integer within bounds."""
    bounded = {"type": "integer", "minimum": least, "maximum": most}
    return bounded if default is None else {**bounded, "default": default}


def up_to(bound: str, *, least: int = 1, default: int | None = None) -> dict[str, Any]:
    """An integer up to a bound, given by its name."""
    return {**integer(least, BOUNDS[bound], default=default), "x-bound": bound}


#: Conditions on the traits and the aggregates of one provider.
TRAIT_ITEMS: Final = _items(
    NAME_LENGTH_MAX,
    "max_items",
    "Traits that must all be there: `T`, `!T` for a trait that must not, `[T, U]` for either.",
)
AGGREGATE_ITEMS: Final = _items(
    _REFERENCE_LENGTH_MAX,
    "max_references",
    "Aggregates by uuid, by their label `name`, or as `key=value`; otherwise as traits.",
)

_SPLIT: Final = closed_object(
    {
        "min": integer(1, MAX_INT, default=1),
        "step": integer(1, MAX_INT, default=1),
        "parts": integer(2, 16, default=2),
    }
)
_RESOURCES: Final = counted_map(CLASS_NAME_PATTERN, integer(1, MAX_INT), "max_classes")
_GROUP: Final = closed_object(
    {
        "resources": _RESOURCES,
        "required": TRAIT_ITEMS,
        "member_of": AGGREGATE_ITEMS,
        "in_tree": references("Each provider is in the tree of one of these."),
        "under": references("Each provider is one of these, or below one."),
        "not_under": references("No provider is one of these, or below one."),
        "split": object_by(CLASS_NAME_PATTERN, _SPLIT),
    }
)
#: Conditions on a tree, by its root.
HOST: Final = closed_object(
    {
        "required": TRAIT_ITEMS,
        "anywhere": {
            **TRAIT_ITEMS,
            "description": "`T`: some provider of the tree has it; `!T`: none has it.",
        },
        "member_of": AGGREGATE_ITEMS,
        "in": references(
            "The tree has one of these providers; of several lists, one of each.",
            {
                **_REFERENCE,
                "type": ["string", "array"],
                "items": _REFERENCE,
                **counted("max_references"),
            },
        ),
        "not_in": references("The tree has none of these providers."),
    }
)
_RELATION: Final = closed_object(
    {
        "groups": {
            "type": "array",
            "items": {"type": "string", "pattern": GROUP_NAME_PATTERN},
            "minItems": 2,
            "maxItems": BOUNDS["max_groups"],
            "uniqueItems": True,
        },
        "at": {
            **_name(NAME_LENGTH_MAX),
            "description": "`provider`, `tree`, `subtree`, or a trait.",
        },
    },
    required=("groups", "at"),
)
_RELATIONS: Final[JSONSchema] = {
    "type": "array",
    "items": _RELATION,
    **counted("max_relations"),
}
_GROUPS: Final = counted_map(GROUP_NAME_PATTERN, _GROUP, "max_groups", at_least_one=True)
#: Drains that count as not there.
TOLERATE: Final[JSONSchema] = {
    "type": ["string", "array"],
    "pattern": r"^\*\Z",
    "items": _name(NAME_LENGTH_MAX),
    "description": "`*`, or names of drains.",
    **counted("max_references"),
}

#: Of a request without a flavor.
_MEMBERS: Final[Mapping[str, JSONSchema]] = {
    "groups": _GROUPS,
    "host": HOST,
    "together": _RELATIONS,
    "apart": _RELATIONS,
    "tolerate": TOLERATE,
    "query": {
        "type": "string",
        "maxLength": _QUERY_LENGTH_MAX,
        "description": "A query string of `GET /allocation_candidates` at 1.39, or a text that has"
        " one, such as a line of a log, instead of `groups`, `host`, `together` and `apart`.",
    },
}

#: What a flavor stores: one request, so that it can be counted, and named in `alternatives`.
FLAVOR_REQUEST: Final = closed_object(_MEMBERS)

_WITH_FLAVOR: Final[Mapping[str, JSONSchema]] = {
    **_MEMBERS,
    "flavor": {
        "type": "string",
        "minLength": 1,
        "maxLength": NAME_LENGTH_MAX,
        "description": "The name of a flavor, instead of `groups`, `together` and `apart`; both its"
        " `host` and the `host` of this request must hold.",
    },
}

#: One request: an alternative, or what a command asks for.
ONE_REQUEST: Final = closed_object(_WITH_FLAVOR)

#: What is wanted.
REQUEST: Final = closed_object(
    {
        **_WITH_FLAVOR,
        "alternatives": {
            "type": "array",
            "items": ONE_REQUEST,
            "minItems": 2,
            "maxItems": BOUNDS["max_alternatives"],
            "x-bound": "max_alternatives",
            "description": "Instead of all other members: the first request that has a candidate"
            " counts.",
        },
    }
)


def _number(least: float, most: float, **more: Any) -> dict[str, Any]:
    return {"type": "number", "minimum": least, "maximum": most, **more}


class PreferenceInput(Input):
    """A condition that adds to the score of a candidate."""

    weight: Annotated[Number, _number(-1000, 1000), "What the score gains if the condition holds."]
    of: Annotated[
        str,
        {"type": "string", "pattern": GROUP_NAME_PATTERN},
        "`host` for the root, or a group for all of its providers.",
    ] = "host"
    required: Annotated[Items, TRAIT_ITEMS] = ()
    member_of: Annotated[Items, AGGREGATE_ITEMS] = ()


class OrderInput(Input):
    """Which of several candidates comes first (2.7)."""

    by: Annotated[
        Literal["any", "random", "pack", "spread", "preserve"],
        "`pack`: the fullest hosts first; `spread`: the emptiest; `preserve`: those that lose least"
        " for other flavors.",
    ] = "any"
    weight: Annotated[Number, _number(0, 1000)] = 1
    classes: Annotated[
        Mapping[str, Number],
        counted_map(CLASS_NAME_PATTERN, _number(0, 1000), "max_items"),
        "Weights of classes for `pack` and `spread`; 1 for all others.",
    ] = {}
    preserve: Annotated[
        Mapping[str, Number] | None,
        counted_map(PATH_NAME_PATTERN, _number(0, 1000), "max_preserved", at_least_one=True),
        "Flavors to leave room for, with weights; only and always with `preserve`.",
    ] = None
    prefer: Annotated[
        Sequence[PreferenceInput],
        counted("max_preferences"),
    ] = ()
    seed: Annotated[int, integer(0, 2**64 - 1)] = 0
    among: Annotated[
        int | None,
        integer(1, MAX_INT),
        "Score only this many of the hosts that fit; with `preserve`, 512 by default.",
    ] = None


class AddedHostsInput(Input):
    """Copies of the tree of a provider."""

    like: Annotated[str, _REFERENCE]
    count: Annotated[int, up_to("max_added_hosts")]


class RatioInput(Input):
    """Another allocation ratio."""

    resource_class: Annotated[str, CLASS_NAME]
    ratio: Annotated[Number, _number(0, ALLOCATION_RATIO_MAX)]
    member_of: Annotated[Items, AGGREGATE_ITEMS] = ()


class WhatIfInput(Input):
    """What a question assumes (4.4)."""

    nothing_used: bool = False
    without_consumers: Annotated[Sequence[ConsumerUUID], counted("max_references")] = ()
    allocation_ratio: Annotated[Sequence[RatioInput], counted("max_items")] = ()
    undrain: Annotated[
        Names,
        {**list_of(_name(NAME_LENGTH_MAX)), **counted("max_items")},
        "These drains are not in effect.",
    ] = ()
    drain: Annotated[Names, references("These providers are drained, with all below them.")] = ()
    without_hosts: Annotated[Names, references("The trees of these providers are gone.")] = ()
    add_hosts: Annotated[
        Sequence[AddedHostsInput],
        counted("max_items"),
        "Copies of the trees of some providers, with nothing used.",
    ] = ()
