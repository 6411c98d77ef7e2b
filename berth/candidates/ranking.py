# SPDX-License-Identifier: Apache-2.0
"""Ranking: the best candidates of a search, in their order.

Without scores the search stops with the last candidate that is wanted. With scores all candidates
are found and scored, whole batches at a time, and only the best are kept meanwhile.

Source: spec/beyond.md 2.6 and 2.7.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from berth.candidates import search
from berth.candidates.assign import PerTree
from berth.candidates.batch import Batch
from berth.candidates.hosts import Hashes, Hosts, hosts_of, in_places, scattered
from berth.candidates.masks import Rows
from berth.candidates.order import Order, Scorer, Scores
from berth.candidates.plan import Plan
from berth.candidates.request import SearchSettings
from berth.index.aggregate_sets import Mask
from berth.index.block import Floats
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget

#: At most so many candidates of one host are scored.
SCORED_PER_HOST_MAX: Final = 256
#: Beyond so many candidates that may be among the best, the others are dropped.
KEPT_MAX: Final = 1 << 15

#: The batches that may have them, beyond those of the candidates that are wanted: where each host
#: is a batch of its own, to sort them takes a step for each.
BATCHES_MAX: Final = 1 << 12
#: Candidates of an answer whose search was cut off: they are written when no time is left.
CUT_MAX: Final = 1_000

#: By this factor the number of candidates grows in which those of the best hosts are sought.
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
    *,
    limit: int,
    per_host: int | None,
    budget: Budget,
) -> Ranked:
    """The best candidates of a plan; if the budget ends, the best of those found until then.

    Args:
        limit: how many at most; `CUT_MAX` if the budget ends.
        per_host: how many of one host at most; None for no bound.
    """
    if not order.has_scores and order.among is None:
        return _unscored(snapshot, plan, limit=limit, per_host=per_host, budget=budget)
    per_tree = PerTree(SCORED_PER_HOST_MAX)
    scorer = Scorer(snapshot, plan, order, budget)
    best = _Best(snapshot, scorer, order, budget, limit=limit, per_host=per_host)
    for batch in to_score(snapshot, plan, order, budget, per_tree):
        best.add(batch)
    return best.ranked(left_out=per_tree.left_out)


def best(
    snapshot: Snapshot, plan: Plan, order: Order, budget: Budget
) -> tuple[Batch, Scores | None] | None:
    """The first candidate of `rank`, in a batch of its own; None if there is none."""
    if not order.has_scores and order.among is None:
        ranked = _unscored(snapshot, plan, limit=1, per_host=None, budget=budget)
        return ranked.batches[0] if ranked.batches else None
    scorer = Scorer(snapshot, plan, order, budget)
    highest = -np.inf
    equal: list[tuple[Batch, Scores]] = []
    for batch in to_score(snapshot, plan, order, budget, PerTree(SCORED_PER_HOST_MAX)):
        scores = scorer.scores(batch)
        total = scores.total.max()
        if total > highest:
            highest, equal = total, []
        if total == highest:
            some = np.flatnonzero(scores.total == total)
            equal.append((batch.at(some), scores.at(some)))
    if not equal:
        return None
    batch, scores = min(
        (_first_by_hash(snapshot, order, *each) for each in equal), key=lambda first: first[0]
    )[1:]
    return batch, scores if order.has_scores else None


def _first_by_hash(
    snapshot: Snapshot, order: Order, batch: Batch, scores: Scores
) -> tuple[int, Batch, Scores]:
    """The first of candidates with equal scores, and the hash that makes it the first."""
    several = hosts_of(snapshot, batch)
    hashes = in_places([scattered(hosts, order.seed) for hosts in several], several)
    at = np.array([hashes.argmin()])
    return int(hashes[at[0]]), batch.at(at), scores.at(at)


def to_score(
    snapshot: Snapshot,
    plan: Plan,
    order: Order,
    budget: Budget,
    per_tree: PerTree,
    among: Mapping[int, Mask] | None = None,
) -> Iterator[Batch]:
    """The candidates that an order scores, in batches that have some: at most `SCORED_PER_HOST_MAX`
    of each host, and of `Order.among` hosts.

    Args:
        per_tree: at most as many of each tree; it says whether there were more.
        among: the rows of each block that count; None for all of all blocks.
    """
    batches = search(
        snapshot,
        plan,
        SearchSettings(),
        order.among,
        rng=random.Random(0),
        budget=budget,
        per_tree=per_tree,
        start=0 if order.among is None else (order.seed + 1) * _SPREAD >> 16,
        among=among,
    )
    bound = _PerHost(snapshot, SCORED_PER_HOST_MAX, per_tree)
    several = _among(snapshot, order.among, bound.first_of(batches))
    return (batch for batch in several if len(batch.positions))


def _unscored(
    snapshot: Snapshot, plan: Plan, *, limit: int, per_host: int | None, budget: Budget
) -> Ranked:
    """The candidates that are found first."""
    per_tree = None if per_host is None else PerTree(per_host)
    batches = search(
        snapshot,
        plan,
        SearchSettings(),
        # One more, to know whether there is one.
        limit + 1,
        rng=random.Random(0),
        budget=budget,
        per_tree=per_tree,
    )
    if per_tree is not None:
        batches = _PerHost(snapshot, per_tree.most, per_tree).first_of(batches)
    chosen: list[tuple[Batch, None]] = []
    order: list[tuple[int, int]] = []
    for batch in batches:
        part = batch.first(limit - len(order))
        if len(part.positions):
            order += [(len(chosen), place) for place in range(len(part.positions))]
            chosen.append((part, None))
        if len(part.positions) < len(batch.positions):
            return Ranked(chosen, order, more=True)
    left_out = per_tree is not None and per_tree.left_out
    if budget.ended is None:
        return Ranked(chosen, order, more=left_out)
    shown = order[:CUT_MAX]
    batches_shown = shown[-1][0] + 1 if shown else 0
    return Ranked(chosen[:batches_shown], shown, more=left_out or len(shown) < len(order))


class _PerHost:
    """At most so many candidates of each host, where several trees may have the same host."""

    def __init__(self, snapshot: Snapshot, most: int, per_tree: PerTree) -> None:
        self._snapshot = snapshot
        self._most = most
        self._per_tree = per_tree
        #: block_id -> how many candidates each row has had so far.
        self._counts: dict[int, Rows] = {}

    def first_of(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The candidates of some batches, without those beyond the bound."""
        if not self._snapshot.sharing.by_aggregate:
            # Then each host is one tree, and the search has counted.
            yield from batches
            return
        for batch in batches:
            is_among: Mask = np.ones(len(batch.positions), dtype=np.bool_)
            for hosts in hosts_of(self._snapshot, batch):
                is_among[hosts.at] = counted(self._counts, hosts) <= self._most
            if is_among.all():
                yield batch
            else:
                self._per_tree.left_out = True
                yield batch.at(is_among)


