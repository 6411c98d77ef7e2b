# SPDX-License-Identifier: Apache-2.0
"""What the index is told of providers: plain records, before any array exists."""

from __future__ import annotations

from typing import NamedTuple

from berth.model.ids import ClassId, ProviderId, TraitId


class InventoryRecord(NamedTuple):
    """One inventory with its usage; `capacity` is truncated toward zero and may pass 2^63 (a float
    holds it)."""

    class_id: ClassId
    capacity: float
    used: int
    min_unit: int
    max_unit: int
    step_size: int


class NodeRecord(NamedTuple):
    """One provider: `inventories` by ascending class id, `aggregate_set` an id of
    `AggregateSets`."""

    provider_id: ProviderId
    uuid: str
    parent_id: ProviderId | None
    root_id: ProviderId
    inventories: tuple[InventoryRecord, ...]
    traits: frozenset[TraitId]
    aggregate_set: int
