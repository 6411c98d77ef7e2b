# SPDX-License-Identifier: Apache-2.0
"""`GET /berth/v1/permissions`: what the caller may do, so that a program need not try."""

from __future__ import annotations

from typing import Any

from berth.api.errors import Refused
from berth.api.rendering import answer
from berth.api.request import Request, Response, Services


def show_permissions(services: Services, request: Request, response: Response) -> None:
    """Show which rules of the policy allow the caller."""
    rules = {
        operation.rule.name
        for namespace in services.namespaces
        for operation in namespace.operations
        if operation.rule is not None
    }
    permissions = {rule: _permission(services, request, rule) for rule in sorted(rules)}
    answer(response, {"permissions": permissions})


def _permission(services: Services, request: Request, rule: str) -> dict[str, Any]:
    caller = request.caller
    try:
        services.policy.check(rule, caller)
    except Refused as refused:
        return {"allowed": False, "reason": refused.hint}
    try:
        services.policy.check(rule, caller, target={})
    except Refused:
        return {"allowed": True, "project_id": caller.project_id}
    return {"allowed": True}
