# SPDX-License-Identifier: Apache-2.0
"""A pool: the candidates of a plan, from which several are chosen one after another.

The search runs once. What is chosen counts as used from then on: candidates that no longer fit
leave the pool, and only those whose trees it touched are scored again. Claims only add to what is
used, so no candidate can appear that was none before, except with splits, whose amounts depend on
what is free: see `Pool.after`.

Source: spec/beyond.md 5.4.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from berth.candidates.batch import (
    Batch,
    Given,
    Hashes,
    Hosts,
    of_hosts,
    scattered,
    serving_each,
    tree_keys,
)
from berth.candidates.conditions import Rows
from berth.candidates.fleet import FREE_MAX
from berth.candidates.order import Order, Scorer, Scores
from berth.candidates.plan import Plan
from berth.candidates.ranking import SCORED_PER_HOST_MAX, PerHost, Ranked, in_batches, to_score
from berth.candidates.render_ranked import Forms
from berth.index.scenario import with_usage
from berth.index.sets import Mask
from berth.index.snapshot import Location, Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId, ProviderId

T = TypeVar("T", bound=np.generic)

#: Provider and class -> amount.
Amounts = Mapping[tuple[ProviderId, ClassId], int]


class ScoredBatch(Struct, eq=False):
    """A batch of the pool.

    Attributes:
        scores: arrays of its own, which later choices change.
        given: what each choice gives of each class.
    """

    batch: Batch
    scores: Scores
    given: Given


class Choice(NamedTuple):
    """A candidate that was chosen, with its score at that time."""

    part: ScoredBatch
    place: int
    total: float
    strategy: float | None


class Pool:
    """The candidates of one state of the fleet, as many as the budget allows.

    Whatever looks at all of them raises `SearchGaveUp` when the budget is spent.

    Attributes:
        hosts: the key of each candidate's host.
        fits: which candidates can still be chosen.
        is_whole: whether these are all candidates.
        forms: of the candidates whose texts have been made.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        plan: Plan,
        order: Order,
        budget: Budget,
        parts: Sequence[ScoredBatch] | None = None,
        among: Mapping[int, Mask] | None = None,
    ) -> None:
        """The candidates that are found, or those of some parts.

        Args:
            among: the rows of each block that are searched; None for all of all blocks.
        """
        self.snapshot = snapshot
        self.plan = plan
        self.order = order
        self.forms: Forms = {}
        self._budget = budget
        per_host = PerHost(snapshot, SCORED_PER_HOST_MAX)
        self._scorer = Scorer(snapshot, plan, order, budget)
        if parts is None:
            parts = [
                ScoredBatch(batch, _own(self._scorer.scores(batch)), batch.given(plan))
                for batch in to_score(snapshot, plan, order, budget, per_host, among)
                if budget.take(batch.size)
            ]
        self._parts = list(parts)
        self.is_whole = not per_host.left_out and budget.ended is None and order.among is None
        self._starts = [0, *accumulate(len(part.batch.positions) for part in self._parts)]
        #: The only classes of which a claim can change what fits, or the scores.
        self._classes = {class_id for part in self._parts for _, class_id in part.given}
        self._totals = _joined([part.scores.total for part in self._parts], np.float64)
        self.fits: Mask = np.ones(len(self._totals), dtype=np.bool_)
        self._taken: Counter[tuple[ProviderId, ClassId]] = Counter()
        #: (part, choice) -> the provider of each candidate; and part -> the trees that each uses.
        self._providers: dict[tuple[int, int], Rows] = {}
        self._trees: dict[int, Sequence[Rows]] = {}

    def outlive(self) -> None:
        """From now on it serves other questions, too: the budget of its own counts no more."""
        self._budget = Budget()

    def some(self, candidates: Mask) -> Pool:
        """A pool of some of the candidates, at least one; nothing was taken from this one."""
        places = np.searchsorted(self._starts, candidates.nonzero()[0], side="right") - 1
        parts = []
        for number in np.unique(places).tolist():
            mask, part = candidates[self._span(number)], self._parts[number]
            batch = part.batch.at(mask)
            parts.append(ScoredBatch(batch, part.scores.at(mask), batch.given(self.plan)))
        return Pool(self.snapshot, self.plan, self.order, self._budget, parts)

    @property
    def batches(self) -> Iterator[tuple[Batch, Given, slice]]:
        """Each batch, what its choices give, and the places of its candidates in the pool."""
        for number, part in enumerate(self._parts):
            self._budget.check()
            yield part.batch, part.given, self._span(number)

    @cached_property
    def hosts(self) -> Rows:
        """The key of each candidate's host."""
        return self._of_hosts(lambda hosts: hosts.keys, np.int64)

    @cached_property
    def aggregate_sets(self) -> Rows:
        """What the root of each candidate's host is in."""
        return self._of_hosts(
            lambda hosts: hosts.block.aggregate_sets[0].take(hosts.rows), np.int64
        )

    def providers(self, batch: Batch, choice: int) -> Rows:
        """The provider that a choice means, for each candidate of a batch."""
        return batch.trees.provider_ids(choice, batch.positions)

    def _left_at(self, provider: ProviderId, at: Location, class_id: ClassId) -> int:
        block = self.snapshot.block(at.block_id)
        columns = block.columns[class_id]
        place = block.shape.row_of_node[class_id][at.node], at.row
        free = columns.capacity.item(place) - columns.used.item(place)
        return int(min(max(free, 0), FREE_MAX)) - self._taken[provider, class_id]

    def best(self, allowed: Mask) -> int | None:
        """The best of some candidates; None if there is none."""
        totals = np.where(allowed, self._totals, -np.inf)
        most = totals.max(initial=-np.inf)
        if most == -np.inf:
            return None
        (equal,) = (totals == most).nonzero()
        if len(equal) == 1:
            return int(equal[0])
        return int(equal[self._hashes[equal].argmin()])

    def chosen(self, number: int) -> Choice:
        """A candidate, with its present score."""
        part, place = self._located(number)
        scores = part.scores
        strategy = None if scores.strategy is None else scores.strategy.item(place)
        return Choice(part, place, scores.total.item(place), strategy)

    def take(self, number: int) -> Amounts:
        """Choose a candidate: what it takes counts as used from now on. Not for plans with splits.

        Returns:
            what it takes.
        """
        amounts = self.amounts(number)
        self.use(amounts)
        return amounts

    def amounts(self, number: int) -> Amounts:
        """What a candidate takes."""
        part, place = self._located(number)
        return taken_by(self.plan, part.batch, place)

    def after(self, number: int) -> tuple[Pool, int]:
        """The candidates when one is chosen of a plan with splits: what is left is divided
        otherwise. This pool serves no more.

        Returns:
            also the place of the first that is new. Where hosts share nothing, those before stay,
            and only the host's own are sought again.
        """
        snapshot = with_usage(self.snapshot, self.amounts(number))
        if snapshot.sharing.by_aggregate or self.order.by == "preserve":
            return Pool(snapshot, self.plan, self.order, self._budget), 0
        part, place = self._located(number)
        trees = part.batch.trees
        row: Mask = np.arange(trees.block.rows) == part.batch.rows[place]
        order, among = replace(self.order, among=None), {trees.block_id: row}
        new = Pool(snapshot, self.plan, order, self._budget, among=among)
        since = len(self.fits)
        self.fits[self.hosts == self.hosts[number]] = False
        self.snapshot = snapshot
        # Before the parts, of which some of these are made when they are first asked for.
        for name in ("fits", "hosts", "aggregate_sets", "_totals", "_hashes"):
            setattr(self, name, np.append(getattr(self, name), getattr(new, name)))
        self._parts += new._parts
        self._starts += [since + start for start in new._starts[1:]]
        return self, since

    def use(self, amounts: Amounts) -> None:
        """So much more is used from now on. Not for plans with splits."""
        assert not self.plan.splits, "candidates could appear"
        left: dict[tuple[ProviderId, ClassId], int] = {}
        trees: dict[int, Location] = {}
        for (provider, class_id), amount in amounts.items():
            at = self.snapshot.locate(provider)
            if at is None or class_id not in self._classes:
                continue
            if class_id in self.snapshot.block(at.block_id).columns:
                self._taken[provider, class_id] += amount
                self._scorer.take(at, class_id, amount)
                left[provider, class_id] = self._left_at(provider, at, class_id)
                trees[tree_keys(at.block_id, at.row)] = at
        # PERF bench, worst questions: where each host is a block of its own, few are touched.
        in_blocks, served = self._parts_touched
        own = (in_blocks[at.block_id] for at in trees.values())
        for number in {*served, *chain.from_iterable(own)}:
            self._remove_unfit(number, self._parts[number], left)
            self._score_again(number, self._parts[number], trees)

    @cached_property
    def _parts_touched(self) -> tuple[Mapping[int, list[int]], list[int]]:
        """block_id -> the parts whose hosts are there; and those that sharing providers serve."""
        in_blocks: defaultdict[int, list[int]] = defaultdict(list)
        served: list[int] = []
        for number, (batch, _, _) in enumerate(self.batches):
            in_blocks[batch.trees.block_id].append(number)
            if max(batch.all_choices) >= batch.trees.block.shape.size:
                served.append(number)
        return in_blocks, served

    def _remove_unfit(
        self, number: int, part: ScoredBatch, left: Mapping[tuple[ProviderId, ClassId], int]
    ) -> None:
        """Remove candidates of a part that take more than is left of some providers."""
        for (choice, class_id), amount in part.given.items():
            for (provider, of_class), free in left.items():
                if of_class == class_id and amount > free:
                    unfit = self._providers_of(number, choice) == provider
                    self.fits[self._span(number)][unfit] = False

    def _score_again(self, number: int, part: ScoredBatch, trees: Mapping[int, Location]) -> None:
        """Score the candidates of a part again that use some trees."""
        touched: Mask | None = None
        for keys in self._trees_of(number):
            for tree in trees:
                uses = keys == tree
                touched = uses if touched is None else touched | uses
        if touched is not None and len(places := touched.nonzero()[0]):
            self._scorer.score_again(part.batch, places, part.scores, part.given)
            self._totals[self._span(number)][places] = part.scores.total[places]

    def _providers_of(self, number: int, choice: int) -> Rows:
        key = number, choice
        if key not in self._providers:
            self._providers[key] = self.providers(self._parts[number].batch, choice)
        return self._providers[key]

    def _trees_of(self, number: int) -> Sequence[Rows]:
        """The keys of the trees that the candidates of a part use: one array for the hosts' own,
        and one for each sharing provider."""
        if number not in self._trees:
            batch = self._parts[number].batch
            size = batch.trees.block.shape.size
            own = [tree_keys(batch.trees.block_id, batch.rows)]
            sharing = [
                np.array([tree_keys(*each.location[:2]) for each in serving_each(batch, choice)])
                for choice in dict.fromkeys(batch.all_choices)
                if choice >= size
            ]
            self._trees[number] = [*own, *sharing]
        return self._trees[number]

    @cached_property
    def _hashes(self) -> Hashes:
        seed = self.order.seed
        return self._of_hosts(lambda hosts: scattered(hosts, seed), np.uint64)

    def _of_hosts(self, value: Callable[[Hosts], NDArray[T]], kind: type[T]) -> NDArray[T]:
        """A value of the host of each candidate."""
        values = []
        for part in self._parts:
            self._budget.check()
            values.append(of_hosts(self.snapshot, part.batch, value))
        return _joined(values, kind)

    def _located(self, number: int) -> tuple[ScoredBatch, int]:
        """The part of a candidate, and its place there."""
        part = bisect_right(self._starts, number) - 1
        return self._parts[part], number - self._starts[part]

    def _span(self, number: int) -> slice:
        return slice(self._starts[number], self._starts[number + 1])


