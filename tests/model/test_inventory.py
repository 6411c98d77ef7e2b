# SPDX-License-Identifier: Apache-2.0
"""Capacity and units."""

from __future__ import annotations

import pytest

from berth.model.inventory import MAX_INT, Inventory


@pytest.mark.parametrize(
    ("inventory", "capacity"),
    [
        (Inventory(10), 10),
        (Inventory(10, reserved=3), 7),
        (Inventory(10, allocation_ratio=1.55), 15),
        (Inventory(1, allocation_ratio=0.5), 0),
        (Inventory(10, allocation_ratio=0.0), 0),
        (Inventory(2, reserved=5), -3),
        (Inventory(MAX_INT, allocation_ratio=3.40282e38), int(MAX_INT * 3.40282e38)),
    ],
)
def test_capacity_is_cut_towards_zero(inventory: Inventory, capacity: int) -> None:
    """(total - reserved) x allocation_ratio, rounded down, in one multiplication."""
    assert inventory.capacity == capacity
    assert inventory.has_capacity_for(capacity)
    assert not inventory.has_capacity_for(capacity + 1) or capacity + 1 <= inventory.exact_capacity


def test_units_are_a_range_and_a_step() -> None:
    """Both ends are allowed; the step counts from 0."""
    inventory = Inventory(100, min_unit=2, max_unit=8, step_size=2)
    assert [amount for amount in range(12) if inventory.allows_unit(amount)] == [2, 4, 6, 8]
