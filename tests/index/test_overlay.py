# SPDX-License-Identifier: Apache-2.0
"""A fleet with other amounts used."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from berth.index.scenario import Overlay
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, ProviderId
from tests.candidates.engine import snapshot_of
from tests.effort import SEED
from tests.worlds import world

pytestmark = pytest.mark.engines("sqlite")

Key = tuple[ProviderId, ClassId]

HOSTS = "\n".join(f"cn{n}  VCPU=8(used:{n % 4})  MEMORY_MB=64(max:16)" for n in range(20))


def inventories(fleet: Snapshot) -> list[Key]:
    """All of the fleet."""
    return [
        (ProviderId(provider), class_id)
        for _, block in fleet.occupied()
        for class_id in block.columns
        for provider in block.provider_ids[0].tolist()
    ]


def assert_same(one: Snapshot, other: Snapshot) -> None:
    """The same amounts are used, and as much may be taken."""
    for (_, block), (_, its) in zip(one.occupied(), other.occupied(), strict=True):
        for class_id, columns in block.columns.items():
            np.testing.assert_array_equal(columns.used, its.columns[class_id].used)
            np.testing.assert_array_equal(columns.room, its.columns[class_id].room)


@pytest.mark.parametrize("attempt", range(5))
def test_many_changes_at_once_are_the_same_as_one_after_another(
    prepared: Path, attempt: int
) -> None:
    """Never less than nothing is used, and what is not part of the fleet is passed over."""
    rng = Random(f"{SEED}-{attempt}")
    with snapshot_of(world(HOSTS), prepared) as fleet:
        keys = [*inventories(fleet), (ProviderId(10**6), ClassId(0))]
        change = {key: rng.randint(-6, 12) for key in rng.sample(keys, 30)}
        at_once, one_by_one = Overlay(fleet), Overlay(fleet)
        at_once.use(change)
        for key, amount in change.items():
            one_by_one.use({key: amount})
        assert_same(at_once.snapshot, one_by_one.snapshot)
        assert min(columns.used.min() for columns in fleet.block(0).columns.values()) == 0
