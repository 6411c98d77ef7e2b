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
from berth.candidates.budget import Budget
from berth.candidates.filter import filter_trees
from berth.candidates.plan import Plan
from berth.candidates.request import SearchSettings
from berth.candidates.splits import with_splits
from berth.candidates.trees import FilteredTrees
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Snapshot


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
    hosts: dict[int, Mask] = {}
    trees = filter_trees(snapshot, plan, budget, among=among)
    if plan.splits:
        batches = _split_once(snapshot, plan, trees, budget, hosts)
    else:
        batches = one_of_each(snapshot, plan, trees, budget)
    for batch in batches:
        mask = hosts.get(batch.trees.block_id)
        if mask is None:
            mask = np.zeros(batch.trees.block.rows, dtype=np.bool_)
            hosts[batch.trees.block_id] = mask
        mask[batch.trees.rows[batch.positions]] = True
    return hosts


def _split_once(
    snapshot: Snapshot,
    plan: Plan,
    trees: Iterable[FilteredTrees],
    budget: Budget,
    fitting: Mapping[int, Mask],
) -> Iterator[Batch]:
    """Candidates of a plan with splits, until there is one of each tree that anchors any.

    Args:
        fitting: the rows of each block that have one; the caller adds those of each batch.
    """
    batches = assign(
        snapshot,
        plan,
        trees,
        SearchSettings(),
        None,
        rng=random.Random(0),
        budget=budget,
        duplicates=None,
    )
    for batch in batches:
        block_id, rows = batch.trees.block_id, batch.trees.rows
        if block_id in fitting:
            batch = batch.at(~fitting[block_id][rows[batch.positions]])
        for candidates in with_splits(snapshot, plan, [batch], budget, None):
            yield candidates
            # Amounts that may be split have more sets than anybody could list.
            if fitting[block_id][rows[batch.positions]].all():
                break
