# SPDX-License-Identifier: Apache-2.0
"""The aggregates of a provider (1.1), with a generation from 1.19 on.

Source: spec/rest-api.md 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from berth.api import body, caching
from berth.api.operations import aggregates as schemas
from berth.api.paths import provider_uuid
from berth.api.rendering import answer
from berth.api.request import Request, Response, Services
from berth.index.providers import get_provider
from berth.model.ids import Generation
from berth.model.sentinels import UNSET
from berth.store import aggregates as store


def list_aggregates(services: Services, request: Request, response: Response, uuid: str) -> None:
    """List a provider's aggregates, each as spelled when it was created."""
    provider = get_provider(services.index.snapshot(), provider_uuid(uuid))
    _answer(services, request, response, provider.aggregates(), provider.generation)


def replace_aggregates(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Replace a provider's aggregates; the response repeats them as sent."""
    provider = provider_uuid(uuid)
    with body.report_missing_provider_first(services.database, provider) as seen_generation:
        wanted = body.read(request, schemas.REPLACE.at(request.microversion))
        if request.microversion >= schemas.GENERATION_SINCE:
            sent = wanted["aggregates"]
            seen = seen_generation.note(wanted["resource_provider_generation"])
        else:
            sent = wanted
            seen = None
    generation = store.replace_aggregates(
        services.database, provider, sent, UNSET if seen is None else seen
    )
    _answer(services, request, response, sent, generation)


def _answer(
    services: Services,
    request: Request,
    response: Response,
    uuids: Sequence[str],
    generation: Generation,
) -> None:
    caching.stamp_now(services, request, response)
    shown: dict[str, Any] = {"aggregates": uuids}
    if request.microversion >= schemas.GENERATION_SINCE:
        shown["resource_provider_generation"] = generation
    answer(response, shown)
