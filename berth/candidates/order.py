# SPDX-License-Identifier: Apache-2.0
"""Orders: which candidates come first, as a score that explains itself.

The score of a candidate is `weight` times what its strategy gives, from 0 to 1, and the weights of
all preferences that hold. Higher scores come first. The strategies `pack` and `spread` score how
full the trees of a candidate would be after the placement.

Source: spec/beyond.md 2.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from msgspec import Struct, field

from berth.candidates.batch import Batch, Given, Hosts, of_hosts, random_of, serving_each
from berth.candidates.capacity.preserving import Preserving
from berth.candidates.conditions import MembershipTest, Rows, TraitTest
from berth.candidates.plan import Plan
from berth.index.block import Block, Floats
from berth.index.sets import Mask
from berth.index.snapshot import Location, Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId


class Fullness:
    """The fullness of the candidates of one search.

    Args:
        weights: of each class, 1 for those that are not named.
    """

    def __init__(self, snapshot: Snapshot, plan: Plan, weights: Mapping[ClassId, float]) -> None:
        self._snapshot = snapshot
        self._plan = plan
        names = snapshot.names.class_names
        taken = {class_id for demand in plan.asking for class_id, _ in demand.amounts}
        #: (class, weight), in ascending order of the names: sums of doubles depend on the order.
        self._weights = [
            (class_id, weight)
            for class_id in sorted(taken, key=names.__getitem__)
            if (weight := weights.get(class_id, 1))
        ]
        self._weight = sum(weight for _, weight in self._weights)
        #: (block_id, class) -> of each row of the block: (used, capacity) of the whole tree.
        self._sums: dict[tuple[int, ClassId], tuple[Floats, Floats]] = {}

    def of(self, batch: Batch) -> Floats:
        """The fullness of each candidate, from 0 to 1; 0 if no class has any weight."""
        fullness: Floats = np.zeros(len(batch.positions))
        given = batch.given(self._plan)
        for class_id, weight in self._weights:
            choices = [choice for choice, gives in given if gives == class_id]
            used, capacity = self._of_trees(batch, class_id, choices)
            for choice in choices:
                used = used + given[choice, class_id]
            share = used / capacity
            fullness += share if weight == 1 else weight * share
        return fullness / self._weight if self._weight else fullness

    def of_one(self, batch: Batch, row: int, given: Given) -> float:
        """The fullness of one candidate, which only nodes of its own tree serve.

        Args:
            batch: with this candidate.
            row: of the candidate.
            given: `batch.given`, without splits.
        """
        # PERF bench, place: the sums of `of`, where arrays would take several times as long.
        fullness = 0.0
        for class_id, weight in self._weights:
            sums = self._of_block(batch.trees.block_id, class_id)
            used = sums[0].item(row)
            for (_, gives), amount in given.items():
                if gives == class_id:
                    used += int(amount)
            share = used / sums[1].item(row)
            fullness += share if weight == 1 else weight * share
        return fullness / self._weight if self._weight else fullness

    def take(self, at: Location, class_id: ClassId, amount: int) -> None:
        """From now on so much more is used of a provider, which must have it."""
        used, _ = self._of_block(at.block_id, class_id)
        used[at.row] += amount

    def _of_trees(
        self, batch: Batch, class_id: ClassId, choices: Sequence[int]
    ) -> tuple[Floats, Floats]:
        """What is used, and the capacity, of a class in the trees of some choices together, for
        each candidate."""
        trees = batch.trees
        size = trees.block.shape.size
        used, capacity = np.zeros(len(batch.positions)), np.zeros(len(batch.positions))
        if any(choice < size for choice in choices):
            sums = self._of_block(trees.block_id, class_id)
            if len(batch.rows) == trees.block.rows:
                # PERF bench, candidates: the rows of a batch are distinct and ascend, so these are
                # all of them.
                used, capacity = sums
            else:
                used, capacity = sums[0].take(batch.rows), sums[1].take(batch.rows)
        for choice in _one_of_each_tree(batch, choices):
            foreign = self._of_sharing(batch, class_id, choice)
            used, capacity = used + foreign[0], capacity + foreign[1]
        return used, capacity

    def _of_block(self, block_id: int, class_id: ClassId) -> tuple[Floats, Floats]:
        key = block_id, class_id
        sums = self._sums.get(key)
        if sums is None:
            block = self._snapshot.block(block_id)
            columns = block.columns[class_id]
            # More may be reserved of a provider than it has.
            capacity = np.maximum(columns.capacity, 0)
            used = np.minimum(columns.used, capacity)
            drained = block.drained_of_class(class_id)
            if drained is not None:
                used, capacity = np.where(drained, 0, used), np.where(drained, 0, capacity)
            if len(used) == 1:
                sums = used[0], capacity[0]
            else:
                sums = used.sum(axis=0), capacity.sum(axis=0)
            self._sums[key] = sums
        return sums

    def _of_sharing(self, batch: Batch, class_id: ClassId, choice: int) -> tuple[Floats, Floats]:
        locations = [each.location for each in serving_each(batch, choice)]
        sums = [(self._of_block(at.block_id, class_id), at.row) for at in locations]
        used = np.array([used.item(row) for (used, _), row in sums])
        capacity = np.array([capacity.item(row) for (_, capacity), row in sums])
        return used, capacity


def _one_of_each_tree(batch: Batch, choices: Iterable[int]) -> Iterable[int]:
    """Those of some choices that are sharing providers of other trees, one of each tree: which of
    them are in one tree is the same for all candidates of a batch."""
    size, serving = batch.trees.block.shape.size, batch.trees.serving
    return {
        serving[choice - size].location[:2]: choice for choice in choices if choice >= size
    }.values()


Strategy = Literal["any", "random", "pack", "spread", "preserve"]

#: `Preference.of` for a condition on the root of a candidate's host.
HOST: Final = "host"


class Preference(NamedTuple):
    """A condition that adds to the score where it holds.

    Attributes:
        of: `HOST`, or a group, all of whose providers must meet the condition.
    """

    weight: float
    of: str
    traits: TraitTest
    membership: MembershipTest


class Order(Struct, frozen=True):
    """What comes first.

    Attributes:
        weight: of the strategy.
        classes: weights of classes for `pack` and `spread`, 1 for the others.
        seed: decides between equal scores; from 0 to 2^64 - 1.
        among: how many of the hosts that fit are scored; None for all.
        preserve: flavors, which `preserve` leaves room for, with weights. One that nothing can fit
            is left out.
    """

    by: Strategy = "any"
    weight: float = 1
    classes: Mapping[ClassId, float] = field(default_factory=dict)
    prefer: tuple[Preference, ...] = ()
    seed: int = 0
    among: int | None = None
    preserve: tuple[tuple[Plan, float], ...] = ()

    @property
    def has_scores(self) -> bool:
        """Whether candidates have different scores at all."""
        return self.by != "any" or bool(self.prefer)


class Scores(NamedTuple):
    """The scores of the candidates of a batch.

    Attributes:
        strategy: what the strategy gives; None for `any`.
        prefer: what each preference adds.
    """

    total: Floats
    strategy: Floats | None
    prefer: tuple[Floats, ...]

    def at(self, some: Mask | Rows) -> Scores:
        """The scores of some of the candidates."""
        strategy = None if self.strategy is None else self.strategy[some]
        return Scores(self.total[some], strategy, tuple(each[some] for each in self.prefer))


class Scorer:
    """Scores the candidates of one search."""

    def __init__(self, snapshot: Snapshot, plan: Plan, order: Order, budget: Budget) -> None:
        self._snapshot = snapshot
        self._preserving = (
            Preserving(snapshot, plan, order.preserve, budget) if order.by == "preserve" else None
        )
        self._plan = plan
        self._order = order
        self._fullness = Fullness(snapshot, plan, order.classes)
        #: block_id -> for each row its random number, NaN where it has not been needed yet.
        self._random: dict[int, Floats] = {}

    def scores(self, batch: Batch) -> Scores:
        """The scores of all candidates of a batch."""
        strategy = self._strategy(batch)
        prefer = tuple(self._added(batch, preference) for preference in self._order.prefer)
        total = np.zeros(len(batch.positions)) if strategy is None else strategy
        if self._order.weight != 1:
            total = self._order.weight * total
        for added in prefer:
            total = total + added
        return Scores(total, strategy, prefer)

    def score_again(self, batch: Batch, places: Rows, scores: Scores, given: Given) -> None:
        """Score some candidates of a batch as the fleet is now.

        Args:
            scores: of the whole batch; those of the candidates are written into it.
            given: `batch.given`, without splits.
        """
        if scores.strategy is None or self._order.by == "random":
            return
        size = batch.trees.block.shape.size
        if len(places) > 1 or self._preserving or any(choice >= size for choice, _ in given):
            now = self.scores(batch.at(places))
            assert now.strategy is not None, "the order has a strategy"
            scores.total[places], scores.strategy[places] = now.total, now.strategy
            return
        place = int(places[0])
        fullness = self._fullness.of_one(batch, int(batch.rows[place]), given)
        strategy = fullness if self._order.by == "pack" else 1.0 - fullness
        total = strategy if self._order.weight == 1 else self._order.weight * strategy
        for added in scores.prefer:
            total += added.item(place)
        scores.total[place], scores.strategy[place] = total, strategy

    def take(self, at: Location, class_id: ClassId, amount: int) -> None:
        """From now on so much more is used of a provider, which must have it."""
        self._fullness.take(at, class_id, amount)
        if self._preserving is not None:
            self._preserving.take(at, class_id, amount)

    def _strategy(self, batch: Batch) -> Floats | None:
        by = self._order.by
        if by == "any":
            return None
        if by == "random":
            return of_hosts(self._snapshot, batch, self._random_of)
        if self._preserving is not None:
            scores: Floats = 1.0 / (1.0 + self._preserving.losses(batch))
            return scores
        fullness = self._fullness.of(batch)
        return fullness if by == "pack" else 1.0 - fullness

    def _random_of(self, hosts: Hosts) -> Floats:
        kept = self._random.get(hosts.block_id)
        if kept is None:
            kept = self._random[hosts.block_id] = np.full(hosts.block.rows, np.nan)
        missing = hosts.rows[np.isnan(kept[hosts.rows])]
        if len(missing):
            kept[missing] = random_of(hosts._replace(rows=missing), self._order.seed)
        numbers: Floats = kept[hosts.rows]
        return numbers

    def _added(self, batch: Batch, preference: Preference) -> Floats:
        """What a preference adds to the score of each candidate."""
        if preference.of == HOST:
            holds = of_hosts(
                self._snapshot,
                batch,
                lambda hosts: _passes(preference, hosts.block, 0, hosts.rows),
            )
        else:
            choices = batch.serving(self._plan).get(preference.of, ())
            holds = np.full(len(batch.positions), bool(choices))
            for choice in choices:
                holds &= self._passes_each(batch, preference, choice)
        return np.where(holds, float(preference.weight), 0.0)

    def _passes_each(self, batch: Batch, preference: Preference, choice: int) -> Mask:
        """Where the provider of a choice meets a condition."""
        trees = batch.trees
        if choice < trees.block.shape.size:
            return _passes(preference, trees.block, choice, batch.rows)
        locations = [each.location for each in serving_each(batch, choice)]
        passing = {
            at: _passes(
                preference, self._snapshot.block(at.block_id), at.node, np.array([at.row])
            ).item()
            for at in set(locations)
        }
        return np.array([passing[at] for at in locations])


def _passes(preference: Preference, block: Block, node: int, rows: Rows) -> Mask:
    """Where a node of some rows meets a condition."""
    has_traits = preference.traits.passes(block.shape.node_types[node].traits)
    mask = preference.membership.mask(block.aggregate_sets[node, rows]) if has_traits else None
    return np.full(len(rows), has_traits) if mask is None else mask
