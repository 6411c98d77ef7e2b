# SPDX-License-Identifier: Apache-2.0
"""The aggregates of a provider (1.1), with a generation from 1.19 on.

Source: spec/rest-api.md 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from berth.api import answers, body, examples
from berth.api.contract import Body, Contract, component, shows
from berth.api.microversion import ByMicroversion
from berth.api.paths import provider_uuid
from berth.api.request import Call
from berth.api.schema import JSONSchema, Schema
from berth.api.shapes import GENERATION, INTEGER, TEXT, UUID, closed_object, exact_object, list_of
from berth.index.providers import get_provider
from berth.model.ids import Generation
from berth.model.shown import UNSET, Sometimes
from berth.store import aggregates as store

GENERATION_SINCE = 19

_AGGREGATES: JSONSchema = {"type": "array", "items": UUID, "uniqueItems": True}
_WITH_GENERATION = {"aggregates": _AGGREGATES, "resource_provider_generation": INTEGER}

REPLACE = ByMicroversion(
    {
        1: Schema(_AGGREGATES),
        GENERATION_SINCE: Schema(closed_object(_WITH_GENERATION, required=tuple(_WITH_GENERATION))),
    }
)

# Not `UUID`: each is shown as it was sent.
_SHOWN = {"aggregates": {**list_of(TEXT), "uniqueItems": True}}
_EXAMPLE = {"aggregates": [examples.AGGREGATE], **examples.GENERATION}
_COMPONENT = component(
    "Aggregates",
    (1, exact_object(_SHOWN)),
    (GENERATION_SINCE, exact_object({**_SHOWN, "resource_provider_generation": GENERATION})),
    example=_EXAMPLE,
)


@Contract(summary="List a provider's aggregates", answers=shows(_COMPONENT))
def list_aggregates(call: Call, uuid: str) -> dict[str, Any]:
    """List a provider's aggregates, each as spelled when it was created."""
    provider = get_provider(call.services.index.snapshot(), provider_uuid(uuid))
    return _shown(call, provider.aggregates(), provider.generation)


@Contract(
    summary="Replace a provider's aggregates",
    body=Body(REPLACE, ByMicroversion({0: [examples.AGGREGATE], GENERATION_SINCE: _EXAMPLE})),
    answers=shows(_COMPONENT, means="The aggregates from the request."),
    conflict="The generation is outdated, or another request is changing the provider.",
)
def replace_aggregates(call: Call, uuid: str) -> dict[str, Any]:
    """Replace a provider's aggregates; the response repeats them as sent."""
    provider = provider_uuid(uuid)
    with body.report_missing_provider_first(call.services.database, provider) as seen_generation:
        wanted = body.read(call, REPLACE.at(call.microversion))
        sent = wanted
        seen: Sometimes[Generation] = UNSET
        if call.microversion >= GENERATION_SINCE:
            sent = wanted["aggregates"]
            seen = seen_generation.note(wanted["resource_provider_generation"])
    generation = store.replace_aggregates(call.services.database, provider, sent, seen)
    return _shown(call, sent, generation)


def _shown(call: Call, uuids: Sequence[str], generation: Generation) -> dict[str, Any]:
    answers.stamp_now(call)
    shown: dict[str, Any] = {"aggregates": uuids}
    if call.microversion >= GENERATION_SINCE:
        shown["resource_provider_generation"] = generation
    return shown
