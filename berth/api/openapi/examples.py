# SPDX-License-Identifier: Apache-2.0
"""Examples of bodies: one small fleet, as each microversion shows it and wants it told.

Most are written for the newest form, and `fitted` leaves out what an older one does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.api import providers, root
from berth.api.errors import CONCURRENT_UPDATE
from berth.api.microversion import MINOR_MAX, ByMicroversion
from berth.model.ids import Generation, ProviderId, ProviderUUID
from berth.model.provider import Provider

PROVIDER = ProviderUUID("4e8e5957-649f-477b-9e5b-f1f75b21c03c")
CONSUMER = "b6b065cc-fcd9-4342-a7b0-2aed2d146518"
AGGREGATE = "5e08ea53-c4c6-448e-9334-ac4953de3cfa"
REQUEST_ID = "req-11111111-2222-4333-8444-555555555555"

_STORED = Provider(
    id=ProviderId(1),
    uuid=PROVIDER,
    name="cn1",
    generation=Generation(3),
    parent_uuid=None,
    root_uuid=PROVIDER,
    created_at=None,
    updated_at=None,
)
_PROVIDER = ByMicroversion(
    {minor: providers.render(_STORED, "", minor) for minor in range(MINOR_MAX + 1)}
)

_RECORD = {
    "total": 64,
    "reserved": 2,
    "min_unit": 1,
    "max_unit": 64,
    "step_size": 1,
    "allocation_ratio": 4.0,
}
_GENERATION = {"resource_provider_generation": 3}
_HELD = {"VCPU": 2, "MEMORY_MB": 4096}
_CLASS = {
    "name": "CUSTOM_LICENCE",
    "links": [{"rel": "self", "href": "/resource_classes/CUSTOM_LICENCE"}],
}
_OWNERS = {
    "project_id": "demo",
    "user_id": "alice",
    "consumer_generation": None,
    "consumer_type": "INSTANCE",
}
_CLAIM = {"allocations": {PROVIDER: {"resources": _HELD}}, **_OWNERS}
_CLAIM_AS_LIST = {
    "allocations": [{"resource_provider": {"uuid": PROVIDER}, "resources": _HELD}],
    **_OWNERS,
}


def _always(value: object) -> ByMicroversion[Any]:
    return ByMicroversion({0: value})


#: What stands in an answer, by its component.
ANSWERS: Mapping[str, ByMicroversion[Any]] = {
    "VersionDocument": _always(root.VERSIONS),
    "ResourceProvider": _PROVIDER,
    "ResourceProviders": ByMicroversion(
        {minor: {"resource_providers": [_PROVIDER.at(minor)]} for minor in range(MINOR_MAX + 1)}
    ),
    "Inventory": _always({**_RECORD, **_GENERATION}),
    "Inventories": _always({**_GENERATION, "inventories": {"VCPU": _RECORD}}),
    "Aggregates": _always({"aggregates": [AGGREGATE], **_GENERATION}),
    "Traits": _always({"traits": ["HW_CPU_X86_AVX2", "CUSTOM_RACK_7"]}),
    "ProviderTraits": _always({"traits": ["HW_CPU_X86_AVX2", "CUSTOM_RACK_7"], **_GENERATION}),
    "ResourceClass": _always(_CLASS),
    "ResourceClasses": _always({"resource_classes": [_CLASS]}),
    "ProviderUsages": _always({**_GENERATION, "usages": {"VCPU": 2, "MEMORY_MB": 4096}}),
    "ProjectUsages": ByMicroversion(
        {
            0: {"usages": _HELD},
            38: {"usages": {"INSTANCE": {**_HELD, "consumer_count": 1}}},
        }
    ),
    "ConsumerAllocations": _always(
        {
            "allocations": {PROVIDER: {"generation": 3, "resources": _HELD}},
            **_OWNERS,
            "consumer_generation": 1,
        }
    ),
    "ProviderAllocations": _always(
        {
            **_GENERATION,
            "allocations": {CONSUMER: {"resources": _HELD, "consumer_generation": 1}},
        }
    ),
    "AllocationCandidates": ByMicroversion(
        {
            minor: {
                "allocation_requests": [
                    {"allocations": claim["allocations"], "mappings": {"": [PROVIDER]}}
                ],
                "provider_summaries": {
                    PROVIDER: {
                        "resources": {"VCPU": {"capacity": 248, "used": 16}},
                        "traits": ["HW_CPU_X86_AVX2"],
                        "parent_provider_uuid": None,
                        "root_provider_uuid": PROVIDER,
                    }
                },
            }
            for minor, claim in ((0, _CLAIM_AS_LIST), (12, _CLAIM))
        }
    ),
    "Errors": _always(
        {
            "errors": [
                {
                    "status": 409,
                    "title": "Conflict",
                    "detail": "The request conflicts with the present state, or with another "
                    "request.\n\nresource provider generation conflict",
                    "code": CONCURRENT_UPDATE,
                    "request_id": REQUEST_ID,
                }
            ]
        }
    ),
}

#: What a request says, by the handler that reads it.
BODIES: Mapping[str, ByMicroversion[Any]] = {
    "create_provider": _always({"name": "cn1", "uuid": PROVIDER, "parent_provider_uuid": None}),
    "update_provider": _always({"name": "cn1.example.org"}),
    "create_inventory": _always({"resource_class": "VCPU", **_RECORD}),
    "replace_inventories": _always(
        {
            **_GENERATION,
            "inventories": {
                "VCPU": {"total": 64, "reserved": 2, "allocation_ratio": 4.0},
                "MEMORY_MB": {"total": 262144, "step_size": 1024},
            },
        }
    ),
    "update_inventory": _always({**_GENERATION, **_RECORD}),
    "replace_aggregates": ByMicroversion(
        {0: [AGGREGATE], 19: {"aggregates": [AGGREGATE], **_GENERATION}}
    ),
    "replace_provider_traits": _always(
        {"traits": ["HW_CPU_X86_AVX2", "CUSTOM_RACK_7"], **_GENERATION}
    ),
    "create_resource_class": _always({"name": "CUSTOM_LICENCE"}),
    "rename_resource_class": _always({"name": "CUSTOM_LICENCE"}),
    "replace_allocations": ByMicroversion({0: _CLAIM_AS_LIST, 12: _CLAIM}),
    "manage_allocations": _always({CONSUMER: _CLAIM}),
    "reshape": _always(
        {
            "inventories": {PROVIDER: {**_GENERATION, "inventories": {"VCPU": _RECORD}}},
            "allocations": {CONSUMER: _CLAIM},
        }
    ),
}


def fitted(value: Any, schema: Mapping[str, Any], components: Mapping[str, Any]) -> Any:
    """A value without the members that a schema does not know."""
    if "$ref" in schema:
        schema = components[schema["$ref"].rpartition("/")[2]]
    if isinstance(value, dict):
        known = schema.get("properties", {})
        others = schema.get("additionalProperties", {})
        return {
            name: fitted(one, known.get(name, others), components)
            for name, one in value.items()
            if name in known or others is not False
        }
    if isinstance(value, list):
        return [fitted(one, schema["items"], components) for one in value]
    return value
