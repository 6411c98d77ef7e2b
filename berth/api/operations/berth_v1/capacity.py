# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/capacity`. Source: spec/beyond.md 4.2."""

from __future__ import annotations

from typing import Any, Final

from berth.api.berth_v1.grammar import REQUEST, WHAT_IF, up_to
from berth.api.berth_v1.pointed import PointedSchema
from berth.api.operation import Body, Dated, Operation, always, component, shows
from berth.api.operations import examples
from berth.api.operations.berth_v1 import rules
from berth.api.operations.berth_v1.candidates import TAG
from berth.api.operations.berth_v1.explanation import COMPLETE, UNKNOWN
from berth.api.operations.berth_v1.pieces import REVISION, REVISION_EXAMPLE
from berth.api.operations.berth_v1.warnings import WARNING
from berth.api.operations.fragments import (
    BOOLEAN,
    CLASS_NAME_PATTERN,
    COUNT,
    PROVIDER_NAME,
    TEXT,
    UUID,
    closed_object,
    described,
    list_of,
    object_by,
    open_object,
)
from berth.api.schema import JSONSchema
from berth.model.bounds import CAPACITY_KEYS_MAX, CAPACITY_REQUESTS_MAX
from berth.model.names import NAME_LENGTH_MAX, PATH_NAME_PATTERN

#: Values of `by` that are no label.
BY_AGGREGATE: Final = "aggregate"
BY_HOST: Final = "host"

BODY_SCHEMA: Final = PointedSchema(
    closed_object(
        {
            "flavors": {
                "type": "array",
                "items": {"type": "string", "pattern": PATH_NAME_PATTERN},
                "uniqueItems": True,
                "maxItems": CAPACITY_REQUESTS_MAX,
                "x-bound": "max_capacity_requests",
                "description": "Names of stored flavors; without `flavors` and `requests`, all of"
                " them.",
            },
            "requests": {
                **object_by(PATH_NAME_PATTERN, REQUEST),
                "maxProperties": CAPACITY_REQUESTS_MAX,
                "x-bound": "max_capacity_requests",
                "description": "Further requests by names of the caller's choice.",
            },
            "by": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": NAME_LENGTH_MAX},
                "uniqueItems": True,
                "maxItems": CAPACITY_KEYS_MAX,
                "x-bound": "max_capacity_keys",
                "description": "Keys of labels, to count the hosts of each value together;"
                " `aggregate` for each aggregate, `host` for each host.",
            },
            "hosts_max": described(
                up_to("max_capacity_best", least=0, default=0),
                "How many of the hosts with the highest counts to name.",
            ),
            "what_if": WHAT_IF,
        }
    )
)

_TOTAL: Final[dict[str, JSONSchema]] = {
    "count": described(COUNT, "How many more can be placed."),
    "at_most": described(COUNT, "An upper bound: certainly no more can be placed."),
}
_HOSTS: Final[dict[str, JSONSchema]] = {
    "hosts": described(COUNT, "How many hosts fit at least one.")
}
_EXACT: Final[dict[str, JSONSchema]] = {
    "exact": described(BOOLEAN, "Whether `count` and `at_most` are equal.")
}
_LEFT: Final[dict[str, JSONSchema]] = {
    "free": described(
        COUNT,
        "What is free on the hosts that satisfy everything but amounts, and of the"
        " sharing providers that serve them.",
    ),
    "usable": described(COUNT, "How much of it these placements would use."),
    "stranded": {"type": "integer", "description": "The rest of it."},
    "largest": described(
        COUNT, "With this amount the request, otherwise unchanged, would fit some host."
    ),
}


def _figures(members: dict[str, JSONSchema], now: dict[str, JSONSchema] | None = None) -> Any:
    """Figures, with those without the scenario beside them."""
    without = described(open_object(now or members), "The same without `what_if`; only with it.")
    return open_object(members, optional={"now": without})


