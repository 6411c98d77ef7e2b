# SPDX-License-Identifier: Apache-2.0
"""The documents about berth's own API: its version with its bounds, and what the caller may do."""

from __future__ import annotations

from typing import Annotated, Any

from berth.api.berth_v1.routes import VERSION
from berth.api.contract import Contract, Dated, component, shows
from berth.api.errors import Refused
from berth.api.microversion import MINOR_MAX
from berth.api.namespaces import NAMESPACES
from berth.api.operation import Namespace
from berth.api.placement.service import DESCRIPTION, document_at
from berth.api.request import Call, Services
from berth.api.shapes import TEXT, described, list_of, open_object
from berth.api.struct_schema import shown
from berth.model.bounds import BOUNDS
from berth.model.shown import UNSET, Shown, Sometimes

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


class Permission(Shown):
    """What a policy rule says of the caller."""

    allowed: Annotated[bool, "Whether the rule allows the caller."]
    reason: Annotated[Sometimes[str], "What the caller lacks, if it is not allowed."] = UNSET
    project_id: Annotated[
        Sometimes[str | None], TEXT, "The caller's own project, if the rule allows no other."
    ] = UNSET


class Permissions(Shown):
    """What the caller may do."""

    component = "Permissions"

    permissions: Annotated[
        dict[str, Permission],
        "Each policy rule of the service, by its name. A rule about a project is decided for the "
        "caller's own project.",
    ]


_PERMISSIONS = shown(
    Permissions,
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


@Contract(summary="Show the version and the bounds", answers=shows(_VERSION, Dated.NO))
def show_version(call: Call) -> dict[str, Any]:
    """Show the version document."""
    namespace = call.match.route.namespace
    stable, experimental = features(namespace)
    return {
        "version": namespace.version,
        "auth_strategy": call.services.settings.auth_strategy,
        "stable": stable,
        "experimental": experimental,
        **BOUNDS,
        **_bounds_of(call.services),
    }


def _bounds_of(services: Services) -> dict[str, float]:
    """The bounds that the operator has chosen."""
    seconds = services.search.time_budget_s
    return {
        "max_watchers": services.settings.watchers_max,
        **({"max_search_seconds": seconds} if seconds > 0 else {}),
    }


def features(namespace: Namespace) -> tuple[list[str], list[str]]:
    """The stable and the experimental parts of an API: the first segments of its paths.

    One with an experimental operation is experimental; the documents about the API are no part.
    """
    guarded = [operation for operation in namespace.operations if operation.rule]
    named = {operation.path.split("/")[1]: operation for operation in guarded}
    experimental = {
        operation.path.split("/")[1] for operation in guarded if operation.is_experimental
    }
    return [name for name in named if name not in experimental], sorted(experimental)


@Contract(summary="Show this document", answers=shows(DESCRIPTION, Dated.NO))
def show_description(call: Call) -> bytes:
    """Show the document, which is the same at every microversion."""
    return document_at(call, MINOR_MAX)


@Contract(summary="Show what the caller may do", answers=shows(_PERMISSIONS, Dated.NO))
def show_permissions(call: Call) -> Permissions:
    """Show which rules of the policy allow the caller."""
    rules = {
        operation.rule.name
        for namespace in NAMESPACES
        for operation in namespace.operations
        if operation.rule is not None
    }
    return Permissions({rule: _permission(call, rule) for rule in sorted(rules)})


def _permission(call: Call, rule: str) -> Permission:
    caller = call.caller
    try:
        call.services.policy.check(rule, caller)
    except Refused as refused:
        return Permission(allowed=False, reason=refused.hint)
    try:
        call.services.policy.check(rule, caller, target={})
    except Refused:
        return Permission(allowed=True, project_id=caller.project_id)
    return Permission(allowed=True)
