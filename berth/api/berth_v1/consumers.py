# SPDX-License-Identifier: Apache-2.0
"""Consumers, with everything that they hold. Source: spec/beyond.md 6.4."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from berth.api import audit
from berth.api.allocations import write_allocations
from berth.api.berth_v1 import body
from berth.api.berth_v1.asking import Warnings
from berth.api.berth_v1.pointed import PointedSchema, pointer_of, refused
from berth.api.berth_v1.refusals import not_found, unknown_name, unknown_provider
from berth.api.berth_v1.times import shown_lease, shown_time
from berth.api.errors import Refused
from berth.api.operations.berth_v1.consumers import CLAIM
from berth.api.operations.berth_v1.pieces import CONSUMER_NAME_PATTERN
from berth.api.paths import consumer_uuid
from berth.api.query_string import parse_pairs
from berth.api.rendering import answer, answer_empty, answer_lines, answer_listed
from berth.api.request import Request, Response, Services
from berth.candidates.explain.explanation import NearHost
from berth.candidates.references import References, UnknownName
from berth.index.snapshot import Snapshot
from berth.model.consumer import ConsumerWrite
from berth.model.ids import ConsumerUUID, Generation, ProviderId, ProviderUUID
from berth.model.names import NAME_LENGTH_MAX
from berth.model.similar_names import similar
from berth.store import consumer_lists as store
from berth.store.allocations import release_consumer as release
from berth.store.consumer_lists import ConsumerFilters, ListedConsumer
from berth.store.leases import expiry
from berth.store.replaced import Holder

#: Key in the WSGI environment of the consumer that the path names, None if it holds nothing: read
#: once, for the policy and for the handler.
_CONSUMER: Final = "berth.consumer"

#: Of a host that an explanation shows.
CONSUMERS_SHOWN_MAX: Final = 10

_CLAIM: Final = PointedSchema(CLAIM)
_NAME: Final = re.compile(CONSUMER_NAME_PATTERN)


def project_asked_for(services: Services, request: Request) -> Mapping[str, str | None]:
    """The project of the query, which a reader of the project may ask for."""
    try:
        query = dict(parse_pairs(request.query_string))
    except Refused:
        # Only authorized callers learn that the query is malformed.
        query = {}
    return _target(query.get("project_id"))


def project_of(services: Services, request: Request, uuid: str) -> Mapping[str, str | None]:
    """The project of the consumer in the path."""
    consumer = request.env[_CONSUMER] = store.get_consumer(services.database, consumer_uuid(uuid))
    if consumer is not None:
        _note_owner(request, consumer)
    return _target(None if consumer is None else consumer.project_id)


def project_of_path(
    services: Services, request: Request, project: str, name: str
) -> Mapping[str, str | None]:
    """The project in the path."""
    return _target(project)


def _note_owner(request: Request, consumer: ListedConsumer) -> None:
    owner = Holder(consumer.project_id, consumer.user_id, consumer.name)
    audit.note_owner(request, consumer.uuid, owner)


def _target(project: str | None) -> dict[str, str | None]:
    """What the policy compares the caller with: without a project, no project is equal to it."""
    return {} if project is None else {"project_id": project}


def list_consumers(services: Services, request: Request, response: Response) -> None:
    """List the consumers that satisfy the filters of the query."""
    warnings = Warnings()
    filters = _filters(request.query, services.index.snapshot(), warnings)
    end: dict[str, Any] = {"warnings": warnings.sent} if warnings.sent else {}
    if filters is None:
        return answer_lines(response, [], end=end)
    pages = store.pages_of_consumers(services.database, filters)
    answer_listed(response, pages, _shown, limit=request.query.get("limit"), end=end)


def consumers_on(services: Services, snapshot: Snapshot, near: NearHost) -> dict[str, Any]:
    """The first consumers that hold some of the classes that a host lacks."""
    lacked = {lack.asked for lack in near.lacks if lack.asked}
    place = _located(snapshot, "host", near.host.uuid, Warnings())
    if not lacked or place is None:
        return {}
    page = next(store.pages_of_consumers(services.database, ConsumerFilters(root=place[0])), [])
    holding = [
        _shown(consumer)
        for consumer in page
        if any(lacked & each.resources.keys() for each in consumer.allocations.values())
    ]
    more = len(holding) > CONSUMERS_SHOWN_MAX or len(page) == store.PAGE
    return {
        "consumers": holding[:CONSUMERS_SHOWN_MAX],
        **({"more_consumers": True} if more else {}),
    }


def show_consumer(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Show one consumer."""
    answer(response, _shown(_consumer(request, uuid)))


