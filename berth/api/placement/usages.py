# SPDX-License-Identifier: Apache-2.0
"""Usages: of a provider, and of a project (1.9).

Source: spec/rest-api.md 9.
"""

from __future__ import annotations

from typing import Any

from berth.api import answers, examples
from berth.api.contract import Contract, Parameter, Query, component, shows
from berth.api.errors import Refused
from berth.api.microversion import ByMicroversion
from berth.api.paths import provider_uuid
from berth.api.query_string import parse_pairs
from berth.api.request import Call
from berth.api.schema import JSONSchema
from berth.api.shapes import EXTERNAL_ID, GENERATION, SUMS, exact_object, object_by
from berth.index.providers import get_provider
from berth.model.consumer import UNKNOWN_TYPE
from berth.model.names import NAME_LENGTH_MAX
from berth.store import usages as store

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
        means="The ID of the project.",
        example="demo",
        since=9,
        schema=EXTERNAL_ID,
        is_required=True,
    ),
    Parameter(
        name="user_id",
        means="Only the usage of this user.",
        example="alice",
        since=9,
        schema=EXTERNAL_ID,
    ),
    Parameter(
        name="consumer_type",
        means="Only the usage of consumers of this type; `all` for the sum of all types, "
        "`unknown` for consumers without a type.",
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


def target_project(call: Call) -> dict[str, str | None]:
    """The requested project, maybe not the caller's."""
    try:
        query = dict(parse_pairs(call.query_string))
    except Refused:
        # Only authorized callers learn that the query is malformed.
        query = {}
    return {"project_id": query.get("project_id"), "user_id": call.caller.user_id}


@Contract(summary="Show a provider's usage by resource class", answers=shows(_PROVIDER_USAGES))
def show_provider_usages(call: Call, uuid: str) -> dict[str, Any]:
    """Show a provider's usage by resource class."""
    provider = get_provider(call.services.index.snapshot(), provider_uuid(uuid))
    answers.stamp_now(call)
    return {"resource_provider_generation": provider.generation, "usages": provider.usages()}


@Contract(
    summary="Show a project's usage",
    details="By consumer type from microversion 1.38. Rejects unknown parameters.",
    query=FILTERS,
    answers=shows(_PROJECT_USAGES),
    target=target_project,
)
def show_project_usages(call: Call) -> dict[str, Any]:
    """Show the total usage of a project or one of its users."""
    query = dict(parse_pairs(call.query_string))
    FILTERS.schema.at(call.microversion).check(query)
    project, user = query["project_id"], query.get("user_id")
    usages: dict[str, Any]
    if call.microversion < BY_TYPE_SINCE:
        usages = store.project_usages(call.services.database, project, user)
    else:
        by_type = store.project_usages_by_type(
            call.services.database, project, user, query.get("consumer_type")
        )
        usages = {
            consumer_type: {**used.resources, "consumer_count": used.consumer_count}
            for consumer_type, used in by_type.items()
        }
    answers.stamp_now(call)
    return {"usages": usages}
