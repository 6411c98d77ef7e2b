# SPDX-License-Identifier: Apache-2.0
"""The largest amount of one class with which some host fits, from its candidates for nothing of it.

What else a candidate takes does not depend on this amount. So each host is searched once, for the
request with an amount of 0, and what the provider of each candidate could give instead is counted.

Source: spec/beyond.md 4.3.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np

from berth.candidates.assign import PerTree, assign
from berth.candidates.batch import Batch
from berth.candidates.capacity.factors import WAYS_MAX
from berth.candidates.filter import filter_trees
from berth.candidates.plan import Plan
from berth.candidates.request import SearchSettings
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId


def largest_amount(
    snapshot: Snapshot,
    plan: Plan,
    wanted: tuple[str, ClassId],
    among: Mapping[int, Mask],
    budget: Budget,
) -> int | None:
    """The largest amount, 0 if no host fits with any; None if some host has too many candidates.

    Args:
        plan: without splits; it asks for 0 of what is wanted.
        wanted: the suffix of a group, and the class.
        among: the rows of each block that count.
    """
    number = _number_of(plan, wanted)
    per_tree = PerTree(WAYS_MAX)
    batches = assign(
        snapshot,
        plan,
        filter_trees(snapshot, plan, budget, among=among),
        SearchSettings(),
        None,
        rng=random.Random(0),
        budget=budget,
        duplicates=None,
        per_tree=per_tree,
    )
    largest = 0
    for batch in batches:
        if per_tree.left_out:
            break
        largest = max(largest, _most(plan, batch, number, wanted[1]))
    # Looked at here, too: what is left out need not be followed by a batch.
    return None if per_tree.left_out else largest


def _number_of(plan: Plan, wanted: tuple[str, ClassId]) -> int:
    """The demand that asks for what is wanted."""
    suffix, class_id = wanted
    return next(
        number
        for number, demand in enumerate(plan.demands)
        if demand.suffix == suffix and class_id in dict(demand.amounts)
    )


def _most(plan: Plan, batch: Batch, number: int, class_id: ClassId) -> int:
    """The most that the provider of one demand can give in one of some candidates."""
    if not len(batch.positions):
        return 0
    choice, trees = batch.choices[number], batch.trees
    others = batch.given(plan)[choice, class_id]
    room = np.broadcast_to(trees.room(choice, class_id), len(trees.rows))
    least, step = trees.units(choice, class_id)
    most = (room.astype(np.int64) - others) // step * step
    return max(int(np.where(most >= least, most, 0)[batch.positions].max()), 0)
