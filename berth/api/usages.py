# SPDX-License-Identifier: Apache-2.0
"""Usages: of a provider, and of a project (1.9).

Source: spec/rest-api.md 9.
"""

from __future__ import annotations

from typing import Any

from berth.api import caching
from berth.api.errors import Refused
from berth.api.paths import provider_uuid
from berth.api.query_string import last_values, parse_pairs
from berth.api.rendering import answer
from berth.api.request import Request, Response, Services
from berth.api.schemas import usages as schemas
from berth.store import usages as store

BY_TYPE_SINCE = 38


def show_provider_usages(
    services: Services, request: Request, response: Response, uuid: str
) -> None:
    """Answer what is used of each class that a provider has."""
    found = store.provider_usages(services.database, provider_uuid(uuid))
    caching.stamp_now(request, response)
    answer(
        response,
        {"resource_provider_generation": found.generation, "usages": found.usages},
    )


def show_project_usages(services: Services, request: Request, response: Response) -> None:
    """Answer what a project, or one of its users, uses in all."""
    query = last_values(parse_pairs(request.query_string))
    schemas.FILTERS.at(request.microversion).check(query)
    project, user = query["project_id"], query.get("user_id")
    usages: dict[str, Any]
    if request.microversion < BY_TYPE_SINCE:
        usages = store.project_usages(services.database, project, user)
    else:
        by_type = store.project_usages_by_type(
            services.database, project, user, query.get("consumer_type")
        )
        usages = {
            consumer_type: {**used.resources, "consumer_count": used.consumer_count}
            for consumer_type, used in by_type.items()
        }
    caching.stamp_now(request, response)
    answer(response, {"usages": usages})


def target_project(request: Request) -> dict[str, str | None]:
    """What the policy judges: the project asked for, which need not be the caller's."""
    try:
        query = last_values(parse_pairs(request.query_string))
    except Refused:
        # A query that cannot be read is told to those who may ask.
        query = {}
    return {"project_id": query.get("project_id"), "user_id": request.caller.user_id}
