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
        #: As searches see them: one id for each aggregate.
        self._sets: list[frozenset[AggregateId]] = [frozenset()]
        #: As the database has them: it may have several ids for one aggregate.
        self._stored: list[frozenset[AggregateId]] = [frozenset()]
        self._ids: dict[frozenset[AggregateId], int] = {frozenset(): NO_AGGREGATES}
        self._having: dict[AggregateId, list[int]] = {}
        #: Another id of an aggregate -> its id in `_sets`.
        self._firsts: dict[AggregateId, AggregateId] = {}
        self._spellings: dict[AggregateId, str] = {}

    def __len__(self) -> int:
        """How many sets are registered."""
        return len(self._sets)

    def unite(self, another: AggregateId, first: AggregateId) -> None:
        """Treat two ids as one aggregate from now on. No set may contain `another` yet."""
        assert another not in self._having, "its sets would not be found"
        self._firsts[another] = first

    def spell(self, aggregate: AggregateId, spelling: str) -> None:
        """Note how the database spells an aggregate."""
        self._spellings[aggregate] = spelling

    def id_of(self, aggregates: frozenset[AggregateId]) -> int:
        """The id of a set of ids of the database, given out on first sight."""
        number = self._ids.get(aggregates)
        if number is not None:
            return number
        united = frozenset(self._firsts.get(each, each) for each in aggregates)
        self._stored.append(aggregates)
        # RACE tests/index/test_parts.py: readers size their tables by the list, so the list grows
        # before the number can be found.
        self._sets.append(united)
        number = len(self._sets) - 1
        for aggregate in united:
            self._having.setdefault(aggregate, []).append(number)
        self._ids[aggregates] = number
        return number

    def members(self, number: int) -> frozenset[AggregateId]:
        """The aggregates of a set."""
        return self._sets[number]

    def spellings(self, number: int) -> list[str]:
        """The aggregates of a set as the database spells them: each once, the oldest row first."""
        first: dict[AggregateId, str] = {}
        for aggregate in sorted(self._stored[number]):
            if aggregate in self._spellings:
                first.setdefault(self._firsts.get(aggregate, aggregate), self._spellings[aggregate])
        return list(first.values())

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
