# SPDX-License-Identifier: Apache-2.0
"""The aggregates of a provider (1.1), with a generation from 1.19 on.

Source: spec/rest-api.md 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from berth.api import body, caching
from berth.api.paths import provider_uuid
from berth.api.rendering import answer
from berth.api.request import Request, Response, Services
from berth.api.schemas import aggregates as schemas
from berth.model.ids import Generation
from berth.model.sentinels import UNSET
from berth.store import aggregates as store

GENERATION_SINCE = 19


def list_aggregates(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Answer the aggregates that a provider is in, each as it was spelled when it was made."""
    found = store.get_aggregates(services.database, provider_uuid(uuid))
    _answer(request, response, found.spellings, found.generation)


def replace_aggregates(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Replace the aggregates that a provider is in; the answer repeats them as they were sent."""
    provider = provider_uuid(uuid)
    with body.judged_after(services.database, provider) as judgement:
        wanted = body.read(request, schemas.REPLACE.at(request.microversion))
        if request.microversion >= GENERATION_SINCE:
            sent = wanted["aggregates"]
            seen = judgement.saw(wanted["resource_provider_generation"])
        else:
            sent = wanted
            seen = None
    generation = store.replace_aggregates(
        services.database, provider, sent, UNSET if seen is None else seen
    )
    _answer(request, response, sent, generation)


def _answer(
    request: Request, response: Response, uuids: Sequence[str], generation: Generation
) -> None:
    caching.stamp_now(request, response)
    shown: dict[str, Any] = {"aggregates": uuids}
    if request.microversion >= GENERATION_SINCE:
        shown["resource_provider_generation"] = generation
    answer(response, shown)
