# SPDX-License-Identifier: Apache-2.0
"""Enumeration by a walk: trees with the same options are searched together, depth first.

One walk over the demands serves all rows of a group: at each step it carries the mask of the rows
for which the choices so far are possible, sums of amounts included, and turns back as soon as no
row is left. So what is structural (same_subtree, isolate, traits of the union) is settled once for
thousands of hosts, and only amounts are compared row by row.

Every step checks whether the budget is spent; then the walk ends with what it has found.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator
from typing import Final

import numpy as np

from berth.candidates.batch import Batch
from berth.candidates.masks import Rows
from berth.candidates.path import Alive, Path
from berth.candidates.plan import Plan
from berth.candidates.structure import bits_of
from berth.candidates.trees import Trees, UniformTrees
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.ids import ProviderId

#: Entries of all `nogoods` of a walk, one for each demand of each; beyond it they are dropped.
NOGOODS_MAX: Final = 160_000


class Duplicates:
    """Recognises candidates that were already found from another anchor.

    Only a candidate whose providers all share can be found twice: any other provider is in one
    tree only.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._trait = snapshot.sharing.trait
        #: The providers of a candidate -> the anchor from which it was found: (block_id, row).
        self._anchor_of: dict[tuple[ProviderId, ...], tuple[int, int]] = {}

    def removed_from(self, trees: Trees, choices: tuple[int, ...], positions: Rows) -> Rows:
        """The positions at which a candidate is new."""
        shape, trait = trees.block.shape, self._trait
        if not len(positions) or not (trees.serving or trait in shape.traits):
            return positions
        local = [choice for choice in choices if choice < shape.size]
        if any(trait not in shape.node_types[node].traits for node in local):
            return positions
        if not local and trees.served_by is None:
            # All rows have the same candidate.
            positions = positions[:1]
        new = [self._is_new(trees, choices, position) for position in positions.tolist()]
        return positions[np.array(new, dtype=np.bool_)]

    def _is_new(self, trees: Trees, choices: tuple[int, ...], position: int) -> bool:
        anchor = trees.block_id, int(trees.rows[position])
        key = tuple(trees.provider_id(choice, position) for choice in choices)
        return self._anchor_of.setdefault(key, anchor) == anchor


def walk(
    snapshot: Snapshot,
    plan: Plan,
    trees: UniformTrees,
    budget: Budget,
    duplicates: Duplicates | None,
    *,
    live: Mask | None = None,
    rng: random.Random | None = None,
    unordered: bool = False,
) -> Iterator[Batch]:
    """All candidates of some trees, depth first over the demands.

    Args:
        live: (N,) rows still wanted; the caller may remove rows while the walk goes on, and ends
            the walk when none is left.
        rng: shuffles the options of every demand; None for the order of the nodes.
        unordered: whether groups that are alike are served in one order only.
    """
    if budget.is_spent():
        return
    if len(trees.rows) == 1:
        live = None
    path = Path(snapshot, plan, trees, unordered=unordered)
    first = path.start()
    if first is None:
        return
    levels = [first]
    pending = [_ordered(path.options(0, first), rng)]
    #: States that led to no candidate; and how many of the levels led to one.
    nogoods: set[Hashable] = set()
    fruitful = 0
    while levels and not budget.is_spent():
        depth = len(levels) - 1
        level = levels[-1]
        choice = next(pending[-1], None)
        alive = level.alive if live is None else level.alive & live
        if choice is None or (live is not None and not np.any(alive)):
            # PERF bench, wide: rows that were removed meanwhile leave whole levels without work.
            if depth and depth >= fruitful:
                _remember(nogoods, path.state_key(depth, level), NOGOODS_MAX // path.length)
            fruitful = min(fruitful, depth)
            levels.pop()
            pending.pop()
            if depth:
                path.take_back(depth - 1)
            continue
        below = path.take(depth, choice, level, alive)
        if below is None:
            continue
        if depth + 1 < path.length:
            if nogoods and path.state_key(depth + 1, below) in nogoods:
                path.take_back(depth)
                continue
            levels.append(below)
            pending.append(_ordered(path.options(depth + 1, below), rng))
            continue
        fruitful = len(levels)
        choices = path.choices
        path.take_back(depth)
        positions = _positions(below.alive)
        if duplicates is not None:
            positions = duplicates.removed_from(trees, choices, positions)
        if len(positions):
            yield Batch(trees, choices, positions)


def _ordered(choices: int, rng: random.Random | None) -> Iterator[int]:
    if rng is None:
        return bits_of(choices)
    shuffled = list(bits_of(choices))
    rng.shuffle(shuffled)
    return iter(shuffled)


def _remember(nogoods: set[Hashable], state_key: Hashable, most: int) -> None:
    if len(nogoods) >= most:
        nogoods.clear()
    nogoods.add(state_key)


def _positions(alive: Alive) -> Rows:
    return np.zeros(1, dtype=np.int64) if isinstance(alive, bool) else np.flatnonzero(alive)
