# SPDX-License-Identifier: Apache-2.0
"""Enumeration by a walk: trees with the same options are searched together, depth first.

One walk over the demands serves all rows of a group: at each step it carries the mask of the rows
for which the choices so far are possible, sums of amounts included, and turns back as soon as no
row is left. So what is structural (same_subtree, isolate, traits of the union) is settled once for
thousands of hosts, and only amounts are compared row by row. Every step checks whether the budget
is spent; then the walk ends with what it has found.

The `Path` of a walk is the choices that it has made so far, and the options that they leave to the
open demands. Each choice is propagated: options that it makes impossible are removed from all open
demands. The walk turns back as soon as a demand has no option left, or several demands together
have too few, so it leaves a dead end where the dead end begins.

Demands with the same query and the same subtrees form one *class*: they always have the same
options. A set of choices is an integer with one bit for each (`UniformTrees.options`). `Alive` says
which rows are still possible: a mask, or plain `True` for a group of one row.

Source of the rules: spec/allocation-candidates.md 5.3 (traits of the union), 5.4 (isolate,
same_subtree, sums), 5.6.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from berth.candidates.batch import Batch, Duplicates
from berth.candidates.conditions import Rows
from berth.candidates.plan import Demand, Plan
from berth.candidates.structural_rules import Structure, bits_of
from berth.candidates.trees import UniformTrees
from berth.index.block import Floats
from berth.index.sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId, TraitId

Alive = Mask | bool

#: The common ancestors of a subtree without any choice yet: all choices.
_ALL: Final = -1


class Enumeration(Struct, eq=False):
    """What all walks of one search have in common.

    Attributes:
        duplicates: removes candidates that were already found from another anchor; None keeps them.
        unordered: whether suffixed demands of one class are given choices in ascending order only:
            all other orders take the same amounts.
    """

    snapshot: Snapshot
    plan: Plan
    budget: Budget
    duplicates: Duplicates | None
    unordered: bool = False


class Level(NamedTuple):
    """What the choices so far allow.

    Attributes:
        domains: per demand class, the choices that its open demands still have.
        alive: the rows in which the choices so far are possible.
        missing: for each required set of traits of the unsuffixed group that no provider has yet,
            the choices that have it.
        spans: for each `same_subtree`: (the ancestors that its choices have in common, its
            choices).
    """

    domains: list[int]
    alive: Alive
    missing: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


class Path:
    """One way down: demands are filled in a fixed order, at depth 0, 1, 2 ..., and taken back in
    reverse."""

    def __init__(self, enumeration: Enumeration, trees: UniformTrees) -> None:
        self._plan = plan = enumeration.plan
        self._is_unordered = enumeration.unordered
        self._trees = trees
        self._structure = Structure(enumeration.snapshot, trees)
        self._classes = plan.demand_classes
        #: depth -> demand. Demands with few options first: a walk turns back early.
        self._order = sorted(
            range(len(plan.demands)),
            key=lambda number: (
                trees.options[number].bit_count(),
                plan.demand_classes.of_demand[number],
            ),
        )
        #: demand -> choice; meaningful for demands that are filled.
        self._chosen = [0] * len(plan.demands)
        #: demand class -> how many of its demands are not filled.
        self._open = list(plan.demand_classes.counts)
        #: (choice, class) -> what the filled demands take of it together.
        self._sums: dict[tuple[int, ClassId], int] = {}
        self._rooms: dict[tuple[int, ClassId], Floats | float] = {}

    @property
    def length(self) -> int:
        """The number of demands."""
        return len(self._order)

    @property
    def choices(self) -> tuple[int, ...]:
        """The choices in the order of the plan's demands, all of which are filled."""
        return tuple(self._chosen)

    def start(self) -> Level | None:
        """The level before any choice; None if nothing is possible."""
        rows = len(self._trees.rows)
        level = Level(
            [self._trees.options[number] for number in self._classes.first_demands],
            True if rows == 1 else np.ones(rows, dtype=np.bool_),
            tuple(map(self._having, self._plan.rules.union_traits.required)),
            ((_ALL, 0),) * len(self._plan.rules.subtrees),
        )
        self._restrict_to_levels(level.domains)
        return self._feasible(level)

    def options(self, depth: int, level: Level) -> int:
        """The choices that the demand at some depth has."""
        return level.domains[self._classes.of_demand[self._order[depth]]]

    def take(self, depth: int, choice: int, level: Level, alive: Alive) -> Level | None:
        """Fill the demand at some depth with one of its options, if any row goes on from there.

        Args:
            alive: the rows of `level` that are still wanted.
        """
        number = self._order[depth]
        demand = self._plan.demands[number]
        for class_id, amount in demand.amounts:
            taken = self._sums.get((choice, class_id), 0)
            if taken:
                # min_unit and step_size apply to each group alone, not to the sum.
                alive = alive & (self._room(choice, class_id) >= taken + amount)
        if not _any(alive):
            return None
        self._chosen[number] = choice
        self._open[self._classes.of_demand[number]] -= 1
        for class_id, amount in demand.amounts:
            key = choice, class_id
            self._sums[key] = self._sums.get(key, 0) + amount
        below = self._propagate(number, choice, level, alive)
        if below is None:
            self.take_back(depth)
        return below

    def take_back(self, depth: int) -> None:
        """Empty the demand at some depth, the deepest that is filled."""
        number = self._order[depth]
        self._open[self._classes.of_demand[number]] += 1
        for class_id, amount in self._plan.demands[number].amounts:
            self._sums[self._chosen[number], class_id] -= amount

    def state_key(self, depth: int, level: Level) -> Hashable:
        """Everything that decides whether this state can be completed; two arrangements of the same
        choices over demands with the same query have equal keys."""
        requested = {
            class_id
            for demand, count in zip(self._classes.demands, self._open, strict=True)
            if count
            for class_id, _ in demand.amounts
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
                if taken and class_id in requested
            ),
        )

    def _propagate(self, number: int, choice: int, before: Level, alive: Alive) -> Level | None:
        """Remove the options that a choice makes impossible; None if a demand has none left."""
        demand, bit = self._plan.demands[number], 1 << choice
        domains = before.domains.copy()
        if self._plan.rules.isolate and not demand.unsuffixed:
            for demand_class in self._classes.suffixed:
                domains[demand_class] &= ~bit
        if self._plan.rules.one_per_tree:
            others = self._structure.of_tree(choice) & ~bit
            domains = [domain & ~others for domain in domains]
        if self._is_unordered and not demand.unsuffixed:
            # This choice and all that are greater.
            domains[self._classes.of_demand[number]] &= -bit
        for class_id, _ in demand.amounts:
            self._prune_exhausted(domains, choice, class_id, alive)
        spans = before.spans
        for subtree in self._classes.subtrees_of[self._classes.of_demand[number]]:
            common, chosen = spans[subtree]
            span = common & self._structure.lineage(choice), chosen | bit
            if not self._propagate_subtree(domains, subtree, span):
                return None
            spans = (*spans[:subtree], span, *spans[subtree + 1 :])
        self._propagate_relations(domains, self._classes.of_demand[number], choice)
        missing = before.missing
        if demand.unsuffixed and missing:
            missing = tuple(having for having in missing if not having & bit)
        return self._feasible(Level(domains, alive, missing, spans))

    def _prune_exhausted(
        self, domains: list[int], choice: int, class_id: ClassId, alive: Alive
    ) -> None:
        """Remove a choice from the demands for which it has no room left in any row."""
        bit = 1 << choice
        for demand_class, amount in self._classes.requesting[class_id]:
            if self._open[demand_class] and domains[demand_class] & bit:
                room = self._room(choice, class_id) - self._sums[choice, class_id]
                if not _any(alive & (room >= amount)):
                    domains[demand_class] &= ~bit

    def _propagate_subtree(self, domains: list[int], subtree: int, span: tuple[int, int]) -> bool:
        """Restrict the open demands of a subtree to providers below its common ancestor, or the
        nodes that can still become it; false if there is none."""
        common, chosen = span
        classes = [
            demand_class
            for demand_class in self._classes.of_subtree[subtree]
            if self._open[demand_class]
        ]
        tops = chosen
        for demand_class in classes:
            tops |= domains[demand_class]
        tops &= common
        if not tops:
            return False
        # The ancestors of one provider are a line, of which the first is above all others.
        below = self._structure.below((tops & -tops).bit_length() - 1)
        for demand_class in classes:
            domains[demand_class] &= below
        return True

    def _restrict_to_levels(self, domains: list[int]) -> None:
        """Remove the choices for which the level of a relation is not defined."""
        for relation, classes in zip(
            self._plan.rules.relations, self._classes.of_relation, strict=True
        ):
            for demand_class in classes:
                for choice in bits_of(domains[demand_class]):
                    if not self._structure.on_level(relation.at, choice):
                        domains[demand_class] &= ~(1 << choice)

    def _propagate_relations(self, domains: list[int], demand_class: int, choice: int) -> None:
        """Restrict the demands that are compared with one that is filled."""
        for place, others in self._classes.related[demand_class]:
            relation = self._plan.rules.relations[place]
            together = self._structure.on_level(relation.at, choice)
            allowed = together if relation.is_together else ~together
            for other in others:
                domains[other] &= allowed

    def _are_distinct(self, level: Level) -> bool:
        """Whether the open groups of each relation that keeps them apart have enough different
        places."""
        for relation, classes in zip(
            self._plan.rules.relations, self._classes.of_relation, strict=True
        ):
            # Subtrees overlap, so they are no different places.
            if relation.is_together or relation.at == "subtree" or len(relation.groups) < 3:
                continue
            wanted = [
                (self._levels(relation.at, level.domains[demand_class]), self._open[demand_class])
                for demand_class in classes
                # A group of several demands may have them all in one place.
                if not self._classes.demands[demand_class].unsuffixed
            ]
            if not distinct_choices_exist(wanted):
                return False
        return True

    def _levels(self, at: str | TraitId, domain: int) -> int:
        """For each place at a level that some choices are in, the bit of one choice there."""
        levels = 0
        for choice in bits_of(domain):
            together = self._structure.on_level(at, choice)
            levels |= together & -together
        return levels

    def _feasible(self, level: Level) -> Level | None:
        """The level, if every open demand has an option and all together have enough; else None."""
        domains = level.domains
        if level.missing and not self._traits_obtainable(level):
            return None
        open_suffixed, fewest = 0, None
        alive = level.alive
        for demand_class, count in enumerate(self._open):
            if not count:
                continue
            options = domains[demand_class].bit_count()
            if not options:
                return None
            demand = self._classes.demands[demand_class]
            if self._plan.rules.isolate and not demand.unsuffixed:
                open_suffixed += count
                fewest = options if fewest is None else min(fewest, options)
            elif options < count and demand.amounts:
                alive = alive & (self._times(domains[demand_class], demand, count) >= count)
                if not _any(alive):
                    return None
        if fewest is not None and fewest < open_suffixed:
            wanted = [
                (domains[demand_class], self._open[demand_class])
                for demand_class in self._classes.suffixed
            ]
            if not distinct_choices_exist(wanted):
                return None
        if self._plan.rules.relations and not self._are_distinct(level):
            return None
        return level if alive is level.alive else level._replace(alive=alive)

    def _traits_obtainable(self, level: Level) -> bool:
        """Whether open demands of the unsuffixed group can bring the traits that are missing; if
        there is only one such demand, its options are reduced to those that do."""
        classes = [
            demand_class for demand_class in self._classes.unsuffixed if self._open[demand_class]
        ]
        if len(classes) == 1:
            for having in level.missing:
                level.domains[classes[0]] &= having
        return all(
            any(level.domains[demand_class] & having for demand_class in classes)
            for having in level.missing
        )

    def _times(self, domain: int, demand: Demand, enough: int) -> Floats | float:
        """How often some choices together can give a demand's amounts, counted up to `enough` for
        each choice."""
        total: Floats | float = 0.0
        for choice in bits_of(domain):
            times: Floats | float = float(enough)
            for class_id, amount in demand.amounts:
                if amount:
                    room = self._room(choice, class_id) - self._sums.get((choice, class_id), 0)
                    times = np.minimum(times, room // amount)
            total = total + np.maximum(times, 0.0)
        return total

    def _room(self, choice: int, class_id: ClassId) -> Floats | float:
        """What all groups together may take of a class: for each row, or one number for all."""
        key = choice, class_id
        room = self._rooms.get(key)
        if room is None:
            room = self._rooms[key] = self._trees.room(choice, class_id)
        return room

    def _having(self, wanted: frozenset[TraitId]) -> int:
        """The choices whose providers have one of some traits, or more."""
        having = 0
        for number, demand in enumerate(self._plan.demands):
            if demand.unsuffixed:
                for choice in bits_of(self._trees.options[number] & ~having):
                    if not wanted.isdisjoint(self._structure.traits(choice)):
                        having |= 1 << choice
        return having


def distinct_choices_exist(wanted: Sequence[tuple[int, int]]) -> bool:
    """Whether each of some demands can have a choice of its own (a bipartite matching exists).

    Args:
        wanted: (the choices, the number of demands that have them).
    """
    domains = [domain for domain, count in wanted for _ in range(count)]
    given: dict[int, int] = {}  #: demand -> the bit it has so far
    holder: dict[int, int] = {}  #: bit -> the demand that has it
    taken = 0
    for start in range(len(domains)):
        seen, frontier = 0, [start]
        came_from: dict[int, int] = {}  #: bit -> the demand that would have it instead
        while frontier:
            demand = frontier.pop()
            free = domains[demand] & ~taken
            if free:
                bit = free & -free
                taken |= bit
                while True:
                    before = given.get(demand, 0)
                    given[demand], holder[bit] = bit, demand
                    if demand == start:
                        break
                    demand, bit = came_from[before], before
                break
            new = domains[demand] & ~seen
            seen |= new
            for choice in bits_of(new):
                came_from[1 << choice] = demand
                frontier.append(holder[1 << choice])
        else:
            return False
    return True


def _any(alive: Alive) -> bool:
    return alive if isinstance(alive, bool) else bool(alive.any())


#: Entries of all `nogoods` of a walk, one for each demand of each; beyond it they are dropped.
NOGOODS_MAX: Final = 160_000


def walk(
    enumeration: Enumeration,
    trees: UniformTrees,
    *,
    live: Mask | None = None,
    rng: random.Random | None = None,
) -> Iterator[Batch]:
    """All candidates of some trees, depth first over the demands.

    Args:
        live: (N,) rows still wanted; the caller may remove rows while the walk goes on, and ends
            the walk when none is left.
        rng: shuffles the options of every demand; None for the order of the nodes.
    """
    budget, duplicates = enumeration.budget, enumeration.duplicates
    if budget.is_spent():
        return
    if len(trees.rows) == 1:
        live = None
    path = Path(enumeration, trees)
    first = path.start()
    if first is None:
        return
    levels = [first]
    pending = [_ordered(path.options(0, first), rng)]
    #: States that led to no candidate; and how many of the levels led to one.
    nogoods: set[Hashable] = set()
    fruitful = 0
    while levels and not budget.is_spent():
        depth = len(levels) - 1
        level = levels[-1]
        choice = next(pending[-1], None)
        alive = level.alive if live is None else level.alive & live
        if choice is None or (live is not None and not np.any(alive)):
            # PERF bench, wide: rows that were removed meanwhile leave whole levels without work.
            if depth and depth >= fruitful:
                _remember(nogoods, path.state_key(depth, level), NOGOODS_MAX // path.length)
            fruitful = min(fruitful, depth)
            levels.pop()
            pending.pop()
            if depth:
                path.take_back(depth - 1)
            continue
        below = path.take(depth, choice, level, alive)
        if below is None:
            continue
        if depth + 1 < path.length:
            if nogoods and path.state_key(depth + 1, below) in nogoods:
                path.take_back(depth)
                continue
            levels.append(below)
            pending.append(_ordered(path.options(depth + 1, below), rng))
            continue
        fruitful = len(levels)
        choices = path.choices
        path.take_back(depth)
        positions = _positions(below.alive)
        if duplicates is not None:
            positions = duplicates.removed_from(trees, choices, positions)
        if len(positions):
            yield Batch(trees, choices, positions)


def _ordered(choices: int, rng: random.Random | None) -> Iterator[int]:
    if rng is None:
        return bits_of(choices)
    shuffled = list(bits_of(choices))
    rng.shuffle(shuffled)
    return iter(shuffled)


def _remember(nogoods: set[Hashable], state_key: Hashable, most: int) -> None:
    if len(nogoods) >= most:
        nogoods.clear()
    nogoods.add(state_key)


def _positions(alive: Alive) -> Rows:
    return np.zeros(1, dtype=np.int64) if isinstance(alive, bool) else np.flatnonzero(alive)
