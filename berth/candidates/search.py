# SPDX-License-Identifier: Apache-2.0
"""The search: from groups of anchors to candidates, lazily, in batches of rows that make the same
choices.

One depth-first walk over the slots serves all rows of a group of anchors at once: at each step it
carries the mask of the rows for which the choices so far are possible, sums of amounts included,
and turns back as soon as no row is left. So what is structural (same_subtree, isolate, traits of
the union) is settled once for thousands of hosts, only amounts are compared row by row, and nothing
is ever generated that a limit throws away.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from berth.candidates.anchors import AnchorFinder, Anchors, Rows
from berth.candidates.path import Alive, Path, bits_of
from berth.candidates.plan import Plan
from berth.candidates.request import SearchSettings
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.ids import ProviderId

#: Situations without issue that a walk remembers; beyond it begins anew, so that memory is bounded.
HOPELESS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Candidates that differ in their hosts only.

    Attributes:
        choices: for each slot of the plan, see `Option.choice`.
        positions: places in `anchors.rows`, one candidate for each.
    """

    anchors: Anchors
    choices: tuple[int, ...]
    positions: Rows

    @property
    def rows(self) -> Rows:
        """The rows of `anchors.block`, one candidate for each."""
        rows: Rows = self.anchors.rows[self.positions]
        return rows

    def first(self, count: int) -> Batch:
        """The batch without what goes beyond `count`."""
        return Batch(self.anchors, self.choices, self.positions[:count])


def search(
    snapshot: Snapshot, plan: Plan, settings: SearchSettings, limit: int | None, rng: random.Random
) -> Iterator[Batch]:
    """All candidates of a plan, each once, or as many as `limit` and the operator's cap allow.

    Which ones come first when not all are wanted follows `settings`; without a cap and without
    randomisation it is unspecified, and chosen to be fast and to spread over hosts.
    """
    cap = None if settings.candidates_max < 0 else max(settings.candidates_max, 1)
    wanted = min((bound for bound in (limit, cap) if bound is not None), default=None)
    finder = AnchorFinder(snapshot, plan)
    groups = (anchors for slot in finder.blocks() for anchors in finder.of_block(slot))
    walk = _Walk(snapshot, plan)
    if settings.randomize:
        batches = _at_random(groups, walk, rng)
    elif wanted is not None and settings.strategy == "breadth-first":
        batches = _in_turn(groups, walk)
    elif cap is not None:
        batches = _row_by_row(groups, walk)
    else:
        batches = _whole_groups(groups, walk)
    return batches if wanted is None else _first(wanted, batches)


def _first(wanted: int, batches: Iterable[Batch]) -> Iterator[Batch]:
    for batch in batches:
        part = batch.first(wanted)
        yield part
        wanted -= len(part.positions)
        if wanted == 0:
            return


def _whole_groups(groups: Iterable[Anchors], walk: _Walk) -> Iterator[Batch]:
    """The fastest order: what is alike comes together."""
    for anchors in groups:
        yield from walk.batches(anchors)


def _row_by_row(groups: Iterable[Anchors], walk: _Walk) -> Iterator[Batch]:
    """Depth first: all candidates of one tree before those of the next."""
    for anchors in groups:
        if all(options.bit_count() == 1 for options in anchors.options):
            yield from walk.batches(anchors)
        else:
            for position in range(len(anchors.rows)):
                yield from walk.batches(anchors.only(position))


def _in_turn(groups: Iterable[Anchors], walk: _Walk) -> Iterator[Batch]:
    """Breadth first: one candidate from each tree, then another from each, until all are spent."""
    served: list[Batch] = []
    for anchors in groups:
        live: Mask = np.ones(len(anchors.rows), dtype=np.bool_)
        for batch in walk.batches(anchors, live=live):
            yield batch
            served.append(batch)
            live[batch.positions] = False
            if not live.any():
                break
    yield from _turns(
        _others_than(batch.choices, walk.batches(batch.anchors.only(position)))
        for batch in served
        for position in batch.positions.tolist()
    )


def _others_than(choices: tuple[int, ...], batches: Iterable[Batch]) -> Iterator[Batch]:
    return (batch for batch in batches if batch.choices != choices)


