# SPDX-License-Identifier: Apache-2.0
"""Assigning: from filtered trees to candidates, lazily, in batches.

There are two enumerators. Where the demands have few combinations of choices, all are tried in all
trees at once (`berth.candidates.assignments`); otherwise trees with the same options are walked
together (`berth.candidates.walk`). `_Enumerators.of` is the one place that chooses; each of the two
serves every order in which candidates can be wanted.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import attrgetter
from typing import Protocol

import numpy as np

from berth.candidates.assignments import Assignment, assignments_of
from berth.candidates.batch import Batch
from berth.candidates.masks import Rows
from berth.candidates.plan import Plan
from berth.candidates.request import SearchSettings
from berth.candidates.trees import FilteredTrees, UniformTrees
from berth.candidates.uniform import split_by_options
from berth.candidates.walk import Duplicates, walk
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget


class PerTree:
    """At most so many candidates of each tree.

    Candidates that may be anchored elsewhere (`Batch.is_anchored`) are not counted, because their
    host may be another tree.

    Attributes:
        left_out: whether there were more of any tree.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.left_out = False

    def among(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The candidates of some batches, without those beyond the bound. Batches of the same trees
        come one after another."""
        for trees, several in groupby(batches, key=attrgetter("trees")):
            counts = np.zeros(len(trees.rows), dtype=np.int64)
            for batch in self.bounded(several, counts):
                if len(batch.positions):
                    yield batch

    def bounded(self, batches: Iterable[Batch], counts: Rows) -> Iterator[Batch]:
        """`among` for batches of the same trees; a batch may be empty.

        Args:
            counts: how many candidates each of `Trees.rows` has had so far; these are added.
        """
        for batch in batches:
            yield self._first(batch, counts) if batch.is_anchored else batch

    def _first(self, batch: Batch, counts: Rows) -> Batch:
        counts[batch.positions] += 1
        is_among = counts[batch.positions] <= self.most
        if is_among.all():
            return batch
        self.left_out = True
        return batch.at(is_among)


def assign(
    snapshot: Snapshot,
    plan: Plan,
    parts: Iterable[FilteredTrees],
    settings: SearchSettings,
    wanted: int | None,
    *,
    rng: random.Random,
    budget: Budget,
    duplicates: Duplicates | None,
    per_tree: PerTree | None = None,
    unordered: bool = False,
) -> Iterator[Batch]:
    """All candidates of some trees, or as many as are wanted and the budget allows.

    Which ones come first when not all are wanted follows `settings`; without a cap and without
    randomisation it is unspecified, and chosen to be fast and to spread over hosts. The same
    snapshot gives the same ones.

    Args:
        duplicates: removes candidates that were already found from another anchor; None to have
            them from each.
        per_tree: bounds the candidates of each tree, whatever `settings` and `wanted` say.
        unordered: for a caller who only wants to know what candidates take: of those that differ
            only in which of several groups that are alike is served by which provider, one may
            stand for all.
    """
    enumerators = _Enumerators(snapshot, plan, budget, duplicates, unordered=unordered)
    if per_tree is not None:
        return _bounded(parts, enumerators, per_tree)
    if settings.randomize:
        batches = _at_random(parts, enumerators, rng)
    elif wanted is None:
        batches = _part_by_part(parts, enumerators)
    elif settings.candidates_max >= 0 and settings.strategy == "depth-first":
        batches = _tree_by_tree(parts, enumerators)
    else:
        batches = _in_turn(parts, enumerators)
    return batches if wanted is None else first(wanted, batches)


def one_of_each(
    snapshot: Snapshot, plan: Plan, parts: Iterable[FilteredTrees], budget: Budget
) -> Iterator[Batch]:
    """One candidate of each tree that anchors any, those found from another anchor too."""
    enumerators = _Enumerators(snapshot, plan, budget, None)
    for trees in parts:
        yield from enumerators.of(trees).one_of_each([])


def first(wanted: int, batches: Iterable[Batch]) -> Iterator[Batch]:
    """The first candidates of some batches."""
    for batch in batches:
        part = batch.first(wanted)
        yield part
        wanted -= len(part.positions)
        if wanted == 0:
            return


def _part_by_part(parts: Iterable[FilteredTrees], enumerators: _Enumerators) -> Iterator[Batch]:
    """The fastest order: batches as they are found."""
    for trees in parts:
        yield from enumerators.of(trees).all()


def _bounded(
    parts: Iterable[FilteredTrees], enumerators: _Enumerators, per_tree: PerTree
) -> Iterator[Batch]:
    """Batches as they are found, without those beyond the bound of each tree."""
    for trees in parts:
        yield from enumerators.of(trees).bounded(per_tree)


def _tree_by_tree(parts: Iterable[FilteredTrees], enumerators: _Enumerators) -> Iterator[Batch]:
    """Depth first: all candidates of one tree before those of the next."""
    for trees in parts:
        yield from enumerators.of(trees).tree_by_tree()


def _in_turn(parts: Iterable[FilteredTrees], enumerators: _Enumerators) -> Iterator[Batch]:
    """Breadth first: one candidate from each tree, then more of each in turn, until there are
    none left."""
    later: list[Iterator[Batch]] = []
    for trees in parts:
        yield from enumerators.of(trees).one_of_each(later)
    yield from _turns(later)


def _at_random(
    parts: Iterable[FilteredTrees], enumerators: _Enumerators, rng: random.Random
) -> Iterator[Batch]:
    """One candidate of each tree, drawn at random and the trees in random order; then another of
    each."""
    groups = [group for trees in parts for group in split_by_options(trees, enumerators.plan)]
    sizes = [len(group.rows) for group in groups]
    starts = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
    # PERF bench, randomize: sorting random bytes is many times as fast as `rng.shuffle`.
    keys = np.frombuffer(rng.randbytes(8 * sum(sizes)), dtype=np.uint64)
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(starts, order, side="right") - 1
    yield from _turns(
        enumerators.walk(groups[number].only(position), rng=rng)
        for number, position in zip(at.tolist(), (order - starts[at]).tolist(), strict=True)
    )


def _turns(iterators: Iterable[Iterator[Batch]]) -> Iterator[Batch]:
    """One batch from each of some iterators, then another from each, and so on; each is begun when
    its turn comes."""
    again: deque[Iterator[Batch]] = deque()
    for each in iterators:
        for batch in islice(each, 1):
            yield batch
            again.append(each)
    while again:
        each = again.popleft()
        for batch in islice(each, 1):
            yield batch
            again.append(each)


class _Enumerator(Protocol):
    """The candidates of some trees, in each of the orders in which they can be wanted."""

    def all(self) -> Iterator[Batch]:
        """In any order."""

    def bounded(self, per_tree: PerTree) -> Iterator[Batch]:
        """In any order, and not more of each tree."""

    def tree_by_tree(self) -> Iterator[Batch]:
        """All of one tree before those of the next."""

    def one_of_each(self, later: list[Iterator[Batch]]) -> Iterator[Batch]:
        """One of each tree; what finds the others is added to `later`."""


class _Enumerators:
    """The enumerators of one search."""

    def __init__(
        self,
        snapshot: Snapshot,
        plan: Plan,
        budget: Budget,
        duplicates: Duplicates | None,
        *,
        unordered: bool = False,
    ) -> None:
        self.plan = plan
        self._unordered = unordered
        self.duplicates = duplicates
        self.snapshot = snapshot
        self._budget = budget

    def of(self, trees: FilteredTrees) -> _Enumerator:
        """The one for some trees."""
        assignments = assignments_of(self.snapshot, self.plan, trees)
        if assignments is None:
            return _Walked(self, trees)
        return _Tried(self, trees, assignments)

    def walk(
        self, trees: UniformTrees, *, live: Mask | None = None, rng: random.Random | None = None
    ) -> Iterator[Batch]:
        """`berth.candidates.walk.walk` for this search."""
        return walk(
            self.snapshot,
            self.plan,
            trees,
            self._budget,
            self.duplicates,
            live=live,
            rng=rng,
            unordered=self._unordered,
        )


class _Tried:
    """Tries assignments in all trees at once."""

    __slots__ = ("_assignments", "_enumerators", "_trees")

    def __init__(
        self,
        enumerators: _Enumerators,
        trees: FilteredTrees,
        assignments: tuple[Assignment, ...],
    ) -> None:
        self._enumerators = enumerators
        self._trees = trees
        self._assignments = assignments

    def all(self) -> Iterator[Batch]:
        trees, duplicates = self._trees, self._enumerators.duplicates
        for assignment in self._assignments:
            choices = assignment.choices
            positions = assignment.positions(trees)
            if duplicates is not None:
                positions = duplicates.removed_from(trees, choices, positions)
            if len(positions):
                yield Batch(trees, choices, positions)

    def bounded(self, per_tree: PerTree) -> Iterator[Batch]:
        if len(self._assignments) <= per_tree.most:
            return self.all()
        return per_tree.among(self.all())

    def tree_by_tree(self) -> Iterator[Batch]:
        if len(self._assignments) <= 1:
            return self.all()
        return _Walked(self._enumerators, self._trees).tree_by_tree()

    def one_of_each(self, later: list[Iterator[Batch]]) -> Iterator[Batch]:
        return _one_of_each(self.all(), len(self._trees.rows), later)


class _Walked:
    """Walks over groups of trees with the same options."""

    __slots__ = ("_enumerators", "_trees")

    def __init__(self, enumerators: _Enumerators, trees: FilteredTrees) -> None:
        self._enumerators = enumerators
        self._trees = trees

    def all(self) -> Iterator[Batch]:
        for group in split_by_options(self._trees, self._enumerators.plan):
            yield from self._enumerators.walk(group)

    def bounded(self, per_tree: PerTree) -> Iterator[Batch]:
        for group in split_by_options(self._trees, self._enumerators.plan):
            live: Mask = np.ones(len(group.rows), dtype=np.bool_)
            counts = np.zeros(len(group.rows), dtype=np.int64)
            batches = self._enumerators.walk(group, live=live)
            for batch in per_tree.bounded(batches, counts):
                if len(batch.positions):
                    yield batch
                # One more than is wanted is looked for, to know whether there is one.
                live[counts > per_tree.most] = False
                if not live.any():
                    break

    def tree_by_tree(self) -> Iterator[Batch]:
        for group in split_by_options(self._trees, self._enumerators.plan):
            for position in range(len(group.rows)):
                yield from self._enumerators.walk(group.only(position))

    def one_of_each(self, later: list[Iterator[Batch]]) -> Iterator[Batch]:
        for group in split_by_options(self._trees, self._enumerators.plan):
            live: Mask = np.ones(len(group.rows), dtype=np.bool_)
            served: dict[tuple[int, ...], Rows] = {}
            for batch in self._enumerators.walk(group, live=live):
                yield batch
                served[batch.choices] = batch.positions
                live[batch.positions] = False
                if not live.any():
                    break
            later.append(_others_than(served, self._enumerators.walk(group)))


def _one_of_each(
    batches: Iterable[Batch], rows: int, later: list[Iterator[Batch]]
) -> Iterator[Batch]:
    """Of some batches the first candidate of each row; the others are added to `later`."""
    served: Mask | None = None
    before: Batch | None = None
    others: list[Batch] = []
    for batch in batches:
        first = batch
        if before is not None:
            if served is None:
                # PERF bench, flat: not before a second batch is wanted, which is seldom.
                served = np.zeros(rows, dtype=np.bool_)
            served[before.positions] = True
            is_first = ~served[batch.positions]
            first = batch.at(is_first)
            if not is_first.all():
                others.append(batch.at(~is_first))
        if len(first.positions):
            yield first
        before = first
    later.append(iter(others))


def _others_than(served: dict[tuple[int, ...], Rows], batches: Iterable[Batch]) -> Iterator[Batch]:
    """The batches without the candidates that were given out already: choices -> positions."""
    for batch in batches:
        given = served.get(batch.choices)
        if given is not None:
            batch = batch.at(~np.isin(batch.positions, given))
        if len(batch.positions):
            yield batch
