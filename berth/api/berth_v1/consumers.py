# SPDX-License-Identifier: Apache-2.0
"""Consumers, with everything that they hold. Source: spec/beyond.md 6.4."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final
from uuid import uuid4

from msgspec import Meta
from msgspec.structs import replace

from berth.api import audit, examples
from berth.api.answers import LongBody, lines, listed
from berth.api.berth_v1.fleet_questions import WARNING, Warnings
from berth.api.berth_v1.grammar import integer
from berth.api.berth_v1.inputs import BodySchema
from berth.api.berth_v1.questions import JSONObject
from berth.api.berth_v1.refusals import (
    not_found,
    pointer_of,
    refused,
    unknown_name,
    unknown_provider,
)
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
from berth.api.placement.allocations import write_allocations
from berth.api.query_string import parse_pairs
from berth.api.request import Call, Services
from berth.api.schema import JSONSchema
from berth.api.shapes import (
    CLASS_NAME_PATTERN,
    CONSUMER_NAME,
    CONSUMER_NAME_PATTERN,
    CONSUMER_TYPE,
    COUNT,
    EXTERNAL_ID,
    LEASE_SECONDS,
    UUID,
    described,
    list_of,
    object_by,
    open_object,
)
from berth.api.struct_schema import Input, shown
from berth.candidates.references import References, UnknownName
from berth.index.snapshot import Snapshot
from berth.model.consumer import Consumer, ConsumerWrite
from berth.model.explanation import NearHost
from berth.model.ids import ConsumerUUID, Generation, ProviderId, ProviderUUID
from berth.model.inventory import MAX_INT
from berth.model.names import NAME_LENGTH_MAX, similar
from berth.model.shown import LEASE, UNSET, ExternalId, Lease, Shown, Sometimes
from berth.store import consumer_lists as store
from berth.store.allocations import release_consumer as release
from berth.store.consumer_lists import ConsumerFilters
from berth.store.engine.write_record import Holder
from berth.store.leases import expiry

_REFERENCE: JSONSchema = {"type": "string", "minLength": 1}

LIMIT: Final = Parameter(
    name="limit",
    means="At most this many, from 1 to 1000; the last line has `more` if there are others.",
    example="100",
    schema={"type": "string", "pattern": r"^([1-9][0-9]{0,2}|1000)\Z"},
    expected="a number from 1 to 1000",
)

FILTERS: Final = Query(
    Parameter(
        name="host",
        means="Only consumers that hold something of this host, or of a provider below it. Any "
        "provider of the tree stands for the host, by its UUID or its name.",
        example="cn1",
        schema=_REFERENCE,
    ),
    Parameter(
        name="provider",
        means="Only consumers that hold something of this provider itself; its UUID or name.",
        example="cn1_gpu_0",
        schema=_REFERENCE,
    ),
    Parameter(
        name="project_id",
        means="Only consumers of this project. A reader of a project must name it.",
        example="web",
        schema=EXTERNAL_ID,
    ),
    Parameter(
        name="user_id",
        means="Only consumers of this user.",
        example="alice",
        schema=EXTERNAL_ID,
    ),
    Parameter(
        name="consumer_type",
        means="Only consumers of this type; `unknown` for consumers without one.",
        example="INSTANCE",
        schema={
            "type": "string",
            "pattern": r"^([A-Z0-9_]+|unknown)\Z",
            "maxLength": NAME_LENGTH_MAX,
        },
    ),
    Parameter(
        name="name",
        means="Only consumers with this name.",
        example="job-17",
        schema=CONSUMER_NAME,
    ),
    Parameter(
        name="search",
        means="Only consumers whose name contains it, or whose UUID begins with it.",
        example="job-1",
        schema=CONSUMER_NAME,
    ),
    LIMIT,
)

#: The generation that a client has seen; a whole number without a sign.
DELETING: Final = Query(
    Parameter(
        name="generation",
        means="Release it only if it is still at this generation.",
        example="1",
        schema={"type": "string", "pattern": r"^[0-9]{1,9}\Z"},
        expected="a generation, such as 1",
    )
)

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
CONSUMER: Final = shown(Consumer, example=_EXAMPLE)
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

_CLAIM_EXAMPLE: Final = {
    "allocations": {"cn1": {"resources": examples.RESOURCES}},
    "user_id": "alice",
    "consumer_type": "INSTANCE",
}


class _Given(Input):
    """What a provider gives."""

    resources: Annotated[
        Mapping[str, int],
        object_by(CLASS_NAME_PATTERN, integer(1, MAX_INT), at_least_one=True),
    ]


class _Claim(Input, kw_only=True):
    """What a consumer is to hold."""

    allocations: Annotated[
        Mapping[str, _Given],
        {"minProperties": 1},
        "What it gets, by the UUID or the name of the provider.",
    ]
    mappings: Annotated[
        JSONObject | None,
        {"type": "object"},
        "That of a candidate, which may be sent as it is; it has no effect.",
    ] = None
    user_id: ExternalId
    consumer_type: Annotated[str, CONSUMER_TYPE]
    uuid: Annotated[str | None, UUID, "The UUID of a new consumer; by default berth makes one."] = (
        None
    )
    generation: Annotated[
        Generation | None,
        {"type": ["integer", "null"], "minimum": 0},
        "To replace what the consumer has: the generation that the client has seen. By default, it"
        " must be new.",
    ] = None
    lease_seconds: Annotated[
        int | None,
        LEASE_SECONDS,
        "How long it may hold it, unless the lease is renewed: then berth takes it back. By"
        " default, until it releases it.",
    ] = None


_CLAIM: Final = BodySchema(_Claim)


class Claimed(Shown):
    """A consumer with what `PUT` gave it."""

    component = "ClaimedConsumer"

    uuid: ConsumerUUID
    name: Annotated[str, CONSUMER_NAME]
    project_id: ExternalId
    generation: Annotated[int, Meta(ge=0)]
    lease: Annotated[Sometimes[Lease | None], LEASE] = UNSET


_CLAIMED: Final = shown(
    Claimed,
    example={name: _EXAMPLE[name] for name in ("uuid", "name", "project_id", "generation")},
)


#: Key in the WSGI environment of the consumer that the path names, None if it holds nothing: read
#: once, for the policy and for the handler.
_CONSUMER: Final = "berth.consumer"

#: Of a host that an explanation shows.
CONSUMERS_SHOWN_MAX: Final = 10

_NAME: Final = re.compile(CONSUMER_NAME_PATTERN)


def project_asked_for(call: Call) -> Mapping[str, str | None]:
    """The project of the query, which a reader of the project may ask for."""
    try:
        query = dict(parse_pairs(call.query_string))
    except Refused:
        # Only authorized callers learn that the query is malformed.
        query = {}
    return _target(query.get("project_id"))


def project_of(call: Call, uuid: str) -> Mapping[str, str | None]:
    """The project of the consumer in the path."""
    consumer = call.env[_CONSUMER] = store.get_consumer(call.services.database, consumer_uuid(uuid))
    if consumer is not None:
        _note_owner(call, consumer)
    return _target(None if consumer is None else consumer.project_id)


def project_of_path(call: Call, project: str, name: str) -> Mapping[str, str | None]:
    """The project in the path."""
    return _target(project)


def _note_owner(call: Call, consumer: Consumer) -> None:
    owner = Holder(consumer.project_id, consumer.user_id, consumer.name)
    audit.note_owner(call, consumer.uuid, owner)


def _target(project: str | None) -> dict[str, str | None]:
    """What the policy compares the caller with: without a project, no project is equal to it."""
    return {} if project is None else {"project_id": project}


@Contract(
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
    target=project_asked_for,
)
def list_consumers(call: Call) -> LongBody:
    """List the consumers that satisfy the filters of the query."""
    warnings = Warnings()
    filters = _filters(call.query, call.services.index.snapshot(), warnings)
    end: dict[str, Any] = {"warnings": warnings.sent} if warnings.sent else {}
    if filters is None:
        return lines([], end=end)
    pages = store.pages_of_consumers(call.services.database, filters)
    return listed(pages, limit=call.query.get("limit"), end=end)


def consumers_on(services: Services, snapshot: Snapshot, near: NearHost) -> NearHost:
    """A host with the first consumers that hold some of the classes that it lacks."""
    lacked = {lack.at.rpartition("/")[2] for lack in near.lacks if lack.asked is not UNSET}
    place = _located(snapshot, "host", near.host.uuid, Warnings())
    if not lacked or place is None:
        return near
    page = next(store.pages_of_consumers(services.database, ConsumerFilters(root=place[0])), [])
    holding = [
        consumer
        for consumer in page
        if any(lacked & each.resources.keys() for each in consumer.allocations.values())
    ]
    more = len(holding) > CONSUMERS_SHOWN_MAX or len(page) == store.PAGE
    return replace(
        near, consumers=holding[:CONSUMERS_SHOWN_MAX], more_consumers=True if more else UNSET
    )


@Contract(
    summary="Show a consumer with what it holds",
    answers=shows(CONSUMER, Dated.NO),
    target=project_of,
)
def show_consumer(call: Call, uuid: str) -> Consumer:
    """Show one consumer."""
    return _consumer(call, uuid)


_releasing: Final = partial(
    Contract,
    query=DELETING,
    answers=DONE,
    conflict="The consumer is at another generation, or another client changed it meanwhile.",
)


@_releasing(summary="Release everything that a consumer holds", target=project_of)
def release_consumer(call: Call, uuid: str) -> None:
    """Release everything that a consumer holds.

    Without a generation in the query, it is the one that the policy was asked about.
    """
    seen = _seen_generation(call)
    _release(call, _consumer(call, uuid), seen)


@Contract(
    summary="Show a consumer by its name",
    answers=shows(CONSUMER, Dated.NO),
    target=project_of_path,
)
def show_named_consumer(call: Call, project: str, name: str) -> Consumer:
    """Show the consumer of a project with a name."""
    return _named_consumer(call.services, project, name)


@_releasing(summary="Release everything that a consumer with a name holds", target=project_of_path)
def release_named_consumer(call: Call, project: str, name: str) -> None:
    """Release everything that the consumer of a project with a name holds."""
    seen = _seen_generation(call)
    _release(call, _named_consumer(call.services, project, name), seen)


@Contract(
    summary="Allocate resources to a consumer with a name",
    details="All or nothing, like `PUT /allocations/{consumer_uuid}`. The name is free again "
    "when the consumer releases everything.",
    body=Body(always(_CLAIM), always(_CLAIM_EXAMPLE)),
    answers=shows(_CLAIMED, Dated.NO, means="The consumer with its new generation."),
    conflict="The resources are not free, another consumer of the project has the name, or the "
    "consumer is at another generation.",
    target=project_of_path,
)
def claim_for_name(call: Call, project: str, name: str) -> Claimed:
    """Allocate resources to the consumer of a project with a name, a new one by default."""
    claim = _CLAIM.read(call)
    _check_path(project, name)
    seen, seconds = claim.generation, claim.lease_seconds
    lease_until = None if seconds is None else expiry(call.services.database, seconds)
    write = ConsumerWrite(
        uuid=_uuid_for(call.services, claim, project, name),
        allocations=_allocations(call.services.index.snapshot(), claim.allocations),
        project_id=project,
        user_id=claim.user_id,
        generation=seen,
        consumer_type=claim.consumer_type,
        name=name,
        lease_until=lease_until,
    )
    write_allocations(call, [write])
    generation = 1 if seen is None else seen + 1
    lease = UNSET if lease_until is None else Lease.until(lease_until)
    return Claimed(write.uuid, name, project, generation, lease)


def _check_path(project: str, name: str) -> None:
    """Refuse a project or a name that no consumer can have."""
    if len(project) > NAME_LENGTH_MAX:
        raise Refused(400, f"A project has at most {NAME_LENGTH_MAX} characters.")
    if len(name) > NAME_LENGTH_MAX or not _NAME.match(name):
        raise Refused(
            400,
            f"The name of a consumer has 1 to {NAME_LENGTH_MAX} characters, without slashes and "
            "control characters.",
        )


def _uuid_for(services: Services, claim: _Claim, project: str, name: str) -> ConsumerUUID:
    """The consumer that a body is for: that of the body, that with the name, or a new one."""
    if claim.uuid is not None:
        uuid = consumer_uuid(claim.uuid)
        # The policy was asked about the project in the path.
        present = store.get_consumer(services.database, uuid)
        if present is not None and present.project_id != project:
            raise Refused(409, f"Consumer {uuid} is not of project {project}.")
        return uuid
    is_new = claim.generation is None
    return ConsumerUUID(str(uuid4())) if is_new else _named_consumer(services, project, name).uuid


def _allocations(
    snapshot: Snapshot, wanted: Mapping[str, _Given]
) -> dict[ProviderUUID, Mapping[str, int]]:
    """The allocations of a body by the UUID of the provider.

    Raises:
        Refused: 400 for a provider or a resource class that does not exist, or a provider that is
            named twice.
    """
    references, classes = References(snapshot), snapshot.names.class_ids
    allocations: dict[ProviderUUID, Mapping[str, int]] = {}
    for reference, of_provider in wanted.items():
        at = pointer_of(("allocations", reference))
        uuid = references.provider(reference)
        if uuid is None:
            raise unknown_provider(reference, at, references)
        if uuid in allocations:
            raise refused(at, f"names provider {uuid}, which is named already")
        for name in of_provider.resources:
            if name not in classes:
                at = f"{at}/resources/{name}"
                raise unknown_name(UnknownName(at, "resource_class", name, similar(name, classes)))
        allocations[ProviderUUID(uuid)] = of_provider.resources
    return allocations


def _consumer(call: Call, uuid: str) -> Consumer:
    consumer: Consumer | None = call.env[_CONSUMER]
    if consumer is None:
        raise not_found(f"No consumer {uuid} holds anything.")
    return consumer


def _named_consumer(services: Services, project: str, name: str) -> Consumer:
    consumer = store.get_named_consumer(services.database, project, name)
    if consumer is None:
        raise not_found(f"Project {project} has no consumer named {name}.")
    return consumer


def _seen_generation(call: Call) -> Generation | None:
    """The generation of the query, None without one."""
    seen = call.query.get("generation")
    return None if seen is None else Generation(int(seen))


def _release(call: Call, consumer: Consumer, seen: Generation | None) -> None:
    """Release a consumer, if it is still as it was read, or at the generation of the query."""
    _note_owner(call, consumer)
    generation = consumer.generation if seen is None else seen
    release(call.services.database, consumer.uuid, generation)
    call.services.observer.released(1)


def _filters(
    query: Mapping[str, str], snapshot: Snapshot, warnings: Warnings
) -> ConsumerFilters | None:
    """The filters of a query; None if a provider in it does not exist."""
    places = {
        name: _located(snapshot, name, query[name], warnings)
        for name in ("host", "provider")
        if name in query
    }
    if None in places.values():
        return None
    host, provider = places.get("host"), places.get("provider")
    return ConsumerFilters(
        root=host[0] if host else None,
        provider=provider[1] if provider else None,
        project_id=query.get("project_id"),
        user_id=query.get("user_id"),
        consumer_type=query.get("consumer_type"),
        name=query.get("name"),
        search=query.get("search"),
    )


def _located(
    snapshot: Snapshot, name: str, reference: str, warnings: Warnings
) -> tuple[ProviderId, ProviderId] | None:
    """The ids of the root of a provider's tree, and of the provider; warns if there is none."""
    location = References(snapshot).location(reference)
    if location is None:
        warnings.add("unknown_provider", f"/{name}", reference=reference)
        return None
    ids = snapshot.block(location.block_id).provider_ids
    root, provider = ids.item(0, location.row), ids.item(location.node, location.row)
    return ProviderId(root), ProviderId(provider)