def _at_random(groups: Iterable[Anchors], walk: _Walk, rng: random.Random) -> Iterator[Batch]:
    """One candidate of each tree, drawn at random and the trees in random order; then another of
    each."""
    drawn = list(groups)
    sizes = [len(anchors.rows) for anchors in drawn]
    starts = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
    # PERF bench, randomize: sorting random bytes is many times as fast as `rng.shuffle`.
    keys = np.frombuffer(rng.randbytes(8 * sum(sizes)), dtype=np.uint64)
    trees = np.argsort(keys, kind="stable")
    at = np.searchsorted(starts, trees, side="right") - 1
    yield from _turns(
        walk.batches(drawn[group].only(position), rng=rng)
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
    """Walks over groups of anchors for one request; remembers what must not be found twice."""

    def __init__(self, snapshot: Snapshot, plan: Plan) -> None:
        self._snapshot = snapshot
        self._plan = plan
        #: Candidates of sharing providers only, which several anchors reach -> the anchor that has
        #: them: (slot, row).
        self._anchor_of: dict[tuple[ProviderId, ...], tuple[int, int]] = {}

    def batches(
        self, anchors: Anchors, *, live: Mask | None = None, rng: random.Random | None = None
    ) -> Iterator[Batch]:
        """All candidates of a group of anchors, depth first over the slots.

        Args:
            live: (N,) rows still wanted; the caller may take rows away while the walk goes on, and
                ends the walk when none is left.
            rng: shuffles the options of every slot; None for the order of the nodes.
        """
        if len(anchors.rows) == 1:
            live = None
        path = Path(self._snapshot, self._plan, anchors)
        first = path.start()
        if first is None:
            return
        levels = [first]
        pending = [_ordered(path.options(0, first), rng)]
        #: Situations that led to nothing, and how many of the levels led to something.
        hopeless: set[Hashable] = set()
        fruitful = 0
        while levels:
            depth = len(levels) - 1
            level = levels[-1]
            choice = next(pending[-1], None)
            alive = level.alive if live is None else level.alive & live
            if choice is None or (live is not None and not np.any(alive)):
                # PERF bench, wide: rows that were served meanwhile leave whole levels without work.
                if depth and depth >= fruitful:
                    _remember(hopeless, path.situation(depth, level))
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

    def _unseen(self, anchors: Anchors, choices: tuple[int, ...], positions: Rows) -> Rows:
        """The rows in which a candidate was not already found from another anchor.

        Only a candidate whose providers all share can be found from two anchors: any other provider
        is in one tree only.
        """
        shape, trait = anchors.block.shape, self._snapshot.sharing.trait
        local = [choice for choice in choices if choice < shape.size]
        if any(trait not in shape.kinds[node].traits for node in local):
            return positions
        rows = anchors.rows[positions]
        if not local:
            # All rows have the same candidate.
            owner = self._owner(anchors, choices, int(rows[0]))
            same: Rows = positions[rows == owner[1]] if owner[0] == anchors.slot else positions[:0]
            return same
        mine = [self._owner(anchors, choices, row) == (anchors.slot, row) for row in rows.tolist()]
        return positions[np.array(mine, dtype=np.bool_)]

    def _owner(self, anchors: Anchors, choices: tuple[int, ...], row: int) -> tuple[int, int]:
        """The anchor that a candidate belongs to: the first from which it was found."""
        key = tuple(anchors.provider_id(choice, row) for choice in choices)
        return self._anchor_of.setdefault(key, (anchors.slot, row))


def _ordered(choices: int, rng: random.Random | None) -> Iterator[int]:
    if rng is None:
        return bits_of(choices)
    shuffled = list(bits_of(choices))
    rng.shuffle(shuffled)
    return iter(shuffled)


def _remember(hopeless: set[Hashable], situation: Hashable) -> None:
    if len(hopeless) >= HOPELESS_MAX:
        hopeless.clear()
    hopeless.add(situation)


def _positions(alive: Alive) -> Rows:
    return np.zeros(1, dtype=np.int64) if isinstance(alive, bool) else np.flatnonzero(alive)
