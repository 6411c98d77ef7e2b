# SPDX-License-Identifier: Apache-2.0
"""What is left of the classes of a request, and how much of it is of use.

The hosts that count, and the largest amounts, are answers of the search to derived requests, as in
`berth.candidates.explain`.

Source: spec/beyond.md 4.3.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.capacity.largest import largest_amount
from berth.candidates.explain.amounts import Amount
from berth.candidates.explain.asking import Asking
from berth.candidates.explain.atoms import atoms_of, bits
from berth.candidates.explain.reduction import Reduction
from berth.candidates.fleet import Fleet
from berth.candidates.masks import Rows
from berth.candidates.question import Question, Split
from berth.candidates.references import References
from berth.index.aggregate_sets import Mask
from berth.index.block import Columns, Ints
from berth.index.snapshot import Location, Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId

#: So many of the hosts that can give most are looked at before all are.
_FIRST: Final = 256


class Fragments(NamedTuple):
    """What is left of one class.

    Attributes:
        free: on the hosts that satisfy everything but amounts, and of the sharing providers that
            serve them.
        usable: what of it the placements that are counted take together.
        largest: with this amount the request would still fit some host; 0 if with none.
    """

    free: int
    usable: int
    largest: int

    @property
    def stranded(self) -> int:
        """What is free and of no use to the request."""
        # If the budget ended, what is free was not added up.
        return max(self.free - self.usable, 0)


class Leftovers:
    """What is left in one fleet; for all requests of one question."""

    def __init__(self, snapshot: Snapshot, fleet: Fleet, budget: Budget) -> None:
        self._snapshot = snapshot
        self._fleet = fleet
        self._budget = budget
        self._references = References(snapshot)
        self._giving: dict[tuple[ClassId, int], Mask] = {}
        #: A question without its amounts -> the hosts that satisfy it; these, class -> what is
        #: free.
        self._suited: dict[Hashable, Mask] = {}
        self._free: dict[tuple[Hashable, ClassId], int] = {}
        self._sharing: dict[Hashable, Mapping[ClassId, set[Location]]] = {}
        self._most_alone: dict[ClassId, tuple[Ints, Rows]] = {}
        self._most_rooms: dict[ClassId, tuple[Ints, Mask]] = {}

    def of(self, question: Question, count: int) -> dict[str, Fragments]:
        """What is left of each class of a request that fits so often, in the order of the
        request. What the budget cuts off is 0."""
        atoms = list(atoms_of(question, has_drained=self._snapshot.has_drained))
        asking = Asking(
            self._snapshot,
            self._fleet,
            atoms,
            Reduction(question, atoms, self._references),
            self._budget,
            giving=self._giving,
        )
        kept = bits(range(len(atoms)))
        asked: dict[str, list[int]] = {}
        amounts: dict[str, int] = {}
        for number, atom in enumerate(atoms):
            if atom.asked is not None:
                name, amount = atom.asked
                asked.setdefault(name, []).append(number)
                amounts[name] = amounts.get(name, 0) + amount
        if self._budget.is_spent():
            return {name: Fragments(0, count * amount, 0) for name, amount in amounts.items()}
        key, suited = self._hosts_suited(asking, question, kept, asked)
        return {
            name: Fragments(
                self._free_of(asking, key, suited, self._snapshot.names.class_ids[name]),
                count * amounts[name],
                max(self._largest(asking, question, kept, number) for number in numbers),
            )
            for name, numbers in asked.items()
        }

    def _hosts_suited(
        self, asking: Asking, question: Question, kept: int, asked: dict[str, list[int]]
    ) -> tuple[Hashable, Mask]:
        """The hosts that satisfy everything but amounts, and a key for them."""
        key = _without_amounts(question)
        suited = self._suited.get(key)
        if suited is None:
            nothing = dict.fromkeys((n for numbers in asked.values() for n in numbers), 0)
            suited = self._suited[key] = asking.fit(kept, amounts=nothing)
        return key, suited

    def _free_of(self, asking: Asking, key: Hashable, suited: Mask, class_id: ClassId) -> int:
        free = self._free.get((key, class_id))
        if free is None:
            if key not in self._sharing:
                kept = bits(range(len(asking.atoms)))
                self._sharing[key] = asking.sharing_with(kept, suited)
            sharing = self._sharing[key].get(class_id, ())
            free = self._free[key, class_id] = self._fleet.free(suited, class_id, sharing)
        return free

    def _largest(self, asking: Asking, question: Question, kept: int, number: int) -> int:
        """The largest amount of one class of one group with which some host fits."""
        if self._budget.is_spent():
            return 0
        atom = asking.atoms[number]
        assert atom.asked is not None
        assert atom.group is not None
        class_id = self._snapshot.names.class_ids[atom.asked[0]]
        split = dict(dict(question.groups)[atom.group].split).get(atom.asked[0])
        is_alone = split is None and asking.are_independent(kept)
        if is_alone and self._fleet.is_settled:
            others = [asking.alone(n) for n in range(len(asking.atoms)) if n != number]
            return self._most_of(class_id, others)
        if any(group.split for _, group in question.groups):
            hosts = asking.fit(kept, amounts={number: 0})
            return self._largest_among(asking, kept, number, hosts, split)
        return self._largest_unsplit(asking, kept, number)

    def _largest_among(
        self,
        asking: Asking,
        kept: int,
        number: int,
        hosts: Mask,
        split: Split | None,
        above: int = 0,
    ) -> int:
        """As `_largest`, of some hosts."""
        if not hosts.any():
            return above
        larger = Amount(asking, number, split).largest_within(kept, hosts, above=above)
        return above if larger is None else larger.amount

    def _largest_unsplit(self, asking: Asking, kept: int, number: int) -> int:
        """As `_largest`, where nothing is split."""
        atom = asking.atoms[number]
        assert atom.asked is not None
        assert atom.group is not None
        wanted = atom.group, self._snapshot.names.class_ids[atom.asked[0]]
        plan = asking.plan(kept, {number: 0})
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
                return self._largest_among(asking, kept, number, room > best, None, best)
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
        among = first[_all_of([mask[first] for mask in masks], len(first))]
        if not len(among):
            among = np.flatnonzero(_all_of(masks, len(most)))
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


def _all_of(masks: Sequence[Mask], size: int) -> Mask:
    all_of: Mask = np.ones(size, dtype=np.bool_)
    for mask in masks:
        all_of &= mask
    return all_of


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
                replace(group, resources=tuple((each, 0) for each, _ in group.resources), split=()),
            )
            for name, group in question.groups
        ),
    )
