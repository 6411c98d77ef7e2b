# SPDX-License-Identifier: Apache-2.0
"""Aggregates as small numbers: every distinct set of aggregates that a provider is in has one id.

A block stores an id per provider, so that "is it in one of these aggregates?" is one look-up table
of booleans, and one indexing operation for a whole block of hosts, whatever the number of
aggregates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.model.ids import AggregateId

Mask = NDArray[np.bool_]

#: The id of the empty set, in every registry.
NO_AGGREGATES: Final = 0


class AggregateSets:
    """A registry of sets of aggregates; ids are dense, start at 0 (the empty set) and never change
    meaning."""

    def __init__(self) -> None:
        self._sets: list[frozenset[AggregateId]] = [frozenset()]
        self._ids: dict[frozenset[AggregateId], int] = {frozenset(): NO_AGGREGATES}
        self._having: dict[AggregateId, list[int]] = {}
        #: Another id of an aggregate -> the one that stands in `_sets`.
        self._firsts: dict[AggregateId, AggregateId] = {}

    def __len__(self) -> int:
        """How many sets there are by now."""
        return len(self._sets)

    def unite(self, another: AggregateId, first: AggregateId) -> None:
        """From now on, let two ids stand for one aggregate. No set may hold `another` yet."""
        assert another not in self._having, "its sets would not be found"
        self._firsts[another] = first

    def id_of(self, aggregates: frozenset[AggregateId]) -> int:
        """The id of a set, given out on first sight."""
        if self._firsts:
            aggregates = frozenset(self._firsts.get(one, one) for one in aggregates)
        known = self._ids.get(aggregates)
        if known is not None:
            return known
        # RACE tests/index/test_parts.py: readers size their tables by the list, so the list grows
        # before the number can be found.
        self._sets.append(aggregates)
        number = len(self._sets) - 1
        for aggregate in aggregates:
            self._having.setdefault(aggregate, []).append(number)
        self._ids[aggregates] = number
        return number

    def members(self, number: int) -> frozenset[AggregateId]:
        """The aggregates of a set."""
        return self._sets[number]

    def union(self, numbers: Iterable[int]) -> int:
        """The id of the union of several sets."""
        distinct = set(numbers)
        if len(distinct) == 1:
            return distinct.pop()
        return self.id_of(frozenset().union(*(self._sets[number] for number in distinct)))

    def having_any(self, aggregates: Iterable[AggregateId]) -> Mask:
        """Which sets contain at least one of some aggregates: a table of shape (sets,), to be
        indexed by set id."""
        # RACE tests/index/test_parts.py: the registry grows meanwhile, so the sets are looked up
        # first and the table is sized after.
        having = [number for aggregate in aggregates for number in self._having.get(aggregate, ())]
        table: Mask = np.zeros(len(self._sets), dtype=np.bool_)
        table[having] = True
        return table
