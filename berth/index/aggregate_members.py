# SPDX-License-Identifier: Apache-2.0
"""How many providers are in an aggregate: directly, not by way of their trees."""

from __future__ import annotations

from collections import Counter

import numpy as np

from berth.index.snapshot import Snapshot
from berth.model.ids import AggregateId, AggregateUUID


def count_members(snapshot: Snapshot, aggregate: AggregateUUID) -> int:
    """How many providers are in an aggregate. Cost: O(P), one pass over a column."""
    number = snapshot.names.aggregate_ids.get(aggregate)
    if number is None:
        return 0
    having = snapshot.aggregate_sets.having_any([number])
    return sum(int(having[block.aggregate_sets].sum()) for _, block in snapshot.occupied())


def count_all_members(snapshot: Snapshot) -> dict[AggregateUUID, int]:
    """How many providers are in each aggregate that has some. Cost: O(P), one pass over a column,
    and then one over the sets of aggregates."""
    names, sets = snapshot.names, snapshot.aggregate_sets
    in_set = np.zeros(names.aggregate_sets_count, dtype=np.int64)
    for _, block in snapshot.occupied():
        in_set += np.bincount(block.aggregate_sets.ravel(), minlength=len(in_set))
    members: Counter[AggregateId] = Counter()
    for number in np.flatnonzero(in_set).tolist():
        for aggregate in sets.members(number):
            members[aggregate] += int(in_set[number])
    return {
        uuid: members[aggregate]
        for uuid, aggregate in names.aggregate_ids.items()
        if aggregate in members
    }
