# SPDX-License-Identifier: Apache-2.0
"""How much one transaction changes what projects use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: The ids of a project, a user and a consumer type.
Owner = tuple[int, int, int]

#: The key of a row without its writer: the ids of a project, a user and a consumer type, and the
#: first resource class.
BlockKey = tuple[int, int, int, int]

#: The consumer type of consumers without one.
NO_TYPE: Final = 0

#: Instead of a resource class: the number of consumers that have allocations.
CONSUMERS: Final = -1

#: Counters in one row.
ROW_COUNTERS: Final = 4


class ProjectDeltas:
    """Changes of the counters in `berth_project_usages`."""

    __slots__ = ("blocks",)

    def __init__(self) -> None:
        #: The changes of the counters in each row.
        self.blocks: Final[dict[BlockKey, list[int]]] = {}

    def add(self, owner: Owner, resource_class: int, delta: int) -> None:
        """Change one counter."""
        place = (resource_class - CONSUMERS) % ROW_COUNTERS
        self._of((*owner, resource_class - place))[place] += delta

    def merge(self, others: Iterable[ProjectDeltas]) -> ProjectDeltas:
        """Add other changes; return this."""
        for other in others:
            for block, deltas in other.blocks.items():
                counters = self._of(block)
                for place, delta in enumerate(deltas):
                    counters[place] += delta
        return self

    def _of(self, block: BlockKey) -> list[int]:
        counters = self.blocks.get(block)
        if counters is None:
            counters = self.blocks[block] = [0] * ROW_COUNTERS
        return counters
