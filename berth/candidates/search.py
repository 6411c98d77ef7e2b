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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from berth.candidates.anchors import AnchorFinder, Anchors, Rows
from berth.candidates.path import Path
from berth.candidates.plan import Plan
from berth.candidates.request import SearchSettings
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.ids import ProviderId


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
        if all(len(options) == 1 for options in anchors.options):
            yield from walk.batches(anchors)
        else:
            for position in np.flatnonzero(anchors.alive).tolist():
                yield from walk.batches(anchors.only(position))


def _in_turn(groups: Iterable[Anchors], walk: _Walk) -> Iterator[Batch]:
    """Breadth first: one candidate from each tree, then another from each, until all are spent."""
    served: list[tuple[Anchors, int]] = []
    for anchors in groups:
        live: Mask = anchors.alive.copy()
        for batch in walk.batches(anchors, live=live):
            yield batch
            live[batch.positions] = False
            served.extend((anchors, position) for position in batch.positions.tolist())
    # A walk repeats itself: what each tree gave in the first turn is the first that its own walk
    # finds.
    yield from _turns(
        islice(walk.batches(anchors.only(position)), 1, None) for anchors, position in served
    )


def _at_random(groups: Iterable[Anchors], walk: _Walk, rng: random.Random) -> Iterator[Batch]:
    """One candidate of each tree, drawn at random and the trees in random order; then another of
    each."""
    trees = [
        (anchors, position)
        for anchors in groups
        for position in np.flatnonzero(anchors.alive).tolist()
    ]
    rng.shuffle(trees)
    yield from _turns(walk.batches(anchors.only(position), rng=rng) for anchors, position in trees)


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
            live: (N,) rows still wanted; the caller may take rows away while the walk goes on.
            rng: shuffles the options of every slot; None for the order of the nodes, the same each
                time.
        """
        path = Path(self._snapshot, self._plan, anchors, rng)
        pending = [iter(path.options(0))]
        alive = [anchors.alive]
        while pending:
            depth = len(pending) - 1
            option = next(pending[-1], None)
            if option is None:
                pending.pop()
                alive.pop()
                if pending:
                    path.take_back(depth - 1)
                continue
            rest = path.possible(depth, option, alive[-1] if live is None else alive[-1] & live)
            if rest is None:
                continue
            path.take(depth, option.choice)
            if depth + 1 < path.length:
                pending.append(iter(path.options(depth + 1)))
                alive.append(rest)
                continue
            choices = path.choices
            path.take_back(depth)
            positions = self._unseen(anchors, choices, np.flatnonzero(rest))
            if len(positions):
                yield Batch(anchors, choices, positions)
            if live is not None:
                # PERF bench, wide: rows that were served meanwhile leave whole levels without work.
                while len(pending) > 1 and not (alive[-1] & live).any():
                    pending.pop()
                    alive.pop()
                    path.take_back(len(pending) - 1)

    def _unseen(self, anchors: Anchors, choices: tuple[int, ...], positions: Rows) -> Rows:
        """The rows in which a candidate was not already found from another anchor.

        Only a candidate whose providers all share can be found from two anchors: any other provider
            is in one tree only.
        """
        shape, trait = anchors.block.shape, self._snapshot.sharing.trait
        local = [choice for choice in choices if choice < shape.size]
        if any(trait not in shape.kinds[node].traits for node in local):
            return positions
        # Without a provider of the row's own tree, all rows have the same candidate: the first one
        # keeps it.
        found = []
        for position in positions.tolist():
            row = int(anchors.rows[position])
            key = tuple(anchors.provider_id(choice, row) for choice in choices)
            if self._anchor_of.setdefault(key, (anchors.slot, row)) == (anchors.slot, row):
                found.append(position)
        return np.array(found, dtype=np.int64)
