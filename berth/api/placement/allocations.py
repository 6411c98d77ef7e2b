# SPDX-License-Identifier: Apache-2.0
"""Allocations of consumers, and `POST /reshaper` (1.30), which moves inventories with them.

Source: spec/rest-api.md 10 and 12.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from berth.api import answers, body, examples
from berth.api.answers import LongBody, encode
from berth.api.contract import DONE, Body, Contract, always, component, shows
from berth.api.errors import Refused
from berth.api.microversion import ByMicroversion
from berth.api.paths import consumer_uuid, provider_uuid
from berth.api.placement import inventories
from berth.api.placement.inventories import REPLACEMENT
from berth.api.request import Call, Services
from berth.api.schema import JSONSchema, Schema
from berth.api.shapes import (
    AMOUNTS,
    CLASS_NAME_PATTERN,
    CONSUMER_TYPE,
    EXTERNAL_ID,
    GENERATION,
    INTEGER,
    UUID,
    UUID_36_PATTERN,
    closed_object,
    exact_object,
    object_by,
)
from berth.config import Settings
from berth.model.consumer import UNKNOWN_TYPE, ConsumerWrite
from berth.model.ids import ConsumerUUID, Generation, ProviderUUID, parse_uuid_36, parse_uuid_lax
from berth.model.shown import UNSET
from berth.store import allocations as store
from berth.store import reshape as store_reshape
from berth.store.reshape import ReshapedInventories

OWNERS_SHOWN_SINCE = 12
CONSUMER_GENERATION_SINCE = 28
CONSUMER_TYPE_SINCE = 38

_RESOURCES = object_by(CLASS_NAME_PATTERN, {"type": "integer", "minimum": 1}, at_least_one=True)
_OWNERS: dict[str, JSONSchema] = {"project_id": EXTERNAL_ID, "user_id": EXTERNAL_ID}
_SEEN: dict[str, JSONSchema] = {"consumer_generation": {"type": ["integer", "null"]}}
_TYPE: dict[str, JSONSchema] = {"consumer_type": CONSUMER_TYPE}
#: Accepted as in candidates, but ignored; keys without any of these characters are unchecked.
_MAPPINGS: dict[str, JSONSchema] = {
    "mappings": {
        "type": "object",
        "minProperties": 1,
        "patternProperties": {
            "[a-zA-Z0-9_-]{1,64}": {"type": "array", "minItems": 1, "items": UUID},
        },
    }
}

_ONE_OF_LIST = closed_object(
    {
        "resource_provider": closed_object({"uuid": UUID}, required=("uuid",), extra_first=True),
        "resources": _RESOURCES,
    },
    required=("resource_provider", "resources"),
)
_AS_LIST: dict[str, JSONSchema] = {
    "allocations": {"type": "array", "minItems": 1, "items": _ONE_OF_LIST}
}
_ONE_OF_OBJECT = closed_object(
    {"resources": _RESOURCES, "generation": INTEGER}, required=("resources",)
)


def _as_object(*, at_least_one: bool) -> dict[str, JSONSchema]:
    """The form since 1.12: an object by provider, which may be empty from 1.28 (PUT)."""
    return {"allocations": object_by(UUID_36_PATTERN, _ONE_OF_OBJECT, at_least_one=at_least_one)}


def _of_consumer(*parts: dict[str, JSONSchema], optional: dict[str, JSONSchema]) -> JSONSchema:
    required: dict[str, JSONSchema] = {}
    for part in parts:
        required |= part
    return closed_object(
        {**required, **optional}, required=tuple(required), extra_first=_AS_LIST not in parts
    )


_NOT_EMPTY = _as_object(at_least_one=True)
_MAYBE_EMPTY = _as_object(at_least_one=False)
AT_28 = _of_consumer(_MAYBE_EMPTY, _OWNERS, _SEEN, optional={})
AT_34 = _of_consumer(_MAYBE_EMPTY, _OWNERS, _SEEN, optional=_MAPPINGS)
AT_38 = _of_consumer(_MAYBE_EMPTY, _OWNERS, _SEEN, _TYPE, optional=_MAPPINGS)

REPLACE = ByMicroversion(
    {
        0: Schema(_of_consumer(_AS_LIST, optional={})),
        8: Schema(_of_consumer(_AS_LIST, _OWNERS, optional={})),
        OWNERS_SHOWN_SINCE: Schema(_of_consumer(_NOT_EMPTY, _OWNERS, optional={})),
        CONSUMER_GENERATION_SINCE: Schema(AT_28),
        34: Schema(AT_34),
        CONSUMER_TYPE_SINCE: Schema(AT_38),
    }
)


def _consumers(of_one: JSONSchema) -> Schema:
    return Schema(object_by(UUID_36_PATTERN, of_one, at_least_one=True))


MANAGE = ByMicroversion(
    {
        13: _consumers(_of_consumer(_MAYBE_EMPTY, _OWNERS, optional={})),
        CONSUMER_GENERATION_SINCE: _consumers(AT_28),
        34: _consumers(AT_34),
        CONSUMER_TYPE_SINCE: _consumers(AT_38),
    }
)

_SHOWN_TYPE: JSONSchema = {"type": "string", "pattern": rf"^({UNKNOWN_TYPE}|[A-Z0-9_]+)\Z"}


def _consumer_allocations(microversion: int) -> JSONSchema:
    """A consumer's allocations; its owners are shown only if it has any."""
    owners: dict[str, JSONSchema] = {}
    if microversion >= OWNERS_SHOWN_SINCE:
        owners |= _OWNERS
    if microversion >= CONSUMER_GENERATION_SINCE:
        owners["consumer_generation"] = GENERATION
    if microversion >= CONSUMER_TYPE_SINCE:
        owners["consumer_type"] = _SHOWN_TYPE
    allocation = exact_object({"generation": GENERATION, "resources": AMOUNTS})
    shown = closed_object(
        {"allocations": object_by(UUID_36_PATTERN, allocation), **owners}, required=("allocations",)
    )
    if not owners:
        return shown
    return {
        **shown,
        "if": {"properties": {"allocations": {"minProperties": 1}}},
        "then": {"required": list(owners)},
        "else": {"maxProperties": 1},
    }


