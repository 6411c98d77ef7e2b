# SPDX-License-Identifier: Apache-2.0
"""The whole WSGI application, layer upon layer.

The order decides which error wins, and is that of spec/rest-api.md 1.1: 401 is told before
anything about versions, and versions before anything about paths.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any, NoReturn, cast
from wsgiref.types import WSGIApplication

import falcon
from falcon.routing import CompiledRouter
from oslo_middleware import cors, http_proxy_to_wsgi

from berth.api import errors
from berth.api.admission import admit, searching
from berth.api.auth.identity import identify
from berth.api.auth.layers import Layer, layer_for
from berth.api.body import check_content_headers
from berth.api.environ import ROUTE
from berth.api.errors import Refused
from berth.api.faults import catch_faults
from berth.api.microversion import SERVICE_TYPE
from berth.api.operations import answer_operations, guard_metrics
from berth.api.outage_log import OutageLog
from berth.api.policy import Policy
from berth.api.readiness import Readiness
from berth.api.receiving import Receiving, by_size
from berth.api.rendering import STATUS_LINES
from berth.api.request import Request, Response, Services
from berth.api.request_log import log_requests
from berth.api.router import Router
from berth.api.routes import ROUTES
from berth.api.suggestions import did_you_mean
from berth.api.traffic import count_requests
from berth.candidates.request import SearchSettings
from berth.config import Settings
from berth.index import Index
from berth.model.errors import BerthError, Conflict, Unavailable
from berth.store.engine.database import Database

VERSION_HEADER = "openstack-api-version"


def create_app(
    settings: Settings, db: Database, index: Index, *, authentication: Layer | None = None
) -> WSGIApplication:
    """Build the application over an open database and its index.

    Args:
        authentication: the layer that says who calls; none: that of the configured strategy.

    Raises:
        ConfigurationError: the health check cannot be as it is configured, or what processes count
            cannot be shared where it should.
    """
    # Imported here, where a worker begins: prometheus-client finds out when it is imported whether
    # processes share what they count.
    from berth.api.exposition import Exposition
    from berth.api.instruments import Instruments

    instruments = Instruments(
        strategy=settings.auth_strategy, pool_size=db.pool.kept, pool_max=db.pool.most
    )
    db.observer, index.observer = instruments.database, instruments.index
    readiness = Readiness(db, index)
    exposition = Exposition(instruments, readiness, classes_max=settings.metrics.classes_max)
    policy = Policy(settings.conf)
    services = Services(
        settings=settings,
        database=db,
        index=index,
        instruments=instruments,
        search=SearchSettings(
            randomize=settings.randomize_allocation_candidates,
            candidates_max=settings.max_allocation_candidates,
            strategy=settings.allocation_candidates_generation_strategy,
            time_budget_s=settings.candidates_time_budget,
            answer_bytes_max=settings.candidates_answer_mib_max * 2**20,
        ),
        rng=Random(),
        searching=searching(settings.admission),
    )
    authenticate = authentication or layer_for(settings)
    receiving = Receiving(settings.receiving)
    admitted = admit(
        settings.admission,
        of_reads=instruments.reads,
        of_writes=instruments.writes,
        of_searches=instruments.searches_line,
    )
    application: WSGIApplication = _core(services, policy)
    application = guard_metrics(policy, exposition)(application)
    application = catch_faults(application)
    # A request with a large body is authenticated, received and admitted, in this order; all
    # others are received, admitted and authenticated.
    application = by_size(small=application, large=receiving.rest(admitted(application)))
    application = identify(application)
    application = authenticate(application)
    application = by_size(small=admitted(application), large=application)
    application = receiving.begin(application)
    if settings.conf.cors.allowed_origin:
        application = cors.CORS(application, settings.conf)
    application = answer_operations(settings, readiness, exposition)(application)
    application = count_requests(instruments.requests)(application)
    application = log_requests(application)
    if settings.enable_proxy_headers_parsing:
        application = http_proxy_to_wsgi.HTTPProxyToWSGI(application, settings.conf)
    return application


class _Gate:
    """What is judged before routing, on every path."""

    def process_request(self, request: Request, response: Response) -> None:
        request.negotiate()
        response.set_header(VERSION_HEADER, f"{SERVICE_TYPE} 1.{request.microversion}")
        response.set_header("vary", VERSION_HEADER)
        check_content_headers(request)


class _App(falcon.App[Request, Response]):
    """Falcon, with no method of which it says something by itself."""

    _META_METHODS = frozenset[str]()


def _core(services: Services, policy: Policy) -> falcon.App[Request, Response]:
    """The falcon application: microversion, content gate, routing, handlers, errors."""
    app = _App(
        request_type=Request,
        middleware=[_Gate()],
        router=cast(CompiledRouter, Router(ROUTES, services, policy)),
    )
    # Falcon takes None, whatever its annotation: no type on an answer without a body.
    app.resp_options.default_media_type = None  # type: ignore[assignment]
    app.add_error_handler(Refused, _answer_refused)
    answer_error = partial(_answer_error, services, OutageLog())
    app.add_error_handler(BerthError, answer_error)
    app.add_error_handler(falcon.HTTPError, _answer_falcon_error)
    app.add_error_handler(Exception, _raise_on)
    return app


def _answer_refused(
    request: Request, response: Response, refused: Refused, parameters: dict[str, Any]
) -> None:
    response.status = STATUS_LINES[refused.status]
    for name, value in refused.headers.items():
        response.set_header(name, value)
    is_head = request.method == "HEAD"
    response.content_type, response.data = (
        errors.NOTHING_FOR_HEAD if is_head else errors.render(refused, request.env)
    )


def _answer_error(
    services: Services,
    outages: OutageLog,
    request: Request,
    response: Response,
    error: BerthError,
    parameters: dict[str, Any],
) -> None:
    place = f"{request.method} {request.env.get(ROUTE)}"
    refused = errors.refusal_of(error, place, more=did_you_mean(error, services.database))
    instruments = services.instruments.requests
    if isinstance(error, Conflict):
        instruments.conflicts(refused.code).inc()
    elif isinstance(error, Unavailable):
        instruments.database_failures.inc()
        outages.note(error, request.env.get(errors.REQUEST_ID))
    _answer_refused(request, response, refused, parameters)


def _answer_falcon_error(
    request: Request, response: Response, error: falcon.HTTPError, parameters: dict[str, Any]
) -> None:
    """Falcon itself refuses what no route matches."""
    hint = "" if error.description else f"Nothing is at {request.path}."
    refused = Refused(error.status_code, error.description or "", hint=hint)
    _answer_refused(request, response, refused, parameters)


def _raise_on(
    request: Request, response: Response, fault: Exception, parameters: dict[str, Any]
) -> NoReturn:
    """Leave what nobody expected to `catch_faults`."""
    raise fault
