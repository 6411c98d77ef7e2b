# SPDX-License-Identifier: Apache-2.0
"""The search: from filtered trees to candidates, lazily, in batches.

Where the slots have few combinations, all are tried in all trees at once (`berth.candidates.ways`).
Otherwise trees with the same options are walked together: one depth-first walk over the slots
serves all rows of a group of anchors; at each step it carries the mask of the rows for which the
choices so far are possible, sums of amounts included, and turns back as soon as no row is left. So
what is structural (same_subtree, isolate, traits of the union) is settled once for thousands of
hosts, only amounts are compared row by row, and nothing is ever generated that a limit throws away.

Every step asks the budget whether the time is over; then the search ends with what it has.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from itertools import islice
from typing import Final

import numpy as np

from berth.candidates.anchors import AnchorFinder, Anchors, Prospects, Trees
from berth.candidates.batch import Batch
from berth.candidates.budget import Budget
from berth.candidates.local import Rows
from berth.candidates.path import Alive, Path
from berth.candidates.plan import Plan
from berth.candidates.request import SearchSettings
from berth.candidates.structure import bits_of
from berth.candidates.ways import Way, Ways
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.ids import ProviderId

#: Parts of situations without issue (one for each slot) that a walk remembers; beyond it begins
#: anew, so that memory is bounded.
HOPELESS_MAX: Final = 160_000


def search(
    snapshot: Snapshot,
    plan: Plan,
    settings: SearchSettings,
    limit: int | None,
    *,
    rng: random.Random,
    budget: Budget,
) -> Iterator[Batch]:
    """All candidates of a plan, each once, or as many as `limit`, the operator's cap and the budget
    allow.

    Which ones come first when not all are wanted follows `settings`; without a cap and without
    randomisation it is unspecified, and chosen to be fast and to spread over hosts. The same
    snapshot gives the same ones.
    """
    cap = None if settings.candidates_max < 0 else max(settings.candidates_max, 1)
    wanted = limit if cap is None else cap if limit is None else min(limit, cap)
    parts = AnchorFinder(snapshot, plan, budget, wanted).prospects()
    walk = _Walk(snapshot, plan, budget)
    if settings.randomize:
        batches = _at_random(parts, walk, rng)
    elif wanted is None:
        batches = _part_by_part(parts, walk)
    elif cap is not None and settings.strategy == "depth-first":
        batches = _row_by_row(parts, walk)
    else:
        batches = _in_turn(parts, walk)
    return batches if wanted is None else _first(wanted, batches)


def _first(wanted: int, batches: Iterable[Batch]) -> Iterator[Batch]:
    for batch in batches:
        part = batch.first(wanted)
        yield part
        wanted -= len(part.positions)
        if wanted == 0:
            return


def _part_by_part(parts: Iterable[Prospects], walk: _Walk) -> Iterator[Batch]:
    """The fastest order: what is alike comes together."""
    for prospects in parts:
        yield from walk.batches(prospects)


def _row_by_row(parts: Iterable[Prospects], walk: _Walk) -> Iterator[Batch]:
    """Depth first: all candidates of one tree before those of the next."""
    for prospects in parts:
        ways = walk.ways.of(prospects)
        if ways is not None and len(ways) <= 1:
            yield from walk.of_ways(prospects, ways)
            continue
        for anchors in prospects.alike(walk.plan):
            for position in range(len(anchors.rows)):
                yield from walk.of_anchors(anchors.only(position))


def _in_turn(parts: Iterable[Prospects], walk: _Walk) -> Iterator[Batch]:
    """Breadth first: one candidate from each tree, then more of each in turn, until all are
    spent."""
    later: list[Iterator[Batch]] = []
    for prospects in parts:
        ways = walk.ways.of(prospects)
        if ways is not None:
            batches = walk.of_ways(prospects, ways)
            more: list[Batch] = []
            yield from _first_of_each(batches, len(prospects.rows), more)
            later.append(iter(more))
            continue
        for anchors in prospects.alike(walk.plan):
            live: Mask = np.ones(len(anchors.rows), dtype=np.bool_)
            served: dict[tuple[int, ...], Rows] = {}
            for batch in walk.of_anchors(anchors, live=live):
                yield batch
                served[batch.choices] = batch.positions
                live[batch.positions] = False
                if not live.any():
                    break
            later.append(_others_than(served, walk.of_anchors(anchors)))
    yield from _turns(later)


def _first_of_each(batches: Iterable[Batch], rows: int, more: list[Batch]) -> Iterator[Batch]:
    """Of some batches the first candidate of each row; what is left of them goes to `more`."""
    served: Mask | None = None
    before: Batch | None = None
    for batch in batches:
        first = batch
        if before is not None:
            if served is None:
                # PERF bench, flat: not before a second batch is asked for, which is seldom.
                served = np.zeros(rows, dtype=np.bool_)
            served[before.positions] = True
            is_first = ~served[batch.positions]
            first = batch.at(is_first)
            if not is_first.all():
                more.append(batch.at(~is_first))
        if len(first.positions):
            yield first
        before = first


def _others_than(served: dict[tuple[int, ...], Rows], batches: Iterable[Batch]) -> Iterator[Batch]:
    """The batches without the candidates that were given out already: choices -> positions."""
    for batch in batches:
        given = served.get(batch.choices)
        if given is not None:
            batch = batch.at(~np.isin(batch.positions, given))
        if len(batch.positions):
            yield batch


def _at_random(parts: Iterable[Prospects], walk: _Walk, rng: random.Random) -> Iterator[Batch]:
    """One candidate of each tree, drawn at random and the trees in random order; then another of
    each."""
    drawn = [anchors for prospects in parts for anchors in prospects.alike(walk.plan)]
    sizes = [len(anchors.rows) for anchors in drawn]
    starts = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
    # PERF bench, randomize: sorting random bytes is many times as fast as `rng.shuffle`.
    keys = np.frombuffer(rng.randbytes(8 * sum(sizes)), dtype=np.uint64)
    trees = np.argsort(keys, kind="stable")
    at = np.searchsorted(starts, trees, side="right") - 1
    yield from _turns(
        walk.of_anchors(drawn[group].only(position), rng=rng)
        for group, position in zip(at.tolist(), (trees - starts[at]).tolist(), strict=True)
    )


def _turns(walks: Iterable[Iterator[Batch]]) -> Iterator[Batch]:
    """One batch from each of some walks, then another from each, and so on; a walk is begun when
    its turn comes."""
    again: deque[Iterator[Batch]] = deque()
    for each in walks:
        for batch in islice(each, 1):
            yield batch
            again.append(each)
    while again:
        each = again.popleft()
        for batch in islice(each, 1):
            yield batch
            again.append(each)


class _Walk:
    """Walks over trees for one request; remembers what must not be found twice."""

    def __init__(self, snapshot: Snapshot, plan: Plan, budget: Budget) -> None:
        self.plan = plan
        self.ways = Ways(snapshot, plan)
        self._snapshot = snapshot
        self._budget = budget
        #: Candidates of sharing providers only, which several anchors reach -> the anchor that has
        #: them: (slot, row).
        self._anchor_of: dict[tuple[ProviderId, ...], tuple[int, int]] = {}

    def batches(self, prospects: Prospects) -> Iterator[Batch]:
        """All candidates of some trees."""
        ways = self.ways.of(prospects)
        if ways is not None:
            yield from self.of_ways(prospects, ways)
            return
        for anchors in prospects.alike(self.plan):
            yield from self.of_anchors(anchors)

    def of_ways(self, prospects: Prospects, ways: Iterable[Way]) -> Iterator[Batch]:
        """The candidates that some ways are."""
        for way in ways:
            positions = self._unseen(prospects, way.choices, way.positions(prospects))
            if len(positions):
                yield Batch(prospects, way.choices, positions)

    def of_anchors(
        self, anchors: Anchors, *, live: Mask | None = None, rng: random.Random | None = None
    ) -> Iterator[Batch]:
        """All candidates of a group of anchors, depth first over the slots.

        Args:
            live: (N,) rows still wanted; the caller may take rows away while the walk goes on, and
                ends the walk when none is left.
            rng: shuffles the options of every slot; None for the order of the nodes.
        """
        if self._budget.is_spent():
            return
        if len(anchors.rows) == 1:
            live = None
        path = Path(self._snapshot, self.plan, anchors)
        first = path.start()
        if first is None:
            return
        levels = [first]
        pending = [_ordered(path.options(0, first), rng)]
        #: Situations that led to nothing, and how many of the levels led to something.
        hopeless: set[Hashable] = set()
        fruitful = 0
        while levels and not self._budget.is_spent():
            depth = len(levels) - 1
            level = levels[-1]
            choice = next(pending[-1], None)
            alive = level.alive if live is None else level.alive & live
            if choice is None or (live is not None and not np.any(alive)):
                # PERF bench, wide: rows that were served meanwhile leave whole levels without work.
                if depth and depth >= fruitful:
                    _remember(hopeless, path.situation(depth, level), HOPELESS_MAX // path.length)
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
                if hopeless and path.situation(depth + 1, below) in hopeless:
                    path.take_back(depth)
                    continue
                levels.append(below)
                pending.append(_ordered(path.options(depth + 1, below), rng))
                continue
            fruitful = len(levels)
            choices = path.choices
            path.take_back(depth)
            positions = self._unseen(anchors, choices, _positions(below.alive))
            if len(positions):
                yield Batch(anchors, choices, positions)

    def _unseen(self, trees: Trees, choices: tuple[int, ...], positions: Rows) -> Rows:
        """The rows in which a candidate was not already found from another anchor.

        Only a candidate whose providers all share can be found from two anchors: any other provider
        is in one tree only.
        """
        shape, trait = trees.block.shape, self._snapshot.sharing.trait
        if not len(positions) or not (trees.foreign or trait in shape.traits):
            return positions
        local = [choice for choice in choices if choice < shape.size]
        if any(trait not in shape.kinds[node].traits for node in local):
            return positions
        if not local and trees.served_by is None:
            # All rows have the same candidate.
            positions = positions[:1]
        mine = [self._is_first(trees, choices, position) for position in positions.tolist()]
        return positions[np.array(mine, dtype=np.bool_)]

    def _is_first(self, trees: Trees, choices: tuple[int, ...], position: int) -> bool:
        """Whether a candidate belongs to this anchor, the first from which it was found."""
        anchor = trees.slot, int(trees.rows[position])
        key = tuple(trees.provider_id(choice, position) for choice in choices)
        return self._anchor_of.setdefault(key, anchor) == anchor


def _ordered(choices: int, rng: random.Random | None) -> Iterator[int]:
    if rng is None:
        return bits_of(choices)
    shuffled = list(bits_of(choices))
    rng.shuffle(shuffled)
    return iter(shuffled)


def _remember(hopeless: set[Hashable], situation: Hashable, most: int) -> None:
    if len(hopeless) >= most:
        hopeless.clear()
    hopeless.add(situation)


def _positions(alive: Alive) -> Rows:
    return np.zeros(1, dtype=np.int64) if isinstance(alive, bool) else np.flatnonzero(alive)
