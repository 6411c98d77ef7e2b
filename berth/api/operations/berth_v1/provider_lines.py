# SPDX-License-Identifier: Apache-2.0
"""Providers as lines, in schemas. Source: spec/beyond.md 6.1."""

from __future__ import annotations

from typing import Final

from berth.api.operation import component
from berth.api.operations import examples
from berth.api.operations.fragments import (
    CLASS_NAME_PATTERN,
    GENERATION,
    INVENTORY,
    PROVIDER_NAME,
    SHOWN_TRAITS,
    SUMS,
    TEXT,
    UUID,
    UUID_OR_NULL,
    described,
    list_of,
    object_by,
    open_object,
)

PROVIDER_LINE_EXAMPLE: Final = {
    "uuid": examples.PROVIDER,
    "name": "cn1",
    "parent": None,
    "root": examples.PROVIDER,
    "generation": 17,
    "inventories": {"VCPU": examples.RECORD},
    "usages": {"VCPU": 16},
    "traits": ["HW_CPU_X86_AVX2"],
    "aggregates": [examples.AGGREGATE],
    "drains": [],
}
PROVIDER_LINE: Final = component(
    "ProviderLine",
    open_object(
        {
            "uuid": UUID,
            "name": PROVIDER_NAME,
            "parent": described(UUID_OR_NULL, "Its parent's UUID; null for a root."),
            "root": described(UUID, "The UUID of the root of its tree."),
        },
        optional={
            "generation": GENERATION,
            "inventories": object_by(CLASS_NAME_PATTERN, open_object(INVENTORY)),
            "usages": described(SUMS, "What is used of each inventory."),
            "traits": SHOWN_TRAITS,
            "aggregates": list_of(UUID),
            "drains": described(list_of(TEXT), "The drains in effect that name it."),
        },
    ),
    example=PROVIDER_LINE_EXAMPLE,
)
