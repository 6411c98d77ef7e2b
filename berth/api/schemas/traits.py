# SPDX-License-Identifier: Apache-2.0
"""Traits: those of a provider, and the filters of the list."""

from __future__ import annotations

from berth.api.schema import QUERY, Schema
from berth.api.schemas.fragments import INTEGER, TRAIT_NAMES, closed_object

_REPLACE = {"traits": TRAIT_NAMES, "resource_provider_generation": INTEGER}

REPLACE = Schema(closed_object(_REPLACE, required=tuple(_REPLACE)))

FILTERS = Schema(
    closed_object({"name": {"type": "string"}, "associated": {"type": "string"}}), subject=QUERY
)
