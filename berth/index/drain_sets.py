# SPDX-License-Identifier: Apache-2.0
"""Sets of drains as small numbers, and the providers that are drained.

A block with providers that drains name stores for each the id of the set of those drains. Which
sets exclude, and so which providers are drained, follows from the drains that are in effect: so a
question that tolerates some of them, or a scenario without them, derives its own masks.

Source: spec/beyond.md 2.3 and 7.1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.model.drain import DrainId

Mask = NDArray[np.bool_]
SmallInts = NDArray[np.int32]

#: The id of the empty set, in every registry.
NO_DRAINS: Final = 0


class DrainSets:
    """A registry of sets of drains; ids are dense, start at 0 (the empty set) and never change
    meaning."""

    def __init__(self, sets: Collection[frozenset[DrainId]] = (frozenset(),)) -> None:
        self._sets = list(sets)
        self._ids = {drains: number for number, drains in enumerate(self._sets)}

    def __len__(self) -> int:
        """How many sets are registered."""
        return len(self._sets)

    def fork(self) -> DrainSets:
        """A registry with the same sets, which may get others."""
        return DrainSets(self._sets.copy())

    def id_of(self, drains: frozenset[DrainId]) -> int:
        """The id of a set, given out on first sight."""
        number = self._ids.get(drains)
        if number is None:
            number = len(self._sets)
            self._sets.append(drains)
            self._ids[drains] = number
        return number

    def members(self, number: int) -> frozenset[DrainId]:
        """The drains of a set."""
        return self._sets[number]

    def having_any(self, drains: Collection[DrainId]) -> Mask:
        """Which sets contain at least one of some drains: a table of shape (sets,)."""
        return np.array([not each.isdisjoint(drains) for each in self._sets.copy()], dtype=np.bool_)


def drained_of(
    parents: Sequence[int], drain_sets: SmallInts | None, excluding: Mask
) -> Mask | None:
    """The drained providers of trees of a shape: those that an excluding drain names, and all below
    them; None if there are none.

    Args:
        parents: of the shape.
        drain_sets: (K, R), or None if no drain names any of them.
        excluding: `DrainSets.having_any` of the drains in effect.
    """
    if drain_sets is None:
        return None
    drained: Mask = excluding[drain_sets]
    if not drained.any():
        return None
    for node in range(1, len(parents)):
        drained[node] |= drained[parents[node]]
    return drained
