# SPDX-License-Identifier: Apache-2.0
"""Allocations of consumers.

Source: spec/rest-api.md 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, Literal

from berth.api import audit, body, caching
from berth.api.errors import Refused
from berth.api.operations import allocations as schemas
from berth.api.paths import consumer_uuid, provider_uuid
from berth.api.rendering import LongBody, answer, answer_empty, answer_long, encode
from berth.api.request import Request, Response, Services
from berth.config import Settings
from berth.model.consumer import UNKNOWN_TYPE, ConsumerWrite
from berth.model.ids import (
    ConsumerUUID,
    Generation,
    ProviderUUID,
    parse_uuid_36,
    parse_uuid_lax,
)
from berth.model.sentinels import UNSET, Sentinel
from berth.store import allocations as store

#: How many consumers are rendered at a time.
PART: Final = 1000


def show_allocations(
    services: Services, request: Request, response: Response, consumer: str
) -> None:
    """Show a consumer's allocations; empty for an unknown consumer."""
    record = store.consumer_allocations(services.database, consumer_uuid(consumer))
    caching.stamp_or_now(services, request, response, record.last_modified if record else None)
    if record is None or not record.allocations:
        answer(response, {"allocations": {}})
        return
    shown: dict[str, Any] = {
        "allocations": {
            provider: {"generation": generation, "resources": resources}
            for provider, (generation, resources) in record.allocations.items()
        }
    }
    if request.microversion >= schemas.OWNERS_SHOWN_SINCE:
        shown["project_id"] = record.project_id
        shown["user_id"] = record.user_id
    if request.microversion >= schemas.CONSUMER_GENERATION_SINCE:
        shown["consumer_generation"] = record.generation
    if request.microversion >= schemas.CONSUMER_TYPE_SINCE:
        shown["consumer_type"] = record.consumer_type or UNKNOWN_TYPE
    answer(response, shown)


def list_provider_allocations(
    services: Services, request: Request, response: Response, uuid: str
) -> None:
    """List a provider's allocations."""
    allocations = store.provider_allocations(services.database, provider_uuid(uuid))
    caching.stamp_or_now(services, request, response, allocations.last_modified)
    answer_long(response, LongBody(pieces_of(allocations, request.microversion)))


def replace_allocations(
    services: Services, request: Request, response: Response, consumer: str
) -> None:
    """Replace one consumer's allocations."""
    uuid = parse_uuid_lax(consumer)
    if uuid is None:
        raise Refused(400, f"Malformed consumer_uuid: {consumer}")
    wanted = body.read(request, schemas.REPLACE.at(request.microversion))
    write = decode(ConsumerUUID(uuid), wanted, request.microversion, services.settings)
    write_allocations(services, request, [write])
    answer_empty(response)


def manage_allocations(services: Services, request: Request, response: Response) -> None:
    """Replace several consumers' allocations in one transaction."""
    wanted = body.read(request, schemas.MANAGE.at(request.microversion))
    writes = decode_all(wanted, request.microversion, services.settings)
    write_allocations(services, request, writes)
    answer_empty(response)


def delete_allocations(
    services: Services, request: Request, response: Response, consumer: str
) -> None:
    """Delete a consumer's allocations, whatever its generation."""
    uuid = consumer_uuid(consumer)
    store.delete_allocations(services.database, uuid, replaced=audit.releasing(request, uuid))
    services.observer.released(1)
    answer_empty(response)


def decode_all(
    wanted: Mapping[str, Mapping[str, Any]], microversion: int, settings: Settings
) -> list[ConsumerWrite]:
    """Decode a body keyed by consumer; the last of two spellings of one consumer counts."""
    consumers = {parse_uuid_36(key) or key: value for key, value in wanted.items()}
    return [
        decode(ConsumerUUID(consumer), value, microversion, settings)
        for consumer, value in consumers.items()
    ]


def decode(
    consumer: ConsumerUUID, wanted: Mapping[str, Any], microversion: int, settings: Settings
) -> ConsumerWrite:
    """Decode one consumer's write from a body that passed its microversion's schema."""
    return ConsumerWrite(
        uuid=consumer,
        allocations=_decode_allocations(wanted["allocations"]),
        project_id=wanted.get("project_id", settings.incomplete_consumer_project_id),
        user_id=wanted.get("user_id", settings.incomplete_consumer_user_id),
        generation=_decode_generation(wanted),
        consumer_type=wanted.get("consumer_type", UNSET),
    )


def pieces_of(
    allocations: store.ProviderAllocations, microversion: int, *, part: int = PART
) -> Iterator[bytes]:
    """The JSON of a provider's allocations, `part` consumers at a time."""
    begin = b'{"resource_provider_generation":%d,"allocations":{' % allocations.generation
    consumers = iter(allocations.consumers.items())
    while some := dict(islice(consumers, part)):
        shown: dict[str, dict[str, Any]] = {
            consumer: {"resources": resources} for consumer, (_, resources) in some.items()
        }
        if microversion >= schemas.CONSUMER_GENERATION_SINCE:
            for consumer, (generation, _) in some.items():
                shown[consumer]["consumer_generation"] = generation
        yield begin + encode(shown)[1:-1]
        begin = b","
    yield b"}}" if allocations.consumers else begin + b"}}"


def write_allocations(services: Services, request: Request, writes: list[ConsumerWrite]) -> None:
    """Replace the allocations of some consumers, all or none, and count it."""
    if services.rights is not None:
        services.rights.check_writes(writes)
    attempts = max(1, services.settings.allocation_conflict_retry_count)
    store.replace_allocations(
        services.database, writes, attempts=attempts, replaced=audit.claiming(request, writes)
    )
    _count(services, writes)


def _count(services: Services, writes: list[ConsumerWrite]) -> None:
    claims = sum(bool(write.allocations) for write in writes)
    if claims:
        services.observer.claimed(claims)
    if claims < len(writes):
        services.observer.released(len(writes) - claims)


def _decode_generation(
    wanted: Mapping[str, Any],
) -> Generation | Literal[Sentinel.UNSET] | None:
    if "consumer_generation" not in wanted:
        return UNSET
    generation = wanted["consumer_generation"]
    # COMPAT: 1.0 is not converted to 1, because a refusal quotes what was sent.
    return None if generation is None else Generation(generation)


def _decode_allocations(wanted: Any) -> dict[ProviderUUID, dict[str, int]]:
    """Amounts by class by provider, from the list up to 1.11 or the object since."""
    if isinstance(wanted, list):
        pairs = [(parse_uuid_lax(entry["resource_provider"]["uuid"]), entry) for entry in wanted]
    else:
        pairs = [(parse_uuid_36(key), entry) for key, entry in wanted.items()]
    return {
        ProviderUUID(str(uuid)): {
            resource_class: int(amount) for resource_class, amount in entry["resources"].items()
        }
        for uuid, entry in pairs
    }
