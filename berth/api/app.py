# SPDX-License-Identifier: Apache-2.0
"""The API as a WSGI application: microversion, content gate, routing, handlers, errors.

It reads what the layers of `berth.edge` put into the WSGI environment.
"""

from __future__ import annotations

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

# Importing jsonschema takes 0.1 s: do it when a worker starts, not in its first refusal.
import berth.api.first_fault  # noqa: F401
from berth.api import audit, errors
from berth.api.body import check_content_headers
from berth.api.environ import ROUTE
from berth.api.errors import Refused
from berth.api.microversion import MINOR_MAX, SERVICE_TYPE
from berth.api.rendering import STATUS_LINES
from berth.api.request import Request, Response, Services
from berth.api.router import Router
from berth.api.routes import routes_of
from berth.api.suggestions import did_you_mean
from berth.model.errors import (
    BerthError,
    Conflict,
    OutcomeUnknown,
    ProviderGenerationConflict,
    ProviderNotFound,
    Unavailable,
)

VERSION_HEADER = "openstack-api-version"


def create_api(services: Services) -> WSGIApplication:
    """Build the API from its services.

    An exception that is neither a refusal nor an error of the layers below is left to the crash
    guard (`berth.edge.crash_guard`).

    Raises:
        AmbiguousRoutes: a path matches two routes.
    """
    router = Router(routes_of(services.namespaces), services)
    version_headers = [
        {VERSION_HEADER: f"{SERVICE_TYPE} 1.{minor}", "vary": VERSION_HEADER}
        for minor in range(MINOR_MAX + 1)
    ]

    def answer(request: Request, response: Response) -> None:
        request.negotiate()
        response.headers.update(version_headers[request.microversion])
        check_content_headers(request)
        match = router.find(request.path)
        if match is None:
            raise Refused(404, "", hint=f"Nothing is at {request.path}.")
        route, parameters = match
        request.env[ROUTE] = route.path
        route.responders[request.method](request, response, *parameters)

    def answer_with_reload(request: Request, response: Response) -> None:
        try:
            answer(request, response)
        except (ProviderNotFound, ProviderGenerationConflict) as error:
            is_reloaded = services.index.reload_foreign(error.provider)
            if not is_reloaded or request.method not in {"GET", "HEAD"}:
                raise
            answer(request, response)

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request, response = Request(environ), Response()
        try:
            answer_with_reload(request, response)
        except Refused as refused:
            _answer_refused(request, response, refused)
        except BerthError as error:
            _answer_refused(request, response, _refusal_of(error, request, services))
        return _send(request, response, start_response)

    return application


def _send(request: Request, response: Response, start_response: StartResponse) -> Iterable[bytes]:
    body: Iterable[bytes] = []
    if response.data is not None:
        body = [response.data]
        response.headers["content-length"] = str(len(response.data))
    elif response.stream is not None:
        body = response.stream
    start_response(response.status, list(response.headers.items()))
    return [] if request.method == "HEAD" else body


def _answer_refused(request: Request, response: Response, refused: Refused) -> None:
    audit.note_refusal(request, refused)
    response.status = STATUS_LINES[refused.status]
    response.headers.update(refused.headers)
    is_head = request.method == "HEAD"
    response.headers["content-type"], response.data = (
        errors.NOTHING_FOR_HEAD if is_head else errors.render(refused, request.env)
    )


def _refusal_of(error: BerthError, request: Request, services: Services) -> Refused:
    place = f"{request.method} {request.env.get(ROUTE)}"
    refused = errors.refusal_of(error, place, more=did_you_mean(error, services.database))
    if isinstance(error, Conflict):
        services.observer.conflicted(refused.code)
    elif isinstance(error, Unavailable):
        if isinstance(error, OutcomeUnknown):
            audit.note_unknown(request)
        services.observer.database_failed(error, request.env.get(errors.REQUEST_ID))
    return refused
