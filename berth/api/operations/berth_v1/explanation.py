# SPDX-License-Identifier: Apache-2.0
"""The schemas of explanations. Source: spec/beyond.md 3.6."""

from __future__ import annotations

from typing import Any, Final

from berth.api.operation import component, ref
from berth.api.operations.berth_v1.warnings import WARNING
from berth.api.operations.fragments import PROVIDER_NAME, TEXT, UUID, list_of, open_object
from berth.api.schema import JSONSchema

#: Nearest hosts, and seconds, unless the body says otherwise.
NEAREST: Final = 5
SECONDS: Final = 1.0

_COUNT: JSONSchema = {"type": "integer", "minimum": 0}
_AT_LEAST: JSONSchema = {
    "type": "boolean",
    "description": "True if the time cut the figures short: they are lower bounds.",
}
_POINTER: JSONSchema = {**TEXT, "description": "The JSON pointer into `request`."}
_WORDS: JSONSchema = {**TEXT, "description": "The constraint in words."}
_PROVIDER: JSONSchema = open_object({"uuid": UUID, "name": PROVIDER_NAME})


def _counted(means: str) -> dict[str, Any]:
    return {**_COUNT, "description": means}


_HOSTS: Final = open_object(
    {
        "total": _counted("All hosts: root providers with their trees."),
        "pools": _counted("Of these, trees whose providers with inventory all share it."),
        "fit": _counted("Hosts that fit."),
        "fit_if_undrained": _counted("Hosts that would fit without drains."),
        "fit_if_empty": _counted("Hosts that would fit with nothing drained and nothing used."),
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
        "left": _counted("Hosts that fit this constraint and all before it."),
    },
    optional={
        "has": _counted("Hosts with any inventory of the class."),
        "if_empty": _counted("Hosts that fit the amount alone with nothing used."),
        "at_least": _AT_LEAST,
    },
)
_RELAXATION: Final = open_object(
    {
        "drop": {**list_of(_POINTER), "description": "The constraints to leave out."},
        "hosts": _counted("Hosts that fit without them."),
    },
    optional={
        "reduce_to": _counted("The largest smaller amount with which some host fits."),
        "hosts_reduced": _counted("Hosts that fit with that amount."),
        "at_least": _AT_LEAST,
    },
)
_LACK: Final = open_object(
    {"at": _POINTER, "text": _WORDS},
    optional={
        "asked": _counted("The amount of the request."),
        "possible": _counted("The largest smaller amount with which the host fits; 0 if none."),
        "reason": {
            **TEXT,
            "enum": ["used", "capacity", "max_unit", "min_unit", "step_size", "no_inventory"],
            "description": "What keeps `provider` from giving the amount.",
        },
        "provider": {**_PROVIDER, "description": "The provider that could give most."},
        "free": _counted("What is left of its capacity."),
        "capacity": _counted("What it can give in total."),
        "max_unit": _counted("The most that it gives at once."),
    },
)
_NEAR_HOST: Final = open_object(
    {
        "host": {**_PROVIDER, "description": "The root of the host."},
        "lacks": {
            **list_of(_LACK),
            "description": "The constraints to leave out for it to fit, all of which are needed.",
        },
    }
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
        "name": {**TEXT, "description": "The name that does not exist."},
        "did_you_mean": {**list_of(TEXT), "description": "Similar names that exist."},
    }
)
MEMBERS: Final[dict[str, JSONSchema]] = {
    "verdict": {
        **TEXT,
        "description": "`unknown_name`, `fits`, `gave_up`, `drained`, `never`, `fragmented` or"
        " `used_up`; there may be others in later versions.",
    },
    "summary": {**TEXT, "description": "The verdict in words, and what would help most."},
    "hosts": {**_HOSTS, "description": "How many hosts there are, and how many fit."},
    "stages": {
        **list_of(_STAGE),
        "description": "The constraints of the request, in the order in which they are counted.",
    },
    "binding": {
        **list_of(_POINTER),
        "description": "The constraints that each alone keep every host from fitting.",
    },
    "unknown": {
        **list_of(UNKNOWN),
        "description": "Names that do not exist. The figures leave out constraints with them.",
    },
    "warnings": list_of(ref("Warning")),
    "request": {"type": "object", "description": "The request as it was understood."},
}
SOMETIMES: Final[dict[str, JSONSchema]] = {
    "relaxations": {
        **list_of(_RELAXATION),
        "description": "Changes with which some host fits, the most helpful first. Absent if some"
        " host fits.",
    },
    "split_would_fit": _counted(
        "Hosts that would fit if every amount could come from several providers. Absent if some"
        " host fits, or if several groups ask for the same class."
    ),
    "nearest": {
        **list_of(_NEAR_HOST),
        "description": "The hosts that come nearest, with what each lacks. Absent if some host"
        " fits.",
    },
    "paint": {
        **TEXT,
        "contentEncoding": "base64",
        "description": "One byte for each host, in ascending order of UUIDs: 255 if it fits, 254"
        " if the time ended before, otherwise the number of the stage that it no longer fits.",
    },
}
COMPLETE: JSONSchema = {
    "type": "boolean",
    "description": "False if the time cut some figure short.",
}
EXPLANATION: Final = component(
    "Explanation",
    (0, open_object({"complete": COMPLETE, **MEMBERS}, optional=SOMETIMES)),
    parts=(WARNING,),
)
ALTERNATIVES: JSONSchema = {
    **list_of(ref("Explanation")),
    "description": "Instead of all other members: the explanation of each alternative of the"
    " request.",
}