def _provider_allocations(microversion: int) -> JSONSchema:
    allocation: dict[str, JSONSchema] = {"resources": AMOUNTS}
    if microversion >= CONSUMER_GENERATION_SINCE:
        allocation["consumer_generation"] = GENERATION
    return exact_object(
        {
            "resource_provider_generation": GENERATION,
            "allocations": object_by(UUID_36_PATTERN, exact_object(allocation)),
        }
    )


CLAIM = {"allocations": {examples.PROVIDER: {"resources": examples.RESOURCES}}, **examples.OWNERS}
CLAIM_AS_LIST = {
    "allocations": [
        {"resource_provider": {"uuid": examples.PROVIDER}, "resources": examples.RESOURCES}
    ],
    **examples.OWNERS,
}
_CONSUMER_ALLOCATIONS = component(
    "ConsumerAllocations",
    *(
        (minor, _consumer_allocations(minor))
        for minor in (0, OWNERS_SHOWN_SINCE, CONSUMER_GENERATION_SINCE, CONSUMER_TYPE_SINCE)
    ),
    example={
        "allocations": {examples.PROVIDER: {"generation": 3, "resources": examples.RESOURCES}},
        **examples.OWNERS,
        "consumer_generation": 1,
    },
)
_PROVIDER_ALLOCATIONS = component(
    "ProviderAllocations",
    *((minor, _provider_allocations(minor)) for minor in (0, CONSUMER_GENERATION_SINCE)),
    example={
        **examples.GENERATION,
        "allocations": {
            examples.CONSUMER: {"resources": examples.RESOURCES, "consumer_generation": 1}
        },
    },
)


def _reshape(of_one_consumer: JSONSchema) -> Schema:
    return Schema(
        exact_object(
            {
                "inventories": object_by(UUID_36_PATTERN, REPLACEMENT, at_least_one=True),
                "allocations": object_by(UUID_36_PATTERN, of_one_consumer),
            }
        )
    )


RESHAPE = ByMicroversion({30: _reshape(AT_28), 34: _reshape(AT_34), 38: _reshape(AT_38)})

_RESHAPED = {**examples.GENERATION, "inventories": {"VCPU": examples.RECORD}}


#: How many consumers are rendered at a time.
PART: Final = 1000


@Contract(
    summary="List the allocations of a consumer",
    details="Empty if the consumer does not exist.",
    answers=shows(_CONSUMER_ALLOCATIONS),
)
def show_allocations(call: Call, consumer: str) -> dict[str, Any]:
    """Show a consumer's allocations; empty for an unknown consumer."""
    record = store.consumer_allocations(call.services.database, consumer_uuid(consumer))
    answers.stamp_or_now(call, record.last_modified if record else None)
    if record is None or not record.allocations:
        return {"allocations": {}}
    shown: dict[str, Any] = {
        "allocations": {
            provider: {"generation": generation, "resources": resources}
            for provider, (generation, resources) in record.allocations.items()
        }
    }
    if call.microversion >= OWNERS_SHOWN_SINCE:
        shown["project_id"] = record.project_id
        shown["user_id"] = record.user_id
    if call.microversion >= CONSUMER_GENERATION_SINCE:
        shown["consumer_generation"] = record.generation
    if call.microversion >= CONSUMER_TYPE_SINCE:
        shown["consumer_type"] = record.consumer_type or UNKNOWN_TYPE
    return shown


