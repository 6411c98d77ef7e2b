# SPDX-License-Identifier: Apache-2.0
"""The whole WSGI application, assembled from its layers.

Their order decides which error wins, as spec/rest-api.md 1.1 specifies: 401 comes before errors of
versions, and these before errors of paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from wsgiref.types import WSGIApplication

from oslo_middleware import cors

from berth.api.app import create_api
from berth.api.namespaces import NAMESPACES
from berth.api.operation import Namespace
from berth.api.policy import Policy
from berth.api.request import Services
from berth.candidates.request import SearchSettings
from berth.config import Settings
from berth.edge.admission import admit, searching
from berth.edge.auth.identity import identify
from berth.edge.auth.layers import Layer, layer_for
from berth.edge.crash_guard import catch_crashes
from berth.edge.empty_answers import EmptyAnswers
from berth.edge.in_front import mark_namespaces
from berth.edge.probes import answer_probes, guard_metrics
from berth.edge.proxy_headers import believe_proxies
from berth.edge.readiness import Readiness
from berth.edge.receiving import Receiving, by_size
from berth.edge.request_log import log_requests
from berth.edge.traffic import count_requests
from berth.index import Index
from berth.store.engine.database import Database


def create_app(
    settings: Settings,
    db: Database,
    index: Index,
    *,
    authentication: Layer | None = None,
    namespaces: Sequence[Namespace] = NAMESPACES,
) -> WSGIApplication:
    """Build the application on an open database and its index.

    Args:
        authentication: the layer that authenticates callers; None: that of the configured strategy.

    Raises:
        ConfigurationError: the configuration of the health check is invalid, or the directory of
            the shared metrics is unusable.
    """
    # Imported here, where a worker starts: prometheus-client decides on import whether processes
    # share their metrics.
    from berth.edge.exposition import Exposition
    from berth.edge.instruments import Instruments

    instruments = Instruments(
        strategy=settings.auth_strategy, pool_size=db.pool.kept, pool_max=db.pool.most
    )
    db.observer, index.observer = instruments.database, instruments.index
    readiness = Readiness(db, index)
    exposition = Exposition(instruments, readiness, classes_max=settings.metrics.classes_max)
    policy = Policy(settings.conf, namespaces)
    services = Services(
        settings=settings,
        database=db,
        index=index,
        observer=instruments.api,
        search=SearchSettings(
            randomize=settings.randomize_allocation_candidates,
            candidates_max=settings.max_allocation_candidates,
            strategy=settings.allocation_candidates_generation_strategy,
            time_budget_s=settings.candidates_time_budget,
            answer_bytes_max=settings.candidates_answer_mib_max * 2**20,
        ),
        rng=Random(),
        searching=searching(settings.admission),
        empty_answers=EmptyAnswers() if settings.explain_empty_answers else None,
        namespaces=namespaces,
    )
    authenticate = authentication or layer_for(settings)
    receiving = Receiving(settings.receiving)
    admitted = admit(
        settings.admission,
        of_reads=instruments.reads,
        of_writes=instruments.writes,
        of_searches=instruments.searches_line,
    )
    application: WSGIApplication = create_api(services, policy)
    application = guard_metrics(policy, exposition)(application)
    application = catch_crashes(application)
    # A request with a large body is authenticated, received and admitted, in this order; all
    # others are received, admitted and authenticated.
    application = by_size(small=application, large=receiving.rest(admitted(application)))
    application = identify(application)
    application = authenticate(application)
    application = by_size(small=admitted(application), large=application)
    application = receiving.begin(application)
    if settings.conf.cors.allowed_origin:
        application = cors.CORS(application, settings.conf)
    application = mark_namespaces(services.namespaces, application)
    application = answer_probes(settings, readiness, exposition)(application)
    application = count_requests(instruments.requests)(application)
    application = log_requests(application)
    if settings.enable_proxy_headers_parsing:
        application = believe_proxies(application, settings.conf)
    return application
