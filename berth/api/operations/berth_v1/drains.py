# SPDX-License-Identifier: Apache-2.0
"""Drains: named sets of providers that get nothing new. Source: spec/beyond.md 7.1."""

from __future__ import annotations

from functools import partial
from typing import Final

from berth.api.berth_v1.grammar import HOST, references
from berth.api.berth_v1.pointed import PointedSchema
from berth.api.operation import (
    DONE,
    Answer,
    Body,
    Dated,
    Operation,
    Parameter,
    Query,
    Segment,
    always,
    component,
    ref,
    shows,
)
from berth.api.operations.berth_v1.pieces import (
    DRY_RUN_QUERY,
    FREE_TEXT_PATTERN,
    REVISION,
    REVISION_EXAMPLE,
)
from berth.api.operations.berth_v1.rules import DRAINS_LIST, DRAINS_UPDATE
from berth.api.operations.fragments import (
    BOOLEAN,
    COUNT,
    PROVIDER_NAME,
    UUID,
    closed_object,
    described,
    list_of,
    open_object,
)
from berth.api.schema import JSONSchema
from berth.model.drain import Effect
from berth.model.names import PATH_NAME_PATTERN

TAG: Final = "Drains"

_REASON_LENGTH_MAX: Final = 255

_NAME: JSONSchema = {"type": "string", "pattern": PATH_NAME_PATTERN}
_REASON: JSONSchema = {
    "type": "string",
    "maxLength": _REASON_LENGTH_MAX,
    "description": "Why; shown in lists and in the agent's log.",
}
_EFFECT: JSONSchema = {
    "type": "string",
    "enum": [effect.value for effect in Effect],
    "description": "`exclude`: the providers get nothing new. `none`: the drain is only announced.",
}
#: What `PUT` takes.
PUT: Final = PointedSchema(
    closed_object(
        {
            "providers": references("These providers, and all below them."),
            "select": described(
                HOST,
                "The hosts that meet these conditions now, at least one"
                " condition; the list is kept.",
            ),
            "reason": {**_REASON, "pattern": FREE_TEXT_PATTERN},
            "effect": _EFFECT,
        }
    )
)

_SENT: Final = {
    "providers": ["cn7", "cn8_gpu_1"],
    "select": {"member_of": ["rack=r7"]},
    "reason": "firmware 4.2",
    "effect": "exclude",
}
_SHOWN: Final = {
    "name": "firmware-4.2",
    "reason": "firmware 4.2",
    "effect": "exclude",
    "created_at": "2026-07-01T08:00:00Z",
    "created_by": "admin",
    "hosts": 40,
    "providers": 280,
}

_CN7: Final = {"uuid": "4e8e5957-649f-477b-9e5b-f1f75b21c03c", "name": "cn7"}


