# SPDX-License-Identifier: Apache-2.0
"""How much room for other flavors a candidate takes: the strategy `preserve`.

The loss of a candidate is the sum over the flavors of weight times cap(R, flavor) before it minus
after it, on its host R alone.

Source: spec/beyond.md 2.7 and 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from berth.candidates.batch import Batch, Hosts, hosts_of, in_places, serving_each
from berth.candidates.capacity.packing import Steps
from berth.candidates.capacity.per_host import Factors, HostCounts
from berth.candidates.capacity.ways import Free
from berth.candidates.conditions import Rows
from berth.candidates.fleet import Fleet
from berth.candidates.plan import Plan
from berth.candidates.trees import marks_in
from berth.index.block import Floats, Ints
from berth.index.scenario import with_more_used
from berth.index.sets import Mask
from berth.index.snapshot import Location, Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId, ProviderId

#: (block_id, class) -> an amount for each inventory.
_More = dict[tuple[int, ClassId], Ints]


class Preserving:
    """The losses of the candidates of one search."""

    def __init__(
        self,
        snapshot: Snapshot,
        plan: Plan,
        flavors: Sequence[tuple[Plan, float]],
        budget: Budget,
    ) -> None:
        """For candidates of a plan; each flavor has a weight."""
        self._snapshot = snapshot
        self._plan = plan
        self._flavors: list[tuple[Plan, float, Factors]] = [
            (flavor, weight, {}) for flavor, weight in flavors
        ]
        self._budget = budget
        self._steps = Steps(budget)
        self._fleet = Fleet(snapshot)
        self._taken: _More = {}
        self._forget()

    def take(self, at: Location, class_id: ClassId, amount: int) -> None:
        """From now on so much more is used of a provider, which must have it."""
        self._add(self._taken, at, class_id, amount)
        self._forget()

    def losses(self, batch: Batch) -> Floats:
        """The loss of each candidate of a batch, at least 0; endless where the budget ended before
        it was known."""
        losses = np.full(len(batch.positions), np.inf)
        if self._budget.is_spent():
            return losses
        for some in self._apart(batch):
            counted = self._losses(batch.at(some))
            # What was cut off would look like a loss, or like none.
            if self._budget.ended is not None:
                break
            losses[some] = counted
        return losses

    def _apart(self, batch: Batch) -> Iterator[Rows]:
        """The places of candidates, in parts: none takes anything that another's host could use."""
        trees, trait = batch.trees, self._snapshot.sharing.trait
        node_types = trees.block.shape.node_types
        shared = [
            choice
            for choice, _ in batch.given(self._plan)
            if choice >= len(node_types) or trait in node_types[choice].traits
        ]
        if not shared:
            yield np.arange(len(batch.positions))
            return
        rounds: dict[ProviderId, int] = {}
        parts: list[list[int]] = []
        for place, visible in enumerate(self._visible(batch)):
            position = int(batch.positions[place])
            used = visible.union(trees.provider_id(choice, position) for choice in shared)
            number = max(rounds.get(provider, 0) for provider in used)
            rounds.update(dict.fromkeys(used, number + 1))
            if number == len(parts):
                parts.append([])
            parts[number].append(place)
        yield from map(np.array, parts)

    def _visible(self, batch: Batch) -> list[set[ProviderId]]:
        """The sharing providers that the host of each candidate could use."""
        snapshot = self._snapshot
        visible: list[set[ProviderId]] = [set() for _ in batch.positions]
        for hosts in hosts_of(snapshot, batch):
            places = np.arange(len(visible))[hosts.at]
            sets = hosts.block.tree_aggregate_sets[hosts.rows]
            for place, tree_set in zip(places.tolist(), sets.tolist(), strict=True):
                serving = snapshot.sharing.serving(tree_set, snapshot.aggregate_sets)
                visible[place].update(serving)
        return visible

    def _losses(self, batch: Batch) -> Floats:
        several = hosts_of(self._snapshot, batch)
        starts = self._fleet.starts
        numbers = in_places(batch, several, lambda hosts: starts[hosts.block_id] + hosts.rows)
        self._count_before(several, numbers)
        after = with_more_used(self._snapshot, self._with(batch))
        losses = np.zeros(len(numbers))
        for before, (plan, weight, factors) in zip(self._before, self._flavors, strict=True):
            left = self._count(after, plan, factors, several)[numbers]
            losses += weight * np.maximum(before[numbers] - left, 0)
        return losses

    def _count_before(self, several: Sequence[Hosts], numbers: Rows) -> None:
        """Count some hosts as they are, unless that was done."""
        if self._is_counted[numbers].all():
            return
        now = with_more_used(self._snapshot, self._taken)
        for before, (plan, _, factors) in zip(self._before, self._flavors, strict=True):
            before[numbers] = self._count(now, plan, factors, several)[numbers]
        self._is_counted[numbers] = True

    def _count(
        self, snapshot: Snapshot, plan: Plan, factors: Factors, several: Sequence[Hosts]
    ) -> Ints:
        """cap of some hosts, for all hosts of the fleet."""
        among: dict[int, Mask] = {}
        for hosts in several:
            marks_in(among, hosts.block_id, hosts.block)[hosts.rows] = True
        counts = HostCounts(
            snapshot,
            plan,
            self._fleet,
            Free(snapshot),
            self._steps,
            among=among,
            factors=factors,
        )
        return counts.count

    def _with(self, batch: Batch) -> _More:
        """What is taken, and what the candidates of a batch take."""
        more = {key: amounts.copy() for key, amounts in self._taken.items()}
        trees = batch.trees
        for (choice, class_id), amounts in batch.given(self._plan).items():
            if choice < trees.block.shape.size:
                line = trees.block.shape.row_of_node[class_id][choice]
                of_class = self._of(more, trees.block_id, class_id)
                of_class[line, batch.rows] += amounts
                continue
            each = np.broadcast_to(amounts, len(batch.positions)).tolist()
            for provider, amount in zip(serving_each(batch, choice), each, strict=True):
                self._add(more, provider.location, class_id, amount)
        return more

    def _add(self, more: _More, at: Location, class_id: ClassId, amount: int) -> None:
        line = self._snapshot.block(at.block_id).shape.row_of_node[class_id][at.node]
        self._of(more, at.block_id, class_id)[line, at.row] += amount

    def _of(self, more: _More, block_id: int, class_id: ClassId) -> Ints:
        key = block_id, class_id
        if key not in more:
            used = self._snapshot.block(block_id).columns[class_id].used
            more[key] = np.zeros(used.shape, dtype=np.int64)
        return more[key]

    def _forget(self) -> None:
        self._before = [np.zeros(self._fleet.size, dtype=np.int64) for _ in self._flavors]
        self._is_counted = self._fleet.none()
