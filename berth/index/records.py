# SPDX-License-Identifier: Apache-2.0
"""Plain records of providers, from which the index makes its arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from berth.index.sets import NO_DRAINS
from berth.model.ids import ClassId, ProviderId, TraitId

#: The JSON of a provider's name.
json_of: Final[Callable[[str | None], bytes]] = msgspec.json.Encoder().encode


class InventoryRecord(NamedTuple):
    """One inventory with its usage; `capacity` is truncated toward zero and may exceed 2^63, so
    it is a float. `modified` is as in `NodeRecord`."""

    class_id: ClassId
    capacity: float
    used: int
    min_unit: int
    max_unit: int
    step_size: int
    total: int
    reserved: int
    allocation_ratio: float
    modified: int


class NodeRecord(NamedTuple):
    """One provider: `inventories` by ascending class id, `aggregate_set` an id of `AggregateSets`,
    `name` as JSON, `modified` in seconds since 1970 or `index_feed.NO_TIME`, `drain_set` an id of
    `DrainSets`."""

    provider_id: ProviderId
    uuid: str
    parent_id: ProviderId | None
    inventories: tuple[InventoryRecord, ...]
    traits: frozenset[TraitId]
    aggregate_set: int
    name: bytes
    generation: int
    modified: int
    drain_set: int = NO_DRAINS
