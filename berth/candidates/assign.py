# SPDX-License-Identifier: Apache-2.0
"""Assigning: from filtered trees to candidates, lazily, in batches.

There are two enumerators. Where the demands have few combinations of choices, all are tried in all
trees at once (`assignments_of`); otherwise trees with the same options are walked together
(`berth.candidates.walk`). `_Enumerators.of` is the one place that chooses; each of the two serves
every order in which candidates can be wanted.

Most fleets have few combinations: a flat host serves a request in one way, one with two NUMA nodes
in a few. Structural rules are checked once for each assignment; a block of hosts then costs a few
operations on whole arrays.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain, islice, product
from math import prod
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from berth.candidates.batch import Batch, Duplicates
from berth.candidates.conditions import Rows
from berth.candidates.plan import Plan
from berth.candidates.structural_rules import Structure, allows
from berth.candidates.trees import FilteredTrees, split_by_options
from berth.candidates.walk import Enumeration, walk
from berth.index.block import ROWS_MAX
from berth.index.sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId

#: More combinations than this are searched step by step instead.
ASSIGNMENTS_MAX: Final = 64

#: The positions of all rows of a block.
_ALL: Final[Rows] = np.arange(ROWS_MAX)


class Assignment(NamedTuple):
    """One choice for every demand, which structure allows.

    Attributes:
        choices: for each demand of the plan.
        tests: (query id, choice) of each different query.
        sums: (choice, class, amount) of what several demands take together of one class.
    """

    choices: tuple[int, ...]
    tests: tuple[tuple[int, int], ...]
    sums: tuple[tuple[int, ClassId, int], ...]

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 250 + 8 * len(self.choices) + 80 * len(self.tests) + 100 * len(self.sums)

    def positions(self, trees: FilteredTrees) -> Rows:
        """The rows in which this assignment is a candidate."""
        alive: Mask | None = None
        for query_id, choice in self.tests:
            mask = trees.masks[query_id][choice]
            if mask is not None:
                alive = mask if alive is None else alive & mask
        for choice, class_id, amount in self.sums:
            # min_unit and step_size apply to each group alone, not to the sum.
            enough = np.broadcast_to(trees.room(choice, class_id) >= amount, len(trees.rows))
            alive = enough if alive is None else alive & enough
        return _ALL[: len(trees.rows)] if alive is None else alive.nonzero()[0]


def assignments_of(
    snapshot: Snapshot, plan: Plan, trees: FilteredTrees
) -> tuple[Assignment, ...] | None:
    """All assignments of some trees, found once for each structure; None if there are too many to
    try them all."""
    key: Hashable = trees.scope, tuple([tuple(choices) for choices in trees.masks.values()])
    if trees.serving:
        key = key, trees.sharing_providers.structure(trees.serving)
    memory, shape = snapshot.memory, trees.block.shape
    assignments: tuple[Assignment, ...] | None = memory.get_for(shape, key)
    if assignments is None:
        options = [trees.masks[demand.query_id] for demand in plan.demands]
        if prod(map(len, options)) > ASSIGNMENTS_MAX:
            return None
        structure = Structure(snapshot, trees)
        assignments = tuple(
            _assignment(plan, choices)
            for choices in product(*options)
            if allows(plan.rules, structure, [1 << choice for choice in choices])
        )
        memory.keep_for(shape, key, assignments, sum(each.size for each in assignments))
    return assignments


def _assignment(plan: Plan, choices: tuple[int, ...]) -> Assignment:
    taken: dict[tuple[int, ClassId], list[int]] = {}
    for demand, choice in zip(plan.demands, choices, strict=True):
        for class_id, amount in demand.amounts:
            taken.setdefault((choice, class_id), []).append(amount)
    query_ids = [demand.query_id for demand in plan.demands]
    return Assignment(
        choices,
        tuple(dict.fromkeys(zip(query_ids, choices, strict=True))),
        tuple((*key, sum(amounts)) for key, amounts in taken.items() if len(amounts) > 1),
    )


def assign_groups(
    snapshot: Snapshot,
    plan: Plan,
    parts: Iterable[FilteredTrees],
    budget: Budget,
    *,
    wanted: int | None = None,
    depth_first: bool = False,
    rng: random.Random | None = None,
    duplicates: Duplicates | None = None,
    most_per_tree: int | None = None,
    unordered: bool = False,
) -> Iterator[Batch]:
    """All candidates of some trees, or as many as are wanted and the budget allows.

    Which ones come first when not all are wanted is unspecified, and chosen to be fast and to
    spread over hosts. The same snapshot gives the same ones.

    Args:
        depth_first: if not all are wanted, all candidates of one tree come before those of the
            next.
        rng: draws them at random.
        duplicates: removes candidates that were already found from another anchor; None keeps them.
        most_per_tree: a tree with more candidates than this yields at least one more than this, and
            perhaps not all. Candidates that may be anchored elsewhere (see `Batch.is_anchored`) are
            not counted. All trees are searched, whatever is wanted.
        unordered: whether one candidate may stand for all that differ only in which of several
            identical groups each provider serves; for a caller who only wants to know what
            candidates take.
    """
    enumeration = Enumeration(snapshot, plan, budget, duplicates, unordered)
    if rng is not None:
        batches = _at_random(enumeration, parts, rng)
    elif wanted is None or most_per_tree is not None:
        # The fastest order: batches as they are found.
        every = (_enumerator(enumeration, trees).all(most_per_tree) for trees in parts)
        return chain.from_iterable(every)
    elif depth_first:
        every = (_enumerator(enumeration, trees).tree_by_tree() for trees in parts)
        batches = chain.from_iterable(every)
    else:
        batches = _in_turn(enumeration, parts)
    return batches if wanted is None else first(wanted, batches)


def one_of_each(
    snapshot: Snapshot, plan: Plan, parts: Iterable[FilteredTrees], budget: Budget
) -> Iterator[Batch]:
    """One candidate of each tree that anchors any, those found from another anchor too."""
    enumeration = Enumeration(snapshot, plan, budget, None)
    for trees in parts:
        yield from _enumerator(enumeration, trees).one_of_each([])


def first(wanted: int, batches: Iterable[Batch]) -> Iterator[Batch]:
    """The first candidates of some batches."""
    for batch in batches:
        part = batch.first(wanted)
        yield part
        wanted -= len(part.positions)
        if wanted == 0:
            return


def _in_turn(enumeration: Enumeration, parts: Iterable[FilteredTrees]) -> Iterator[Batch]:
    """Breadth first: one candidate from each tree, then more of each in turn, until there are
    none left."""
    later: list[Iterator[Batch]] = []
    for trees in parts:
        yield from _enumerator(enumeration, trees).one_of_each(later)
    yield from _turns(later)


def _at_random(
    enumeration: Enumeration, parts: Iterable[FilteredTrees], rng: random.Random
) -> Iterator[Batch]:
    """One candidate of each tree, drawn at random and the trees in random order; then another of
    each."""
    groups = [group for trees in parts for group in split_by_options(trees, enumeration.plan)]
    sizes = [len(group.rows) for group in groups]
    starts = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
    # PERF bench, randomize: sorting random bytes is many times as fast as `rng.shuffle`.
    keys = np.frombuffer(rng.randbytes(8 * sum(sizes)), dtype=np.uint64)
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(starts, order, side="right") - 1
    yield from _turns(
        walk(enumeration, groups[number].only(position), rng=rng)
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


def _enumerator(enumeration: Enumeration, trees: FilteredTrees) -> _Walked:
    """The candidates of some trees, in each of the orders in which they can be wanted."""
    assignments = assignments_of(enumeration.snapshot, enumeration.plan, trees)
    if assignments is None:
        return _Walked(enumeration, trees)
    return _Tried(enumeration, trees, assignments)


class _Walked(Struct, eq=False):
    """Walks over groups of trees with the same options."""

    enumeration: Enumeration
    trees: FilteredTrees

    def all(self, most_per_tree: int | None = None) -> Iterator[Batch]:
        """In any order; `assign_groups` explains `most_per_tree`."""
        for group in split_by_options(self.trees, self.enumeration.plan):
            if most_per_tree is None:
                yield from walk(self.enumeration, group)
                continue
            live: Mask = np.ones(len(group.rows), dtype=np.bool_)
            counts = np.zeros(len(group.rows), dtype=np.int64)
            for batch in walk(self.enumeration, group, live=live):
                yield batch
                if batch.is_anchored:
                    counts[batch.positions] += 1
                    live[counts > most_per_tree] = False
                    if not live.any():
                        break

    def tree_by_tree(self) -> Iterator[Batch]:
        """All of one tree before those of the next."""
        for group in split_by_options(self.trees, self.enumeration.plan):
            for position in range(len(group.rows)):
                yield from walk(self.enumeration, group.only(position))

    def one_of_each(self, later: list[Iterator[Batch]]) -> Iterator[Batch]:
        """One of each tree; what finds the others is added to `later`."""
        for group in split_by_options(self.trees, self.enumeration.plan):
            live: Mask = np.ones(len(group.rows), dtype=np.bool_)
            served: dict[tuple[int, ...], Rows] = {}
            for batch in walk(self.enumeration, group, live=live):
                yield batch
                served[batch.choices] = batch.positions
                live[batch.positions] = False
                if not live.any():
                    break
            later.append(_others_than(served, walk(self.enumeration, group)))


class _Tried(_Walked, eq=False):
    """Tries assignments in all trees at once, and walks only where that is out of order."""

    assignments: tuple[Assignment, ...]

    def all(self, most_per_tree: int | None = None) -> Iterator[Batch]:
        trees, duplicates = self.trees, self.enumeration.duplicates
        for assignment in self.assignments:
            choices = assignment.choices
            positions = assignment.positions(trees)
            if duplicates is not None:
                positions = duplicates.removed_from(trees, choices, positions)
            if len(positions):
                yield Batch(trees, choices, positions)

    def tree_by_tree(self) -> Iterator[Batch]:
        return self.all() if len(self.assignments) <= 1 else super().tree_by_tree()

    def one_of_each(self, later: list[Iterator[Batch]]) -> Iterator[Batch]:
        return _one_of_each(self.all(), len(self.trees.rows), later)


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
