# SPDX-License-Identifier: Apache-2.0
"""Schemas in the document: in a dialect that all tools can read, with what the members of bodies
mean, and those of errors.

Patterns end in `$` as in ECMA 262, objects with keys by pattern take the form that code generators
read as a map, and every member gets a description: a name has the same meaning everywhere.
Source of the refusals: spec/rest-api.md 1.11 and 1.12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.api import errors
from berth.api.contract import Component, component, ref
from berth.api.errors import ErrorCodes
from berth.api.examples import REQUEST_ID
from berth.api.schema import JSONSchema
from berth.api.shapes import TEXT, closed_object, exact_object, list_of

_OWNER = "An opaque ID from the identity service."

_RELATED = "The relation to the shown object: itself, or a part of it."

MEANINGS: Mapping[str, str] = {
    "aggregates": "All aggregates of which the provider is a member.",
    "allocation_ratio": "The overcommit factor: the capacity is (total - reserved) times this, "
    "rounded down.",
    "allocation_requests": "The candidates. You can send each as the allocations of a consumer.",
    "allocations": "The allocations. In a request, they replace all allocations of the consumer.",
    "apart": "Groups whose providers are apart at a level.",
    "candidates": "The candidates, the best first.",
    "capacity": "The maximum total of all allocations.",
    "code": "The error code, for programs.",
    "consumer_count": "How many consumers hold this.",
    "consumer_generation": "The consumer's generation, which counts its changes. In a request, "
    "send the one that you read last, or null for a new consumer.",
    "consumer_type": "The type of the consumer, such as INSTANCE.",
    "count": "How many.",
    "detail": "A sentence for the status, and the message on the last line.",
    "error": "The error.",
    "errors": "The error; always one.",
    "generation": "The provider's generation. Ignored in a request.",
    "groups": "Request groups by name. In a relation, the names of the groups.",
    "host": "Conditions on the tree that anchors a candidate.",
    "href": "A path on this service, with its prefix; empty for the document itself.",
    "id": "The name of the version.",
    "in_tree": "The tree of this provider.",
    "info": "What is described.",
    "inventories": "The inventories by resource class. In a request, they replace all inventories"
    " of the provider.",
    "like": "A provider, by UUID or name; its tree is copied.",
    "limit": "At most this many candidates.",
    "links": "Related URLs.",
    "mappings": "The providers that serve each request group, by suffix.",
    "max_unit": "The maximum amount of one allocation.",
    "max_version": "The newest supported microversion.",
    "message": "The error.",
    "min": "The least that a provider may give.",
    "min_unit": "The minimum amount of one allocation.",
    "min_version": "The oldest supported microversion.",
    "name": "The name.",
    "nothing_used": "Whether to assume that nothing is used.",
    "openapi": "The version of OpenAPI.",
    "order": "Which candidates come first.",
    "parent_provider_uuid": "The parent of the provider; null for a root.",
    "parts": "From at most this many providers.",
    "paths": "The operations.",
    "prefer": "Conditions that add to the score.",
    "project_id": _OWNER,
    "provider_summaries": "The providers in the candidates, by UUID.",
    "ratio": "The allocation ratio to assume.",
    "reference": "The reference that stands for nothing.",
    "rel": _RELATED,
    "request": "What is wanted.",
    "request_id": "The ID of the request, which is also in the service's log.",
    "reserved": "The part of the total that is not available for allocations.",
    "resource_class": "The name of the resource class.",
    "resource_classes": "All resource classes, standard ones first.",
    "resource_provider": "The provider of the resources.",
    "resource_provider_generation": "The provider's generation, which counts its changes. In a "
    "request, send the one that you read last; berth answers 409 "
    "if the provider has changed since.",
    "resource_providers": "The providers that match all filters.",
    "resources": "Amounts or capacities by resource class.",
    "root_provider_uuid": "The provider at the top of the tree; itself for a root.",
    "score": "The score. Higher scores come first.",
    "seed": "Decides between equal scores.",
    "split": "How the amount of a class may be split over several providers.",
    "status": "The HTTP status, or the status of the version.",
    "step": "Each provider gives a multiple of this.",
    "step_size": "Amounts must be multiples of this.",
    "title": "The reason phrase of the status.",
    "together": "Groups whose providers are together at a level.",
    "total": "The total amount.",
    "traits": "Names of traits.",
    "usages": "The sum of the allocations by resource class.",
    "used": "Sums of allocations.",
    "user_id": _OWNER,
    "uuid": "The UUID.",
    "versions": "The supported versions; always one.",
    "warnings": "What has no effect, such as references that stand for nothing.",
    "weight": "The factor of what the strategy gives.",
    "what_if": "What to assume of the fleet. Nothing changes.",
    "without_consumers": "Consumers whose allocations are assumed to be gone.",
}

REQUEST_ID_PATTERN = r"^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z"

#: What each status means, and the component of its body.
REFUSALS: Mapping[int, tuple[str, str]] = {
    400: ("The request is malformed, or refers to something that does not exist.", "EarlyErrors"),
    401: ("The request has no valid credentials.", "Unauthorized"),
    403: ("The caller is not allowed to do this.", "Errors"),
    404: ("The object in the path does not exist.", "Errors"),
    406: ("The microversion is not supported, or `Accept` excludes JSON.", "EarlyErrors"),
    408: ("The request body did not arrive in time.", "EarlyErrors"),
    409: ("The request conflicts with the current state.", "Errors"),
    410: ("The journal no longer has the revision.", "Errors"),
    412: ("A precondition in the headers does not hold.", "Errors"),
    413: ("The request body is too large.", "EarlyErrors"),
    414: ("The path and query are too long.", "EarlyErrors"),
    415: ("The request body is not `application/json`.", "Errors"),
    429: ("Too many failed attempts to authenticate.", "EarlyErrors"),
    500: ("The service failed.", "EarlyErrors"),
    503: (
        "The service cannot answer now; try again after the seconds in `Retry-After`.",
        "Unavailable",
    ),
}

_VERSION: JSONSchema = {"type": "string", "pattern": r"^1\.[0-9]+\Z"}

#: An error from a layer in front of the application; `code` is the status as text.
_FRONT_ERROR = exact_object({"message": TEXT, "code": TEXT, "title": TEXT})

_KEYSTONE_ERROR = exact_object(
    {"error": exact_object({"code": {"type": "integer"}, "title": TEXT, "message": TEXT})}
)


def described(schema: JSONSchema) -> dict[str, Any]:
    """A schema in the document's dialect; it accepts the same values."""
    return {key: _keyword(key, value) for key, value in _as_map(schema).items()}


