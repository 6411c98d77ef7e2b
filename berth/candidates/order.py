# SPDX-License-Identifier: Apache-2.0
"""Orders: which candidates come first, as a score that explains itself.

The score of a candidate is `weight` times what its strategy gives, from 0 to 1, and the weights of
all preferences that hold. Higher scores come first.

Source: spec/beyond.md 2.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import numpy as np

from berth.candidates.batch import Batch, Given
from berth.candidates.capacity.preserving import Preserving
from berth.candidates.fullness import Fullness
from berth.candidates.hosts import Hosts, hosts_of, random_of, serving_each
from berth.candidates.masks import Rows
from berth.candidates.plan import MembershipTest, Plan, TraitTest
from berth.index.aggregate_sets import Mask
from berth.index.block import Floats
from berth.index.snapshot import Location, Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId

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


@dataclass(frozen=True, slots=True)
class Order:
    """What comes first.

    Attributes:
        weight: of the strategy.
        classes: weights of classes for `pack` and `spread`, 1 for the others.
        seed: decides between equal scores; from 0 to 2^64 - 1.
        among: score only so many of the hosts that fit; None for all.
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
            return self._randomly(batch)
        if self._preserving is not None:
            scores: Floats = 1.0 / (1.0 + self._preserving.losses(batch))
            return scores
        fullness = self._fullness.of(batch)
        return fullness if by == "pack" else 1.0 - fullness

    def _randomly(self, batch: Batch) -> Floats:
        numbers = np.empty(len(batch.positions))
        for hosts in hosts_of(self._snapshot, batch):
            numbers[hosts.at] = self._random_of(hosts)
        return numbers

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
        holds: Mask = np.zeros(len(batch.positions), dtype=np.bool_)
        if preference.of == HOST:
            for hosts in hosts_of(self._snapshot, batch):
                holds[hosts.at] = _passes_in_block(preference, hosts, 0)
        elif choices := batch.serving(self._plan).get(preference.of):
            holds[:] = True
            for choice in choices:
                holds &= self._passes(batch, preference, choice)
        return np.where(holds, float(preference.weight), 0.0)

    def _passes(self, batch: Batch, preference: Preference, choice: int) -> Mask | bool:
        """Where the provider of a choice meets a condition."""
        trees = batch.trees
        if choice < trees.block.shape.size:
            hosts = Hosts(trees.block_id, trees.block, batch.rows, slice(None))
            return _passes_in_block(preference, hosts, choice)
        locations = [each.location for each in serving_each(batch, choice)]
        passing = {at: self._passes_at(preference, at) for at in set(locations)}
        return np.array([passing[at] for at in locations])

    def _passes_at(self, preference: Preference, at: Location) -> bool:
        block = self._snapshot.block(at.block_id)
        return preference.traits.passes(
            block.shape.node_types[at.node].traits
        ) and preference.membership.passes(block.aggregate_sets.item(at.node, at.row))


def _passes_in_block(preference: Preference, hosts: Hosts, node: int) -> Mask | bool:
    """Where a node of some rows meets a condition."""
    if not preference.traits.passes(hosts.block.shape.node_types[node].traits):
        return False
    sets = hosts.block.aggregate_sets[node, hosts.rows]
    mask: Mask | bool = True
    if preference.membership.member is not None:
        mask = preference.membership.member[sets]
    if preference.membership.forbidden is not None:
        mask = mask & ~preference.membership.forbidden[sets]
    return mask
