# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of the answers, for the description of the API.

Each component has a name, and a schema for every microversion from its first one on; components
refer to each other by name. The answers are closed: nothing is in them that is not told here.
Source: spec/rest-api.md 1.11 and 3 to 10, spec/allocation-candidates.md 7.
"""

from __future__ import annotations

from collections.abc import Mapping

from berth.api import errors
from berth.api.aggregates import GENERATION_SINCE as AGGREGATES_GENERATION_SINCE
from berth.api.allocation_candidates import FORMS
from berth.api.allocations import (
    CONSUMER_GENERATION_SINCE,
    CONSUMER_TYPE_SINCE,
    OWNERS_SHOWN_SINCE,
)
from berth.api.errors import CODES_SINCE
from berth.api.microversion import VERSION_MAX, VERSION_MIN, ByMicroversion
from berth.api.providers import LINKS, TREES_SINCE
from berth.api.schema import JSONSchema
from berth.api.schemas.fragments import (
    CLASS_NAME_PATTERN,
    EXTERNAL_ID,
    INVENTORY,
    UUID,
    UUID_36_PATTERN,
    UUID_OR_NULL,
    closed_object,
    object_by,
)
from berth.api.usages import BY_TYPE_SINCE
from berth.model.consumer import UNKNOWN_TYPE
from berth.model.names import PROVIDER_NAME_LENGTH_MAX

#: Microversion -> schema, for those at which the form of an answer changed.
Versions = Mapping[int, JSONSchema]

REQUEST_ID_PATTERN = r"^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z"


def ref(component: str) -> JSONSchema:
    """The schema that is a component."""
    return {"$ref": f"#/components/schemas/{component}"}


def _all_of(properties: Mapping[str, JSONSchema]) -> JSONSchema:
    """An object that always has these members, and no others."""
    return closed_object(properties, required=tuple(properties))


def _list_of(items: JSONSchema) -> JSONSchema:
    return {"type": "array", "items": items}


_TEXT: JSONSchema = {"type": "string"}
_GENERATION: JSONSchema = {"type": "integer", "minimum": 0}
_CLASS_NAME: JSONSchema = {"type": "string", "pattern": CLASS_NAME_PATTERN}
_TRAITS = _list_of(_CLASS_NAME)
_AMOUNTS = object_by(CLASS_NAME_PATTERN, {"type": "integer", "minimum": 1})
_SUMS = object_by(CLASS_NAME_PATTERN, {"type": "integer", "minimum": 0})
_CONSUMER_TYPE: JSONSchema = {"type": "string", "pattern": rf"^({UNKNOWN_TYPE}|[A-Z0-9_]+)\Z"}


def _links(*relations: str) -> JSONSchema:
    """Links to a thing and to what belongs to it, one of each relation."""
    rel = {"type": "string", "enum": list(relations)}
    count = len(relations)
    link = _all_of({"rel": rel, "href": _TEXT})
    return {**_list_of(link), "minItems": count, "maxItems": count}


_VERSION: JSONSchema = {"type": "string", "pattern": r"^1\.[0-9]+\Z"}
_VERSION_DOCUMENT = _all_of(
    {
        "versions": _list_of(
            _all_of(
                {
                    "id": _TEXT,
                    "min_version": {"const": VERSION_MIN},
                    "max_version": {"const": VERSION_MAX},
                    "status": {"const": "CURRENT"},
                    "links": _links("self"),
                }
            )
        )
    }
)


def _provider(microversion: int) -> JSONSchema:
    trees = {"parent_provider_uuid": UUID_OR_NULL, "root_provider_uuid": UUID}
    return _all_of(
        {
            "uuid": UUID,
            "name": {"type": "string", "maxLength": PROVIDER_NAME_LENGTH_MAX},
            "generation": _GENERATION,
            **(trees if microversion >= TREES_SINCE else {}),
            "links": _links("self", *LINKS.at(microversion)),
        }
    )


def _aggregates() -> Versions:
    # No `UUID`: each is shown as a client wrote it.
    shown = {"aggregates": {**_list_of(_TEXT), "uniqueItems": True}}
    generation = {"resource_provider_generation": _GENERATION}
    return {1: _all_of(shown), AGGREGATES_GENERATION_SINCE: _all_of({**shown, **generation})}


_RECORD = _all_of(
    {
        **{name: {"type": "integer"} for name in INVENTORY},
        "allocation_ratio": {"type": "number"},
    }
)
_INVENTORY = closed_object(
    {**_RECORD["properties"], "resource_provider_generation": _GENERATION},
    required=(*_RECORD["required"], "resource_provider_generation"),
)

_RESOURCE_CLASS = _all_of({"name": _CLASS_NAME, "links": _links("self")})

_USAGES_BY_TYPE = object_by(
    rf"^({UNKNOWN_TYPE}|all|[A-Z0-9_]+)\Z",
    {
        "type": "object",
        "required": ["consumer_count"],
        "additionalProperties": {"type": "integer", "minimum": 0},
        "propertyNames": {"pattern": r"^(consumer_count|[A-Z0-9_]+)\Z"},
    },
)


def _consumer_allocations(microversion: int) -> JSONSchema:
    """What a consumer holds; who it is stands beside it only where it holds something."""
    owners: dict[str, JSONSchema] = {}
    if microversion >= OWNERS_SHOWN_SINCE:
        owners |= {"project_id": EXTERNAL_ID, "user_id": EXTERNAL_ID}
    if microversion >= CONSUMER_GENERATION_SINCE:
        owners["consumer_generation"] = _GENERATION
    if microversion >= CONSUMER_TYPE_SINCE:
        owners["consumer_type"] = _CONSUMER_TYPE
    held = _all_of({"generation": _GENERATION, "resources": _AMOUNTS})
    shown = closed_object(
        {"allocations": object_by(UUID_36_PATTERN, held), **owners}, required=("allocations",)
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
    held: dict[str, JSONSchema] = {"resources": _AMOUNTS}
    if microversion >= CONSUMER_GENERATION_SINCE:
        held["consumer_generation"] = _GENERATION
    return _all_of(
        {
            "resource_provider_generation": _GENERATION,
            "allocations": object_by(UUID_36_PATTERN, _all_of(held)),
        }
    )


def _candidate(microversion: int) -> JSONSchema:
    form = FORMS.at(microversion)
    resources = {"resources": {**_AMOUNTS, "minProperties": 1}}
    if form.allocations_as_list:
        provider = {"resource_provider": _all_of({"uuid": UUID})}
        allocations = _list_of(_all_of({**provider, **resources}))
    else:
        allocations = object_by(UUID_36_PATTERN, _all_of(resources), at_least_one=True)
    mappings = {"mappings": object_by(r"^[a-zA-Z0-9_-]{0,64}\Z", {**_list_of(UUID), "minItems": 1})}
    return _all_of({"allocations": allocations, **(mappings if form.mappings else {})})


def _provider_summary(microversion: int) -> JSONSchema:
    form = FORMS.at(microversion)
    room = _all_of({"capacity": {"type": "integer"}, "used": {"type": "integer", "minimum": 0}})
    traits = {"traits": _TRAITS}
    trees = {"parent_provider_uuid": UUID_OR_NULL, "root_provider_uuid": UUID}
    return _all_of(
        {
            "resources": object_by(CLASS_NAME_PATTERN, room),
            **(traits if form.traits else {}),
            **(trees if form.trees else {}),
        }
    )


_CODES = sorted(
    {
        *(code for _, code in errors.ANSWERS.values()),
        errors.QUERY_DUPLICATE_KEY,
        errors.QUERY_BAD_VALUE,
        errors.QUERY_MISSING_VALUE,
        errors.OVERLOADED,
    }
)


def _errors(microversion: int, *, early: bool) -> JSONSchema:
    """One error in a list.

    Args:
        early: it may have been found before the microversion was settled, and then has no code.
    """
    always: dict[str, JSONSchema] = {
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "title": _TEXT,
        "detail": _TEXT,
        "request_id": {"type": "string", "pattern": REQUEST_ID_PATTERN},
    }
    code: dict[str, JSONSchema] = {"code": {"type": "string", "enum": _CODES}}
    versions: dict[str, JSONSchema] = {"max_version": _VERSION, "min_version": _VERSION}
    known = always | (code if microversion >= CODES_SINCE else {}) | (versions if early else {})
    required = always if early or microversion < CODES_SINCE else always | code
    error = closed_object(known, required=tuple(required))
    return _all_of({"errors": {**_list_of(error), "minItems": 1, "maxItems": 1}})


#: What a layer in front of the application says: the sentence, and the status in words.
_FRONT_ERROR = _all_of({"message": _TEXT, "code": _TEXT, "title": _TEXT})
_KEYSTONE_ERROR = _all_of(
    {"error": _all_of({"code": {"type": "integer"}, "title": _TEXT, "message": _TEXT})}
)

_SINCE: Mapping[str, Versions] = {
    "VersionDocument": {0: _VERSION_DOCUMENT},
    "ResourceProvider": {minor: _provider(minor) for minor in (0, 1, 6, 11, TREES_SINCE)},
    "ResourceProviders": {0: _all_of({"resource_providers": _list_of(ref("ResourceProvider"))})},
    "InventoryRecord": {0: _RECORD},
    "Inventory": {0: _INVENTORY},
    "Inventories": {
        0: _all_of(
            {
                "resource_provider_generation": _GENERATION,
                "inventories": object_by(CLASS_NAME_PATTERN, ref("InventoryRecord")),
            }
        )
    },
    "Aggregates": _aggregates(),
    "Traits": {6: _all_of({"traits": _TRAITS})},
    "ProviderTraits": {
        6: _all_of({"traits": _TRAITS, "resource_provider_generation": _GENERATION})
    },
    "ResourceClass": {2: _RESOURCE_CLASS},
    "ResourceClasses": {2: _all_of({"resource_classes": _list_of(ref("ResourceClass"))})},
    "ProviderUsages": {0: _all_of({"resource_provider_generation": _GENERATION, "usages": _SUMS})},
    "ProjectUsages": {
        9: _all_of({"usages": _SUMS}),
        BY_TYPE_SINCE: _all_of({"usages": _USAGES_BY_TYPE}),
    },
    "ConsumerAllocations": {
        minor: _consumer_allocations(minor)
        for minor in (0, OWNERS_SHOWN_SINCE, CONSUMER_GENERATION_SINCE, CONSUMER_TYPE_SINCE)
    },
    "ProviderAllocations": {
        minor: _provider_allocations(minor) for minor in (0, CONSUMER_GENERATION_SINCE)
    },
    "AllocationCandidate": {minor: _candidate(minor) for minor in (10, 12, 34)},
    "ProviderSummary": {minor: _provider_summary(minor) for minor in (10, 17, 29)},
    "AllocationCandidates": {
        10: _all_of(
            {
                "allocation_requests": _list_of(ref("AllocationCandidate")),
                "provider_summaries": object_by(UUID_36_PATTERN, ref("ProviderSummary")),
            }
        )
    },
    "Errors": {minor: _errors(minor, early=False) for minor in (0, CODES_SINCE)},
    "EarlyErrors": {minor: _errors(minor, early=True) for minor in (0, CODES_SINCE)},
    "FrontError": {0: _FRONT_ERROR},
    "Unauthorized": {0: {"anyOf": [_FRONT_ERROR, _KEYSTONE_ERROR]}},
    "Unavailable": {0: {"anyOf": [ref("EarlyErrors"), ref("FrontError")]}},
    "Description": {0: {"type": "object", "required": ["openapi", "info", "paths"]}},
}

COMPONENTS: Mapping[str, ByMicroversion[JSONSchema]] = {
    name: ByMicroversion(since) for name, since in _SINCE.items()
}
