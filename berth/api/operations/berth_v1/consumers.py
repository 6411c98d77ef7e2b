# SPDX-License-Identifier: Apache-2.0
"""Consumers, with everything that they hold. Source: spec/beyond.md 6.4."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

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
from berth.api.operations.berth_v1.pieces import CONSUMER_NAME, LEASE, LEASE_SECONDS
from berth.api.operations.berth_v1.rules import (
    CONSUMERS_DELETE,
    CONSUMERS_LIST,
    CONSUMERS_SHOW,
    CONSUMERS_UPDATE,
)
from berth.api.operations.berth_v1.warnings import WARNING
from berth.api.operations.fragments import (
    AMOUNTS,
    CLASS_NAME_PATTERN,
    CONSUMER_TYPE,
    COUNT,
    EXTERNAL_ID,
    GENERATION,
    PROVIDER_NAME,
    TEXT,
    UUID,
    UUID_36_PATTERN,
    closed_object,
    described,
    list_of,
    object_by,
    open_object,
)
from berth.api.schema import JSONSchema, Schema
from berth.model.inventory import MAX_INT
from berth.model.names import NAME_LENGTH_MAX

TAG: Final = "Consumers"

_REFERENCE: JSONSchema = {"type": "string", "minLength": 1}

LIMIT: Final = Parameter(
    name="limit",
    means={0: "At most this many, from 1 to 1000; the last line has `more` if there are others."},
    example="100",
    schema={"type": "string", "pattern": r"^([1-9][0-9]{0,2}|1000)\Z"},
    expected="a number from 1 to 1000",
)

FILTERS: Final = Query(
    Parameter(
        name="host",
        means={
            0: "Only consumers that hold something of this host, or of a provider below it. Any "
            "provider of the tree stands for the host, by its UUID or its name."
        },
        example="cn1",
        schema=_REFERENCE,
    ),
    Parameter(
        name="provider",
        means={0: "Only consumers that hold something of this provider itself; its UUID or name."},
        example="cn1_gpu_0",
        schema=_REFERENCE,
    ),
    Parameter(
        name="project_id",
        means={0: "Only consumers of this project. A reader of a project must name it."},
        example="web",
        schema=EXTERNAL_ID,
    ),
    Parameter(
        name="user_id",
        means={0: "Only consumers of this user."},
        example="alice",
        schema=EXTERNAL_ID,
    ),
    Parameter(
        name="consumer_type",
        means={0: "Only consumers of this type; `unknown` for consumers without one."},
        example="INSTANCE",
        schema={
            "type": "string",
            "pattern": r"^([A-Z0-9_]+|unknown)\Z",
            "maxLength": NAME_LENGTH_MAX,
        },
    ),
    Parameter(
        name="name",
        means={0: "Only consumers with this name."},
        example="job-17",
        schema=CONSUMER_NAME,
    ),
    Parameter(
        name="search",
        means={0: "Only consumers whose name contains it, or whose UUID begins with it."},
        example="job-1",
        schema=CONSUMER_NAME,
    ),
    LIMIT,
)

#: The generation that a client has seen; a whole number without a sign.
DELETING: Final = Query(
    Parameter(
        name="generation",
        means={0: "Release it only if it is still at this generation."},
        example="1",
        schema={"type": "string", "pattern": r"^[0-9]{1,9}\Z"},
        expected="a generation, such as 1",
    )
)

_PROVIDER: JSONSchema = open_object({"name": PROVIDER_NAME, "resources": AMOUNTS})
_MEMBERS: dict[str, JSONSchema] = {
    "uuid": UUID,
    "name": {"type": ["string", "null"], "description": "Its name within its project."},
    "project_id": EXTERNAL_ID,
    "user_id": EXTERNAL_ID,
    "consumer_type": described(TEXT, "`unknown` if it has none."),
    "generation": GENERATION,
    "created_at": {
        "type": ["string", "null"],
        "format": "date-time",
        "description": "When its record was created; null if unknown.",
    },
    "allocations": described(
        object_by(UUID_36_PATTERN, _PROVIDER, at_least_one=True),
        "What it holds, by the UUID of the provider.",
    ),
    "lease": LEASE,
}
_EXAMPLE: Final[dict[str, Any]] = {
    "uuid": examples.CONSUMER,
    "name": "job-17",
    "project_id": "web",
    "user_id": "alice",
    "consumer_type": "INSTANCE",
    "generation": 1,
    "created_at": "2026-11-23T22:40:00Z",
    "allocations": {examples.PROVIDER: {"name": "cn1", "resources": examples.RESOURCES}},
    "lease": None,
}
CONSUMER: Final = component("Consumer", open_object(_MEMBERS), example=_EXAMPLE)
#: The last line of a list.
END: Final = component(
    "End",
    open_object(
        {
            "end": {
                "type": "boolean",
                "enum": [True],
                "description": "This is the last line.",
            },
            "lines": described(COUNT, "How many lines came before this one."),
        },
        optional={
            "more": {
                "type": "boolean",
                "enum": [True],
                "description": "The `limit` left others out.",
            },
            "warnings": list_of(ref("Warning")),
        },
    ),
    parts=(WARNING,),
)
_LINE: Final = component(
    "ConsumerLine",
    {"anyOf": [ref("Consumer"), ref("End")]},
    example=_EXAMPLE,
    parts=(CONSUMER, END, WARNING),
)

_CLAIMED: dict[str, JSONSchema] = {
    "uuid": UUID,
    "name": CONSUMER_NAME,
    "project_id": EXTERNAL_ID,
    "generation": GENERATION,
}
_CLAIM_EXAMPLE: Final = {
    "allocations": {"cn1": {"resources": examples.RESOURCES}},
    "user_id": "alice",
    "consumer_type": "INSTANCE",
}
#: What `PUT` takes.
CLAIM: Final = closed_object(
    {
        "allocations": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": closed_object(
                {
                    "resources": object_by(
                        CLASS_NAME_PATTERN,
                        {"type": "integer", "minimum": 1, "maximum": MAX_INT},
                        at_least_one=True,
                    )
                },
                required=("resources",),
            ),
            "description": "What it gets, by the UUID or the name of the provider.",
        },
        "mappings": {
            "type": "object",
            "description": "That of a candidate, which may be sent as it is; it has no effect.",
        },
        "user_id": EXTERNAL_ID,
        "consumer_type": CONSUMER_TYPE,
        "uuid": described(UUID, "The UUID of a new consumer; by default berth makes one."),
        "generation": {
            "type": ["integer", "null"],
            "minimum": 0,
            "description": "To replace what the consumer has: the generation that the client has "
            "seen. By default, it must be new.",
        },
        "lease_seconds": described(
            LEASE_SECONDS,
            "How long it may hold it, unless the lease is renewed: then berth takes"
            " it back. By default, until it releases it.",
        ),
    },
    required=("allocations", "user_id", "consumer_type"),
)
_CLAIMED_CONSUMER: Final = component(
    "ClaimedConsumer",
    open_object(_CLAIMED, optional={"lease": LEASE}),
    example={name: _EXAMPLE[name] for name in _CLAIMED},
)

_on_consumer = partial(
    Operation,
    path="/consumers/{uuid}",
    segments={"uuid": Segment("The UUID of the consumer.", UUID, examples.CONSUMER)},
    tag=TAG,
    target="berth_v1.consumers:project_of",
)
_on_named = partial(
    Operation,
    path="/consumers/{project_id}/{name}",
    segments={
        "project_id": Segment("The project of the consumer.", EXTERNAL_ID, "web"),
        "name": Segment("Its name within the project.", CONSUMER_NAME, "job-17"),
    },
    tag=TAG,
    target="berth_v1.consumers:project_of_path",
)

OPERATIONS = (
    Operation(
        "GET",
        "/consumers",
        handler="berth_v1.consumers:list_consumers",
        rule=CONSUMERS_LIST,
        tag=TAG,
        summary="List consumers with what they hold",
        details="A line for each consumer that holds something, in the order of their UUIDs, as "
        "of one state of the database; then a line with `end`, without which the answer is "
        "incomplete. A provider that does not exist matches nothing, and the last line warns of "
        "it.",
        query=FILTERS,
        answers=(
            Answer(
                200,
                _LINE,
                means="The consumers that satisfy all filters, as JSON lines.",
                media_type=JSON_LINES,
            ),
        ),
        target="berth_v1.consumers:project_asked_for",
    ),
    _on_consumer(
        "GET",
        handler="berth_v1.consumers:show_consumer",
        rule=CONSUMERS_SHOW,
        summary="Show a consumer with what it holds",
        answers=shows(CONSUMER, Dated.NO),
    ),
    _on_consumer(
        "DELETE",
        handler="berth_v1.consumers:release_consumer",
        rule=CONSUMERS_DELETE,
        summary="Release everything that a consumer holds",
        query=DELETING,
        answers=DONE,
        conflict="The consumer is at another generation, or another client changed it meanwhile.",
    ),
    _on_named(
        "GET",
        handler="berth_v1.consumers:show_named_consumer",
        rule=CONSUMERS_SHOW,
        summary="Show a consumer by its name",
        answers=shows(CONSUMER, Dated.NO),
    ),
    _on_named(
        "PUT",
        handler="berth_v1.consumers:claim_for_name",
        rule=CONSUMERS_UPDATE,
        summary="Allocate resources to a consumer with a name",
        details="All or nothing, like `PUT /allocations/{consumer_uuid}`. The name is free again "
        "when the consumer releases everything.",
        body=Body(always(Schema(CLAIM)), always(_CLAIM_EXAMPLE)),
        answers=shows(_CLAIMED_CONSUMER, Dated.NO, means="The consumer with its new generation."),
        conflict="The resources are not free, another consumer of the project has the name, or the "
        "consumer is at another generation.",
    ),
    _on_named(
        "DELETE",
        handler="berth_v1.consumers:release_named_consumer",
        rule=CONSUMERS_DELETE,
        summary="Release everything that a consumer with a name holds",
        query=DELETING,
        answers=DONE,
        conflict="The consumer is at another generation, or another client changed it meanwhile.",
    ),
)
