# SPDX-License-Identifier: Apache-2.0
"""Allocations: of one consumer, of several (1.13), and on a provider.

Source: spec/rest-api.md 10.
"""

from __future__ import annotations

from functools import partial

from berth.api.microversion import ByMicroversion
from berth.api.operation import (
    DONE,
    Body,
    Operation,
    Segment,
    always,
    component,
    for_agents,
    shows,
)
from berth.api.operations import examples
from berth.api.operations.fragments import (
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
from berth.api.operations.segments import PROVIDER_SEGMENT
from berth.api.schema import JSONSchema, Schema
from berth.model.consumer import UNKNOWN_TYPE

TAG = "Allocations"
OWNERS_SHOWN_SINCE = 12
CONSUMER_GENERATION_SINCE = 28
CONSUMER_TYPE_SINCE = 38
_CONSUMER = {"consumer_uuid": Segment("The UUID of the consumer.", UUID, examples.CONSUMER)}

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

OF_PROVIDERS = (
    Operation(
        "GET",
        "/resource_providers/{uuid}/allocations",
        segments=PROVIDER_SEGMENT,
        handler="allocations:list_provider_allocations",
        rule=for_agents(
            "placement:resource_providers:allocations:list", "List the allocations on a provider."
        ),
        tag=TAG,
        summary="List the allocations on a provider",
        answers=shows(_PROVIDER_ALLOCATIONS),
    ),
)

_on_consumer = partial(Operation, path="/allocations/{consumer_uuid}", segments=_CONSUMER, tag=TAG)

OPERATIONS = (
    Operation(
        "POST",
        "/allocations",
        handler="allocations:manage_allocations",
        rule=for_agents(
            "placement:allocations:manage", "Write the allocations of several consumers."
        ),
        tag=TAG,
        summary="Replace the allocations of several consumers",
        details="Writes all allocations or none. A consumer may use what another releases in the "
        "same request.",
        since=13,
        body=Body(MANAGE, always({examples.CONSUMER: CLAIM})),
        answers=DONE,
        conflict="A provider does not have the capacity, or the generation of a consumer is "
        "outdated.",
    ),
    _on_consumer(
        "GET",
        handler="allocations:show_allocations",
        rule=for_agents("placement:allocations:list", "List the allocations of a consumer."),
        summary="List the allocations of a consumer",
        details="Empty if the consumer does not exist.",
        answers=shows(_CONSUMER_ALLOCATIONS),
    ),
    _on_consumer(
        "PUT",
        handler="allocations:replace_allocations",
        rule=for_agents("placement:allocations:update", "Write the allocations of a consumer."),
        summary="Replace the allocations of a consumer",
        body=Body(REPLACE, ByMicroversion({0: CLAIM_AS_LIST, OWNERS_SHOWN_SINCE: CLAIM})),
        answers=DONE,
        conflict="A provider does not have the capacity, or the generation of the consumer is "
        "outdated.",
    ),
    _on_consumer(
        "DELETE",
        handler="allocations:delete_allocations",
        rule=for_agents("placement:allocations:delete", "Delete the allocations of a consumer."),
        summary="Delete the allocations of a consumer",
        details="Does not check the consumer's generation.",
        answers=DONE,
        conflict="Another request is changing the allocations.",
    ),
)
