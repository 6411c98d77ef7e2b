# SPDX-License-Identifier: Apache-2.0
"""The schemas of explanations. Source: spec/beyond.md 3.6."""

from __future__ import annotations

from typing import Final, get_args

from berth.api.operation import component, ref
from berth.api.operations.berth_v1.consumers import CONSUMER
from berth.api.operations.berth_v1.warnings import WARNING
from berth.api.operations.fragments import (
    BOOLEAN,
    COUNT,
    PROVIDER_NAME,
    TEXT,
    UUID,
    described,
    list_of,
    open_object,
)
from berth.api.schema import JSONSchema
from berth.model.inventory import Reason

#: Nearest hosts, and seconds, unless the body says otherwise.
NEAREST: Final = 5
SECONDS: Final = 1.0

_AT_LEAST: JSONSchema = described(
    BOOLEAN, "True if the time cut the figures short: they are lower bounds."
)
_POINTER: JSONSchema = described(TEXT, "The JSON pointer into `request`.")
_WORDS: JSONSchema = described(TEXT, "The constraint in words.")
_PROVIDER: JSONSchema = open_object({"uuid": UUID, "name": PROVIDER_NAME})


_HOSTS: Final = open_object(
    {
        "total": described(COUNT, "All hosts: root providers with their trees."),
        "pools": described(COUNT, "Of these, trees whose providers with inventory all share it."),
        "fit": described(COUNT, "Hosts that fit."),
        "fit_if_undrained": described(COUNT, "Hosts that would fit without drains."),
        "fit_if_empty": described(
            COUNT, "Hosts that would fit with nothing drained and nothing used."
        ),
    },
    optional={"at_least": _AT_LEAST},
)
_STAGE: Final = open_object(
    {
        "at": _POINTER,
        "text": _WORDS,
        "alone": {
            "type": ["integer", "null"],
            "description": "Hosts that fit this constraint alone; null for relations.",
        },
        "left": described(COUNT, "Hosts that fit this constraint and all before it."),
    },
    optional={
        "has": described(COUNT, "Hosts with any inventory of the class."),
        "if_empty": described(COUNT, "Hosts that fit the amount alone with nothing used."),
        "at_least": _AT_LEAST,
    },
)
_RELAXATION: Final = open_object(
    {
        "drop": described(list_of(_POINTER), "The constraints to leave out."),
        "hosts": described(COUNT, "Hosts that fit without them."),
    },
    optional={
        "reduce_to": described(COUNT, "The largest smaller amount with which some host fits."),
        "hosts_reduced": described(COUNT, "Hosts that fit with that amount."),
        "at_least": _AT_LEAST,
    },
)
_LACK: Final = open_object(
    {"at": _POINTER, "text": _WORDS},
    optional={
        "asked": described(COUNT, "The amount of the request."),
        "possible": described(
            COUNT, "The largest smaller amount with which the host fits; 0 if none."
        ),
        "reason": {
            **TEXT,
            "enum": [*get_args(Reason)],
            "description": "What keeps `provider` from giving the amount; `conditions` stands for"
            " something else in the request.",
        },
        "unmet": described(
            list_of(_POINTER),
            "With the reason `conditions`: the conditions on the group that `provider` does not"
            " meet, if no provider of the host meets them all.",
        ),
        "provider": described(_PROVIDER, "The provider that could give most."),
        "free": described(COUNT, "What is left of its capacity."),
        "capacity": described(COUNT, "What it can give in total."),
        "max_unit": described(COUNT, "The most that it gives at once."),
    },
)
_NEAR_HOST: Final = open_object(
    {
        "host": described(_PROVIDER, "The root of the host."),
        "lacks": described(
            list_of(_LACK), "The constraints to leave out for it to fit, all of which are needed."
        ),
    },
    optional={
        "named": described(BOOLEAN, "True for a host that the request names; these come first."),
        "consumers": described(
            list_of(ref("Consumer")),
            "Of a named host: the first consumers, by UUID, that hold some of the classes that it"
            " lacks. Only in the answer of `POST /berth/v1/explain`, without a scenario, and for"
            " callers who may list the consumers of all projects.",
        ),
        "more_consumers": described(BOOLEAN, "True if there may be more."),
    },
)
_IMPOSSIBLE: Final = open_object(
    {
        "at": described(
            list_of(_POINTER),
            "The constraints; without any one of them, some host could meet the others.",
        ),
        "kind": described(
            TEXT,
            "`amount`, `no_inventory`, `classes`, `relation` or `conditions`; there may be others"
            " in later versions.",
        ),
        "text": described(TEXT, "What is impossible, in words."),
    },
    optional={
        "most": described(COUNT, "With `amount`: the largest amount that some host could hold."),
        "on_host": described(
            COUNT, "With `amount`, if several providers could give it: what one host has in all."
        ),
        "providers": described(COUNT, "How many providers of that host have some."),
    },
)
#: A name that does not exist.
UNKNOWN: Final = open_object(
    {
        "at": _POINTER,
        "kind": {
            **TEXT,
            "enum": ["resource_class", "trait"],
            "description": "What the name should stand for.",
        },
        "name": described(TEXT, "The name that does not exist."),
        "did_you_mean": described(list_of(TEXT), "Similar names that exist."),
    },
    optional={
        "hosts": {
            "type": "object",
            "additionalProperties": COUNT,
            "description": "In an explanation: how many hosts fit with each similar name instead;"
            " without those that were not searched in time.",
        }
    },
)
MEMBERS: Final[dict[str, JSONSchema]] = {
    "verdict": described(
        TEXT,
        "`unknown_name`, `fits`, `gave_up`, `drained`, `never`, `fragmented` or"
        " `used_up`; there may be others in later versions.",
    ),
    "summary": described(TEXT, "The verdict in words, and what would help most."),
    "hosts": described(_HOSTS, "How many hosts there are, and how many fit."),
    "stages": described(
        list_of(_STAGE), "The constraints of the request, in the order in which they are counted."
    ),
    "binding": described(
        list_of(_POINTER), "The constraints that each alone keep every host from fitting."
    ),
    "unknown": described(
        list_of(UNKNOWN), "Names that do not exist. The figures leave out constraints with them."
    ),
    "warnings": list_of(ref("Warning")),
    "request": {"type": "object", "description": "The request as it was understood."},
}
SOMETIMES: Final[dict[str, JSONSchema]] = {
    "relaxations": described(
        list_of(_RELAXATION),
        "Changes with which some host fits, the most helpful first. Absent if some host fits.",
    ),
    "split_would_fit": described(
        COUNT,
        "Hosts that would fit if every amount could come from several providers. Absent if some"
        " host fits, or if several groups ask for the same class.",
    ),
    "nearest": described(
        list_of(_NEAR_HOST),
        "The hosts that come nearest, with what each lacks. Absent if some host fits.",
    ),
    "impossible": described(
        list_of(_IMPOSSIBLE),
        "With the verdict `never`: constraints that no host meets together, even with nothing"
        " used.",
    ),
    "paint": {
        **TEXT,
        "contentEncoding": "base64",
        "description": "One byte for each host, in ascending order of UUIDs: 255 if it fits, 254"
        " if the time ended before, otherwise the number of the stage that it no longer fits.",
    },
}
COMPLETE: JSONSchema = described(BOOLEAN, "False if the time cut some figure short.")
EXPLANATION: Final = component(
    "Explanation",
    open_object({"complete": COMPLETE, **MEMBERS}, optional=SOMETIMES),
    parts=(WARNING, CONSUMER),
)
ALTERNATIVES: JSONSchema = described(
    list_of(ref("Explanation")),
    "Instead of all other members: the explanation of each alternative of the request.",
)