@Contract(summary="List the allocations on a provider", answers=shows(_PROVIDER_ALLOCATIONS))
def list_provider_allocations(call: Call, uuid: str) -> LongBody:
    """List a provider's allocations."""
    allocations = store.provider_allocations(call.services.database, provider_uuid(uuid))
    answers.stamp_or_now(call, allocations.last_modified)
    return LongBody(pieces_of(allocations, call.microversion))


@Contract(
    summary="Replace the allocations of a consumer",
    body=Body(REPLACE, ByMicroversion({0: CLAIM_AS_LIST, OWNERS_SHOWN_SINCE: CLAIM})),
    answers=DONE,
    conflict="A provider does not have the capacity, or the generation of the consumer is "
    "outdated.",
)
def replace_allocations(call: Call, consumer: str) -> None:
    """Replace one consumer's allocations."""
    uuid = parse_uuid_lax(consumer)
    if uuid is None:
        raise Refused(400, f"Malformed consumer_uuid: {consumer}")
    wanted = body.read(call, REPLACE.at(call.microversion))
    write = decode(ConsumerUUID(uuid), wanted, call.microversion, call.services.settings)
    write_allocations(call, [write])


@Contract(
    summary="Replace the allocations of several consumers",
    details="Writes all allocations or none. A consumer may use what another releases in the "
    "same request.",
    body=Body(MANAGE, always({examples.CONSUMER: CLAIM})),
    answers=DONE,
    conflict="A provider does not have the capacity, or the generation of a consumer is outdated.",
)
def manage_allocations(call: Call) -> None:
    """Replace several consumers' allocations in one transaction."""
    wanted = body.read(call, MANAGE.at(call.microversion))
    writes = decode_all(wanted, call.microversion, call.services.settings)
    write_allocations(call, writes)


@Contract(
    summary="Delete the allocations of a consumer",
    details="Does not check the consumer's generation.",
    answers=DONE,
    conflict="Another request is changing the allocations.",
)
def delete_allocations(call: Call, consumer: str) -> None:
    """Delete a consumer's allocations, whatever its generation."""
    store.delete_allocations(call.services.database, consumer_uuid(consumer))
    call.services.observer.released(1)


@Contract(
    summary="Move inventories and allocations in one transaction",
    details="Replaces the inventories of the providers and the allocations of the consumers "
    "in the request.",
    body=Body(
        RESHAPE,
        always(
            {
                "inventories": {examples.PROVIDER: _RESHAPED},
                "allocations": {examples.CONSUMER: CLAIM},
            }
        ),
    ),
    answers=DONE,
    conflict="The generation of a provider or a consumer is outdated, or a provider does not "
    "have the capacity.",
)
def reshape(call: Call) -> None:
    """Replace the inventories of some providers and the allocations of some consumers."""
    wanted = body.read(call, RESHAPE.at(call.microversion))
    reshaped = {
        ProviderUUID(parse_uuid_36(key) or key): record
        for key, record in wanted["inventories"].items()
    }
    all_inventories = [
        ReshapedInventories(
            provider_uuid=provider,
            # COMPAT: 1.0 stays 1.0: a refusal quotes what was sent.
            seen=Generation(record["resource_provider_generation"]),
            inventories=inventories.decode_all(record["inventories"]),
        )
        for provider, record in reshaped.items()
    ]
    writes = decode_all(wanted["allocations"], call.microversion, call.services.settings)
    if call.services.rights is not None:
        call.services.rights.check_references(*reshaped)
        call.services.rights.check_writes(writes, moving=True)
    store_reshape.reshape(call.services.database, all_inventories, writes)


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
        # COMPAT: 1.0 is not converted to 1, because a refusal quotes what was sent.
        generation=wanted.get("consumer_generation", UNSET),
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
        if microversion >= CONSUMER_GENERATION_SINCE:
            for consumer, (generation, _) in some.items():
                shown[consumer]["consumer_generation"] = generation
        yield begin + encode(shown)[1:-1]
        begin = b","
    yield b"}}" if allocations.consumers else begin + b"}}"


def write_allocations(call: Call, writes: list[ConsumerWrite]) -> None:
    """Replace the allocations of some consumers, all or none, and count it."""
    if call.services.rights is not None:
        call.services.rights.check_writes(writes)
    attempts = max(1, call.services.settings.allocation_conflict_retry_count)
    store.replace_allocations(call.services.database, writes, attempts=attempts)
    _count(call.services, writes)


def _count(services: Services, writes: list[ConsumerWrite]) -> None:
    claims = sum(bool(write.allocations) for write in writes)
    if claims:
        services.observer.claimed(claims)
    if claims < len(writes):
        services.observer.released(len(writes) - claims)


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
