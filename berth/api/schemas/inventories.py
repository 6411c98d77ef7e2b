# SPDX-License-Identifier: Apache-2.0
"""Inventories: one record, or the whole set of a provider."""

from __future__ import annotations

from berth.api.schema import JSONSchema, Schema
from berth.api.schemas.fragments import (
    CLASS_NAME_PATTERN,
    INTEGER,
    INVENTORY,
    closed_object,
)

_GENERATION = {"resource_provider_generation": INTEGER}
_CLASS = {"resource_class": {"type": "string", "pattern": CLASS_NAME_PATTERN}}

CREATE = Schema(
    closed_object({**INVENTORY, **_GENERATION, **_CLASS}, required=("total", "resource_class"))
)

UPDATE = Schema(
    closed_object({**INVENTORY, **_GENERATION}, required=("total", "resource_provider_generation"))
)

_RECORD = closed_object({**_GENERATION, **INVENTORY}, required=("total",))

#: COMPAT: what stands under a name that no resource class can have is looked at afterwards.
RECORD = Schema(_RECORD)

#: The whole set; a generation inside a record is let in and not looked at.
REPLACEMENT: JSONSchema = closed_object(
    {
        **_GENERATION,
        "inventories": {
            "type": "object",
            "patternProperties": {CLASS_NAME_PATTERN: _RECORD},
        },
    },
    required=("resource_provider_generation", "inventories"),
)
REPLACE = Schema(REPLACEMENT)
