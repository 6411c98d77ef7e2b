# SPDX-License-Identifier: Apache-2.0
"""The hosts that fit a request: those that anchor at least one candidate.

Source: spec/beyond.md 3.1.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from berth.candidates.assign import assign, one_of_each
from berth.candidates.batch import Batch
from berth.candidates.filter import filter_trees
from berth.candidates.masks import Rows
from berth.candidates.plan import Plan
from berth.candidates.request import SearchSettings
from berth.candidates.splits import with_splits
from berth.candidates.trees import FilteredTrees, Trees
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget


def fitting_hosts(
    snapshot: Snapshot,
    plan: Plan,
    budget: Budget,
    among: Mapping[int, Mask] | None = None,
) -> Mapping[int, Mask]:
    """The rows of each block that fit; blocks without any are left out.

    If the budget ends, some are missing.

    Args:
        among: the rows of each block that count; None for all of all blocks.
    """
    parts: Iterable[tuple[Trees, Rows]]
    if plan.is_filter:
        # PERF bench, explain: most derived requests have one condition.
        every = filter_trees(snapshot, plan, budget, among=among)
        parts = ((trees, trees.rows) for trees in every)
    else:
        batches = one_candidate_each(snapshot, plan, budget, among, any_set=True)
        parts = ((batch.trees, batch.rows) for batch in batches)
    hosts: dict[int, Mask] = {}
    for trees, rows in parts:
        mask = hosts.get(trees.block_id)
        if mask is None:
            mask = hosts[trees.block_id] = np.zeros(trees.block.rows, dtype=np.bool_)
        mask[rows] = True
    return hosts


def one_candidate_each(
    snapshot: Snapshot,
    plan: Plan,
    budget: Budget,
    among: Mapping[int, Mask] | None = None,
    *,
    any_set: bool = False,
) -> Iterator[Batch]:
    """One candidate of each host that fits; arguments as of `fitting_hosts` and `with_splits`."""
    trees = filter_trees(snapshot, plan, budget, among=among)
    if not plan.splits:
        yield from one_of_each(snapshot, plan, trees, budget)
        return
    served: dict[int, Mask] = {}
    for batch in unsplit(snapshot, plan, trees, budget):
        of_block = served.setdefault(
            batch.trees.block_id, np.zeros(batch.trees.block.rows, dtype=np.bool_)
        )
        batch = batch.at(~of_block[batch.rows])
        if not len(batch.positions):
            continue
        for candidates in with_splits(snapshot, plan, [batch], budget, None, any_set=any_set):
            new = candidates.at(~of_block[candidates.rows])
            of_block[new.rows] = True
            if len(new.positions):
                yield new
            if of_block[batch.rows].all():
                break


def unsplit(
    snapshot: Snapshot, plan: Plan, trees: Iterable[FilteredTrees], budget: Budget
) -> Iterator[Batch]:
    """All candidates of some trees, without the amounts that are split."""
    return assign(
        snapshot,
        plan,
        trees,
        SearchSettings(),
        None,
        rng=random.Random(0),
        budget=budget,
        duplicates=None,
    )
