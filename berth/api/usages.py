# SPDX-License-Identifier: Apache-2.0
"""Usages: of a provider, and of a project (1.9).

Source: spec/rest-api.md 9.
"""

from __future__ import annotations

from typing import Any

from berth.api import caching
from berth.api.operations import usages as schemas
from berth.api.paths import provider_uuid
from berth.api.query_string import parse_pairs
from berth.api.rendering import answer
from berth.api.request import Request, Response, Services
from berth.index.providers import get_provider
from berth.store import usages as store


def show_provider_usages(
    services: Services, request: Request, response: Response, uuid: str
) -> None:
    """Show a provider's usage by resource class."""
    provider = get_provider(services.index.snapshot(), provider_uuid(uuid))
    caching.stamp_now(services, request, response)
    answer(
        response,
        {"resource_provider_generation": provider.generation, "usages": provider.usages()},
    )


def show_project_usages(services: Services, request: Request, response: Response) -> None:
    """Show the total usage of a project or one of its users."""
    query = dict(parse_pairs(request.query_string))
    schemas.FILTERS.schema.at(request.microversion).check(query)
    project, user = query["project_id"], query.get("user_id")
    usages: dict[str, Any]
    if request.microversion < schemas.BY_TYPE_SINCE:
        usages = store.project_usages(services.database, project, user)
    else:
        by_type = store.project_usages_by_type(
            services.database, project, user, query.get("consumer_type")
        )
        usages = {
            consumer_type: {**used.resources, "consumer_count": used.consumer_count}
            for consumer_type, used in by_type.items()
        }
    caching.stamp_now(services, request, response)
    answer(response, {"usages": usages})
