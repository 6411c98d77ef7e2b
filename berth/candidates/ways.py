# SPDX-License-Identifier: Apache-2.0
"""Ways: where the slots have few combinations of choices, all are tried, in all rows at once.

Most fleets are like that: a flat host serves a request in one way, and one with two NUMA nodes in a
few. What of a way is structure is settled once; what is left for a block of hosts are a few
operations on whole arrays.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import product
from math import prod
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.anchors import Prospects
from berth.candidates.local import Rows
from berth.candidates.plan import Plan
from berth.candidates.structure import Structure
from berth.index.aggregate_sets import Mask
from berth.index.block import ROWS_MAX
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId

#: Sets of options for which the ways are kept with a shape; one more, and all are forgotten. All
#: that is kept is bounded by the fleet's `Allowance`.
KEPT_MAX: Final = 64

#: What it takes to keep the ways of a set of options, the ways themselves aside.
_ENTRY_BYTES: Final = 500

#: More combinations than this are searched step by step instead.
WAYS_MAX: Final = 64

#: The positions of all rows of a block.
_ALL: Final[Rows] = np.arange(ROWS_MAX)


class Way(NamedTuple):
    """One combination that structure allows.

    Attributes:
        choices: for each slot of the plan.
        tests: (ask, choice) of each different question.
        sums: (choice, class, amount) of what several slots take together of one class.
    """

    choices: tuple[int, ...]
    tests: tuple[tuple[int, int], ...]
    sums: tuple[tuple[int, ClassId, int], ...]

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 250 + 8 * len(self.choices) + 80 * len(self.tests) + 100 * len(self.sums)

    def positions(self, prospects: Prospects) -> Rows:
        """The rows in which this way is a candidate."""
        alive: Mask | None = None
        for ask, choice in self.tests:
            mask = prospects.masks[ask][choice]
            if mask is not None:
                alive = mask if alive is None else alive & mask
        for choice, class_id, amount in self.sums:
            # The other tests of a sum hold for each group alone: min_unit and step_size are not
            # asked of it.
            enough = np.broadcast_to(
                prospects.room(choice, class_id) >= amount, len(prospects.rows)
            )
            alive = enough if alive is None else alive & enough
        return _ALL[: len(prospects.rows)] if alive is None else alive.nonzero()[0]


class Ways:
    """The ways of one plan, found once for each structure of trees, and kept with it."""

    def __init__(self, snapshot: Snapshot, plan: Plan) -> None:
        self._snapshot = snapshot
        self._plan = plan

    def of(self, prospects: Prospects) -> tuple[Way, ...] | None:
        """All ways of some trees, None if there are too many to try them all."""
        key: Hashable = tuple([tuple(choices) for choices in prospects.masks.values()])
        known = prospects.tests.ways
        if prospects.foreign:
            key = key, prospects.known.structure(prospects.foreign)
        ways = known.get(key)
        if ways is None:
            options = [prospects.masks[slot.ask] for slot in self._plan.slots]
            if prod(map(len, options)) > WAYS_MAX:
                return None
            if len(known) >= KEPT_MAX:
                known.clear()
            ways = self._find(prospects, product(*options))
            if self._snapshot.allowance.grow(_ENTRY_BYTES + sum(way.size for way in ways)):
                known[key] = ways
        return ways

    def _find(
        self, prospects: Prospects, combinations: Iterable[tuple[int, ...]]
    ) -> tuple[Way, ...]:
        structure = Structure(self._snapshot, prospects)
        return tuple(
            self._way(choices) for choices in combinations if self._is_allowed(structure, choices)
        )

    def _way(self, choices: tuple[int, ...]) -> Way:
        slots = self._plan.slots
        taken: dict[tuple[int, ClassId], list[int]] = {}
        for slot, choice in zip(slots, choices, strict=True):
            for class_id, amount in slot.amounts:
                taken.setdefault((choice, class_id), []).append(amount)
        return Way(
            choices,
            tuple(dict.fromkeys(zip((slot.ask for slot in slots), choices, strict=True))),
            tuple((*key, sum(amounts)) for key, amounts in taken.items() if len(amounts) > 1),
        )

    def _is_allowed(self, structure: Structure, choices: Sequence[int]) -> bool:
        """Whether a combination is one of the plan's, amounts aside."""
        plan = self._plan
        suffixed: list[int] = []
        unsuffixed: list[int] = []
        for slot, choice in zip(plan.slots, choices, strict=True):
            (unsuffixed if slot.unsuffixed else suffixed).append(choice)
        if plan.isolate and len(set(suffixed)) < len(suffixed):
            return False
        if plan.one_per_tree and not _is_one_per_tree(structure, set(choices)):
            return False
        traits = frozenset().union(*map(structure.traits, unsuffixed))
        return not any(wanted.isdisjoint(traits) for wanted in plan.union_traits.required) and all(
            _is_subtree(structure, {choices[number] for number in numbers})
            for numbers in plan.subtrees
        )


def _is_one_per_tree(structure: Structure, choices: Iterable[int]) -> bool:
    together = sum(1 << choice for choice in choices)
    return all(structure.of_tree(choice) & together == 1 << choice for choice in choices)


def _is_subtree(structure: Structure, choices: Iterable[int]) -> bool:
    """Whether one of some choices is an ancestor of all, or itself."""
    tops = sum(1 << choice for choice in choices)
    for choice in choices:
        tops &= structure.lineage(choice)
    return tops != 0
