# SPDX-License-Identifier: Apache-2.0
"""From a path and a method to a responder, and the checks that come before every handler.

This stands in for falcon's own router, whose treatment of doubled slashes, HEAD, OPTIONS and verbs
that it does not know differs from what this API has always answered (spec/rest-api.md 1.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from berth.api import body, media_types
from berth.api.environ import ROUTE
from berth.api.errors import Refused
from berth.api.microversion import MINOR_MAX
from berth.api.policy import Policy
from berth.api.request import Request, Response, Services
from berth.api.routes import Operation, Route

Responder = Callable[..., None]
#: What falcon asks of a router: the resource, its responders by method, parameters, template.
Found = tuple[object, Mapping[str, Responder], dict[str, str], str]


class Router:
    """Finds routes by the shape of a path: how many segments, and which of them are fixed."""

    def __init__(self, routes: Iterable[Route], services: Services, policy: Policy) -> None:
        self._by_shape = {
            _shape(route.path.split("/")): _Entry(route, services, policy) for route in routes
        }

    def find(self, path: str, req: Request | None = None) -> Found | None:
        """The route of a decoded path; None, and thus 404, when there is none.

        A parameter is one segment and never empty, so that doubled and trailing slashes are 404.
        """
        segments = path.split("/")
        entry = self._by_shape.get(_shape(segments))
        if entry is None or ("" in segments[1:] and path != "/"):
            return None
        if "\0" in path:
            raise Refused(400, "A path with a NUL character names nothing.")
        if req is not None:
            req.env[ROUTE] = entry.path
        return entry, entry.responders, entry.parameters_in(segments), entry.path


class _Entry:
    """One route with its responders; any method that it does not serve is 405."""

    def __init__(self, route: Route, services: Services, policy: Policy) -> None:
        self.path = route.path
        self.responders = _Responders(
            {
                method: _responder(operations, services, policy)
                for method, operations in route.methods.items()
            }
        )
        self._names = [
            (place, segment[1:-1])
            for place, segment in enumerate(route.path.split("/"))
            if segment.startswith("{")
        ]

    def parameters_in(self, segments: list[str]) -> dict[str, str]:
        return {name: segments[place] for place, name in self._names}


class _Responders(dict[str, Responder]):
    """Responders by method, in the order of the `Allow` header."""

    def __missing__(self, method: str) -> Responder:
        allow = ", ".join(self)

        def refuse(request: Request, response: Response, **parameters: str) -> None:
            raise Refused(
                405,
                "The method specified is not allowed for this resource.",
                headers={"allow": allow},
            )

        return refuse


def _shape(segments: list[str]) -> tuple[int, str, str]:
    """What tells routes apart: the number of segments, the first one, and the third."""
    count = len(segments)
    return count, segments[1] if count > 1 else "", segments[3] if count > 3 else ""


def _responder(operations: tuple[Operation, ...], services: Services, policy: Policy) -> Responder:
    """What answers a method: the operation of the microversion in force, once it is let in."""
    by_minor = [
        next((one for one in operations if one.since <= minor <= one.until), None)
        for minor in range(MINOR_MAX + 1)
    ]
    oldest = operations[0]

    def respond(request: Request, response: Response, **parameters: Any) -> None:
        operation = by_minor[request.microversion]
        if operation is None:
            if oldest.media_first:
                _check_media_types(oldest, request)
            raise _absent(oldest, request)
        _check_media_types(operation, request)
        if operation.rule is not None:
            target = operation.target(request) if operation.target else None
            policy.check(operation.rule, request.caller, target)
        operation.handler(services, request, response, *parameters.values())

    return respond


def _check_media_types(operation: Operation, request: Request) -> None:
    if operation.takes_json:
        body.check_is_json(request)
    if operation.checks_accept and not media_types.admits_json(request.env.get("HTTP_ACCEPT")):
        raise Refused(406, f"Only {media_types.JSON} is provided")


def _absent(operation: Operation, request: Request) -> Refused:
    hint = (
        f"This needs microversion 1.{operation.since} or later; "
        f"the request is at 1.{request.microversion}."
    )
    return Refused(405 if operation.absent_is_405 else 404, "", hint=hint)