def counted(counts: dict[int, Rows], hosts: Hosts) -> Rows:
    """Count some candidates: for each, how many its host has had then.

    Args:
        counts: block_id -> how many candidates each row has had so far; these are added.
    """
    of_rows = counts.get(hosts.block_id)
    if of_rows is None:
        of_rows = counts[hosts.block_id] = np.zeros(hosts.block.rows, dtype=np.int64)
    if isinstance(hosts.at, slice):
        # The hosts are different.
        of_rows[hosts.rows] += 1
        return of_rows[hosts.rows]
    numbers = np.empty(len(hosts.rows), dtype=np.int64)
    for place, row in enumerate(hosts.rows.tolist()):
        of_rows[row] += 1
        numbers[place] = of_rows[row]
    return numbers


def _among(snapshot: Snapshot, most: int | None, batches: Iterable[Batch]) -> Iterator[Batch]:
    """The candidates of the first hosts that have any; None for all hosts. Batches of the same
    trees come one after another."""
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
                is_admitted = admitted.setdefault(hosts.block_id, np.zeros(hosts.block.rows, bool))
                new = hosts.rows[~is_admitted[hosts.rows]][:left]
                is_admitted[new] = True
                left -= len(new)
                yield part.at(is_admitted[hosts.rows])
        if left == 0:
            return


