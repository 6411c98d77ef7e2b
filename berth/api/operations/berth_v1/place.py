# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/place` and `GET /berth/v1/placements/...`. Source: spec/beyond.md 5."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from berth.api.berth_v1.grammar import HOST, ORDER, REQUEST, TOLERATE, WHAT_IF, integer, up_to
from berth.api.berth_v1.pointed import PointedSchema
from berth.api.operation import (
    Body,
    Dated,
    Operation,
    Segment,
    always,
    component,
    ref,
    shows,
)
from berth.api.operations import examples
from berth.api.operations.berth_v1 import rules
from berth.api.operations.berth_v1.candidates import CANDIDATE_MEMBERS, SCORE
from berth.api.operations.berth_v1.pieces import (
    CONSUMER_NAME,
    DRY_RUN_QUERY,
    LEASE,
    LEASE_SECONDS,
    REVISION,
    REVISION_EXAMPLE,
)
from berth.api.operations.berth_v1.warnings import WARNING
from berth.api.operations.fragments import (
    BOOLEAN,
    CONSUMER_TYPE,
    COUNT,
    EXTERNAL_ID,
    GENERATION,
    TEXT,
    UUID,
    UUID_36_PATTERN,
    closed_object,
    described,
    list_of,
    object_by,
    open_object,
)
from berth.api.schema import JSONSchema
from berth.model.bounds import CONSUMERS_MAX, LABEL_KEYS_MAX
from berth.model.names import LABEL_KEY

TAG: Final = "Placements"

#: Candidates that are tried before giving up, unless the body says otherwise.
TRIES: Final = 8
#: Hosts that are scored, unless the body says otherwise.
AMONG: Final = 512


class Basis(StrEnum):
    """How it is known what a consumer has asked for."""

    #: The request was kept.
    PLACED = "placed"
    #: One stored flavor can be what it holds.
    FLAVOR = "flavor"
    #: What it holds is all that is known.
    ALLOCATIONS = "allocations"


_LABEL_KEY: Final = rf"^{LABEL_KEY}\Z"

_CONSUMER: Final = closed_object(
    {
        "uuid": described(
            UUID,
            "Chosen by the client; it makes the call repeatable. It may be left out "
            "if there is a `name`, which makes it repeatable too.",
        ),
        "name": CONSUMER_NAME,
        "project_id": EXTERNAL_ID,
        "user_id": EXTERNAL_ID,
        "consumer_type": CONSUMER_TYPE,
        "consumer_generation": described(GENERATION, "Needed with `replace` only."),
    },
    required=("project_id", "user_id", "consumer_type"),
)
_ORDER: JSONSchema = described(
    ORDER, f"As for candidates; by default `spread`, `among` {AMONG} hosts, with a random `seed`."
)
BODY_SCHEMA: Final = PointedSchema(
    closed_object(
        {
            "request": described(
                REQUEST,
                "What each of the consumers gets. With `replace` it may be left out: each consumer"
                " then keeps its own request.",
            ),
            "host": described(
                HOST,
                "Further conditions on hosts, of this call alone: they are not kept with the"
                " request. Their `in` takes the place of that of the request.",
            ),
            "tolerate": described(TOLERATE, "Further drains to tolerate in this call."),
            "consumers": {
                "type": "array",
                "items": _CONSUMER,
                "minItems": 1,
                "maxItems": CONSUMERS_MAX,
                "x-bound": "max_consumers",
                "description": "All of them are placed, or none.",
            },
            "order": _ORDER,
            "max_per": {
                **object_by(_LABEL_KEY, integer(1, CONSUMERS_MAX)),
                "maxProperties": LABEL_KEYS_MAX,
                "x-bound": "max_label_keys",
                "description": "`host`, or a label key: at most this many of these consumers on one"
                " host, or on the hosts with one value of the label.",
            },
            "within": {
                "type": "string",
                "pattern": _LABEL_KEY,
                "description": "`host`, or a label key: all consumers are on one host, or on hosts"
                " with one value of the label.",
            },
            "replace": {
                "type": "boolean",
                "default": False,
                "description": "Whether the consumers exist and hold something, which they give"
                " back in the same transaction; each then needs `consumer_generation`.",
            },
            "lease_seconds": described(
                LEASE_SECONDS,
                "How long they may hold it, unless the lease is renewed: then berth"
                " takes it back. By default, until they release it.",
            ),
            "tries": described(
                up_to("max_tries", default=TRIES),
                "How many candidates are tried if others are faster each time.",
            ),
            "explain": {
                "type": "boolean",
                "default": True,
                "description": "Whether a refusal says why there is no place.",
            },
            "what_if": described(WHAT_IF, "With `dry_run=true` only."),
        },
        required=("consumers",),
    )
)
_CONSUMERS_EXAMPLE: Final = ("11111111-1f4a-4c11-8a3f-0d6f3d6f8a01",)
_EXAMPLE: Final = {
    "request": {"groups": {"": {"resources": {"VCPU": 8, "MEMORY_MB": 16384}}}},
    "consumers": [
        {
            "uuid": _CONSUMERS_EXAMPLE[0],
            "project_id": "web",
            "user_id": "alice",
            "consumer_type": "INSTANCE",
        }
    ],
    "order": {"by": "spread"},
    "max_per": {"host": 1, "rack": 2},
    "within": "zone",
}

