# SPDX-License-Identifier: Apache-2.0
"""Leases: times at which berth takes back what consumers hold. Source: spec/beyond.md 7.3."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from berth.api import audit
from berth.api.berth_v1 import body
from berth.api.berth_v1.refusals import not_found
from berth.api.berth_v1.times import shown_time
from berth.api.errors import Refused
from berth.api.operations.berth_v1.leases import PUT
from berth.api.paths import consumer_uuid
from berth.api.rendering import answer, answer_empty, answer_listed
from berth.api.request import Request, Response, Services
from berth.model.errors import OutcomeUnknown
from berth.model.ids import ConsumerUUID
from berth.store import leases as store
from berth.store.lease_sweep import sweep
from berth.store.leases import ListedLease


def of_all_projects(services: Services, request: Request) -> Mapping[str, str | None]:
    """No project: who may see and do what is of one project alone may not do this."""
    return {}


def list_leases(services: Services, request: Request, response: Response) -> None:
    """List the leases, of all projects or of one."""
    now = services.database.clock()
    pages = store.pages_of_leases(services.database, request.query.get("project_id"))
    answer_listed(response, pages, partial(_shown, now), limit=request.query.get("limit"))


def show_lease(services: Services, request: Request, response: Response, consumer: str) -> None:
    """Show the lease of a consumer."""
    uuid = consumer_uuid(consumer)
    lease = store.get_lease(services.database, uuid)
    if lease is None:
        raise _without_lease(uuid)
    answer(response, _shown(services.database.clock(), lease))


def put_lease(services: Services, request: Request, response: Response, consumer: str) -> None:
    """Give a consumer a lease, or renew the one that it has."""
    uuid = consumer_uuid(consumer)
    seconds = body.read(request, PUT)["seconds"]
    audit.note_wanted(request, seconds=seconds)
    lease = store.put_lease(services.database, uuid, seconds)
    if lease is None:
        raise not_found(f"Consumer {consumer} has no allocations.")
    answer(response, _shown(lease.expires_at - timedelta(seconds=seconds), lease))


def end_lease(services: Services, request: Request, response: Response, consumer: str) -> None:
    """End the lease of a consumer, which keeps what it holds."""
    uuid = consumer_uuid(consumer)
    if not store.delete_lease(services.database, uuid):
        raise _without_lease(uuid)
    answer_empty(response)


def sweep_leases(services: Services, request: Request, response: Response) -> None:
    """Release the consumers whose leases have expired."""
    released: list[dict[str, Any]] = []
    replaced = audit.sweeping(request)
    try:
        for expired in sweep(services.database, replaced=replaced):
            audit.note_swept(request, replaced)
            released += (
                {"consumer": each.consumer, "project_id": each.project_id, "hosts": [*each.hosts]}
                for each in expired
            )
    except OutcomeUnknown:
        audit.note_swept(request, replaced)
        raise
    answer(response, {"released": released})


def _without_lease(consumer: ConsumerUUID) -> Refused:
    return not_found(f"Consumer {consumer} has no lease.")


def _shown(now: datetime, lease: ListedLease) -> dict[str, Any]:
    left = max(lease.expires_at - now, timedelta(0))
    return {
        "consumer": lease.consumer,
        "name": lease.name,
        "project_id": lease.project_id,
        "user_id": lease.user_id,
        "expires_at": shown_time(lease.expires_at),
        "seconds_left": int(left.total_seconds()),
    }