class _Best:
    """Collects candidates, and keeps those that may be among the best."""

    def __init__(
        self,
        snapshot: Snapshot,
        scorer: Scorer,
        order: Order,
        budget: Budget,
        *,
        limit: int,
        per_host: int | None,
    ) -> None:
        self._snapshot = snapshot
        self._scorer = scorer
        self._order = order
        self._budget = budget
        self._limit = limit
        self._per_host = per_host
        self._batches: list[tuple[Batch, Scores]] = []
        #: How many candidates are kept, and how many there were.
        self._kept = 0
        self._count = 0
        #: No candidate with less is among the best.
        self._least = -np.inf
        #: Whether any host has had more candidates than `per_host`; see `counted`.
        self._is_crowded = False
        self._counts: dict[int, Rows] = {}

    def add(self, batch: Batch) -> None:
        """Add the candidates of a batch."""
        scores = self._scorer.scores(batch)
        self._count += len(batch.positions)
        if self._per_host is not None and not self._is_crowded:
            for hosts in hosts_of(self._snapshot, batch):
                crowded = counted(self._counts, hosts) > self._per_host
                self._is_crowded |= bool(crowded.any())
        good = scores.total >= self._least
        if not good.all():
            batch, scores = batch.at(good), scores.at(good)
        if len(batch.positions):
            self._batches.append((batch, scores))
            self._kept += len(batch.positions)
        spare = 2 * self._limit
        if self._kept > KEPT_MAX + spare or len(self._batches) > BATCHES_MAX + spare:
            self._drop()

    def ranked(self, *, left_out: bool) -> Ranked:
        """The best candidates.

        Args:
            left_out: whether there are candidates that were not added.
        """
        if self._budget.ended is not None:
            self._limit = min(self._limit, CUT_MAX)
        numbers, places = self._located(self._best())
        chosen: dict[int, list[int]] = {}
        for number, place in zip(numbers.tolist(), places.tolist(), strict=True):
            chosen.setdefault(number, []).append(place)
        later = {number: iter(range(len(each))) for number, each in chosen.items()}
        new = {number: place for place, number in enumerate(chosen)}
        order = [(new[number], next(later[number])) for number in numbers.tolist()]
        parts = [self._part(number, np.array(each)) for number, each in chosen.items()]
        shown = self._order.has_scores
        return Ranked(
            [(batch, scores if shown else None) for batch, scores in parts],
            order,
            more=left_out or self._count > len(order),
        )

    def _part(self, number: int, places: Rows) -> tuple[Batch, Scores]:
        batch, scores = self._batches[number]
        return batch.at(places), scores.at(places)

    def _drop(self) -> None:
        """Drop all candidates that are not among the best so far."""
        best = self._best()
        if len(best) == self._limit:
            (number,), (place,) = self._located(best[-1:])
            self._least = float(self._batches[number][1].total[place])
        # Batches stay in their order, and the candidates of each too.
        self._batches = [
            self._part(number, places) for number, places in self._split(np.sort(best))
        ]
        self._kept = len(best)

    def _best(self) -> Rows:
        """The best candidates in their order. All that are kept are numbered, batch by batch."""
        if not self._batches:
            return np.zeros(0, dtype=np.int64)
        totals = np.concatenate([scores.total for _, scores in self._batches])
        if self._is_crowded:
            return self._of_crowded(totals)
        return self._first_of_all(totals, self._limit)

    def _first_of_all(self, totals: Floats, count: int) -> Rows:
        """The first `count` of all candidates."""
        some = np.arange(len(totals))
        if (spare := len(totals) - count) > 0:
            least = np.partition(totals, spare)[spare]
            some, equal = np.flatnonzero(totals > least), np.flatnonzero(totals == least)
            if (missing := count - len(some)) < len(equal):
                equal = np.sort(equal[np.argpartition(self._hashes_of(equal), missing)[:missing]])
            some = np.sort(np.concatenate((some, equal)))
        best: Rows = some[np.lexsort((self._hashes_of(some), -totals[some]))]
        return best

    def _of_crowded(self, totals: Floats) -> Rows:
        """The best, without those beyond `per_host`."""
        assert self._per_host is not None, "no host is crowded without a bound"
        # PERF bench, orders: whoever is better than one of the best is among the first few.
        count = self._limit
        while True:
            count = min(_MORE * count, len(totals))
            some = self._first_of_all(totals, count)
            best: Rows = some[_nth_of_each(self._keys_of(some)) < self._per_host][: self._limit]
            if len(best) == self._limit or count == len(totals):
                return best

    @property
    def _starts(self) -> Rows:
        """The number of the first candidate of each batch, and the number of all."""
        return np.cumsum([0, *(len(batch.positions) for batch, _ in self._batches)])

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
            if self._budget.is_spent():
                return np.arange(len(some), dtype=np.uint64)
            hashes.append(self._hashes(self._batches[number][0].at(places)))
        return np.concatenate(hashes)

    def _keys_of(self, some: Rows) -> Rows:
        """The hosts of some candidates, as numbers."""
        order = np.argsort(some)
        several = [hosts_of(self._snapshot, batch) for batch in self._parts(some[order])]
        keys = np.empty(len(some), dtype=np.int64)
        keys[order] = np.concatenate(
            [in_places([hosts.keys for hosts in each], each) for each in several]
        )
        return keys

    def _parts(self, some: Rows) -> list[Batch]:
        """Some candidates, which ascend."""
        return [self._batches[number][0].at(places) for number, places in self._split(some)]

    def _hashes(self, batch: Batch) -> Hashes:
        several = hosts_of(self._snapshot, batch)
        return in_places([scattered(hosts, self._order.seed) for hosts in several], several)


def _nth_of_each(keys: Rows) -> Rows:
    """For each key how many equal ones come before it."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    lengths = np.diff(starts, append=len(keys))
    nth = np.empty(len(keys), dtype=np.int64)
    nth[order] = np.arange(len(keys)) - np.repeat(starts, lengths)
    return nth