_HOST: Final = open_object({"uuid": UUID, "name": PROVIDER_NAME})
_OF_HOST: Final = open_object(
    {"host": described(_HOST, "The root of the host's tree."), **_TOTAL},
    optional={
        "now": {
            "anyOf": [open_object(_TOTAL), {"type": "null"}],
            "description": "The same without `what_if`; null for a host that it adds.",
        }
    },
)
_CAPACITY: Final = open_object(
    {},
    optional={
        **_TOTAL,
        **_EXACT,
        **_HOSTS,
        "now": described(
            open_object({**_TOTAL, **_EXACT, **_HOSTS}), "The same without `what_if`; only with it."
        ),
        "alternative": described(
            COUNT, "Which of the alternatives was counted: the first that fits some host."
        ),
        "classes": described(
            object_by(CLASS_NAME_PATTERN, _figures(_LEFT)),
            "What is left of each class of the request.",
        ),
        "by": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": open_object(
                    _TOTAL,
                    optional={
                        **_HOSTS,
                        "name": {
                            "type": ["string", "null"],
                            "description": "The name of the host; only in `host`.",
                        },
                        "now": {
                            "anyOf": [
                                open_object(_TOTAL, optional=_HOSTS),
                                {"type": "null"},
                            ],
                            "description": "The same without `what_if`; null for a host that it"
                            " adds.",
                        },
                    },
                ),
            },
            "description": "The hosts of each value of each key of the question; hosts by UUID.",
        },
        "best": described(
            list_of(_OF_HOST), "The hosts with the highest counts, the highest first."
        ),
        "unknown": described(
            list_of(UNKNOWN),
            "Names in a stored flavor that no longer exist; it is not counted then.",
        ),
        "invalid": described(TEXT, "Why a stored flavor cannot be read; it is not counted then."),
    },
)
_EXAMPLE: Final = {
    "revision": REVISION_EXAMPLE,
    "complete": True,
    "flavors": {
        "m1.large": {
            "count": 10234,
            "at_most": 10234,
            "exact": True,
            "hosts": 412,
            "classes": {
                "VCPU": {"free": 61200, "usable": 40936, "stranded": 20264, "largest": 46},
                "MEMORY_MB": {
                    "free": 99614720,
                    "usable": 83836928,
                    "stranded": 15777792,
                    "largest": 402432,
                },
            },
            "by": {
                "zone": {
                    "z1": {"count": 5100, "at_most": 5100, "hosts": 200},
                    "z2": {"count": 5134, "at_most": 5134, "hosts": 212},
                }
            },
            "best": [
                {
                    "host": {"uuid": examples.PROVIDER, "name": "cn17"},
                    "count": 31,
                    "at_most": 31,
                }
            ],
        }
    },
    "warnings": [],
}
_CAPACITIES: Final = component(
    "Capacities",
    open_object(
        {
            "revision": REVISION,
            "complete": COMPLETE,
            "flavors": described(
                object_by(PATH_NAME_PATTERN, _CAPACITY),
                "The flavors and the requests of the question, by name.",
            ),
            "warnings": list_of({"$ref": "#/components/schemas/Warning"}),
        }
    ),
    example=_EXAMPLE,
    parts=(WARNING,),
)

_QUESTION: Final = {
    "flavors": ["m1.large"],
    "requests": {"big": {"groups": {"": {"resources": {"VCPU": 64}}}}},
    "by": ["zone"],
    "hosts_max": 1,
}

OPERATIONS: Final = (
    Operation(
        "POST",
        "/capacity",
        handler="berth_v1.capacity:count_capacity",
        rule=rules.CAPACITY,
        tag=TAG,
        summary="Count how many more fit",
        details="It changes nothing. For each flavor and request, it counts how many can be placed"
        " one after another: on all hosts, by the labels of their aggregates, and on single hosts;"
        " and how much of what is free is of no use to it.",
        body=Body(always(BODY_SCHEMA), always(_QUESTION)),
        answers=shows(_CAPACITIES, Dated.NO, means="The capacities."),
        is_search=True,
    ),
)
