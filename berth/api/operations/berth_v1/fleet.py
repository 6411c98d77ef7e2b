# SPDX-License-Identifier: Apache-2.0
"""`GET /berth/v1/fleet`. Source: spec/beyond.md 6.1."""

from __future__ import annotations

from typing import Any, Final

from berth.api.media_types import JSON_LINES
from berth.api.operation import Answer, Operation, Query, component, ref
from berth.api.operations.berth_v1.consumers import END
from berth.api.operations.berth_v1.pieces import REVISION, REVISION_EXAMPLE, include_parameter
from berth.api.operations.berth_v1.provider_lines import PROVIDER_LINE, PROVIDER_LINE_EXAMPLE
from berth.api.operations.berth_v1.rules import FLEET
from berth.api.operations.berth_v1.warnings import WARNING
from berth.api.operations.fragments import (
    COUNT,
    SUMS,
    UUID_36_PATTERN,
    described,
    object_by,
    open_object,
)

TAG: Final = "Fleet"

#: The part of a line that is not shown unless the client asks for it.
ALLOCATIONS: Final = "allocations"
INCLUDED: Final = ("inventories", "usages", "traits", "aggregates", "drains")
_INCLUDABLE: Final = (*INCLUDED, ALLOCATIONS)

QUERY: Final = Query(
    include_parameter(
        _INCLUDABLE,
        "inventories,usages",
        f"The default is all but `{ALLOCATIONS}`, which adds `consumers`: what each consumer holds "
        "of the provider.",
    )
)

_HEADER: Final = component(
    "FleetHeader",
    open_object(
        {
            "berth": {
                "type": "string",
                "enum": ["fleet"],
                "description": "What the lines are.",
            },
            "revision": REVISION,
            "providers": described(COUNT, "How many lines of providers follow."),
        }
    ),
    example={"berth": "fleet", "revision": REVISION_EXAMPLE, "providers": 100_000},
)
_OF_FLEET: Final[dict[str, Any]] = {
    "allOf": [
        ref("ProviderLine"),
        open_object(
            {},
            optional={
                "consumers": described(
                    object_by(UUID_36_PATTERN, SUMS),
                    "What each consumer holds of it, by the consumer's UUID; with "
                    f"`include={ALLOCATIONS}`.",
                )
            },
        ),
    ]
}
_LINE: Final = component(
    "FleetLine",
    {"anyOf": [ref("FleetHeader"), _OF_FLEET, ref("End")]},
    example=PROVIDER_LINE_EXAMPLE,
    parts=(_HEADER, PROVIDER_LINE, END, WARNING),
)

OPERATIONS = (
    Operation(
        "GET",
        "/fleet",
        handler="berth_v1.fleet:show_fleet",
        rule=FLEET,
        tag=TAG,
        summary="Show every provider",
        details="As of one state: a line with its revision, a line for each provider, trees "
        "together and parents before their children, and a line with `end`, without which the "
        "answer is incomplete. Then `GET /changes` tells what has changed since. A worker makes "
        "two such answers at a time; further requests get 503.",
        query=QUERY,
        answers=(
            Answer(
                200, _LINE, means="The fleet, as JSON lines.", media_type=JSON_LINES, tagged=True
            ),
            Answer(304, means="Nothing has changed since.", tagged=True),
        ),
    ),
)
