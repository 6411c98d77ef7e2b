# SPDX-License-Identifier: Apache-2.0
"""Ranking: the best candidates of a search, in their order.

Without scores the search stops with the last candidate that is wanted. With scores all candidates
are found and scored, whole batches at a time, and only the best are kept meanwhile.

Source: spec/beyond.md 2.6 and 2.7.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct, field

from berth.candidates import search
from berth.candidates.batch import Batch, Hashes, Hosts, hosts_of, of_hosts, scattered
from berth.candidates.conditions import Rows
from berth.candidates.order import Order, Scorer, Scores
from berth.candidates.plan import Plan
from berth.candidates.trees import marks_in
from berth.index.block import Floats
from berth.index.sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget

#: The largest number of candidates of one host that are scored.
SCORED_PER_HOST_MAX: Final = 256
#: When more candidates than this may be among the best, the others are dropped.
KEPT_MAX: Final = 1 << 15
#: They are dropped too when they are in more batches than this: where each host is a batch of its
#: own, sorting takes a step for each batch.
BATCHES_MAX: Final = 1 << 12
#: The largest number of candidates in an answer whose search was cut off: no time is left to write
#: more.
CUT_MAX: Final = 1_000

#: The best candidates within `per_host` are sought among a number of candidates that grows by this
#: factor.
_MORE: Final = 4

#: Spreads seeds over the trees of a fleet.
_SPREAD: Final = 0x9E3779B97F4A7C15


class Ranked(NamedTuple):
    """Candidates in their order.

    Attributes:
        batches: all of them, each with its scores if there are any.
        order: for each candidate, the number of its batch and its place there.
        more: whether there are further candidates.
    """

    batches: Sequence[tuple[Batch, Scores | None]]
    order: Sequence[tuple[int, int]]
    more: bool


def rank(
    snapshot: Snapshot,
    plan: Plan,
    order: Order,
    budget: Budget,
    *,
    limit: int,
    per_host: int | None,
) -> Ranked:
    """The best candidates of a plan; if the budget ends, the best of those found until then.

    Args:
        limit: how many at most; `CUT_MAX` if the budget ends.
        per_host: how many of one host at most; None for no bound.
    """
    if not order.has_scores and order.among is None:
        return _first_found(snapshot, plan, limit=limit, per_host=per_host, budget=budget)
    scored = PerHost(snapshot, SCORED_PER_HOST_MAX)
    scorer = Scorer(snapshot, plan, order, budget)
    counts = PerHost(snapshot, per_host or 0)
    best = _Best(snapshot, scorer, order, budget, counts, limit, per_host)
    for batch in to_score(snapshot, plan, order, budget, scored):
        best.add(batch)
    return best.ranked(left_out=scored.left_out)


def to_score(
    snapshot: Snapshot,
    plan: Plan,
    order: Order,
    budget: Budget,
    per_host: PerHost,
    among: Mapping[int, Mask] | None = None,
) -> Iterator[Batch]:
    """The candidates that an order scores: those of `Order.among` hosts. No batch is empty.

    Args:
        per_host: bounds the candidates of each host, and says whether there were more.
        among: the rows of each block that count; None for all of all blocks.
    """
    batches = search(
        snapshot,
        plan,
        budget,
        wanted=order.among,
        most_per_tree=per_host.most,
        start=0 if order.among is None else (order.seed + 1) * _SPREAD >> 16,
        among=among,
    )
    several = _among(snapshot, order.among, per_host.first_of(batches))
    return (batch for batch in several if len(batch.positions))


def _first_found(
    snapshot: Snapshot, plan: Plan, *, limit: int, per_host: int | None, budget: Budget
) -> Ranked:
    """The candidates that are found first."""
    # One more, to know whether there is one.
    batches = search(snapshot, plan, budget, wanted=limit + 1, most_per_tree=per_host)
    bound = None if per_host is None else PerHost(snapshot, per_host)
    chosen: list[tuple[Batch, None]] = []
    order: list[tuple[int, int]] = []
    for batch in batches if bound is None else bound.first_of(batches):
        part = batch.first(limit - len(order))
        if len(part.positions):
            order += [(len(chosen), place) for place in range(len(part.positions))]
            chosen.append((part, None))
        if len(part.positions) < len(batch.positions):
            return Ranked(chosen, order, more=True)
    left_out = bound is not None and bound.left_out
    if budget.ended is None:
        return Ranked(chosen, order, more=left_out)
    shown = order[:CUT_MAX]
    batches_shown = shown[-1][0] + 1 if shown else 0
    return Ranked(chosen[:batches_shown], shown, more=left_out or len(shown) < len(order))


class PerHost:
    """A number of candidates of each host at most.

    Attributes:
        left_out: whether there were more of any host.
    """

    def __init__(self, snapshot: Snapshot, most: int) -> None:
        self.most = most
        self.left_out = False
        self._snapshot = snapshot
        #: block_id -> how many candidates each row has had so far.
        self._counts: dict[int, Rows] = {}

    def first_of(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The candidates of some batches, without those beyond the bound. Batches of the same trees
        come one after another."""
        is_shared = bool(self._snapshot.sharing.by_aggregate)
        for _, several in groupby(batches, key=attrgetter("trees")):
            uncounted: list[Batch] = []
            for number, batch in enumerate(several, 1):
                uncounted.append(batch)
                # PERF bench, orders: without sharing providers, each host is one tree, and no batch
                # has two candidates of a tree.
                if number <= self.most and not is_shared:
                    yield batch
                    continue
                is_among = [self.numbered(each) for each in uncounted][-1] <= self.most
                uncounted.clear()
                self.left_out |= not is_among.all()
                yield batch if is_among.all() else batch.at(is_among)

    def numbered(self, batch: Batch) -> Rows:
        """Count the candidates of a batch; return for each how many its host has had, with it."""
        numbers = np.empty(len(batch.positions), dtype=np.int64)
        for hosts in hosts_of(self._snapshot, batch):
            of_rows = self._counts.get(hosts.block_id)
            if of_rows is None:
                of_rows = np.zeros(hosts.block.rows, dtype=np.int64)
                self._counts[hosts.block_id] = of_rows
            if isinstance(hosts.at, slice):
                # The hosts are different.
                of_rows[hosts.rows] += 1
                return of_rows[hosts.rows]
            for place, row in zip(hosts.at.tolist(), hosts.rows.tolist(), strict=True):
                of_rows[row] += 1
                numbers[place] = of_rows[row]
        return numbers