def taken_by(plan: Plan, batch: Batch, place: int) -> Amounts:
    """What one candidate of a batch takes."""
    position = int(batch.positions[place])
    return {
        (batch.trees.provider_id(choice, position), class_id): (
            amounts if isinstance(amounts, int) else int(amounts[place])
        )
        for (choice, class_id), amounts in batch.given(plan).items()
    }


def ranked(choices: Sequence[Choice], *, has_scores: bool) -> Ranked:
    """Some choices in their order, those of one part in one batch."""
    of_parts, order = in_batches((choice.part, choice) for choice in choices)
    batches = [
        (
            part.batch.at(np.array([each.place for each in several])),
            _scores_of(part, several) if has_scores else None,
        )
        for part, several in of_parts.items()
    ]
    return Ranked(batches, order, more=False)


def _scores_of(part: ScoredBatch, choices: Sequence[Choice]) -> Scores:
    """The scores of some choices of a part, as they were then."""
    places = np.array([each.place for each in choices])
    strategy = None
    if part.scores.strategy is not None:
        strategy = np.array([each.strategy for each in choices], dtype=np.float64)
    return Scores(
        np.array([each.total for each in choices]),
        strategy,
        tuple(added[places] for added in part.scores.prefer),
    )


def _own(scores: Scores) -> Scores:
    """Scores whose arrays nothing else uses."""
    strategy = None if scores.strategy is None else scores.strategy.copy()
    return Scores(scores.total.copy(), strategy, scores.prefer)


def _joined(arrays: Sequence[NDArray[T]], kind: type[T]) -> NDArray[T]:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=kind)
