# SPDX-License-Identifier: Apache-2.0
"""Leases: times at which berth takes back what consumers hold. Source: spec/beyond.md 7.3."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Final

from berth.api import examples
from berth.api.answers import LongBody, listed
from berth.api.berth_v1.consumers import END, LIMIT, project_asked_for, project_of
from berth.api.berth_v1.inputs import BodySchema
from berth.api.berth_v1.refusals import not_found
from berth.api.contract import (
    DONE,
    Answer,
    Body,
    Contract,
    Dated,
    Parameter,
    Query,
    always,
    component,
    ref,
    shows,
)
from berth.api.errors import Refused
from berth.api.media_types import JSON_LINES
from berth.api.paths import consumer_uuid
from berth.api.request import Call
from berth.api.shapes import EXTERNAL_ID, LEASE_SECONDS
from berth.api.struct_schema import Input, shown
from berth.model.ids import ConsumerUUID
from berth.model.shown import EXPIRES_AT, Count, ExternalId, Shown, shown_time
from berth.store import leases as store
from berth.store.lease_sweep import sweep
from berth.store.leases import ListedLease

_SENT: Final = {"seconds": 600}


class _Body(Input):
    """A lease to give."""

    seconds: Annotated[int, LEASE_SECONDS, "Seconds until berth releases the consumer."]


_BODY: Final = BodySchema(_Body)

LISTING: Final = Query(
    Parameter(
        name="project_id",
        means="Only those of this project. A member of a project must name it.",
        example="web",
        schema=EXTERNAL_ID,
    ),
    LIMIT,
)

_Consumer = Annotated[ConsumerUUID, "The UUID of the consumer."]


class ShownLease(Shown):
    """A lease with its consumer."""

    component = "Lease"

    consumer: _Consumer
    name: Annotated[str | None, "The consumer's name."]
    project_id: ExternalId
    user_id: ExternalId
    expires_at: Annotated[str, EXPIRES_AT]
    seconds_left: Annotated[Count, "By the database's clock; 0 if the next sweep releases it."]


class Released(Shown):
    """A consumer that a sweep has released."""

    consumer: _Consumer
    project_id: ExternalId
    hosts: Annotated[list[str], "The names of the hosts on which it held something."]


class Swept(Shown):
    """What a sweep has done."""

    component = "SweptLeases"

    released: Annotated[list[Released], "The consumers that this sweep released."]


_EXAMPLE: Final = {
    "consumer": examples.CONSUMER,
    "name": "job-17",
    "project_id": "web",
    "user_id": "alice",
    "expires_at": "2026-11-24T14:32:00Z",
    "seconds_left": 540,
}
_LEASE: Final = shown(ShownLease, example=_EXAMPLE)
_LINE: Final = component(
    "LeaseLine",
    {"anyOf": [ref("Lease"), ref("End")]},
    example=_EXAMPLE,
    parts=(_LEASE, END),
)
_SWEPT: Final = shown(
    Swept,
    example={"released": [{"consumer": examples.CONSUMER, "project_id": "web", "hosts": ["cn1"]}]},
)


def of_all_projects(call: Call) -> Mapping[str, str | None]:
    """No project: who may see and do what is of one project alone may not do this."""
    return {}


@Contract(
    summary="List leases",
    details="A line for each consumer that has a lease, in the order of their UUIDs, as of one "
    "state of the database; then a line with `end`, without which the answer is incomplete.",
    query=LISTING,
    answers=(Answer(200, _LINE, means="The leases, as JSON lines.", media_type=JSON_LINES),),
    target=project_asked_for,
)
def list_leases(call: Call) -> LongBody:
    """List the leases, of all projects or of one."""
    now = call.services.database.clock()
    pages = store.pages_of_leases(call.services.database, call.query.get("project_id"))
    return listed(pages, partial(_shown, now), limit=call.query.get("limit"))


@Contract(
    summary="Show the lease of a consumer",
    answers=shows(_LEASE, Dated.NO),
    target=project_of,
)
def show_lease(call: Call, consumer: str) -> ShownLease:
    """Show the lease of a consumer."""
    uuid = consumer_uuid(consumer)
    lease = store.get_lease(call.services.database, uuid)
    if lease is None:
        raise _without_lease(uuid)
    return _shown(call.services.database.clock(), lease)


@Contract(
    summary="Give a consumer a lease, or renew it",
    details="The consumer must hold something. Any other write of its allocations, except a"
    " placement with `lease_seconds`, ends the lease.",
    body=Body(always(_BODY), always(_SENT)),
    answers=shows(_LEASE, Dated.NO, means="The lease, which may have been renewed."),
    conflict="Other requests changed the consumer each time.",
    target=project_of,
)
def put_lease(call: Call, consumer: str) -> ShownLease:
    """Give a consumer a lease, or renew the one that it has."""
    uuid = consumer_uuid(consumer)
    seconds = _BODY.read(call).seconds
    lease = store.put_lease(call.services.database, uuid, seconds)
    if lease is None:
        raise not_found(f"Consumer {consumer} has no allocations.")
    return _shown(lease.expires_at - timedelta(seconds=seconds), lease)


@Contract(
    summary="End the lease of a consumer",
    details="The consumer keeps what it holds.",
    answers=DONE,
    conflict="Other requests changed the lease each time.",
    target=project_of,
)
def end_lease(call: Call, consumer: str) -> None:
    """End the lease of a consumer, which keeps what it holds."""
    uuid = consumer_uuid(consumer)
    if not store.delete_lease(call.services.database, uuid):
        raise _without_lease(uuid)


@Contract(
    summary="Sweep leases now",
    details="Releases the consumers whose leases have expired, as each worker does every few"
    " seconds.",
    answers=shows(_SWEPT, Dated.NO, means="The released consumers."),
    target=of_all_projects,
)
def sweep_leases(call: Call) -> Swept:
    """Release the consumers whose leases have expired."""
    released = [
        Released(each.consumer, each.project_id, [*each.hosts])
        for expired in sweep(call.services.database)
        for each in expired
    ]
    return Swept(released)


def _without_lease(consumer: ConsumerUUID) -> Refused:
    return not_found(f"Consumer {consumer} has no lease.")


def _shown(now: datetime, lease: ListedLease) -> ShownLease:
    left = max(lease.expires_at - now, timedelta(0))
    return ShownLease(
        lease.consumer,
        lease.name,
        lease.project_id,
        lease.user_id,
        shown_time(lease.expires_at),
        seconds_left=int(left.total_seconds()),
    )
