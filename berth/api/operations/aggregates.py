# SPDX-License-Identifier: Apache-2.0
"""The aggregates of a provider (1.1).

Source: spec/rest-api.md 6.
"""

from __future__ import annotations

from functools import partial

from berth.api.microversion import ByMicroversion
from berth.api.operation import Body, Operation, component, for_agents, shows
from berth.api.operations import examples
from berth.api.operations.fragments import (
    GENERATION,
    INTEGER,
    TEXT,
    UUID,
    closed_object,
    exact_object,
    list_of,
)
from berth.api.operations.segments import PROVIDER_SEGMENT
from berth.api.schema import JSONSchema, Schema

TAG = "Aggregates"
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

_on_aggregates = partial(
    Operation,
    path="/resource_providers/{uuid}/aggregates",
    segments=PROVIDER_SEGMENT,
    tag=TAG,
    since=1,
    media_first=True,
)

OPERATIONS = (
    _on_aggregates(
        "GET",
        handler="aggregates:list_aggregates",
        rule=for_agents(
            "placement:resource_providers:aggregates:list", "List a provider's aggregates."
        ),
        summary="List a provider's aggregates",
        answers=shows(_COMPONENT),
    ),
    _on_aggregates(
        "PUT",
        handler="aggregates:replace_aggregates",
        rule=for_agents(
            "placement:resource_providers:aggregates:update", "Replace a provider's aggregates."
        ),
        summary="Replace a provider's aggregates",
        body=Body(REPLACE, ByMicroversion({0: [examples.AGGREGATE], GENERATION_SINCE: _EXAMPLE})),
        answers=shows(_COMPONENT, means="The aggregates from the request."),
        conflict="The generation is outdated, or another request is changing the provider.",
    ),
)
