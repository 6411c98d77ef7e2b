# SPDX-License-Identifier: Apache-2.0
"""Flavors: requests with a name. Source: spec/beyond.md 4.5."""

from __future__ import annotations

from functools import partial
from typing import Final

from berth.api.berth_v1.grammar import FLAVOR_REQUEST
from berth.api.berth_v1.pointed import PointedSchema
from berth.api.operation import (
    DONE,
    Answer,
    Body,
    Dated,
    Operation,
    Segment,
    always,
    component,
    ref,
    shows,
)
from berth.api.operations.berth_v1.pieces import FREE_TEXT_PATTERN, REVISION, REVISION_EXAMPLE
from berth.api.operations.berth_v1.rules import FLAVORS_LIST, FLAVORS_UPDATE
from berth.api.operations.fragments import closed_object, described, list_of, open_object
from berth.api.schema import JSONSchema
from berth.model.names import PATH_NAME_PATTERN

TAG: Final = "Flavors"

_DESCRIPTION_LENGTH_MAX: Final = 255

_NAME: JSONSchema = {"type": "string", "pattern": PATH_NAME_PATTERN}
_EXPOSE: JSONSchema = {
    "type": "boolean",
    "default": True,
    "description": "Whether metrics may show how many more fit.",
}
_DESCRIPTION: JSONSchema = {
    "type": "string",
    "maxLength": _DESCRIPTION_LENGTH_MAX,
    "default": "",
    "description": "A description; shown in lists.",
}
#: What `PUT` takes.
PUT: Final = PointedSchema(
    closed_object(
        {
            "request": FLAVOR_REQUEST,
            "expose": _EXPOSE,
            "description": {**_DESCRIPTION, "pattern": FREE_TEXT_PATTERN},
        },
        required=("request",),
    )
)

_SENT: Final = {
    "request": {
        "groups": {"": {"resources": {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 80}}},
        "host": {"required": ["HW_CPU_X86_AVX2"]},
    },
    "expose": True,
    "description": "General purpose",
}
_EXAMPLE: Final = {"name": "m1.large", **_SENT}
_MEMBERS: Final[dict[str, JSONSchema]] = {
    "name": _NAME,
    "request": {
        "type": "object",
        "description": "The request as it was sent; empty if the database is damaged.",
    },
    "expose": _EXPOSE,
    "description": _DESCRIPTION,
}
_LISTED: Final = component("ListedFlavor", open_object(_MEMBERS), example=_EXAMPLE)
_FLAVOR: Final = component(
    "Flavor",
    open_object({"revision": REVISION, **_MEMBERS}),
    example={"revision": REVISION_EXAMPLE, **_EXAMPLE},
)
_FLAVORS: Final = component(
    "Flavors",
    open_object(
        {
            "revision": REVISION,
            "flavors": described(list_of(ref("ListedFlavor")), "By name."),
        }
    ),
    example={"revision": REVISION_EXAMPLE, "flavors": [_EXAMPLE]},
    parts=(_LISTED,),
)

_on_flavor = partial(
    Operation,
    path="/flavors/{name}",
    segments={"name": Segment("The name of the flavor.", _NAME, "m1.large")},
    tag=TAG,
)

OPERATIONS = (
    Operation(
        "GET",
        "/flavors",
        handler="berth_v1.flavors:list_flavors",
        rule=FLAVORS_LIST,
        tag=TAG,
        summary="List flavors",
        answers=(
            Answer(200, _FLAVORS, means="All flavors.", tagged=True),
            Answer(304, means="Nothing has changed since.", tagged=True),
        ),
    ),
    _on_flavor(
        "GET",
        handler="berth_v1.flavors:show_flavor",
        rule=FLAVORS_LIST,
        summary="Show a flavor",
        answers=shows(_FLAVOR, Dated.NO),
    ),
    _on_flavor(
        "PUT",
        handler="berth_v1.flavors:put_flavor",
        rule=FLAVORS_UPDATE,
        summary="Create or replace a flavor",
        details="The resource classes and traits must exist. Providers and aggregates need not:"
        " each question looks them up.",
        body=Body(always(PUT), always(_SENT)),
        answers=(
            Answer(201, _FLAVOR, located=True, means="Created."),
            Answer(200, _FLAVOR, means="Replaced; or it was the same already."),
        ),
        precondition="`If-None-Match: *` is sent and the flavor exists.",
    ),
    _on_flavor(
        "DELETE",
        handler="berth_v1.flavors:delete_flavor",
        rule=FLAVORS_UPDATE,
        summary="Delete a flavor",
        answers=DONE,
    ),
)
