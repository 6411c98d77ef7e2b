# SPDX-License-Identifier: Apache-2.0
"""Pieces that several schemas of `/berth/v1` share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from berth.api.operation import DRY_RUN, Parameter, Query
from berth.api.operations.fragments import open_object
from berth.api.schema import JSONSchema
from berth.model.bounds import LEASE_SECONDS_MAX
from berth.model.names import NAME_LENGTH_MAX
from berth.model.printable import CONTROLS

REVISION_EXAMPLE: Final = "b1.w7rRkK2tq1MBjgI"
REVISION: JSONSchema = {
    "type": "string",
    "pattern": r"^b1\.[A-Za-z0-9_-]+\Z",
    "description": "The state of the database that the answer was made from.",
}


def include_parameter(parts: Sequence[str], example: str, default: str) -> Parameter:
    """`include`: what to show of each provider.

    Args:
        default: what is shown without it, in a sentence or two.
    """
    part = f"({'|'.join(parts)})"
    named = ", ".join(f"`{each}`" for each in parts)
    return Parameter(
        name="include",
        means={0: f"What to show of each provider, separated by commas: any of {named}. {default}"},
        example=example,
        schema={"type": "string", "pattern": rf"^({part}(,{part})*)?\Z"},
        expected=f"any of {', '.join(parts)}, separated by commas",
    )


DRY_RUN_QUERY: Final = Query(
    Parameter(
        name=DRY_RUN,
        means={0: "`true`: answer the same, and write nothing."},
        example="true",
        schema={"type": "string", "enum": ["true", "false"]},
    )
)

#: Text for people: line breaks and tabs are the only control characters, and no mark of direction
#: reorders the text around it.
FREE_TEXT_PATTERN: Final = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]*\Z"

#: Without slashes and control characters: paths have it as a segment.
CONSUMER_NAME_PATTERN: Final = rf"^[^/{CONTROLS}]+\Z"

#: A name within a project.
CONSUMER_NAME: JSONSchema = {
    "type": "string",
    "minLength": 1,
    "maxLength": NAME_LENGTH_MAX,
    "pattern": CONSUMER_NAME_PATTERN,
    "description": "A name within the project, without a slash.",
}

LEASE_SECONDS: JSONSchema = {
    "type": "integer",
    "minimum": 1,
    "maximum": LEASE_SECONDS_MAX,
    "x-bound": "max_lease_seconds",
}
EXPIRES_AT_EXAMPLE: Final = "2026-11-24T14:32:00Z"
EXPIRES_AT: JSONSchema = {
    "type": "string",
    "format": "date-time",
    "description": "When berth releases the consumer, at the next sweep.",
}
#: The lease of a consumer, in answers about it.
LEASE: JSONSchema = {
    **open_object({"expires_at": EXPIRES_AT}),
    "type": ["object", "null"],
    "description": "When berth releases it; null without a lease.",
}
