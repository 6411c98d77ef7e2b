# SPDX-License-Identifier: Apache-2.0
"""The documents about berth's own API: its version with its bounds, and the OpenAPI document."""

from __future__ import annotations

from typing import Final

from berth.api.operation import Dated, Operation, component, shows
from berth.api.operations import service
from berth.api.operations.fragments import TEXT, list_of, open_object
from berth.model.bounds import BOUNDS

TAG = "Service"

#: The minor number counts additions.
VERSION: Final = "1.0"

_BOUND = {"type": "integer", "minimum": 1, "description": "A bound of requests."}
_FEATURES = {**list_of(TEXT), "description": "The parts of the API that only gain members."}
_EXPERIMENTAL = {**list_of(TEXT), "description": "The parts that may still change."}

_VERSION = component(
    "Version",
    (
        0,
        open_object(
            {
                "version": {**TEXT, "description": "The version; its minor counts additions."},
                "stable": _FEATURES,
                "experimental": _EXPERIMENTAL,
                **dict.fromkeys(BOUNDS, _BOUND),
            }
        ),
    ),
    example={"version": VERSION, "stable": ["aggregates"], "experimental": [], **BOUNDS},
)

OPERATIONS = (
    Operation(
        "GET",
        "",
        handler="berth_v1.version:show_version",
        rule=None,
        tag=TAG,
        summary="Show the version and the bounds",
        answers=shows(_VERSION, Dated.NO),
    ),
    Operation(
        "GET",
        "/openapi.json",
        handler=service.DESCRIPTION.handler,
        rule=None,
        tag=TAG,
        summary="Show this document",
        answers=service.DESCRIPTION.answers,
    ),
)
