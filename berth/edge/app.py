# SPDX-License-Identifier: Apache-2.0
"""The whole WSGI application, assembled from its layers.

Their order decides which error wins, as spec/rest-api.md 1.1 specifies: 401 comes before errors of
versions, and these before errors of paths.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from random import Random
from threading import Event
from wsgiref.types import WSGIApplication

from oslo_middleware import cors

from berth.api.app import create_api
from berth.api.berth_v1.changes import changes_since
from berth.api.namespaces import NAMESPACES
from berth.api.operation import Namespace
from berth.api.policy import Policy
from berth.api.request import SearchLine, Services
from berth.candidates.request import SearchSettings
from berth.config import Settings
from berth.edge.admission import Searches, admit
from berth.edge.audit_log import AuditLog
from berth.edge.auth.identity import identify
from berth.edge.auth.layers import Layer, layer_for
from berth.edge.crash_guard import catch_crashes
from berth.edge.empty_answers import EmptyAnswers
from berth.edge.freed_memory import FreedMemory
from berth.edge.in_front import mark_namespaces
from berth.edge.page import serve_page
from berth.edge.probes import answer_probes, guard_metrics
from berth.edge.proxy_headers import believe_proxies
from berth.edge.readiness import Readiness
from berth.edge.receiving import Receiving, by_size
from berth.edge.request_log import log_requests
from berth.edge.tracing import TracedSearches, start_tracing
from berth.edge.traffic import count_requests
from berth.edge.watchers import Watchers
from berth.index import Index
from berth.store.engine.database import Database
from berth.store.leases import count_leases


def create_app(
    settings: Settings,
    db: Database,
    index: Index,
    *,
    audit_log: AuditLog | None = None,
    authentication: Layer | None = None,
    stopping: Event | None = None,
    namespaces: Sequence[Namespace] = NAMESPACES,
) -> WSGIApplication:
    """Build the application on an open database and its index.

    Args:
        audit_log: where every write leaves a line; None for nowhere.
        authentication: the layer that authenticates callers; None: that of the configured strategy.
        stopping: set when the service stops, so that no request waits any longer.

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
    readiness = Readiness(db, index, instruments.database.writability)
    exposition = Exposition(
        instruments,
        readiness,
        settings.metrics,
        engine=db.engine_name,
        leases=partial(count_leases, db),
    )
    policy = Policy(settings.conf, namespaces)
    tracing = start_tracing(os.environ)
    search_line: SearchLine = Searches(settings.admission, of_long=instruments.long_searches)
    if tracing is not None:
        db.tracer, search_line = tracing.span, TracedSearches(search_line, tracing)
    services = Services(
        settings=settings,
        database=db,
        index=index,
        policy=policy,
        observer=instruments.api,
        search=SearchSettings(
            randomize=settings.randomize_allocation_candidates,
            candidates_max=settings.max_allocation_candidates,
            strategy=settings.allocation_candidates_generation_strategy,
            time_budget_s=settings.admission.candidates_time_budget,
            answer_bytes_max=settings.candidates_answer_mib_max * 2**20,
        ),
        rng=Random(),
        searching=search_line,
        watchers=Watchers(
            index.snapshot,
            partial(changes_since, db),
            db.has_committed,
            stopping or Event(),
            most=settings.watchers_max,
            observer=instruments.watchers,
        ),
        empty_answers=EmptyAnswers() if settings.explain_empty_answers else None,
        is_audited=audit_log is not None,
        namespaces=namespaces,
    )
    authenticate = authentication or layer_for(settings)
    receiving = Receiving(settings.receiving)
    admitted = admit(
        settings.admission,
        give_back=FreedMemory().give_back,
        of_reads=instruments.reads,
        of_writes=instruments.writes,
        of_searches=instruments.searches_line,
    )
    application: WSGIApplication = create_api(services)
    application = guard_metrics(policy, exposition)(application)
    application = catch_crashes(application)
    if audit_log is not None:
        audit_log.observer = instruments.audit_log
        application = audit_log.layer(application)
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
    if tracing is not None:
        application = tracing.layer(application)
    if settings.page:
        application = serve_page(application)
    application = answer_probes(settings, readiness, exposition)(application)
    application = count_requests(instruments.requests)(application)
    application = log_requests(application)
    if settings.enable_proxy_headers_parsing:
        application = believe_proxies(application, settings.conf)
    return application
