# SPDX-License-Identifier: Apache-2.0
"""The choices made so far on the way down through the slots, and what they still allow.

After each choice the options of all open slots are narrowed to those that are still possible, and
the way is given up as soon as some slot has none, or some slots together too few. So a walk turns
back where a dead end begins, not at its end.

Slots that ask the same and stand in the same subtrees are of one *kind*: they always have the same
options. A set of choices is an integer with a bit for each (`Anchors.options`). The rows of a group
that are still possible are `Alive`: a mask, or, for a group of one row, plain `True`.

Source of the rules: spec/allocation-candidates.md 5.3 (traits of the union), 5.4 (isolate,
same_subtree, sums), 5.6.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.anchors import Anchors
from berth.candidates.foreign import Amounts
from berth.candidates.plan import Plan, Slot
from berth.candidates.structure import Structure, bits_of
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, TraitId

Alive = Mask | bool

#: The ancestors that the providers of a subtree have in common before there is any: everybody.
_ALL: Final = -1


class Level(NamedTuple):
    """What the choices made so far allow.

    Attributes:
        domains: per kind, the choices that its open slots still have.
        alive: the rows in which the choices so far are possible.
        missing: for each required set of traits of the unsuffixed group that nobody has yet, the
            choices that have it.
        spans: for each `same_subtree`: (the ancestors that its choices have in common, its
            choices).
    """

    domains: list[int]
    alive: Alive
    missing: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


class Path:
    """One way down: slots are filled in a fixed order, at depth 0, 1, 2 ..., and taken back in
    reverse."""

    def __init__(self, snapshot: Snapshot, plan: Plan, anchors: Anchors) -> None:
        self._plan = plan
        self._anchors = anchors
        self._structure = Structure(snapshot, anchors)
        self._kinds = plan.kinds
        #: depth -> slot. Slots with few options first: a walk turns back early.
        self._order = sorted(
            range(len(plan.slots)),
            key=lambda number: (anchors.options[number].bit_count(), plan.kinds.of_slot[number]),
        )
        #: slot -> choice; meaningful for slots that are filled.
        self._chosen = [0] * len(plan.slots)
        #: kind -> how many of its slots are not filled.
        self._open = list(plan.kinds.counts)
        #: (choice, class) -> what the filled slots take of it together.
        self._sums: dict[tuple[int, ClassId], int] = {}
        self._rooms: dict[tuple[int, ClassId], Amounts | float] = {}

    @property
    def length(self) -> int:
        """The number of slots."""
        return len(self._order)

    @property
    def choices(self) -> tuple[int, ...]:
        """The choices in the order of the plan's slots, all of which are filled."""
        return tuple(self._chosen)

    def start(self) -> Level | None:
        """What is allowed before any choice; None if nothing is."""
        rows = len(self._anchors.rows)
        level = Level(
            [self._anchors.options[number] for number in self._kinds.first_slots],
            True if rows == 1 else np.ones(rows, dtype=np.bool_),
            tuple(map(self._having, self._plan.union_traits.required)),
            ((_ALL, 0),) * len(self._plan.subtrees),
        )
        return self._if_possible(level)

    def options(self, depth: int, level: Level) -> int:
        """The choices that the slot at some depth has."""
        return level.domains[self._kinds.of_slot[self._order[depth]]]

    def take(self, depth: int, choice: int, level: Level, alive: Alive) -> Level | None:
        """Fill the slot at some depth with one of its options, if any row goes on from there.

        Args:
            alive: the rows of `level` that are still wanted.
        """
        number = self._order[depth]
        slot = self._plan.slots[number]
        for class_id, amount in slot.amounts:
            taken = self._sums.get((choice, class_id), 0)
            if taken:
                # The other tests of a sum hold for each group alone: min_unit and step_size are not
                # asked of it.
                alive = alive & (self._room(choice, class_id) >= taken + amount)
        if not _any(alive):
            return None
        self._chosen[number] = choice
        self._open[self._kinds.of_slot[number]] -= 1
        for class_id, amount in slot.amounts:
            key = choice, class_id
            self._sums[key] = self._sums.get(key, 0) + amount
        below = self._narrowed(number, choice, level, alive)
        if below is None:
            self.take_back(depth)
        return below

    def take_back(self, depth: int) -> None:
        """Empty the slot at some depth, the deepest that is filled."""
        number = self._order[depth]
        self._open[self._kinds.of_slot[number]] += 1
        for class_id, amount in self._plan.slots[number].amounts:
            self._sums[self._chosen[number], class_id] -= amount

    def situation(self, depth: int, level: Level) -> Hashable:
        """All that decides which ways lead on from here: equal for two arrangements of the same
        choices over slots that ask the same."""
        asked = {
            class_id
            for slot, count in zip(self._kinds.slots, self._open, strict=True)
            if count
            for class_id, _ in slot.amounts
        }
        return (
            depth,
            tuple(
                domain if count else 0
                for domain, count in zip(level.domains, self._open, strict=True)
            ),
            level.alive if isinstance(level.alive, bool) else level.alive.tobytes(),
            level.missing,
            tuple((common, chosen & common) for common, chosen in level.spans),
            frozenset(
                (choice, class_id, taken)
                for (choice, class_id), taken in self._sums.items()
                if taken and class_id in asked
            ),
        )

    def _narrowed(self, number: int, choice: int, before: Level, alive: Alive) -> Level | None:
        """What is left after a choice; None if some slot has nothing left."""
        slot, bit = self._plan.slots[number], 1 << choice
        domains = before.domains.copy()
        if self._plan.isolate and not slot.unsuffixed:
            for kind in self._kinds.suffixed:
                domains[kind] &= ~bit
        if self._plan.one_per_tree:
            others = self._structure.of_tree(choice) & ~bit
            domains = [domain & ~others for domain in domains]
        for class_id, _ in slot.amounts:
            self._strike_full(domains, choice, class_id, alive)
        spans = before.spans
        for subtree in self._kinds.subtrees_of[self._kinds.of_slot[number]]:
            common, chosen = spans[subtree]
            span = common & self._structure.lineage(choice), chosen | bit
            if not self._narrow_subtree(domains, subtree, span):
                return None
            spans = (*spans[:subtree], span, *spans[subtree + 1 :])
        missing = before.missing
        if slot.unsuffixed and missing:
            missing = tuple(having for having in missing if not having & bit)
        return self._if_possible(Level(domains, alive, missing, spans))

    def _strike_full(
        self, domains: list[int], choice: int, class_id: ClassId, alive: Alive
    ) -> None:
        """Take a choice away from the slots for which it has no room left in any row."""
        bit = 1 << choice
        for kind, amount in self._kinds.asking[class_id]:
            if self._open[kind] and domains[kind] & bit:
                room = self._room(choice, class_id) - self._sums[choice, class_id]
                if not _any(alive & (room >= amount)):
                    domains[kind] &= ~bit

    def _narrow_subtree(self, domains: list[int], subtree: int, span: tuple[int, int]) -> bool:
        """Hold the open slots of a subtree below what is, or can still become, the common ancestor;
        false if there is none."""
        common, chosen = span
        kinds = [kind for kind in self._kinds.of_subtree[subtree] if self._open[kind]]
        tops = chosen
        for kind in kinds:
            tops |= domains[kind]
        tops &= common
        if not tops:
            return False
        # The ancestors of one provider are a line, of which the first is above all others.
        below = self._structure.below((tops & -tops).bit_length() - 1)
        for kind in kinds:
            domains[kind] &= below
        return True

    def _if_possible(self, level: Level) -> Level | None:
        """The level, if each open slot has an option, and all together have enough."""
        domains = level.domains
        if level.missing and not self._traits_obtainable(level):
            return None
        open_suffixed, fewest = 0, None
        alive = level.alive
        for kind, count in enumerate(self._open):
            if not count:
                continue
            options = domains[kind].bit_count()
            if not options:
                return None
            slot = self._kinds.slots[kind]
            if self._plan.isolate and not slot.unsuffixed:
                open_suffixed += count
                fewest = options if fewest is None else min(fewest, options)
            elif options < count and slot.amounts:
                alive = alive & (self._times(domains[kind], slot, count) >= count)
                if not _any(alive):
                    return None
        if fewest is not None and fewest < open_suffixed:
            wanted = [(domains[kind], self._open[kind]) for kind in self._kinds.suffixed]
            if not distinct_choices_exist(wanted):
                return None
        return level if alive is level.alive else level._replace(alive=alive)

    def _traits_obtainable(self, level: Level) -> bool:
        """Whether open slots of the unsuffixed group can bring the traits that are missing; when
        there is one such slot, it is held to those that do."""
        kinds = [kind for kind in self._kinds.unsuffixed if self._open[kind]]
        if len(kinds) == 1:
            for having in level.missing:
                level.domains[kinds[0]] &= having
        return all(any(level.domains[kind] & having for kind in kinds) for having in level.missing)

    def _times(self, domain: int, slot: Slot, enough: int) -> Amounts | float:
        """How often a slot's amounts can be had from some choices together, at least up to
        `enough`."""
        total: Amounts | float = 0.0
        for choice in bits_of(domain):
            times: Amounts | float = float(enough)
            for class_id, amount in slot.amounts:
                room = self._room(choice, class_id) - self._sums.get((choice, class_id), 0)
                times = np.minimum(times, room // amount)
            total = total + np.maximum(times, 0.0)
        return total

    def _room(self, choice: int, class_id: ClassId) -> Amounts | float:
        """What all groups together may take of a class, per row or for all rows."""
        key = choice, class_id
        room = self._rooms.get(key)
        if room is None:
            room = self._rooms[key] = self._anchors.room(choice, class_id)
        return room

    def _having(self, wanted: frozenset[TraitId]) -> int:
        """The choices whose providers have one of some traits, or more."""
        having = 0
        for number, slot in enumerate(self._plan.slots):
            if slot.unsuffixed:
                for choice in bits_of(self._anchors.options[number] & ~having):
                    if not wanted.isdisjoint(self._structure.traits(choice)):
                        having |= 1 << choice
        return having


def distinct_choices_exist(wanted: Sequence[tuple[int, int]]) -> bool:
    """Whether each of some slots can have a choice that no other slot has (a matching).

    Args:
        wanted: (the choices, the number of slots that have them).
    """
    domains = [domain for domain, count in wanted for _ in range(count)]
    given: dict[int, int] = {}  #: slot -> the bit it has so far
    holder: dict[int, int] = {}  #: bit -> the slot that has it
    taken = 0
    for start in range(len(domains)):
        seen, frontier = 0, [start]
        came_from: dict[int, int] = {}  #: bit -> the slot that would have it instead
        while frontier:
            slot = frontier.pop()
            free = domains[slot] & ~taken
            if free:
                bit = free & -free
                taken |= bit
                while True:
                    before = given.get(slot, 0)
                    given[slot], holder[bit] = bit, slot
                    if slot == start:
                        break
                    slot, bit = came_from[before], before
                break
            new = domains[slot] & ~seen
            seen |= new
            for choice in bits_of(new):
                came_from[1 << choice] = slot
                frontier.append(holder[1 << choice])
        else:
            return False
    return True


def _any(alive: Alive) -> bool:
    return alive if isinstance(alive, bool) else bool(alive.any())
