# SPDX-License-Identifier: Apache-2.0
"""`GET /berth/v1/changes`. Source: spec/beyond.md 6.2."""

from __future__ import annotations

from typing import Any, Final

from berth.api.media_types import EVENT_STREAM, JSON_LINES
from berth.api.operation import Answer, Operation, Parameter, Query, component, ref
from berth.api.operations import examples
from berth.api.operations.berth_v1.fleet import TAG
from berth.api.operations.berth_v1.pieces import REVISION, REVISION_EXAMPLE
from berth.api.operations.berth_v1.provider_lines import PROVIDER_LINE
from berth.api.operations.berth_v1.rules import FLEET
from berth.api.operations.fragments import COUNT, GENERATION, SUMS, UUID, described, open_object
from berth.api.schema import JSONSchema

_WAIT_MAX: Final = 60

QUERY: Final = Query(
    Parameter(
        name="after",
        means={
            0: "The revision up to which the client knows the fleet. Required, unless the header "
            "`Last-Event-ID` has it, as a reconnecting reader of server-sent events sends it."
        },
        example=REVISION_EXAMPLE,
        schema={"type": "string", "minLength": 1},
    ),
    Parameter(
        name="wait",
        means={
            0: "Seconds for which to wait if nothing has changed, 0 to 60; 0 by default. It has no "
            "effect on server-sent events."
        },
        example="30",
        schema={"type": "string", "pattern": rf"^([0-9]|[1-5][0-9]|{_WAIT_MAX})\Z"},
        expected=f"a whole number of seconds, 0 to {_WAIT_MAX}",
    ),
)

_COMMITS: JSONSchema = {
    "type": "integer",
    "minimum": 1,
    "description": "How many commits touched it since the last answer.",
}


def _event(change: str, **members: JSONSchema) -> JSONSchema:
    return open_object(
        {
            "change": {"type": "string", "enum": [change], "description": "What has changed."},
            **members,
            "commits": _COMMITS,
        }
    )


_EXAMPLE: Final[dict[str, Any]] = {
    "change": "usage",
    "uuid": examples.PROVIDER,
    "commits": 3,
    "generation": 21,
    "usages": {"VCPU": 18},
}
_CLOSING: JSONSchema = open_object(
    {
        "revision": described(REVISION, "The next `after`."),
        "events": described(COUNT, "How many events came before this line."),
    }
)
_LINE: Final = component(
    "Change",
    {
        "anyOf": [
            _event("usage", uuid=UUID, generation=GENERATION, usages=SUMS),
            {"allOf": [_event("provider", uuid=UUID), ref("ProviderLine")]},
            _event("gone", uuid=UUID),
            _event("names"),
            _CLOSING,
        ]
    },
    example=_EXAMPLE,
    parts=(PROVIDER_LINE,),
)

OPERATIONS = (
    Operation(
        "GET",
        "/changes",
        handler="berth_v1.changes:list_changes",
        rule=FLEET,
        tag=TAG,
        summary="List what has changed since a revision",
        details="States, not steps: each provider at most once, as it is now, with the number of "
        "commits that touched it since `after`. `usage`: only usage and generation changed; "
        "`provider`: anything did; `gone`: it was deleted; `names`: traits, resource classes, "
        "labels, flavors or drains were changed. The last line has the revision to continue from; "
        "every worker and every node of a cluster can answer the next request. A revision that the "
        "journal has forgotten gets 410: read the fleet again. With `Accept: text/event-stream`, "
        "the changes come as server-sent events for ten minutes.",
        query=QUERY,
        answers=(
            Answer(
                200,
                _LINE,
                means="The changes.",
                media_type=JSON_LINES,
                other_media_type=EVENT_STREAM,
            ),
        ),
        gone="The journal has forgotten what changed after the revision, or the database has gone "
        "back behind it: read the fleet again.",
        is_watch=True,
    ),
)
