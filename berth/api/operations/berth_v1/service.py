# SPDX-License-Identifier: Apache-2.0
"""The documents about berth's own API: its version with its bounds, and the OpenAPI document."""

from __future__ import annotations

from typing import Final

from berth.api.operation import Dated, Operation, component, shows
from berth.api.operations import service
from berth.api.operations.berth_v1.rules import PERMISSIONS
from berth.api.operations.fragments import BOOLEAN, TEXT, described, list_of, open_object
from berth.model.bounds import BOUNDS

TAG = "Service"

#: The minor number counts additions.
VERSION: Final = "1.0"

_BOUND = {"type": "integer", "minimum": 1, "description": "A bound of requests."}
_FEATURES = described(list_of(TEXT), "The parts of the API that only gain members.")
_EXPERIMENTAL = described(list_of(TEXT), "The parts that may still change.")

_VERSION = component(
    "Version",
    open_object(
        {
            "version": described(TEXT, "The version; its minor counts additions."),
            "auth_strategy": {
                "type": "string",
                "enum": ["keystone", "noauth2", "http_basic", "token"],
                "description": "How clients authenticate.",
            },
            "stable": _FEATURES,
            "experimental": _EXPERIMENTAL,
            **dict.fromkeys(BOUNDS, _BOUND),
            "max_watchers": described(
                _BOUND, "Requests that wait for changes at a time, in each worker."
            ),
        },
        optional={
            "max_search_seconds": {
                "type": "number",
                "description": "Seconds of a search; absent if it has no time limit.",
            },
        },
    ),
    example={
        "version": VERSION,
        "auth_strategy": "token",
        "stable": ["aggregates"],
        "experimental": [],
        **BOUNDS,
        "max_watchers": 32,
        "max_search_seconds": 5.0,
    },
)

_PERMISSIONS = component(
    "Permissions",
    open_object(
        {
            "permissions": {
                "type": "object",
                "description": "Each policy rule of the service, by its name. A rule about a "
                "project is decided for the caller's own project.",
                "additionalProperties": open_object(
                    {"allowed": described(BOOLEAN, "Whether the rule allows the caller.")},
                    optional={
                        "reason": described(TEXT, "What the caller lacks, if it is not allowed."),
                        "project_id": described(
                            TEXT, "The caller's own project, if the rule allows no other."
                        ),
                    },
                ),
            }
        }
    ),
    example={
        "permissions": {
            "berth:consumers:list": {"allowed": True, "project_id": "web"},
            "berth:drains:list": {"allowed": True},
            "berth:drains:update": {
                "allowed": False,
                "reason": "It needs the role admin or the role service; you have the role auditor.",
            },
        }
    },
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
    Operation(
        "GET",
        "/permissions",
        handler="berth_v1.permissions:show_permissions",
        rule=PERMISSIONS,
        tag=TAG,
        summary="Show what the caller may do",
        answers=shows(_PERMISSIONS, Dated.NO),
    ),
)
