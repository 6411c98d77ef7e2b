# SPDX-License-Identifier: Apache-2.0
"""What is left of the classes of a request, and how much of it is of use.

The hosts that count, and the largest amounts, are answers of the search to derived requests, as in
`berth.candidates.explain`. What else a candidate takes does not depend on the amount of one class.
So each host is searched once, for the request with an amount of 0, and what the provider of each
candidate could give instead is counted.

Source: spec/beyond.md 4.3.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

import numpy as np
from msgspec.structs import replace

from berth.candidates.assign import assign_groups
from berth.candidates.batch import Batch
from berth.candidates.capacity.ways import WAYS_MAX
from berth.candidates.conditions import Rows
from berth.candidates.explain.atoms import Reduction, atoms_of
from berth.candidates.explain.derived import DerivedQuestions
from berth.candidates.explain.relaxations import Amount
from berth.candidates.filter import filter_trees
from berth.candidates.fleet import Fleet
from berth.candidates.plan import Plan
from berth.candidates.question import Question
from berth.candidates.references import References
from berth.index.block import Columns, Ints
from berth.index.sets import Mask
from berth.index.snapshot import Location, Snapshot
from berth.model.budget import Budget
from berth.model.capacity import FragmentsNow
from berth.model.ids import ClassId


def largest_amount(
    snapshot: Snapshot,
    plan: Plan,
    wanted: tuple[str, ClassId],
    among: Mapping[int, Mask],
    budget: Budget,
) -> int | None:
    """The largest amount, 0 if no host fits with any; None if some host has too many candidates.

    Args:
        plan: without splits; it asks for 0 of what is wanted.
        wanted: the suffix of a group, and the class.
        among: the rows of each block that count.
    """
    number = _number_of(plan, wanted)
    passing = filter_trees(snapshot, plan, budget, among=among)
    batches = assign_groups(snapshot, plan, passing, budget, most_per_tree=WAYS_MAX)
    largest = 0
    for trees, several in groupby(batches, key=attrgetter("trees")):
        counts = np.zeros(len(trees.rows), dtype=np.int64)
        for ways, batch in enumerate(several, 1):
            counts[batch.positions] += 1
            # No batch has two candidates of a host.
            if ways > WAYS_MAX and counts.max() > WAYS_MAX:
                return None
            largest = max(largest, _most(plan, batch, number, wanted[1]))
    return largest


def _number_of(plan: Plan, wanted: tuple[str, ClassId]) -> int:
    """The demand that asks for what is wanted."""
    suffix, class_id = wanted
    return next(
        number
        for number, demand in enumerate(plan.demands)
        if demand.suffix == suffix and class_id in dict(demand.amounts)
    )


def _most(plan: Plan, batch: Batch, number: int, class_id: ClassId) -> int:
    """The most that the provider of one demand can give in one of some candidates."""
    if not len(batch.positions):
        return 0
    choice, trees = batch.choices[number], batch.trees
    others = batch.given(plan)[choice, class_id]
    room = np.broadcast_to(trees.room(choice, class_id), len(trees.rows))
    least, step = trees.units(choice, class_id)
    most = (room.astype(np.int64) - others) // step * step
    return max(int(np.where(most >= least, most, 0)[batch.positions].max()), 0)


#: So many of the hosts that can give most are looked at before all are.
_FIRST: Final = 256


class Leftovers:
    """What is left in one fleet; for all requests of one question."""

    def __init__(self, snapshot: Snapshot, fleet: Fleet, budget: Budget) -> None:
        self._snapshot = snapshot
        self._fleet = fleet
        self._budget = budget
        self._references = References(snapshot)
        self._giving: dict[tuple[ClassId, int], Mask] = {}
        #: A question without its amounts -> the hosts that satisfy it, and the sharing providers
        #: that may serve them; these, class -> what is free.
        self._suited: dict[Hashable, tuple[Mask, Mapping[ClassId, set[Location]]]] = {}
        self._free: dict[tuple[Hashable, ClassId], int] = {}
        self._most_alone: dict[ClassId, tuple[Ints, Rows]] = {}
        self._most_rooms: dict[ClassId, tuple[Ints, Mask]] = {}

    def of(self, question: Question, count: int) -> dict[str, FragmentsNow]:
        """What is left of each class of a request that fits so often, in the order of the
        request. What the budget cuts off is 0."""
        atoms = list(atoms_of(question, has_drained=self._snapshot.has_drained))
        reduction = Reduction(question, atoms, self._references)
        derived = DerivedQuestions(
            self._snapshot, self._fleet, reduction, self._budget, giving=self._giving
        )
        asked: dict[str, list[int]] = {}
        amounts: dict[str, int] = {}
        for number, atom in enumerate(atoms):
            if atom.asked is not None:
                name, amount = atom.asked
                asked.setdefault(name, []).append(number)
                amounts[name] = amounts.get(name, 0) + amount
        if self._budget.is_spent():
            return {name: _left(0, count * amount, 0) for name, amount in amounts.items()}
        key = _without_amounts(question)
        return {
            name: _left(
                self._free_of(derived, key, self._snapshot.names.class_ids[name]),
                count * amounts[name],
                max(self._largest(derived, number) for number in numbers),
            )
            for name, numbers in asked.items()
        }

    def _free_of(self, derived: DerivedQuestions, key: Hashable, class_id: ClassId) -> int:
        """What is free of a class on the hosts that satisfy everything but amounts.

        Args:
            key: for these hosts.
        """
        free = self._free.get((key, class_id))
        if free is None:
            if key not in self._suited:
                suited = derived.fit(derived.everything, amounts=derived.any_amounts)
                self._suited[key] = suited, derived.sharing_with(derived.everything, suited)
            suited, sharing = self._suited[key]
            free = self._fleet.free(suited, class_id, sharing.get(class_id, ()))
            self._free[key, class_id] = free
        return free

    def _largest(self, derived: DerivedQuestions, number: int) -> int:
        """The largest amount of one class of one group with which some host fits."""
        if self._budget.is_spent():
            return 0
        atom = derived.atoms[number]
        assert atom.asked is not None and atom.group is not None
        class_id = self._snapshot.names.class_ids[atom.asked[0]]
        reduction, every = derived.reduction, derived.everything
        is_alone = reduction.split_of(atom) is None and derived.are_independent(every)
        if is_alone and self._fleet.is_settled:
            others = [derived.alone(n) for n in range(len(derived.atoms)) if n != number]
            return self._most_of(class_id, others)
        if any(reduction.split_of(each) for each in derived.atoms if each.asked):
            return self._largest_among(derived, number, derived.fit(every, amounts={number: 0}))
        return self._largest_unsplit(derived, number, (atom.group, class_id))

    def _largest_among(
        self, derived: DerivedQuestions, number: int, hosts: Mask, above: int = 0
    ) -> int:
        """As `_largest`, of some hosts."""
        if not hosts.any():
            return above
        amount = Amount(derived, number)
        larger = amount.largest_within(derived.everything, hosts, above=above)
        return above if larger is None else larger.amount

    def _largest_unsplit(
        self, derived: DerivedQuestions, number: int, wanted: tuple[str, ClassId]
    ) -> int:
        """As `_largest`, where nothing is split; `wanted` is the group and the class."""
        plan = derived.plan(derived.everything, {number: 0})
        if plan is None:
            return 0
        room, first = self._rooms(wanted[1])
        best = 0
        for hosts in (first, None):
            among = room > best if hosts is None else hosts
            if not among.any():
                continue
            rows = self._fleet.by_block(among)
            larger = largest_amount(self._snapshot, plan, wanted, rows, self._budget)
            if larger is None:
                return self._largest_among(derived, number, room > best, best)
            best = max(best, larger)
        return best

    def _rooms(self, class_id: ClassId) -> tuple[Ints, Mask]:
        """For each host no less than what a provider can give it at once, and some of the hosts
        with most, next to each other where many have as much."""
        kept = self._most_rooms.get(class_id)
        if kept is None:
            most = np.zeros(self._fleet.size, dtype=np.int64)
            for _, block, hosts in self._fleet.spans:
                if class_id in block.columns:
                    most[hosts] = block.columns[class_id].room.max(axis=0)
            if class_id in self._snapshot.sharing.classes:
                most = np.where(self._fleet.shared, most.max(initial=0), most)
            first: Mask = most > 0
            if len(most) > _FIRST:
                least = np.partition(most, len(most) - _FIRST)[-_FIRST]
                first = first & (most > least)
                equal = np.flatnonzero(most == max(least, 1))
                first[equal[: _FIRST - np.count_nonzero(first)]] = True
            kept = self._most_rooms[class_id] = most, first
        return kept

    def _most_of(self, class_id: ClassId, masks: Sequence[Mask]) -> int:
        """The most that the only provider of one of the hosts in all of some masks can give
        alone."""
        most, first = self._alone(class_id)
        # PERF bench, capacity: seldom does none of the largest qualify.
        among = first[np.logical_and.reduce([first >= 0, *(mask[first] for mask in masks)])]
        if not len(among):
            among = np.flatnonzero(np.logical_and.reduce([most >= 0, *masks]))
        return int(most[among].max()) if len(among) else 0

    def _alone(self, class_id: ClassId) -> tuple[Ints, Rows]:
        """For each host of one provider the most that it can give alone, 0 for the others; and the
        hosts that can give most."""
        kept = self._most_alone.get(class_id)
        if kept is None:
            most = np.zeros(self._fleet.size, dtype=np.int64)
            for _, block, hosts in self._fleet.spans:
                if block.shape.size == 1 and class_id in block.columns:
                    most[hosts] = _most_at_once(block.columns[class_id])
            first = np.arange(len(most))
            if len(most) > _FIRST:
                first = np.argpartition(most, len(most) - _FIRST)[-_FIRST:]
            kept = self._most_alone[class_id] = most, first
        return kept


def _most_at_once(columns: Columns) -> Ints:
    """The largest amount that the only inventory of a class in each row can give, in its units."""
    room: Ints = columns.room[0].astype(np.int64)
    if columns.stepped:
        room = room // columns.step_size[0] * columns.step_size[0]
    if columns.min_unit_max > 1:
        room = np.where(room >= columns.min_unit[0], room, 0)
    return room


def _without_amounts(question: Question) -> Hashable:
    """A question, but for how much it asks of each class."""
    return replace(
        question,
        groups=tuple(
            (
                name,
                group._replace(resources=tuple((each, 0) for each, _ in group.resources), split=()),
            )
            for name, group in question.groups
        ),
    )


def _left(free: int, usable: int, largest: int) -> FragmentsNow:
    # If the budget ended, what is free was not added up.
    return FragmentsNow(free, usable, max(free - usable, 0), largest)