def release_consumer(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Release everything that a consumer holds.

    Without a generation in the query, it is the one that the policy was asked about.
    """
    seen = _seen_generation(request)
    _release(services, request, response, _consumer(request, uuid), seen)


def show_named_consumer(
    services: Services, request: Request, response: Response, project: str, name: str
) -> None:
    """Show the consumer of a project with a name."""
    answer(response, _shown(_named_consumer(services, project, name)))


def release_named_consumer(
    services: Services, request: Request, response: Response, project: str, name: str
) -> None:
    """Release everything that the consumer of a project with a name holds."""
    seen = _seen_generation(request)
    _release(services, request, response, _named_consumer(services, project, name), seen)


def claim_for_name(
    services: Services, request: Request, response: Response, project: str, name: str
) -> None:
    """Allocate resources to the consumer of a project with a name, a new one by default."""
    wanted = body.read(request, _CLAIM)
    _check_path(project, name)
    seen = wanted.get("generation")
    seconds = wanted.get("lease_seconds")
    lease_until = None if seconds is None else expiry(services.database, seconds)
    write = ConsumerWrite(
        uuid=_uuid_for(services, wanted, project, name),
        allocations=_allocations(services.index.snapshot(), wanted["allocations"]),
        project_id=project,
        user_id=wanted["user_id"],
        generation=None if seen is None else Generation(seen),
        consumer_type=wanted["consumer_type"],
        name=name,
        lease_until=lease_until,
    )
    write_allocations(services, request, [write])
    claimed = {"uuid": write.uuid, "name": name, "project_id": project}
    lease = {} if lease_until is None else {"lease": shown_lease(lease_until)}
    answer(response, {**claimed, "generation": 1 if seen is None else seen + 1, **lease})


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


def _uuid_for(
    services: Services, wanted: Mapping[str, Any], project: str, name: str
) -> ConsumerUUID:
    """The consumer that a body is for: that of the body, that with the name, or a new one."""
    if "uuid" in wanted:
        uuid = consumer_uuid(wanted["uuid"])
        # The policy was asked about the project in the path.
        present = store.get_consumer(services.database, uuid)
        if present is not None and present.project_id != project:
            raise Refused(409, f"Consumer {uuid} is not of project {project}.")
        return uuid
    is_new = wanted.get("generation") is None
    return ConsumerUUID(str(uuid4())) if is_new else _named_consumer(services, project, name).uuid


def _allocations(
    snapshot: Snapshot, wanted: Mapping[str, Any]
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
        for name in of_provider["resources"]:
            if name not in classes:
                at = f"{at}/resources/{name}"
                raise unknown_name(UnknownName(at, "resource_class", name, similar(name, classes)))
        allocations[ProviderUUID(uuid)] = of_provider["resources"]
    return allocations


def _consumer(request: Request, uuid: str) -> ListedConsumer:
    consumer: ListedConsumer | None = request.env[_CONSUMER]
    if consumer is None:
        raise not_found(f"No consumer {uuid} holds anything.")
    return consumer


def _named_consumer(services: Services, project: str, name: str) -> ListedConsumer:
    consumer = store.get_named_consumer(services.database, project, name)
    if consumer is None:
        raise not_found(f"Project {project} has no consumer named {name}.")
    return consumer


def _seen_generation(request: Request) -> Generation | None:
    """The generation of the query, None without one."""
    seen = request.query.get("generation")
    return None if seen is None else Generation(int(seen))


def _release(
    services: Services,
    request: Request,
    response: Response,
    consumer: ListedConsumer,
    seen: Generation | None,
) -> None:
    """Release a consumer, if it is still as it was read, or at the generation of the query."""
    _note_owner(request, consumer)
    release(
        services.database,
        consumer.uuid,
        consumer.generation if seen is None else seen,
        replaced=audit.releasing(request, consumer.uuid),
    )
    services.observer.released(1)
    answer_empty(response)


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
    uuid = References(snapshot).provider(reference)
    location = None if uuid is None else snapshot.locate_uuid(uuid)
    if location is None:
        warnings.add("unknown_provider", f"/{name}", reference=reference)
        return None
    ids = snapshot.block(location.block_id).provider_ids
    root, provider = ids.item(0, location.row), ids.item(location.node, location.row)
    return ProviderId(root), ProviderId(provider)


def _shown(consumer: ListedConsumer) -> dict[str, Any]:
    return {
        "uuid": consumer.uuid,
        "name": consumer.name,
        "project_id": consumer.project_id,
        "user_id": consumer.user_id,
        "consumer_type": consumer.consumer_type,
        "generation": consumer.generation,
        "created_at": None if consumer.created_at is None else shown_time(consumer.created_at),
        "allocations": {
            uuid: {"name": provider.name, "resources": provider.resources}
            for uuid, provider in consumer.allocations.items()
        },
        "lease": shown_lease(consumer.lease_until),
    }
