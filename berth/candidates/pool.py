# SPDX-License-Identifier: Apache-2.0
"""A pool: the candidates of a plan, from which several are chosen one after another.

The search runs once. What is chosen counts as used from then on: candidates that no longer fit
leave the pool, and only those whose trees it touched are scored again. Claims only add to what is
used, so no candidate can appear that was none before, except with splits, whose amounts depend on
what is free.

Source: spec/beyond.md 5.4.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.candidates.assign import PerTree
from berth.candidates.batch import Batch, Given
from berth.candidates.budget import Budget
from berth.candidates.hosts import (
    Hashes,
    Hosts,
    hosts_of,
    in_places,
    is_without_anchor,
    scattered,
    serving_each,
)
from berth.candidates.listing import Forms
from berth.candidates.masks import Rows
from berth.candidates.order import Order, Scorer, Scores
from berth.candidates.plan import Plan
from berth.candidates.ranking import SCORED_PER_HOST_MAX, Ranked, to_score
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ClassId, ProviderId

T = TypeVar("T", bound=np.generic)

#: Provider and class -> amount.
Amounts = Mapping[tuple[ProviderId, ClassId], int]


class Taken(NamedTuple):
    """What a candidate takes of one provider and class."""

    provider: ProviderId
    at: Location
    class_id: ClassId
    amount: int


@dataclass(slots=True, eq=False)
class Part:
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

    part: Part
    place: int
    total: float
    strategy: float | None


class Pool:
    """The candidates of one state of the fleet.

    Attributes:
        hosts: the key of each candidate's host.
        fits: which candidates can still be chosen.
        is_whole: whether these are all candidates.
        forms: of the candidates whose texts have been made.
    """

    def __init__(self, snapshot: Snapshot, plan: Plan, order: Order, budget: Budget) -> None:
        self.snapshot = snapshot
        self.plan = plan
        self.order = order
        self.forms: Forms = {}
        per_tree = PerTree(SCORED_PER_HOST_MAX)
        self._scorer = Scorer(snapshot, plan, order, budget)
        self._parts = [
            Part(batch, _own(self._scorer.scores(batch)), batch.given(plan))
            for batch in to_score(snapshot, plan, order, budget, per_tree)
            if len(batch.positions)
        ]
        self.is_whole = not per_tree.left_out and budget.ended is None and order.among is None
        self._starts = [0, *accumulate(len(part.batch.positions) for part in self._parts)]
        #: The only classes of which a claim can change what fits, or the scores.
        self._classes = {class_id for part in self._parts for _, class_id in part.given}
        self._totals = _joined([part.scores.total for part in self._parts], np.float64)
        self.fits: Mask = np.ones(len(self._totals), dtype=np.bool_)
        self._taken: Counter[tuple[ProviderId, ClassId]] = Counter()
        #: (part, choice) -> the provider of each candidate; and part -> the trees that each uses.
        self._providers: dict[tuple[int, int], Rows] = {}
        self._trees: dict[int, Sequence[Rows]] = {}

    @property
    def batches(self) -> Iterator[tuple[Batch, Given, slice]]:
        """Each batch, what its choices give, and the places of its candidates in the pool."""
        for number, part in enumerate(self._parts):
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

    @property
    def is_anchored(self) -> Mask:
        """The candidates whose host is the tree that they were found from."""
        parts = [
            np.full(
                len(part.batch.positions),
                not is_without_anchor(self.snapshot, part.batch.trees, part.batch.all_choices),
            )
            for part in self._parts
        ]
        return _joined(parts, np.bool_)

    def providers(self, batch: Batch, choice: int) -> Rows:
        """The provider that a choice means, for each candidate of a batch."""
        if choice < batch.trees.block.shape.size:
            own: Rows = batch.trees.block.provider_ids[choice].take(batch.rows)
            return own
        return np.array([each.provider_id for each in serving_each(batch, choice)])

    def free(self, provider: ProviderId, class_id: ClassId) -> int:
        """What is left of a class that a provider has."""
        at = self.snapshot.locate(provider)
        assert at is not None, "it is part of a candidate"
        return self._free_at(provider, at, class_id)

    def _free_at(self, provider: ProviderId, at: Location, class_id: ClassId) -> int:
        block = self.snapshot.block(at.block_id)
        columns = block.columns[class_id]
        place = block.shape.row_of_node[class_id][at.node], at.row
        free = columns.capacity.item(place) - columns.used.item(place)
        return max(int(free), 0) - self._taken[provider, class_id]

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
        _, scores = part.batch, part.scores
        strategy = None if scores.strategy is None else scores.strategy.item(place)
        return Choice(part, place, scores.total.item(place), strategy)

    def take(self, number: int) -> Amounts:
        """Choose a candidate: what it takes counts as used from now on. Not for plans with splits.

        Returns:
            what it takes.
        """
        part, place = self._located(number)
        taken = list(taken_by(self.snapshot, self.plan, part.batch, place))
        self._use(taken)
        return sums_of(taken)

    def amounts(self, number: int) -> Amounts:
        """What a candidate takes."""
        part, place = self._located(number)
        return sums_of(taken_by(self.snapshot, self.plan, part.batch, place))

    def use(self, amounts: Amounts) -> None:
        """So much more is used from now on, by others. Not for plans with splits."""
        self._use(
            Taken(provider, at, class_id, amount)
            for (provider, class_id), amount in amounts.items()
            if (at := self.snapshot.locate(provider)) is not None
            and class_id in self._classes
            and class_id in self.snapshot.block(at.block_id).columns
        )

    def _use(self, taken: Iterable[Taken]) -> None:
        assert not self.plan.splits, "candidates could appear"
        left: dict[tuple[ProviderId, ClassId], int] = {}
        trees: dict[int, Location] = {}
        for provider, at, class_id, amount in taken:
            self._taken[provider, class_id] += amount
            self._scorer.take(at, class_id, amount)
            left[provider, class_id] = self._free_at(provider, at, class_id)
            trees[_tree_key(at)] = at
        for number, part in enumerate(self._parts):
            self._remove_unfit(number, part, left)
            self._score_again(number, part, trees)

    def _remove_unfit(
        self, number: int, part: Part, left: Mapping[tuple[ProviderId, ClassId], int]
    ) -> None:
        """Remove candidates of a part that take more than is left of some providers."""
        for (choice, class_id), amount in part.given.items():
            for (provider, of_class), free in left.items():
                if of_class == class_id and amount > free:
                    unfit = self._providers_of(number, choice) == provider
                    self.fits[self._span(number)][unfit] = False

    def _score_again(self, number: int, part: Part, trees: Mapping[int, Location]) -> None:
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
            own = [batch.trees.block_id << 32 | batch.rows]
            sharing = [
                np.array([_tree_key(each.location) for each in serving_each(batch, choice)])
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
            several = hosts_of(self.snapshot, part.batch)
            values.append(in_places([value(hosts) for hosts in several], several))
        return _joined(values, kind)

    def _located(self, number: int) -> tuple[Part, int]:
        """The part of a candidate, and its place there."""
        part = bisect_right(self._starts, number) - 1
        return self._parts[part], number - self._starts[part]

    def _span(self, number: int) -> slice:
        return slice(self._starts[number], self._starts[number + 1])


def taken_by(snapshot: Snapshot, plan: Plan, batch: Batch, place: int) -> Iterator[Taken]:
    """What one candidate of a batch takes."""
    trees, position = batch.trees, int(batch.positions[place])
    row, size = int(trees.rows[position]), trees.block.shape.size
    for (choice, class_id), amounts in batch.given(plan).items():
        provider = trees.provider_id(choice, position)
        at = Location(trees.block_id, row, choice) if choice < size else snapshot.locate(provider)
        assert at is not None, "it is part of a candidate"
        amount = amounts if isinstance(amounts, int) else int(amounts[place])
        yield Taken(provider, at, class_id, amount)


def sums_of(taken: Iterable[Taken]) -> Amounts:
    """How much is taken of each provider and class."""
    sums: Counter[tuple[ProviderId, ClassId]] = Counter()
    for provider, _, class_id, amount in taken:
        sums[provider, class_id] += amount
    return sums


def ranked(choices: Sequence[Choice], *, has_scores: bool) -> Ranked:
    """Some choices in their order, those of one part in one batch."""
    of_parts: dict[Part, list[Choice]] = {}
    order: list[tuple[int, int]] = []
    numbers: dict[Part, int] = {}
    for choice in choices:
        of_part = of_parts.setdefault(choice.part, [])
        order.append((numbers.setdefault(choice.part, len(numbers)), len(of_part)))
        of_part.append(choice)
    batches = [
        (part.batch.at(np.array([each.place for each in several])), _scores_of(part, several))
        for part, several in of_parts.items()
    ]
    return Ranked(
        [(batch, scores if has_scores else None) for batch, scores in batches], order, more=False
    )


def _scores_of(part: Part, choices: Sequence[Choice]) -> Scores:
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


def _tree_key(at: Location) -> int:
    """A number for each tree, different for different trees of a snapshot."""
    return at.block_id << 32 | at.row


def _joined(arrays: Sequence[NDArray[T]], kind: type[T]) -> NDArray[T]:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=kind)
