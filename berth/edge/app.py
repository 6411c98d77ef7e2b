# SPDX-License-Identifier: Apache-2.0
"""The whole WSGI application, assembled from its layers.

Their order decides which error wins, as spec/rest-api.md 1.1 specifies: 401 comes before errors of
versions, and these before errors of paths.
"""

from __future__ import annotations

import os
from functools import partial
from random import Random
from threading import Event
from wsgiref.types import WSGIApplication

from oslo_middleware import cors

from berth.api.app import create_api
from berth.api.berth_v1.changes import changes_since
from berth.api.policy import Policy
from berth.api.request import Services
from berth.api.watchers import Watchers
from berth.candidates.question import SearchSettings
from berth.config import Settings
from berth.edge.admission import Admission, Searches
from berth.edge.audit_log import AuditLog
from berth.edge.auth.identity import identify
from berth.edge.auth.layers import Layer, layer_for
from berth.edge.empty_answers import EmptyAnswers
from berth.edge.freed_memory import FreedMemory
from berth.edge.layers import believe_proxies, catch_crashes, front
from berth.edge.page import is_of_page, the_page
from berth.edge.probes import METRICS, guarded_metrics, probes_of
from berth.edge.readiness import Readiness
from berth.edge.receiving import Receiving
from berth.edge.tracing import start_tracing
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
    policy = Policy(settings.conf)
    tracing = start_tracing(os.environ)
    db.tracer = None if tracing is None else tracing.span
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
        searching=Searches(settings.admission, of_long=instruments.long_searches),
        watchers=Watchers(
            index.snapshot,
            partial(changes_since, db),
            db.has_committed,
            stopping or Event(),
            most=settings.watchers_max,
            watching=instruments.watching,
        ),
        empty_answers=EmptyAnswers() if settings.explain_empty_answers else None,
        is_audited=audit_log is not None,
    )
    authenticate = authentication or layer_for(settings)
    receiving = Receiving(settings.receiving)
    admission = Admission(
        settings.admission,
        give_back=FreedMemory().give_back,
        of_reads=instruments.reads,
        of_writes=instruments.writes,
        of_searches=instruments.searches_line,
    )
    application = create_api(services, {METRICS: guarded_metrics(policy, exposition)})
    application = catch_crashes(application)
    if audit_log is not None:
        audit_log.observer = instruments.audit_log
        application = audit_log.layer(application)
    # A request with a large body is authenticated, received and admitted, in this order; all
    # others are received, admitted and authenticated.
    application = receiving.rest(application, admission.run)
    application = identify(application)
    application = authenticate(application)
    application = receiving.begin(application, admission.run)
    if settings.conf.cors.allowed_origin:
        application = cors.CORS(application, settings.conf)
    if tracing is not None:
        application = tracing.layer(application)
    probes = probes_of(settings, readiness, exposition, application)
    page = the_page() if settings.page else None

    def open_to_all(path: str) -> WSGIApplication | None:
        return page if is_of_page(path) else probes.get(path)

    application = front(
        application, open_to_all=open_to_all, answered=instruments.requests.answered
    )
    if settings.enable_proxy_headers_parsing:
        application = believe_proxies(application, settings.conf)
    return application
