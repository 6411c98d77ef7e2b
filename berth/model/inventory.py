# SPDX-License-Identifier: Apache-2.0
"""What a provider has of one resource class, and which amounts may be taken from it."""

from dataclasses import dataclass
from typing import Final

#: The largest integer that an inventory may hold, and the default of `max_unit`.
MAX_INT: Final = 2_147_483_647
#: The largest allocation ratio that every database can hold.
ALLOCATION_RATIO_MAX: Final = 3.40282e38


@dataclass(frozen=True, slots=True)
class Inventory:
    """One provider's stock of one resource class, in the class's own unit."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def exact_capacity(self) -> float:
        """The capacity before it is rounded: what the sum of all usage is compared with."""
        return (self.total - self.reserved) * self.allocation_ratio

    @property
    def capacity(self) -> int:
        """What may be held at most: (total - reserved) x allocation_ratio, cut towards zero.

        One multiplication of doubles, so that every layer and every engine agrees on it.
        """
        return int(self.exact_capacity)

    def has_capacity_for(self, used: int) -> bool:
        """Whether `used` in all, over every consumer, stays within the capacity."""
        return used <= self.exact_capacity

    def allows_unit(self, amount: int) -> bool:
        """Whether one allocation may be of this size: within min and max, a whole step."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0
