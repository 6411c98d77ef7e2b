# SPDX-License-Identifier: Apache-2.0
"""Sets of aggregates and of drains as small numbers.

Every distinct set of aggregates that a provider is in has one id, and so has every set of drains
that name a provider. A block stores an id for each provider, so that "is it in one of these
aggregates?" is one look-up table of booleans, and one indexing operation for a whole block of
hosts, whatever the number of aggregates.

Which sets of drains exclude, and so which providers are drained, follows from the drains that are
in effect: so a question that tolerates some of them, or a scenario without them, derives its own
masks.

Source: spec/beyond.md 2.3 and 7.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.model.ids import AggregateId
from berth.model.named import DrainId

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