_PLACEMENT_MEMBERS: Final[dict[str, JSONSchema]] = {
    **CANDIDATE_MEMBERS,
    "consumer_generation": GENERATION,
}
_PLACEMENT_EXAMPLE: Final[dict[str, Any]] = {
    "host": examples.PROVIDER,
    "allocations": {examples.PROVIDER: {"resources": {"VCPU": 8, "MEMORY_MB": 16384}}},
    "mappings": {"": [examples.PROVIDER]},
    "consumer_generation": 1,
}
_PROVIDER_NAMES: Final = described(
    object_by(UUID_36_PATTERN, TEXT),
    "The names of the hosts, and of the providers in `allocations`.",
)
_PLACED: Final = component(
    "PlacedConsumer",
    open_object(
        _PLACEMENT_MEMBERS,
        optional={
            "score": SCORE,
            "name": CONSUMER_NAME,
            "lease": LEASE,
            "from": described(UUID, "With `replace`: the host on which the consumer was."),
        },
    ),
)
_PLACEMENTS: Final = component(
    "Placements",
    open_object(
        {
            "revision": REVISION,
            "repeated": described(
                BOOLEAN, "Whether an earlier call with the same body has done it."
            ),
            "tries": described(COUNT, "How many candidates were tried; 0 if repeated."),
            "placements": described(
                object_by(UUID_36_PATTERN, ref("PlacedConsumer")),
                "By consumer, in the order of the body.",
            ),
            "warnings": list_of(ref("Warning")),
            "providers": _PROVIDER_NAMES,
        },
        optional={
            "alternative": described(COUNT, "Which of the alternatives was placed."),
        },
    ),
    example={
        "revision": REVISION_EXAMPLE,
        "repeated": False,
        "tries": 1,
        "placements": {
            _CONSUMERS_EXAMPLE[0]: {
                **_PLACEMENT_EXAMPLE,
                "score": {"total": 0.81, "spread": 0.81, "prefer": []},
            }
        },
        "warnings": [],
        "providers": {examples.PROVIDER: "cn31"},
    },
    parts=(_PLACED, WARNING),
)
_PLACEMENT: Final = component(
    "Placement",
    open_object(
        {
            **_PLACEMENT_MEMBERS,
            "request": described(
                open_object({}), "What the consumer asked for, or what follows from what it holds."
            ),
            "basis": described(
                {"type": "string", "enum": [*Basis]},
                "`placed`: the request was kept; `flavor`: exactly one flavor can be what the"
                " consumer holds; `allocations`: what it holds is all that is known, and the answer"
                " has the warning `request_unknown`.",
            ),
            "warnings": list_of(ref("Warning")),
            "providers": _PROVIDER_NAMES,
        }
    ),
    example={
        **_PLACEMENT_EXAMPLE,
        "request": _EXAMPLE["request"],
        "basis": "placed",
        "warnings": [],
        "providers": {examples.PROVIDER: "cn31"},
    },
    parts=(WARNING,),
)

OPERATIONS: Final = (
    Operation(
        "POST",
        "/place",
        handler="berth_v1.place:place",
        rule=rules.PLACE,
        tag=TAG,
        summary="Choose hosts for consumers, and claim there",
        details="It can be repeated: a call whose consumers still hold what an earlier call with"
        " the same body gave them answers the same again, and writes nothing.",
        query=DRY_RUN_QUERY,
        body=Body(always(BODY_SCHEMA), always(_EXAMPLE)),
        answers=shows(_PLACEMENTS, Dated.NO, means="Where the consumers are."),
        conflict="Nothing fits, a consumer holds something already or has changed, or other"
        " requests were faster each time.",
        target="berth_v1.place_target:project_of_body",
    ),
    Operation(
        "GET",
        "/placements/{consumer}",
        handler="berth_v1.place:show_placement",
        rule=rules.PLACE,
        tag=TAG,
        segments={"consumer": Segment("The UUID of the consumer.", UUID, _CONSUMERS_EXAMPLE[0])},
        summary="Show where a consumer is, and what it asked for",
        details="The request and the mappings of a placement count for as long as the consumer"
        " holds exactly what it got; afterwards they are inferred from what it holds.",
        answers=shows(_PLACEMENT, Dated.NO, means="The providers that serve each group."),
        target="berth_v1.consumers:project_of",
    ),
    Operation(
        "GET",
        "/placements/{project_id}/{name}",
        handler="berth_v1.place:show_placement_by_name",
        rule=rules.PLACE,
        tag=TAG,
        segments={
            "project_id": Segment("The project of the consumer.", EXTERNAL_ID, "web"),
            "name": Segment("Its name within the project.", CONSUMER_NAME, "job-17"),
        },
        summary="Show where a consumer with a name is, and what it asked for",
        details="The request and the mappings of a placement count for as long as the consumer"
        " holds exactly what it got; afterwards they are inferred from what it holds.",
        answers=shows(_PLACEMENT, Dated.NO, means="The providers that serve each group."),
        target="berth_v1.consumers:project_of_path",
    ),
)
