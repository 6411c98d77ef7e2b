# SPDX-License-Identifier: Apache-2.0
"""The aggregates of a provider."""

from __future__ import annotations

from berth.api.microversion import ByMicroversion
from berth.api.schema import JSONSchema, Schema
from berth.api.schemas.fragments import INTEGER, UUID, closed_object

_AGGREGATES: JSONSchema = {"type": "array", "items": UUID, "uniqueItems": True}
_WITH_GENERATION = {"aggregates": _AGGREGATES, "resource_provider_generation": INTEGER}

REPLACE = ByMicroversion(
    {
        1: Schema(_AGGREGATES),
        19: Schema(closed_object(_WITH_GENERATION, required=tuple(_WITH_GENERATION))),
    }
)