def _among(snapshot: Snapshot, most: int | None, batches: Iterable[Batch]) -> Iterator[Batch]:
    """The candidates of the first hosts that have any. Batches of the same trees come one after
    another.

    Args:
        most: how many hosts; None for all.
    """
    if most is None:
        yield from batches
        return
    #: block_id -> the rows of the hosts that are admitted.
    admitted: dict[int, Mask] = {}
    left = most
    for _, several in groupby(batches, key=attrgetter("trees")):
        for batch in several:
            # No part has a host twice, or hosts of two blocks.
            for part in (batch,) if batch.is_anchored else batch.split(1):
                (hosts,) = hosts_of(snapshot, part)
                is_admitted = marks_in(admitted, hosts.block_id, hosts.block)
                new = hosts.rows[~is_admitted[hosts.rows]][:left]
                is_admitted[new] = True
                left -= len(new)
                yield part.at(is_admitted[hosts.rows])
        if left == 0:
            return


class _Best(Struct, eq=False):
    """Collects candidates, and keeps those that may be among the best."""

    snapshot: Snapshot
    scorer: Scorer
    order: Order
    budget: Budget
    counts: PerHost
    limit: int
    per_host: int | None
    batches: list[tuple[Batch, Scores]] = field(default_factory=list)
    #: How many candidates are kept, and how many there were.
    kept: int = 0
    count: int = 0
    #: No candidate with a lower score is among the best.
    least: float = -np.inf
    #: Whether any host has had more candidates than `per_host`.
    is_crowded: bool = False

    def add(self, batch: Batch) -> None:
        """Add the candidates of a batch."""
        scores = self.scorer.scores(batch)
        self.count += len(batch.positions)
        if self.per_host is not None and not self.is_crowded:
            self.is_crowded = bool((self.counts.numbered(batch) > self.per_host).any())
        if scores.total.max() < self.least:
            return
        if self.per_host is None and len(batch.positions) >= self.limit:
            # PERF bench, orders: most of a large batch is never among the best.
            self.least = max(self.least, _nth_highest(scores.total, self.limit))
        good = scores.total >= self.least
        if not good.all():
            batch, scores = batch.at(good), scores.at(good)
        self.batches.append((batch, scores))
        self.kept += len(batch.positions)
        spare = 2 * self.limit
        if self.kept > KEPT_MAX + spare or len(self.batches) > BATCHES_MAX + spare:
            self._drop()

    def ranked(self, *, left_out: bool) -> Ranked:
        """The best candidates.

        Args:
            left_out: whether there are candidates that were not added.
        """
        if self.budget.ended is not None:
            self.limit = min(self.limit, CUT_MAX)
        numbers, places = self._located(self._best())
        chosen, order = in_batches(zip(numbers.tolist(), places.tolist(), strict=True))
        parts = [self._part(number, np.array(each)) for number, each in chosen.items()]
        shown = self.order.has_scores
        return Ranked(
            [(batch, scores if shown else None) for batch, scores in parts],
            order,
            more=left_out or self.count > len(order),
        )

    def _part(self, number: int, places: Rows) -> tuple[Batch, Scores]:
        batch, scores = self.batches[number]
        return batch.at(places), scores.at(places)

    def _drop(self) -> None:
        """Drop all candidates that are not among the best so far."""
        best = self._best()
        if len(best) == self.limit:
            (number,), (place,) = self._located(best[-1:])
            self.least = float(self.batches[number][1].total[place])
        # Batches stay in their order, and the candidates of each too.
        self.batches = [self._part(number, places) for number, places in self._split(np.sort(best))]
        self.kept = len(best)

    def _best(self) -> Rows:
        """The best candidates in their order. All that are kept are numbered, batch by batch."""
        if not self.batches:
            return np.zeros(0, dtype=np.int64)
        totals = np.concatenate([scores.total for _, scores in self.batches])
        if self.is_crowded:
            return self._of_crowded(totals)
        return self._first_of_all(totals, self.limit)

    def _first_of_all(self, totals: Floats, count: int) -> Rows:
        """The first `count` of all candidates."""
        some = np.arange(len(totals))
        if len(totals) > count:
            least = _nth_highest(totals, count)
            some, equal = np.flatnonzero(totals > least), np.flatnonzero(totals == least)
            if (missing := count - len(some)) < len(equal):
                equal = equal[_lowest(self._hashes_of(equal), missing)]
            some = np.sort(np.concatenate((some, equal)))
        best: Rows = some[np.lexsort((self._hashes_of(some), -totals[some]))]
        return best

    def _of_crowded(self, totals: Floats) -> Rows:
        """The best, without those beyond `per_host`."""
        assert self.per_host is not None, "no host is crowded without a bound"
        # PERF bench, orders: whoever is better than one of the best is among the first few.
        count = self.limit
        while True:
            count = min(_MORE * count, len(totals))
            some = self._first_of_all(totals, count)
            best: Rows = some[_nth_of_each(self._keys_of(some)) < self.per_host][: self.limit]
            if len(best) == self.limit or count == len(totals):
                return best

    @property
    def _starts(self) -> Rows:
        """The number of the first candidate of each batch, and the number of all."""
        return np.cumsum([0, *(len(batch.positions) for batch, _ in self.batches)])

    def _located(self, some: Rows) -> tuple[Rows, Rows]:
        """The batches of some candidates, and their places there."""
        starts = self._starts
        numbers = np.searchsorted(starts, some, side="right") - 1
        return numbers, some - starts[numbers]

    def _split(self, some: Rows) -> Iterator[tuple[int, Rows]]:
        """Each batch that has some of the candidates, which ascend, and their places there."""
        starts = self._starts
        bounds = np.searchsorted(some, starts).tolist()
        for number, (begin, end) in enumerate(pairwise(bounds)):
            if begin < end:
                yield number, some[begin:end] - starts[number]

    def _hashes_of(self, some: Rows) -> Hashes:
        """The hashes of some candidates, which ascend; any numbers if the budget is spent."""
        hashes = []
        for number, places in self._split(some):
            if self.budget.is_spent():
                return np.arange(len(some), dtype=np.uint64)
            batch = self.batches[number][0].at(places)
            hashes.append(of_hosts(self.snapshot, batch, self._scattered))
        return np.concatenate(hashes)

    def _scattered(self, hosts: Hosts) -> Hashes:
        return scattered(hosts, self.order.seed)

    def _keys_of(self, some: Rows) -> Rows:
        """The hosts of some candidates, as numbers."""
        order = np.argsort(some)
        keys = np.empty(len(some), dtype=np.int64)
        keys[order] = np.concatenate(
            [
                of_hosts(self.snapshot, self.batches[number][0].at(places), attrgetter("keys"))
                for number, places in self._split(some[order])
            ]
        )
        return keys


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def in_batches(picked: Iterable[tuple[K, V]]) -> tuple[dict[K, list[V]], list[tuple[int, int]]]:
    """What was picked, by batch, and `Ranked.order` of all of it."""
    of_batches: dict[K, list[V]] = {}
    numbers: dict[K, int] = {}
    order: list[tuple[int, int]] = []
    for batch, each in picked:
        of_batch = of_batches.setdefault(batch, [])
        order.append((numbers.setdefault(batch, len(numbers)), len(of_batch)))
        of_batch.append(each)
    return of_batches, order


def _nth_highest(totals: Floats, count: int) -> float:
    """The last of the `count` highest; there are as many."""
    # PERF bench, place: one pass where one is wanted, and here as in `_lowest`.
    if count == 1:
        return float(totals.max())
    place = len(totals) - count
    return float(np.partition(totals, place)[place])


def _lowest(hashes: Hashes, count: int) -> Rows:
    """The places of the `count` lowest, in any order; there are more."""
    if count == 1:
        return np.array([hashes.argmin()])
    return np.argpartition(hashes, count)[:count]


def _nth_of_each(keys: Rows) -> Rows:
    """For each key how many equal ones come before it."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    lengths = np.diff(starts, append=len(keys))
    nth = np.empty(len(keys), dtype=np.int64)
    nth[order] = np.arange(len(keys)) - np.repeat(starts, lengths)
    return nth
