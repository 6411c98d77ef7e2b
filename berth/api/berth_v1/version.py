# SPDX-License-Identifier: Apache-2.0
"""`GET /berth/v1`: the version, the parts of the API, and the bounds of requests."""

from __future__ import annotations

from berth.api.namespaces import namespace_of
from berth.api.operation import Namespace
from berth.api.rendering import answer
from berth.api.request import Request, Response, Services
from berth.model.bounds import BOUNDS


def show_version(services: Services, request: Request, response: Response) -> None:
    """Show the version document."""
    namespace = namespace_of(request.path, services.namespaces)
    stable, experimental = features(namespace)
    answer(
        response,
        {
            "version": namespace.version,
            "auth_strategy": services.settings.auth_strategy,
            "stable": stable,
            "experimental": experimental,
            **BOUNDS,
            **_bounds_of(services),
        },
    )


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