_MEMBERS: Final[dict[str, JSONSchema]] = {
    "name": _NAME,
    "reason": _REASON,
    "effect": _EFFECT,
    "created_at": {
        "type": ["string", "null"],
        "description": "RFC 3339, in UTC; null in a dry run that would create it.",
    },
    "created_by": {"type": ["string", "null"], "description": "The user id of the creator."},
    "hosts": described(COUNT, "How many hosts have one of the providers."),
    "providers": described(
        COUNT, "How many providers there are, those below the named ones included."
    ),
}
_CONSUMERS: Final = described(COUNT, "How many consumers have something on the providers.")
_PROVIDER: Final = open_object({"uuid": UUID, "name": PROVIDER_NAME})
_LISTED: Final = component(
    "ListedDrain",
    open_object(
        _MEMBERS,
        optional={
            "named": described(
                list_of(_PROVIDER), "With `host`: the providers of that host that the drain names."
            )
        },
    ),
    example=_SHOWN,
)
HOST_QUERY: Final = Query(
    Parameter(
        name="host",
        means={
            0: "Only drains that name a provider of this host; any of its providers, by UUID or"
            " by name."
        },
        example="cn7",
        schema={"type": "string", "minLength": 1},
    )
)
_DRAINS: Final = component(
    "Drains",
    open_object(
        {
            "revision": REVISION,
            "drains": described(list_of(ref("ListedDrain")), "By name."),
        }
    ),
    example={"revision": REVISION_EXAMPLE, "drains": [_SHOWN]},
    parts=(_LISTED,),
)
_DRAIN: Final = component(
    "Drain",
    open_object(
        {
            "revision": REVISION,
            **_MEMBERS,
            "named": described(
                list_of(_PROVIDER),
                "The providers that the drain itself names, by name; those below"
                " them are drained too.",
            ),
            "consumers": _CONSUMERS,
            "left": described(
                list_of(
                    open_object(
                        {
                            "host": _PROVIDER,
                            "consumers": _CONSUMERS,
                        }
                    )
                ),
                "Every host, with the consumers that are left on it; those with most first.",
            ),
        }
    ),
    example={
        "revision": REVISION_EXAMPLE,
        **_SHOWN,
        "hosts": 1,
        "providers": 7,
        "named": [_CN7],
        "consumers": 24,
        "left": [{"host": _CN7, "consumers": 24}],
    },
)
_WRITTEN: Final = component(
    "WrittenDrain",
    open_object(
        {
            "revision": REVISION,
            **_MEMBERS,
            "consumers": _CONSUMERS,
            "capacity": {
                "type": "object",
                "additionalProperties": open_object(
                    {
                        "now": described(COUNT, "How often the flavor fits before this call."),
                        "then": described(COUNT, "How often it fits with the drain in effect."),
                    }
                ),
                "description": "By exposed flavor.",
            },
            "complete": described(
                BOOLEAN, "False if the time did not suffice: then `capacity` has lower bounds."
            ),
        }
    ),
    example={
        "revision": REVISION_EXAMPLE,
        **_SHOWN,
        "consumers": 812,
        "capacity": {"m1.large": {"now": 10234, "then": 9800}},
        "complete": True,
    },
)

_on_drain = partial(
    Operation,
    path="/drains/{name}",
    segments={"name": Segment("The name of the drain.", _NAME, "firmware-4.2")},
    tag=TAG,
)

OPERATIONS = (
    Operation(
        "GET",
        "/drains",
        handler="berth_v1.drains:list_drains",
        rule=DRAINS_LIST,
        tag=TAG,
        summary="List drains",
        query=HOST_QUERY,
        answers=(
            Answer(200, _DRAINS, means="All drains.", tagged=True),
            Answer(304, means="Nothing has changed since.", tagged=True),
        ),
    ),
    _on_drain(
        "GET",
        handler="berth_v1.drains:show_drain",
        rule=DRAINS_LIST,
        summary="Show a drain: what it names, and what is left on its hosts",
        answers=shows(_DRAIN, Dated.NO),
    ),
    _on_drain(
        "PUT",
        handler="berth_v1.drains:put_drain",
        rule=DRAINS_UPDATE,
        summary="Create or change a drain",
        details="Its providers, and all below them, get nothing new: no question and no search for"
        " candidates finds them. A claim that names one of them is still accepted, and nobody is"
        " evicted. A new drain must have `providers` or `select`, or both, and has the effect"
        " `exclude` unless it says otherwise. What is left out for a drain that exists stays as"
        " it is: its providers, its reason, its effect.",
        query=DRY_RUN_QUERY,
        body=Body(always(PUT), always(_SENT)),
        answers=(
            Answer(201, _WRITTEN, located=True, means="Created."),
            Answer(200, _WRITTEN, means="Changed; or a dry run."),
        ),
        precondition="`If-None-Match: *` is sent and the drain exists.",
    ),
    _on_drain(
        "DELETE",
        handler="berth_v1.drains:delete_drain",
        rule=DRAINS_UPDATE,
        summary="Delete a drain",
        answers=DONE,
    ),
)
