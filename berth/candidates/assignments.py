# SPDX-License-Identifier: Apache-2.0
"""Enumeration by assignments: where the demands have few combinations of choices, try all of them
in all rows at once.

Most fleets are like that: a flat host serves a request in one way, one with two NUMA nodes in a
few. Structural rules are checked once for each assignment; a block of hosts then costs a few
operations on whole arrays.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import product
from math import prod
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.masks import Rows
from berth.candidates.plan import Plan
from berth.candidates.rules import allows
from berth.candidates.structure import Structure
from berth.candidates.trees import FilteredTrees
from berth.index.aggregate_sets import Mask
from berth.index.block import ROWS_MAX
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId

#: More combinations than this are searched step by step instead.
ASSIGNMENTS_MAX: Final = 64

#: The positions of all rows of a block.
_ALL: Final[Rows] = np.arange(ROWS_MAX)


class Assignment(NamedTuple):
    """One choice for every demand, which structure allows.

    Attributes:
        choices: for each demand of the plan.
        tests: (query id, choice) of each different query.
        sums: (choice, class, amount) of what several demands take together of one class.
    """

    choices: tuple[int, ...]
    tests: tuple[tuple[int, int], ...]
    sums: tuple[tuple[int, ClassId, int], ...]

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 250 + 8 * len(self.choices) + 80 * len(self.tests) + 100 * len(self.sums)

    def positions(self, trees: FilteredTrees) -> Rows:
        """The rows in which this assignment is a candidate."""
        alive: Mask | None = None
        for query_id, choice in self.tests:
            mask = trees.masks[query_id][choice]
            if mask is not None:
                alive = mask if alive is None else alive & mask
        for choice, class_id, amount in self.sums:
            # min_unit and step_size apply to each group alone, not to the sum.
            enough = np.broadcast_to(trees.room(choice, class_id) >= amount, len(trees.rows))
            alive = enough if alive is None else alive & enough
        return _ALL[: len(trees.rows)] if alive is None else alive.nonzero()[0]


def assignments_of(
    snapshot: Snapshot, plan: Plan, trees: FilteredTrees
) -> tuple[Assignment, ...] | None:
    """All assignments of some trees, found once for each structure; None if there are too many to
    try them all."""
    key: Hashable = trees.scope, tuple([tuple(choices) for choices in trees.masks.values()])
    if trees.serving:
        key = key, trees.sharing_providers.structure(trees.serving)
    memory, shape = snapshot.memory, trees.block.shape
    assignments: tuple[Assignment, ...] | None = memory.get_for(shape, key)
    if assignments is None:
        options = [trees.masks[demand.query_id] for demand in plan.demands]
        if prod(map(len, options)) > ASSIGNMENTS_MAX:
            return None
        structure = Structure(snapshot, trees)
        assignments = tuple(
            _assignment(plan, choices)
            for choices in product(*options)
            if allows(plan.rules, structure, [1 << choice for choice in choices])
        )
        memory.keep_for(shape, key, assignments, sum(each.size for each in assignments))
    return assignments


def _assignment(plan: Plan, choices: tuple[int, ...]) -> Assignment:
    taken: dict[tuple[int, ClassId], list[int]] = {}
    for demand, choice in zip(plan.demands, choices, strict=True):
        for class_id, amount in demand.amounts:
            taken.setdefault((choice, class_id), []).append(amount)
    query_ids = [demand.query_id for demand in plan.demands]
    return Assignment(
        choices,
        tuple(dict.fromkeys(zip(query_ids, choices, strict=True))),
        tuple((*key, sum(amounts)) for key, amounts in taken.items() if len(amounts) > 1),
    )
