# SPDX-License-Identifier: Apache-2.0
"""An inventory: the amount of a resource class that a provider has, and the amounts to claim."""

import math
from typing import Final, Literal

from msgspec import Struct

#: The largest integer in an inventory, and the default of `max_unit`.
MAX_INT: Final = 2_147_483_647
#: The largest allocation ratio that every database can store.
ALLOCATION_RATIO_MAX: Final = 3.40282e38

#: What keeps a provider from giving an amount; `conditions`: other conditions of the request.
Reason = Literal[
    "used", "capacity", "max_unit", "min_unit", "step_size", "no_inventory", "conditions"
]


class Inventory(Struct, frozen=True):
    """One provider's inventory of one resource class, in the class's own unit."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def exact_capacity(self) -> float:
        """The capacity before rounding; the sum of all usage must not exceed it."""
        return (self.total - self.reserved) * self.allocation_ratio

    @property
    def capacity(self) -> int:
        """The maximum usage: (total - reserved) x allocation_ratio, truncated towards zero.

        One multiplication of doubles, so that every layer and every engine computes the same.
        """
        return int(self.exact_capacity) if math.isfinite(self.exact_capacity) else 0

    def has_capacity_for(self, used: int) -> bool:
        """Whether the usage of all consumers together, `used`, is within the capacity."""
        return used <= self.exact_capacity

    def allows_unit(self, amount: int) -> bool:
        """Whether one allocation may have this amount: from min_unit to max_unit, by step_size."""
        # A step_size below 1 comes from another program, and fits nothing.
        step = self.step_size
        return self.min_unit <= amount <= self.max_unit and step > 0 and amount % step == 0
