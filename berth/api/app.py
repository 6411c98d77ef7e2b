# SPDX-License-Identifier: Apache-2.0
"""The API as a WSGI application: microversion, content gate, the checks before every handler, the
handler, errors.

It reads what the layers of `berth.edge` put into the WSGI environment. HEAD, OPTIONS and unknown
methods are handled as this API has always done (spec/rest-api.md 1.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from msgspec.structs import replace

from berth.api import audit, errors, media_types
from berth.api.answers import STATUS_LINES, send
from berth.api.body import check_content_headers, check_is_json
from berth.api.contract import DRY_RUN
from berth.api.environ import HOST, MATCH, ROUTE
from berth.api.errors import Refused
from berth.api.host_rights import CHECKS, HostRights
from berth.api.microversion import MINOR_MAX, SERVICE_TYPE
from berth.api.operation import Namespace, Operation
from berth.api.paths import ROUTES, Match, Route
from berth.api.request import Call, Services
from berth.model.errors import (
    BerthError,
    Conflict,
    OutcomeUnknown,
    ProviderGenerationConflict,
    ProviderNotFound,
    Unavailable,
    UnknownClass,
    UnknownTraits,
)
from berth.model.names import similar
from berth.model.own_errors import NotOfHost
from berth.store import resource_classes, traits
from berth.store.confined import ConfinedDatabase
from berth.store.engine.database import Database

VERSION_HEADER = "openstack-api-version"
#: By microversion.
_VERSION_HEADERS: Final = [
    {VERSION_HEADER: f"{SERVICE_TYPE} 1.{minor}", "vary": VERSION_HEADER}
    for minor in range(MINOR_MAX + 1)
]

#: How many unknown names get suggestions, and how many are listed as unknown.
SUGGESTED_FOR_MAX: Final = 3
LISTED_MAX: Final = 20
COMPARED_MAX: Final = 1000


def create_api(services: Services, others: Mapping[str, WSGIApplication]) -> WSGIApplication:
    """Build the API from its services.

    An exception that is neither a refusal nor an error of the layers below is left to the crash
    guard (`berth.edge.layers`).

    Args:
        others: what answers at paths that are not of the API.
    """
    answer = partial(_answer, {route: _ready(route) for route in ROUTES}, services)

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        match: Match = environ[MATCH]
        if not match.route.methods and (other := others.get(match.path)) is not None:
            return other(environ, start_response)
        call = Call(environ, match, services)
        try:
            try:
                answer(call)
            except (ProviderNotFound, ProviderGenerationConflict) as error:
                is_reloaded = services.index.reload_foreign(error.provider)
                if not is_reloaded or call.method not in {"GET", "HEAD"}:
                    raise
                answer(call)
        except Refused as refused:
            _answer_refused(call, refused)
        except BerthError as error:
            _answer_refused(call, _refusal_of(error, call, services))
        return _send(call, start_response)

    return application


def _answer(operations: _Table, services: Services, call: Call) -> None:
    """Check a request in the order that decides which error wins, and call its handler."""
    call.negotiate()
    call.headers.update(_VERSION_HEADERS[call.microversion])
    if "CONTENT_LENGTH" in call.env:
        check_content_headers(call)
    route, parameters, path, _ = call.match
    if not route.methods:
        raise Refused(404, "", hint=f"Nothing is at {path}.")
    if "\0" in path:
        raise Refused(400, "A path with a NUL character names nothing.")
    call.env[ROUTE] = route.path
    by_minor = operations[route].get(call.method)
    if by_minor is None:
        allow = ", ".join(route.methods)
        message = "The method specified is not allowed for this resource."
        raise Refused(405, message, headers={"allow": allow})
    if services.is_audited:
        _begin_trail(route.methods[call.method], call)
    ready = by_minor[call.microversion]
    if ready is None:
        raise _absent(route, by_minor, call)
    _check_media_types(ready, call)
    if ready.rule is not None:
        target = ready.target(call, *parameters) if ready.target else None
        services.policy.check(ready.rule, call.caller, target)
    if ready.read_query is not None:
        call.query = ready.read_query(call)
    call.status = ready.statuses[call.microversion]
    if call.env.get(HOST) is None:
        send(call, ready.handler(call, *parameters))
    else:
        _respond_to_host(ready, call)


def _send(call: Call, start_response: StartResponse) -> Iterable[bytes]:
    body: Iterable[bytes] = []
    if call.data is not None:
        body = [call.data]
        call.headers["content-length"] = str(len(call.data))
    elif call.stream is not None:
        body = call.stream
    start_response(call.status, list(call.headers.items()))
    return [] if call.method == "HEAD" else body


def _answer_refused(call: Call, refused: Refused) -> None:
    audit.note_refusal(call, refused)
    call.status = STATUS_LINES[refused.status]
    call.headers.update(refused.headers)
    is_head = call.method == "HEAD"
    call.headers["content-type"], call.data = (
        errors.NOTHING_FOR_HEAD if is_head else errors.render(refused, call.env)
    )


def _refusal_of(error: BerthError, call: Call, services: Services) -> Refused:
    place = f"{call.method} {call.env.get(ROUTE)}"
    refused = errors.refusal_of(error, place, more=did_you_mean(error, services.database))
    if isinstance(error, Conflict):
        services.observer.conflicted(refused.code)
    elif isinstance(error, Unavailable):
        if isinstance(error, OutcomeUnknown):
            audit.note_unknown(call)
        services.observer.database_failed(error, errors.request_id_of(call.env))
    return refused


def _begin_trail(operations: Sequence[Operation], call: Call) -> None:
    """Leave a trail for the audit log, if the request may write."""
    if not operations[-1].is_read:
        at = call.microversion
        operation = next((each for each in operations if at <= each.until), operations[-1])
        audit.begin(call, operation, call.match.route.path, call.match.parameters)


def _respond_to_host(ready: _Ready, call: Call) -> None:
    """Call a handler for a caller that is bound to a host."""
    host, parameters, services = call.env[HOST], call.match.parameters, call.services
    if ready.check is None:
        raise NotOfHost(host, f"Agents may not send {call.method} {ready.path}.")
    rights = HostRights(host, services.database, services.index)
    ready.check(rights, call.query, *parameters)
    allowed = rights.aggregates(services.settings.agent_aggregates)
    confined = ConfinedDatabase(services.database, host, allowed)
    call.services = replace(services, database=confined, rights=rights)
    with rights.refusing():
        send(call, ready.handler(call, *parameters))


class _Ready:
    """What a request needs of an operation."""

    def __init__(self, namespace: Namespace, operation: Operation) -> None:
        contract = operation.contract
        has_dry_run = contract.query is not None and DRY_RUN in contract.query.parameters
        assert operation.may_be_dry == has_dry_run, operation.handler
        self.handler = operation.find_handler()
        #: None: not for callers that are bound to a host.
        self.check = CHECKS.get(operation.handler)
        self.path = namespace.path_of(operation)
        self.minors = range(operation.since, operation.until + 1)
        #: By microversion.
        self.statuses = [
            STATUS_LINES[contract.answers_at(max(minor, operation.since))[0].status]
            for minor in range(MINOR_MAX + 1)
        ]
        self.rule = operation.rule.name if operation.rule else None
        self.target = contract.target
        self.media_types = contract.media_types
        self.takes_json = contract.body is not None
        self.checks_accept = namespace.checks_accept(operation)
        self.read_query = namespace.reader_of(operation)


#: By route and method: the operation at each microversion; None: there is none.
_Table = Mapping[Route, Mapping[str, Sequence[_Ready | None]]]


def _ready(route: Route) -> Mapping[str, Sequence[_Ready | None]]:
    """The operations of a route."""
    table: dict[str, Sequence[_Ready | None]] = {}
    for method, operations in route.methods.items():
        all_ready = [_Ready(route.namespace, operation) for operation in operations]
        table[method] = [
            next((ready for ready in all_ready if minor in ready.minors), None)
            for minor in range(MINOR_MAX + 1)
        ]
    return table


def _check_media_types(operation: _Ready, call: Call) -> None:
    if operation.takes_json:
        check_is_json(call)
    accept = call.env.get("HTTP_ACCEPT")
    # PERF bench, fixed_cost: nearly all clients accept this.
    if accept == media_types.JSON or not operation.checks_accept:
        return
    if not any(media_types.admits(accept, media_type) for media_type in operation.media_types):
        raise Refused(406, f"Only {' and '.join(operation.media_types)} is provided")


def _absent(route: Route, by_minor: Sequence[_Ready | None], call: Call) -> Refused:
    """The refusal of a method that has no operation at the microversion of a request."""
    operation = route.methods[call.method][0]
    if operation.media_first and (ready := by_minor[operation.since]):
        _check_media_types(ready, call)
    hint = (
        f"This needs microversion 1.{operation.since} or later; "
        f"the request is at 1.{call.microversion}."
    )
    return Refused(405 if operation.absent_is_405 else 404, "", hint=hint)


def did_you_mean(error: BerthError, database: Database) -> str:
    """A sentence or two about the names of traits or resource classes that do not exist; empty for
    other errors. It costs a query and some comparisons."""
    if isinstance(error, UnknownTraits):
        unknown: Sequence[str] = error.traits
    elif isinstance(error, UnknownClass):
        unknown = [error.resource_class]
    else:
        return ""
    said = []
    if len(unknown) > 1:
        more = len(unknown) - LISTED_MAX
        end = f" and {more} more" if more > 0 else ""
        said.append(f"Unknown are {', '.join(unknown[:LISTED_MAX])}{end}.")
    with suppress(Unavailable):
        existing = _existing_names(error, database)
        for name in unknown[:SUGGESTED_FOR_MAX]:
            if close := close_names(name, existing):
                instead = f" instead of {name}" if len(unknown) > 1 else ""
                said.append(f"Did you mean {' or '.join(close)}{instead}?")
    return " ".join(said)


def close_names(name: str, existing: Iterable[str]) -> tuple[str, ...]:
    """The known names that are most similar, the closest first, ignoring case."""
    likely = (each for each in existing if abs(len(each) - len(name)) <= len(name) // 2)
    return similar(name.upper(), islice(likely, COMPARED_MAX))


def _existing_names(error: BerthError, database: Database) -> Iterable[str]:
    if isinstance(error, UnknownTraits):
        return traits.list_traits(database, names=None, prefix=None, associated=None).names
    return resource_classes.list_resource_classes(database).names