def _keyword(key: str, value: Any) -> Any:
    if key == "pattern":
        return ecma(value)
    if key == "properties":
        return {name: _member(name, schema) for name, schema in value.items()}
    if key == "patternProperties":
        return {ecma(pattern): described(schema) for pattern, schema in value.items()}
    if key in ("anyOf", "allOf"):
        return [described(schema) for schema in value]
    return described(value) if isinstance(value, Mapping) else value


def _member(name: str, schema: JSONSchema) -> dict[str, Any]:
    """A member's schema with a description: the schema's own, or one by name."""
    if "description" in schema:
        return described(schema)
    return {"description": MEANINGS[name], **described(schema)}


def ecma(pattern: str) -> str:
    """Convert a Python pattern for JSON Schema: see `berth.api.schema`."""
    return pattern.replace(r"\Z", "$")


def _as_map(schema: JSONSchema) -> JSONSchema:
    """Move the pattern of an object with only one to `propertyNames`."""
    patterns = schema.get("patternProperties", {})
    if len(patterns) != 1 or schema.get("additionalProperties") is not False:
        return schema
    ((pattern, value),) = patterns.items()
    rest = {
        key: keyword_value for key, keyword_value in schema.items() if key != "patternProperties"
    }
    return {**rest, "propertyNames": {"pattern": pattern}, "additionalProperties": value}


def error_components(codes: ErrorCodes) -> tuple[Component, ...]:
    """The error bodies of a namespace."""
    return (
        component(
            "Errors",
            *((minor, _errors(minor, codes, early=False)) for minor in {0, codes.since}),
            example={
                "errors": [
                    {
                        "status": 409,
                        "title": "Conflict",
                        "detail": "The request conflicts with the present state, or with another "
                        "request.\n\nresource provider generation conflict",
                        "code": codes.spell(errors.CONCURRENT_UPDATE, 409),
                        "request_id": REQUEST_ID,
                    }
                ]
            },
        ),
        component(
            "EarlyErrors",
            *((minor, _errors(minor, codes, early=True)) for minor in {0, codes.since}),
        ),
        component("FrontError", (0, _FRONT_ERROR)),
        component("Unauthorized", (0, {"anyOf": [_FRONT_ERROR, _KEYSTONE_ERROR]})),
        component("Unavailable", (0, {"anyOf": [ref("EarlyErrors"), ref("FrontError")]})),
    )


def _errors(microversion: int, codes: ErrorCodes, *, early: bool) -> JSONSchema:
    """A list of one error.

    Args:
        early: it may come before the microversion is negotiated, and then has no code.
    """
    always: dict[str, JSONSchema] = {
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "title": TEXT,
        "detail": TEXT,
        "request_id": {"type": "string", "pattern": REQUEST_ID_PATTERN},
    }
    code: dict[str, JSONSchema] = {"code": {"type": "string", "enum": sorted(codes.all)}}
    versions: dict[str, JSONSchema] = {"max_version": _VERSION, "min_version": _VERSION}
    has_code = microversion >= codes.since
    sometimes = (versions if early else {}) | dict(codes.members)
    fields = always | (code if has_code else {}) | sometimes
    # Until the microversion is negotiated, it counts as 0.
    is_certain = has_code and not (early and codes.since > 0)
    required = always | code if is_certain else always
    error = closed_object(fields, required=tuple(required))
    several = {**list_of(error), "minItems": 1, "maxItems": 1}
    return closed_object({"errors": several, **codes.beside}, required=("errors",))
