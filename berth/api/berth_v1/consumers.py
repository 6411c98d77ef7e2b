# SPDX-License-Identifier: Apache-2.0
"""Consumers, with everything that they hold. Source: spec/beyond.md 6.4."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from berth.api.berth_v1.asking import Warnings
from berth.api.berth_v1.refusals import not_found
from berth.api.errors import Refused
from berth.api.operations.berth_v1.consumers import DELETING, FILTERS
from berth.api.paths import consumer_uuid
from berth.api.query_string import last_values, parse_pairs
from berth.api.rendering import answer, answer_empty, answer_lines
from berth.api.request import Request, Response, Services
from berth.candidates.references import References
from berth.index.snapshot import Snapshot
from berth.model.ids import Generation, ProviderId
from berth.store import consumer_lists as store
from berth.store.allocations import release_consumer as release
from berth.store.consumer_lists import ConsumerFilters, ListedConsumer

#: Key in the WSGI environment of the consumer that the path names, None if it holds nothing: read
#: once, for the policy and for the handler.
_CONSUMER: Final = "berth.consumer"


def project_asked_for(services: Services, request: Request) -> Mapping[str, str | None]:
    """The project of the query, which a reader of the project may ask for."""
    try:
        query = last_values(parse_pairs(request.query_string))
    except Refused:
        # Only authorized callers learn that the query is malformed.
        query = {}
    return _target(query.get("project_id"))


def project_of(services: Services, request: Request, uuid: str) -> Mapping[str, str | None]:
    """The project of the consumer in the path."""
    consumer = store.get_consumer(services.database, consumer_uuid(uuid))
    request.env[_CONSUMER] = consumer
    return _target(None if consumer is None else consumer.project_id)


def _target(project: str | None) -> dict[str, str | None]:
    """What the policy compares the caller with: without a project, no project is equal to it."""
    return {} if project is None else {"project_id": project}


def list_consumers(services: Services, request: Request, response: Response) -> None:
    """List the consumers that satisfy the filters of the query."""
    query = last_values(parse_pairs(request.query_string))
    FILTERS.schema.at(request.microversion).check(query)
    warnings = Warnings()
    filters = _filters(query, services.index.snapshot(), warnings)
    pages = [] if filters is None else store.pages_of_consumers(services.database, filters)
    parts = ([_shown(consumer) for consumer in page] for page in pages)
    answer_lines(response, parts, **({"warnings": warnings.sent} if warnings.sent else {}))


def show_consumer(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Show one consumer."""
    answer(response, _shown(_consumer(request, uuid)))


def release_consumer(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Release everything that a consumer holds.

    Without a generation in the query, it is the one that the policy was asked about.
    """
    query = last_values(parse_pairs(request.query_string))
    DELETING.schema.at(request.microversion).check(query)
    consumer = _consumer(request, uuid)
    seen = Generation(int(query.get("generation", consumer.generation)))
    release(services.database, consumer.uuid, seen)
    services.observer.released(1)
    answer_empty(response)


def _consumer(request: Request, uuid: str) -> ListedConsumer:
    consumer: ListedConsumer | None = request.env[_CONSUMER]
    if consumer is None:
        raise not_found(f"No consumer {uuid} holds anything.")
    return consumer


def _filters(
    query: Mapping[str, str], snapshot: Snapshot, warnings: Warnings
) -> ConsumerFilters | None:
    """The filters of a query; None if a provider in it does not exist, or is not of the host."""
    places = {
        name: _located(snapshot, name, query[name], warnings)
        for name in ("host", "provider")
        if name in query
    }
    if None in places.values() or len({place[0] for place in places.values() if place}) > 1:
        return None
    host, provider = places.get("host"), places.get("provider")
    return ConsumerFilters(
        root=host[0] if host else None,
        provider=provider[1] if provider else None,
        project_id=query.get("project_id"),
        user_id=query.get("user_id"),
        consumer_type=query.get("consumer_type"),
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
        "name": None,
        "project_id": consumer.project_id,
        "user_id": consumer.user_id,
        "consumer_type": consumer.consumer_type,
        "generation": consumer.generation,
        "created_at": _time(consumer.created_at),
        "allocations": {
            uuid: {"name": provider.name, "resources": provider.resources}
            for uuid, provider in consumer.allocations.items()
        },
        "lease": None,
    }


def _time(moment: datetime | None) -> str | None:
    """A time of the database, with seconds, as RFC 3339 writes it."""
    if moment is None:
        return None
    return f"{moment.replace(microsecond=0).isoformat()}Z"
