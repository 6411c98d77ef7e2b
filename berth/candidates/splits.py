# SPDX-License-Identifier: Apache-2.0
"""Splits: amounts that come from one provider, or from several of the anchor's tree.

All other demands are assigned first. Then each split tries sets of providers in all trees of a
batch at once: a set costs a few operations on arrays, however many trees there are. Only minimal
sets are candidates: with all other choices the same, no part of the set can give the amount and
satisfy the relations and traits.

Source: spec/beyond.md 2.5.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.candidates.batch import Batch, Duplicates, SplitAmount
from berth.candidates.plan import Plan, PlannedSplit
from berth.candidates.structural_rules import Structure, allows, bits_of
from berth.candidates.trees import FilteredTrees, Trees, UniformTrees
from berth.index.block import Ints
from berth.index.sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget

#: The sets of one split that are kept while a batch is searched.
_SETS_MAX: Final = 10_000


def with_splits(
    snapshot: Snapshot,
    plan: Plan,
    batches: Iterable[Batch],
    budget: Budget,
    duplicates: Duplicates | None,
    *,
    any_set: bool = False,
) -> Iterator[Batch]:
    """The candidates of a plan with splits, from those of its demands.

    Args:
        batches: from `assign_groups`, duplicates included.
        any_set: whether sets that are not minimal count too, for a caller who only wants to know
            which trees have a candidate: each of these sets contains a minimal one.
    """
    for batch in batches:
        for candidates in _Splitting(snapshot, plan, batch, budget).batches(any_set=any_set):
            positions = candidates.positions
            if duplicates is not None:
                positions = duplicates.removed_from(
                    candidates.trees, candidates.all_choices, positions
                )
            if len(positions):
                yield Batch(candidates.trees, candidates.choices, positions, candidates.parts)


class _Option(NamedTuple):
    """A choice that may give a part of an amount.

    Attributes:
        is_local: whether it is in the anchor's own tree.
        serves: where it meets all conditions but the amount.
        room: the most that it may give, for each row.
        min_unit, step_size: of its inventory, for each row, or one number for all rows.
    """

    choice: int
    is_local: bool
    serves: Mask
    room: NDArray[np.float64]
    min_unit: Ints
    step_size: Ints

    @property
    def most(self) -> float:
        """The most that it may give in any row."""
        return float(self.room.max())


class _Bounds(NamedTuple):
    """What each provider of a set could give.

    Attributes:
        lo, hi: (providers, rows) the least and the most.
        fits: (rows,) whether they can give the amount together.
    """

    lo: Ints
    hi: Ints
    fits: Mask


class _Sets:
    """The sets of providers that could give one amount, in some trees."""

    def __init__(
        self,
        split: PlannedSplit,
        options: Sequence[_Option],
        wanted: Mask,
        budget: Budget,
        *,
        has_rules: bool,
    ) -> None:
        """The sets of some options.

        Args:
            wanted: the rows that count.
            has_rules: whether a larger set may be needed for its traits, or for a relation.
        """
        self.split = split
        self._options = {
            option.choice: option
            for option in sorted(options, key=lambda option: (not option.is_local, option.choice))
        }
        self._wanted = wanted
        self._budget = budget
        self._has_rules = has_rules
        self._is_uniform = all(bool((option.step_size == 1).all()) for option in options)
        self._bounds: dict[int, _Bounds] = {}

    def all(self) -> Iterator[int]:
        """The sets that may be minimal in some row, depth first."""
        return self._beyond(0, list(self._options))

    def _beyond(self, choices: int, later: list[int]) -> Iterator[int]:
        """The sets that extend some choices by at least one of those that come later."""
        for place, choice in enumerate(later):
            if self._budget.is_spent():
                return
            larger = choices | 1 << choice
            if choices and not (self._options[choice].is_local and self._is_possible(larger)):
                continue
            fits = self.fits(larger)
            if fits.any():
                yield larger
            if self._may_grow(larger, fits, later[place + 1 :]):
                yield from self._beyond(larger, later[place + 1 :])

    def _is_possible(self, choices: int) -> bool:
        """Whether all choices may give a part in some row. If not, no larger set may either: more
        providers only raise the least that each must give."""
        lo, hi, _ = self._of_several([self._options[choice] for choice in bits_of(choices)])
        possible: Mask = (lo <= hi).all(axis=0) & (lo.sum(axis=0) <= self.split.amount)
        return bool(possible.any())

    def _may_grow(self, choices: int, fits: Mask, later: list[int]) -> bool:
        """Whether a larger set may be minimal in some row, and may give the whole amount."""
        left = self.split.parts - choices.bit_count()
        if left <= 0 or not self._options[choices.bit_length() - 1].is_local:
            return False
        if not self._has_rules and bool(fits[self._wanted].all()):
            return False
        most = sorted((self._options[choice].most for choice in later), reverse=True)[:left]
        chosen = sum(self._options[choice].most for choice in bits_of(choices))
        return bool(most) and chosen + sum(most) >= self.split.amount

    def smaller(self, choices: int) -> Iterator[int]:
        """The parts of a set that decide whether it is minimal."""
        if choices.bit_count() <= 2 or self._has_rules or not self._is_uniform:
            yield from _parts_of(choices)
            return
        # With steps of 1, more providers can give more: if any part of several providers can give
        # the amount, so can one that lacks a single provider.
        for choice in bits_of(choices):
            yield choices & ~(1 << choice)
            yield 1 << choice

    def fits(self, choices: int) -> Mask:
        """The rows in which a set can give the amount."""
        return self.bounds(choices).fits

    def amounts(self, choices: int) -> Ints:
        """What each provider of a set gives: the least of each, and the rest from those that may
        give most; (providers, rows)."""
        lo, hi, _ = self.bounds(choices)
        if choices.bit_count() == 1:
            return lo
        amounts = lo.copy()
        rest = self.split.amount - lo.sum(axis=0)
        columns = np.arange(lo.shape[1])
        for line in np.argsort(-hi, axis=0, kind="stable"):
            more = np.clip(rest, 0, (hi - lo)[line, columns])
            amounts[line, columns] += more
            rest = rest - more
        return amounts

    def bounds(self, choices: int) -> _Bounds:
        """`_Bounds` of a set; kept, because larger sets ask for it again."""
        bounds = self._bounds.get(choices)
        if bounds is None:
            if len(self._bounds) >= _SETS_MAX:
                self._bounds.clear()
            options = [self._options[choice] for choice in bits_of(choices)]
            bounds = self._of_one(options[0]) if len(options) == 1 else self._of_several(options)
            self._bounds[choices] = bounds
        return bounds

    def _of_one(self, option: _Option) -> _Bounds:
        """The bounds of one provider: it gives the whole amount, so that the least part and the
        step of the split do not apply."""
        amount = self.split.amount
        fits = (option.room >= amount) & (option.min_unit <= amount)
        fits &= (amount % option.step_size == 0) & option.serves
        each = np.full((1, len(fits)), amount, dtype=np.int64)
        return _Bounds(each, each, fits)

    def _of_several(self, options: Sequence[_Option]) -> _Bounds:
        split = self.split
        steps = [option.step_size for option in options]
        step: Ints = functools.reduce(np.lcm, steps, np.array([split.step]))
        least = [np.maximum(option.min_unit, split.min) for option in options]
        hi = np.array([option.room for option in options]).astype(np.int64)
        lo = np.empty_like(hi)
        for line, each in enumerate(least):
            lo[line] = -(-each // step) * step
        if (step != 1).any():
            hi = hi // step * step
        fits = (lo <= hi).all(axis=0) & (split.amount % step == 0)
        fits &= (lo.sum(axis=0) <= split.amount) & (split.amount <= hi.sum(axis=0))
        for option in options:
            fits &= option.serves
        return _Bounds(lo, hi, fits)


class _Splitting:
    """The splits of one batch."""

    def __init__(self, snapshot: Snapshot, plan: Plan, batch: Batch, budget: Budget) -> None:
        self._plan = plan
        self._rules = plan.whole
        self._batch = batch
        self._budget = budget
        self._structure = Structure(snapshot, batch.trees)
        self._wanted: Mask = np.zeros(len(batch.trees.rows), dtype=np.bool_)
        self._wanted[batch.positions] = True
        ruled = self._rules.ruled
        self._sets = [
            _Sets(
                split,
                self._options(place, split),
                self._wanted,
                budget,
                has_rules=len(plan.demands) + place in ruled,
            )
            for place, split in enumerate(plan.splits)
        ]

    def batches(self, *, any_set: bool) -> Iterator[Batch]:
        """The candidates, each combination of sets in one batch."""
        batch = self._batch
        for combination in self._combinations(len(self._sets)):
            if not self._is_allowed(combination):
                continue
            rows = self._giving(combination) if any_set else self._minimal(combination)
            if rows.any():
                parts = [
                    SplitAmount(tuple(bits_of(choices)), sets.amounts(choices))
                    for sets, choices in zip(self._sets, combination, strict=True)
                ]
                yield Batch(batch.trees, batch.choices, np.flatnonzero(rows), tuple(parts))

    def _combinations(self, count: int) -> Iterator[tuple[int, ...]]:
        """A set for each of the first `count` splits."""
        if not count:
            yield ()
            return
        for before in self._combinations(count - 1):
            for choices in self._sets[count - 1].all():
                yield *before, choices

    def _minimal(self, combination: tuple[int, ...]) -> Mask:
        """The rows in which each set can give its amount, and no part of a set can."""
        rows = self._giving(combination)
        for place, (sets, choices) in enumerate(zip(self._sets, combination, strict=True)):
            for smaller in sets.smaller(choices):
                if not rows.any() or self._budget.is_spent():
                    return rows & False
                less = (*combination[:place], smaller, *combination[place + 1 :])
                if self._is_allowed(less):
                    rows &= ~sets.fits(smaller)
        return rows

    def _giving(self, combination: tuple[int, ...]) -> Mask:
        """The rows in which each set can give its amount."""
        rows = self._wanted.copy()
        for sets, choices in zip(self._sets, combination, strict=True):
            rows &= sets.fits(choices)
        return rows

    def _is_allowed(self, combination: tuple[int, ...]) -> bool:
        """Whether the rules allow the sets, next to the choices of all other demands."""
        chosen = [*(1 << choice for choice in self._batch.choices), *combination]
        return allows(self._rules, self._structure, chosen)

    def _options(self, place: int, split: PlannedSplit) -> list[_Option]:
        trees, size = self._batch.trees, self._batch.trees.block.shape.size
        options = []
        for choice, serves in _serving(trees, self._plan, place):
            room = np.broadcast_to(trees.room(choice, split.class_id), len(trees.rows))
            taken = sum(
                amount
                for demand, other in zip(self._plan.demands, self._batch.choices, strict=True)
                for class_id, amount in demand.amounts
                if other == choice and class_id == split.class_id
            )
            units = trees.units(choice, split.class_id)
            options.append(_Option(choice, choice < size, serves, room - taken, *units))
        return options


def _serving(trees: Trees, plan: Plan, place: int) -> Iterator[tuple[int, Mask]]:
    """The choices that meet all conditions of a split but its amount, each with the rows in which
    it does."""
    everywhere: Mask = np.ones(len(trees.rows), dtype=np.bool_)
    if isinstance(trees, FilteredTrees):
        masks = trees.masks[plan.splits[place].demand.query_id]
        for choice in sorted(masks):
            mask = masks[choice]
            yield choice, everywhere if mask is None else mask
    elif isinstance(trees, UniformTrees):
        for choice in bits_of(trees.options[len(plan.demands) + place]):
            yield choice, everywhere


def _parts_of(choices: int) -> Iterator[int]:
    """The proper subsets of a set, without the empty one."""
    part = (choices - 1) & choices
    while part:
        yield part
        part = (part - 1) & choices
