# SPDX-License-Identifier: Apache-2.0
"""Leases: times at which berth takes back what consumers hold. Source: spec/beyond.md 7.3."""

from __future__ import annotations

from functools import partial
from typing import Final

from berth.api.berth_v1.pointed import PointedSchema
from berth.api.media_types import JSON_LINES
from berth.api.operation import (
    DONE,
    Answer,
    Body,
    Dated,
    Operation,
    Parameter,
    Query,
    Segment,
    always,
    component,
    ref,
    shows,
)
from berth.api.operations import examples
from berth.api.operations.berth_v1.consumers import END, LIMIT
from berth.api.operations.berth_v1.pieces import EXPIRES_AT, EXPIRES_AT_EXAMPLE, LEASE_SECONDS
from berth.api.operations.berth_v1.rules import LEASES_LIST, LEASES_UPDATE
from berth.api.operations.fragments import (
    COUNT,
    EXTERNAL_ID,
    TEXT,
    UUID,
    closed_object,
    described,
    list_of,
    open_object,
)
from berth.api.schema import JSONSchema

TAG: Final = "Leases"

_SENT: Final = {"seconds": 600}
#: What `PUT` takes.
PUT: Final = PointedSchema(
    closed_object(
        {"seconds": described(LEASE_SECONDS, "Seconds until berth releases the consumer.")},
        required=("seconds",),
    )
)

LISTING: Final = Query(
    Parameter(
        name="project_id",
        means={0: "Only those of this project. A member of a project must name it."},
        example="web",
        schema=EXTERNAL_ID,
    ),
    LIMIT,
)

_CONSUMER: JSONSchema = described(UUID, "The UUID of the consumer.")
_EXAMPLE: Final = {
    "consumer": examples.CONSUMER,
    "name": "job-17",
    "project_id": "web",
    "user_id": "alice",
    "expires_at": EXPIRES_AT_EXAMPLE,
    "seconds_left": 540,
}
_LEASE: Final = component(
    "Lease",
    open_object(
        {
            "consumer": _CONSUMER,
            "name": {"type": ["string", "null"], "description": "The consumer's name."},
            "project_id": EXTERNAL_ID,
            "user_id": EXTERNAL_ID,
            "expires_at": EXPIRES_AT,
            "seconds_left": described(
                COUNT, "By the database's clock; 0 if the next sweep releases it."
            ),
        }
    ),
    example=_EXAMPLE,
)
_LINE: Final = component(
    "LeaseLine",
    {"anyOf": [ref("Lease"), ref("End")]},
    example=_EXAMPLE,
    parts=(_LEASE, END),
)
_EXPIRED_EXAMPLE: Final = {"consumer": examples.CONSUMER, "project_id": "web", "hosts": ["cn1"]}
_SWEPT: Final = component(
    "SweptLeases",
    open_object(
        {
            "released": described(
                list_of(
                    open_object(
                        {
                            "consumer": _CONSUMER,
                            "project_id": EXTERNAL_ID,
                            "hosts": described(
                                list_of(TEXT), "The names of the hosts on which it held something."
                            ),
                        }
                    )
                ),
                "The consumers that this sweep released.",
            )
        }
    ),
    example={"released": [_EXPIRED_EXAMPLE]},
)

_on_lease = partial(
    Operation,
    path="/leases/{consumer}",
    segments={"consumer": Segment("The UUID of the consumer.", UUID, examples.CONSUMER)},
    tag=TAG,
    target="berth_v1.consumers:project_of",
)

OPERATIONS: Final = (
    Operation(
        "GET",
        "/leases",
        handler="berth_v1.leases:list_leases",
        rule=LEASES_LIST,
        tag=TAG,
        summary="List leases",
        details="A line for each consumer that has a lease, in the order of their UUIDs, as of one "
        "state of the database; then a line with `end`, without which the answer is incomplete.",
        query=LISTING,
        answers=(Answer(200, _LINE, means="The leases, as JSON lines.", media_type=JSON_LINES),),
        target="berth_v1.consumers:project_asked_for",
    ),
    Operation(
        "POST",
        "/leases",
        handler="berth_v1.leases:sweep_leases",
        rule=LEASES_UPDATE,
        tag=TAG,
        summary="Sweep leases now",
        details="Releases the consumers whose leases have expired, as each worker does every few"
        " seconds.",
        answers=shows(_SWEPT, Dated.NO, means="The released consumers."),
        target="berth_v1.leases:of_all_projects",
    ),
    _on_lease(
        "GET",
        handler="berth_v1.leases:show_lease",
        rule=LEASES_LIST,
        summary="Show the lease of a consumer",
        answers=shows(_LEASE, Dated.NO),
    ),
    _on_lease(
        "PUT",
        handler="berth_v1.leases:put_lease",
        rule=LEASES_UPDATE,
        summary="Give a consumer a lease, or renew it",
        details="The consumer must hold something. Any other write of its allocations, except a"
        " placement with `lease_seconds`, ends the lease.",
        body=Body(always(PUT), always(_SENT)),
        answers=shows(_LEASE, Dated.NO, means="The lease, which may have been renewed."),
        conflict="Other requests changed the consumer each time.",
    ),
    _on_lease(
        "DELETE",
        handler="berth_v1.leases:end_lease",
        rule=LEASES_UPDATE,
        summary="End the lease of a consumer",
        details="The consumer keeps what it holds.",
        answers=DONE,
        conflict="Other requests changed the lease each time.",
    ),
)
