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
from berth.candidates.masks import Rows
from berth.candidates.plan import Plan
from berth.candidates.request import SearchSettings
from berth.candidates.splits import fitting_splits, with_splits
from berth.candidates.trees import FilteredTrees, Trees
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
    for trees, rows in _fitting(snapshot, plan, budget, among, hosts):
        mask = hosts.get(trees.block_id)
        if mask is None:
            mask = hosts[trees.block_id] = np.zeros(trees.block.rows, dtype=np.bool_)
        mask[rows] = True
    return hosts


def _fitting(
    snapshot: Snapshot,
    plan: Plan,
    budget: Budget,
    among: Mapping[int, Mask] | None,
    hosts: Mapping[int, Mask],
) -> Iterator[tuple[Trees, Rows]]:
    """The rows that fit, in parts; the caller adds them to `hosts`."""
    trees = filter_trees(snapshot, plan, budget, among=among)
    if plan.is_filter:
        # PERF bench, explain: most derived requests have one condition.
        yield from ((each, each.rows) for each in trees)
        return
    if plan.splits:
        yield from _fitting_splits(snapshot, plan, trees, budget, hosts)
        return
    for batch in one_of_each(snapshot, plan, trees, budget):
        yield batch.trees, batch.trees.rows[batch.positions]


def _fitting_splits(
    snapshot: Snapshot,
    plan: Plan,
    trees: Iterable[FilteredTrees],
    budget: Budget,
    hosts: Mapping[int, Mask],
) -> Iterator[tuple[Trees, Rows]]:
    """As `_fitting`, of a plan with splits."""
    for batch in _unsplit(snapshot, plan, trees, budget):
        block_id, rows = batch.trees.block_id, batch.trees.rows
        if block_id in hosts:
            batch = batch.at(~hosts[block_id][rows[batch.positions]])
        for positions in fitting_splits(snapshot, plan, batch, budget):
            yield batch.trees, rows[positions]
            # Amounts that may be split have more sets than anybody could list.
            if hosts[block_id][rows[batch.positions]].all():
                break


def one_candidate_each(
    snapshot: Snapshot, plan: Plan, budget: Budget, among: Mapping[int, Mask] | None = None
) -> Iterator[Batch]:
    """One candidate of each host that fits; arguments as of `fitting_hosts`."""
    trees = filter_trees(snapshot, plan, budget, among=among)
    if not plan.splits:
        yield from one_of_each(snapshot, plan, trees, budget)
        return
    served: dict[int, Mask] = {}
    for batch in _unsplit(snapshot, plan, trees, budget):
        of_block = served.setdefault(
            batch.trees.block_id, np.zeros(batch.trees.block.rows, dtype=np.bool_)
        )
        batch = batch.at(~of_block[batch.rows])
        for candidates in with_splits(snapshot, plan, [batch], budget, None):
            new = candidates.at(~of_block[candidates.rows])
            of_block[new.rows] = True
            if len(new.positions):
                yield new
            if of_block[batch.rows].all():
                break


def _unsplit(
    snapshot: Snapshot, plan: Plan, trees: Iterable[FilteredTrees], budget: Budget
) -> Iterator[Batch]:
    """The candidates of a plan with splits, as far as they are not split."""
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
