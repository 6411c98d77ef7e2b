# SPDX-License-Identifier: Apache-2.0
"""Map a path and a method to a responder, and run the checks before every handler.

Doubled slashes, HEAD, OPTIONS and unknown methods are handled as this API has always done
(spec/rest-api.md 1.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import itemgetter

from berth.api import audit, body, media_types
from berth.api.environ import HOST
from berth.api.errors import Refused
from berth.api.host_rights import CHECKS, HostRights
from berth.api.microversion import MINOR_MAX
from berth.api.operation import Namespace, Operation
from berth.api.request import Request, Response, Services
from berth.api.routes import Route, is_parameter
from berth.model.own_errors import NotOfHost
from berth.store.confined import ConfinedDatabase

#: Takes the request, the response, and the path parameters in order.
Responder = Callable[..., None]
_Pick = Callable[[list[str]], object]


class Router:
    """Finds the route of a path by all of its literal segments.

    Routes with literal segments in the same positions share a table. A path is looked up in each
    table of routes of its length; most lengths have one.
    """

    def __init__(self, routes: Iterable[Route], services: Services) -> None:
        #: Number of segments -> picks the literal segments, and the routes by them.
        self._by_length: dict[int, list[tuple[_Pick, dict[object, Entry]]]] = {}
        #: The routes whose parameter may have slashes, by what precedes it.
        self._by_prefix: dict[str, Entry] = {}
        tables: dict[tuple[int, tuple[int, ...]], tuple[_Pick, dict[object, Entry]]] = {}
        for route in routes:
            segments = route.path.split("/")
            places = tuple(
                place for place, segment in enumerate(segments) if not is_parameter(segment)
            )
            key = len(segments), places
            if key not in tables:
                tables[key] = itemgetter(*places), {}
                self._by_length.setdefault(len(segments), []).append(tables[key])
            pick, entries = tables[key]
            entry = entries[pick(segments)] = Entry(route, services)
            if (prefix := route.prefix_of_rest) is not None:
                self._by_prefix[prefix] = entry

    def find(self, path: str) -> tuple[Entry, list[str]] | None:
        """The route of a decoded path and its parameters in order, or None, which becomes a 404.

        A parameter is one segment and never empty, so doubled and trailing slashes get 404; that of
        a few routes is the rest of the path.
        """
        segments = path.split("/")
        for pick, entries in self._by_length.get(len(segments), ()):
            entry = entries.get(pick(segments))
            if entry is not None:
                break
        else:
            return self._find_rest(path)
        if "" in segments[1:] and path != "/":
            return None
        _check_path(path)
        return entry, [segments[place] for place in entry.places]

    def _find_rest(self, path: str) -> tuple[Entry, list[str]] | None:
        for prefix, entry in self._by_prefix.items():
            if path.startswith(prefix):
                _check_path(path)
                return entry, [path.removeprefix(prefix)]
        return None


def _check_path(path: str) -> None:
    if "\0" in path:
        raise Refused(400, "A path with a NUL character names nothing.")


class Entry:
    """One route with its responders by method; any other method gets 405."""

    def __init__(self, route: Route, services: Services) -> None:
        #: The template of its paths.
        self.path = route.path
        self.responders = _Responders(
            {
                method: _responder(route, operations, services)
                for method, operations in route.methods.items()
            }
        )
        #: The positions of the parameters.
        self.places = [
            place for place, segment in enumerate(route.path.split("/")) if is_parameter(segment)
        ]


class _Responders(dict[str, Responder]):
    """Responders by method, in the order of the `Allow` header."""

    def __missing__(self, method: str) -> Responder:
        allow = ", ".join(self)

        def refuse(request: Request, response: Response, *parameters: str) -> None:
            raise Refused(
                405,
                "The method specified is not allowed for this resource.",
                headers={"allow": allow},
            )

        return refuse


def _responder(route: Route, operations: tuple[Operation, ...], services: Services) -> Responder:
    """The responder of a method: checks the request, then calls its microversion's handler."""
    respond = _checking(route.namespace, operations, services)
    if operations[-1].is_read or not services.is_audited:
        return respond

    def audited(request: Request, response: Response, *parameters: str) -> None:
        at = request.microversion
        operation = next((each for each in operations if at <= each.until), operations[-1])
        audit.begin(services, request, operation, route.path, parameters)
        respond(request, response, *parameters)

    return audited


def _checking(
    namespace: Namespace, operations: tuple[Operation, ...], services: Services
) -> Responder:
    all_ready = [_Ready(namespace, operation) for operation in operations]
    by_minor = [
        next((ready for ready in all_ready if minor in ready.minors), None)
        for minor in range(MINOR_MAX + 1)
    ]
    oldest = operations[0]

    def respond(request: Request, response: Response, *parameters: str) -> None:
        ready = by_minor[request.microversion]
        if ready is None:
            if oldest.media_first:
                _check_media_types(all_ready[0], request)
            raise _absent(oldest, request)
        _check_media_types(ready, request)
        if ready.rule is not None:
            target = ready.target(services, request, *parameters) if ready.target else None
            services.policy.check(ready.rule, request.caller, target)
        if ready.read_query is not None:
            request.query = ready.read_query(request)
        if request.env.get(HOST) is None:
            ready.handler(services, request, response, *parameters)
        else:
            _respond_to_host(ready, services, request, response, *parameters)

    return respond


def _respond_to_host(
    ready: _Ready, services: Services, request: Request, response: Response, *parameters: str
) -> None:
    """Call a handler for a caller that is bound to a host."""
    host = request.env[HOST]
    if ready.check is None:
        raise NotOfHost(host, f"Agents may not send {request.method} {ready.path}.")
    rights = HostRights(host, services.database, services.index)
    ready.check(rights, request.query, *parameters)
    allowed = rights.aggregates(services.settings.agent_aggregates)
    confined = ConfinedDatabase(services.database, host, allowed)
    of_host = replace(services, database=confined, rights=rights)
    with rights.refusing():
        ready.handler(of_host, request, response, *parameters)


class _Ready:
    """What a responder needs of an operation."""

    def __init__(self, namespace: Namespace, operation: Operation) -> None:
        self.handler = operation.find_handler()
        #: None: not for callers that are bound to a host.
        self.check = CHECKS.get(operation.handler) if isinstance(operation.handler, str) else None
        self.path = namespace.path_of(operation)
        self.minors = range(operation.since, operation.until + 1)
        self.rule = operation.rule.name if operation.rule else None
        self.target = operation.find_target()
        self.media_types = operation.media_types
        self.takes_json = operation.body is not None
        self.checks_accept = namespace.checks_accept(operation)
        self.read_query = namespace.reader_of(operation)


def _check_media_types(operation: _Ready, request: Request) -> None:
    if operation.takes_json:
        body.check_is_json(request)
    accept = request.env.get("HTTP_ACCEPT")
    if operation.checks_accept and not any(
        media_types.admits(accept, media_type) for media_type in operation.media_types
    ):
        raise Refused(406, f"Only {' and '.join(operation.media_types)} is provided")


def _absent(operation: Operation, request: Request) -> Refused:
    hint = (
        f"This needs microversion 1.{operation.since} or later; "
        f"the request is at 1.{request.microversion}."
    )
    return Refused(405 if operation.absent_is_405 else 404, "", hint=hint)
