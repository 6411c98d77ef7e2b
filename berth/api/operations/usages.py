# SPDX-License-Identifier: Apache-2.0
"""Usages: of a provider, and of a project (1.9).

Source: spec/rest-api.md 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.api.errors import Refused
from berth.api.microversion import ByMicroversion
from berth.api.operation import Operation, Parameter, Query, Rule, component, for_agents, shows
from berth.api.operations import examples
from berth.api.operations.fragments import EXTERNAL_ID, GENERATION, SUMS, exact_object, object_by
from berth.api.operations.segments import PROVIDER_SEGMENT
from berth.api.query_string import parse_pairs
from berth.api.schema import JSONSchema
from berth.model.consumer import UNKNOWN_TYPE
from berth.model.names import NAME_LENGTH_MAX

if TYPE_CHECKING:
    from berth.api.request import Request, Services

TAG = "Usages"
BY_TYPE_SINCE = 38

#: As in OpenStack Placement, also `all` with a suffix, which matches nothing.
_TYPE_FILTER: JSONSchema = {
    "type": "string",
    "pattern": r"^[A-Z0-9_]+\Z|^all|^unknown\Z",
    "minLength": 1,
    "maxLength": NAME_LENGTH_MAX,
}

FILTERS = Query(
    Parameter(
        name="project_id",
        means={0: "The ID of the project."},
        example="demo",
        since=9,
        schema=EXTERNAL_ID,
        is_required=True,
    ),
    Parameter(
        name="user_id",
        means={0: "Only the usage of this user."},
        example="alice",
        since=9,
        schema=EXTERNAL_ID,
    ),
    Parameter(
        name="consumer_type",
        means={
            0: "Only the usage of consumers of this type; `all` for the sum of all types, "
            "`unknown` for consumers without a type."
        },
        example="INSTANCE",
        since=BY_TYPE_SINCE,
        schema=_TYPE_FILTER,
    ),
)

_BY_TYPE = object_by(
    rf"^({UNKNOWN_TYPE}|all|[A-Z0-9_]+)\Z",
    {
        "type": "object",
        "required": ["consumer_count"],
        "additionalProperties": {"type": "integer", "minimum": 0},
        "propertyNames": {"pattern": r"^(consumer_count|[A-Z0-9_]+)\Z"},
    },
)
_PROVIDER_USAGES = component(
    "ProviderUsages",
    exact_object({"resource_provider_generation": GENERATION, "usages": SUMS}),
    example={**examples.GENERATION, "usages": examples.RESOURCES},
)
_PROJECT_USAGES = component(
    "ProjectUsages",
    (9, exact_object({"usages": SUMS})),
    (BY_TYPE_SINCE, exact_object({"usages": _BY_TYPE})),
    example=ByMicroversion(
        {
            0: {"usages": examples.RESOURCES},
            BY_TYPE_SINCE: {"usages": {"INSTANCE": {**examples.RESOURCES, "consumer_count": 1}}},
        }
    ),
)


def target_project(services: Services, request: Request) -> dict[str, str | None]:
    """The requested project, maybe not the caller's."""
    try:
        query = dict(parse_pairs(request.query_string))
    except Refused:
        # Only authorized callers learn that the query is malformed.
        query = {}
    return {"project_id": query.get("project_id"), "user_id": request.caller.user_id}


OF_PROVIDERS = (
    Operation(
        "GET",
        "/resource_providers/{uuid}/usages",
        segments=PROVIDER_SEGMENT,
        handler="usages:show_provider_usages",
        rule=for_agents("placement:resource_providers:usages", "Show a provider's usage."),
        tag=TAG,
        summary="Show a provider's usage by resource class",
        answers=shows(_PROVIDER_USAGES),
    ),
)

OPERATIONS = (
    Operation(
        "GET",
        "/usages",
        handler="usages:show_project_usages",
        rule=Rule(
            "placement:usages",
            "rule:admin_or_project_reader_or_service_api",
            "Show a project's usage.",
        ),
        tag=TAG,
        summary="Show a project's usage",
        details="By consumer type from microversion 1.38. Rejects unknown parameters.",
        since=9,
        query=FILTERS,
        answers=shows(_PROJECT_USAGES),
        target=target_project,
    ),
)
