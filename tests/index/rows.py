# SPDX-License-Identifier: Apache-2.0
"""Rows as the database gives them to the index, with defaults for what a test does not ask for."""

from __future__ import annotations

from berth.model.ids import ClassId, ProviderId

#: The time of every row's last change.
TIME = 1_700_000_000

ProviderRow = tuple[ProviderId, str, ProviderId | None, ProviderId, str | None, int, int]
InventoryRow = tuple[ProviderId, ClassId, int, int, float, int, int, int, int, int]


def provider_row(
    provider: ProviderId,
    uuid: str,
    parent: ProviderId | None,
    root: ProviderId,
    *,
    name: str | None = None,
    generation: int = 0,
    modified: int = TIME,
) -> ProviderRow:
    """A provider; without a name, its uuid is its name."""
    return provider, uuid, parent, root, name or uuid, generation, modified


def inventory_row(
    provider: ProviderId,
    class_id: ClassId,
    total: int = 8,
    *,
    ratio: float = 1.0,
    used: int = 0,
    units: tuple[int, int, int] = (1, 8, 1),
) -> InventoryRow:
    """An inventory of which nothing is reserved."""
    return provider, class_id, total, 0, ratio, used, *units, TIME
