# SPDX-License-Identifier: Apache-2.0
"""The choices made so far on the way down through the slots, and what they still allow.

Source of the rules: spec/allocation-candidates.md 5.3 (traits of the union), 5.4 (isolate,
same_subtree, sums), 5.6.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from berth.candidates.anchors import Anchors, Option, foreign_room
from berth.candidates.plan import Plan
from berth.index.aggregate_sets import Mask
from berth.index.shape import Shape
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, TraitId

#: The tree of a choice that is a node of the anchors' own trees; those of sharing providers are
#: (slot, row).
_OWN_TREE: Final = (-1, -1)


class Path:
    """One way down: slots are filled in the order of `options`, at depth 0, 1, 2 ..., and taken
    back in reverse."""

    def __init__(
        self, snapshot: Snapshot, plan: Plan, anchors: Anchors, rng: random.Random | None
    ) -> None:
        self._snapshot = snapshot
        self._plan = plan
        self._anchors = anchors
        self._shape = anchors.block.shape
        #: depth -> slot. Slots with few options first: a walk turns back early.
        self._order = sorted(
            range(len(plan.slots)), key=lambda number: len(anchors.options[number])
        )
        self._options = [
            _shuffled(anchors.options[number], rng) if rng else anchors.options[number]
            for number in self._order
        ]
        self._subtrees = [
            [subtree for subtree in plan.subtrees if number in subtree] for number in self._order
        ]
        #: slot -> choice, of the slots that are filled.
        self._chosen: dict[int, int] = {}
        #: (choice, class) -> what the filled slots take of it together.
        self._sums: dict[tuple[int, ClassId], int] = {}
        self._offered: dict[tuple[int, tuple[int, int]], int] = {}
        self._unsuffixed_open = sum(slot.unsuffixed for slot in plan.slots)

    @property
    def length(self) -> int:
        """The number of slots."""
        return len(self._order)

    @property
    def choices(self) -> tuple[int, ...]:
        """The choices in the order of the plan's slots, all of which are filled."""
        return tuple(self._chosen[number] for number in range(self.length))

    def options(self, depth: int) -> Sequence[Option]:
        """What the slot at some depth could be filled with."""
        return self._options[depth]

    def take(self, depth: int, choice: int) -> None:
        """Fill the slot at some depth with a choice that is `possible`."""
        number = self._order[depth]
        slot = self._plan.slots[number]
        self._chosen[number] = choice
        self._unsuffixed_open -= slot.unsuffixed
        for class_id, amount in slot.amounts:
            key = choice, class_id
            self._sums[key] = self._sums.get(key, 0) + amount

    def take_back(self, depth: int) -> None:
        """Empty the slot at some depth, the deepest that is filled."""
        number = self._order[depth]
        slot = self._plan.slots[number]
        choice = self._chosen.pop(number)
        self._unsuffixed_open += slot.unsuffixed
        for class_id, amount in slot.amounts:
            self._sums[choice, class_id] -= amount

    def possible(self, depth: int, option: Option, alive: Mask) -> Mask | None:
        """The rows in which an option is possible after the choices made so far; None if there is
        none.

        Args:
            alive: (N,) the rows in which the choices so far are possible.
        """
        number, choice = self._order[depth], option.choice
        if not self._structure_allows(number, choice):
            return None
        if not all(self._subtree_allows(named, number, choice) for named in self._subtrees[depth]):
            return None
        if option.mask is not None:
            alive = alive & option.mask
        for class_id, amount in self._plan.slots[number].amounts:
            taken = self._sums.get((choice, class_id), 0)
            if taken:
                # The other tests of a sum hold for each group alone: min_unit and step_size are not
                # asked of it.
                alive = alive & self._sum_fits(choice, class_id, taken + amount)
        return alive if alive.any() else None

    def _structure_allows(self, number: int, choice: int) -> bool:
        plan = self._plan
        slot = plan.slots[number]
        if plan.isolate and not slot.unsuffixed:
            for other, taken in self._chosen.items():
                if taken == choice and not plan.slots[other].unsuffixed:
                    return False
        if plan.one_per_tree:
            tree = self._tree(choice)
            if any(
                taken != choice and self._tree(taken) == tree for taken in self._chosen.values()
            ):
                return False
        if slot.unsuffixed and self._unsuffixed_open == 1 and plan.union_traits.required:
            return self._union_passes(choice)
        return True

    def _union_passes(self, last: int) -> bool:
        traits: set[TraitId] = set(self._traits(last))
        for number, choice in self._chosen.items():
            if self._plan.slots[number].unsuffixed:
                traits |= self._traits(choice)
        return self._plan.union_traits.passes(frozenset(traits))

    def _subtree_allows(self, named: Sequence[int], number: int, choice: int) -> bool:
        """Whether one of the providers of some slots is, or can still become, the common ancestor
        of them all."""
        tree = self._tree(choice)
        chosen = [choice]
        open_slots = []
        for other in named:
            if other in self._chosen:
                chosen.append(self._chosen[other])
            elif other != number:
                open_slots.append(other)
        if any(self._tree(other) != tree for other in chosen):
            return False
        lineage = self._tree_shape(choice).lineage
        common, tops = -1, 0
        for node in map(self._node, chosen):
            common &= lineage[node]
            tops |= 1 << node
        for other in open_slots:
            tops |= self._nodes_offered(other, tree)
        return bool(common & tops)

    def _nodes_offered(self, number: int, tree: tuple[int, int]) -> int:
        """The nodes of some tree that are options of a slot, as a bit mask."""
        known = self._offered.get((number, tree))
        if known is None:
            known = 0
            for option in self._anchors.options[number]:
                if self._tree(option.choice) == tree:
                    known |= 1 << self._node(option.choice)
            self._offered[number, tree] = known
        return known

    def _sum_fits(self, choice: int, class_id: ClassId, amount: int) -> Mask | bool:
        if choice < self._shape.size:
            free, most = self._anchors.room(choice, class_id)
            mask: Mask = (amount <= free) & (amount <= most)
            return mask
        foreign = self._anchors.foreign[choice - self._shape.size]
        return amount <= min(foreign_room(self._snapshot, foreign, class_id))

    def _tree(self, choice: int) -> tuple[int, int]:
        if choice < self._shape.size:
            return _OWN_TREE
        location = self._anchors.foreign[choice - self._shape.size].location
        return location.slot, location.row

    def _tree_shape(self, choice: int) -> Shape:
        if choice < self._shape.size:
            return self._shape
        return self._snapshot.block(
            self._anchors.foreign[choice - self._shape.size].location.slot
        ).shape

    def _node(self, choice: int) -> int:
        if choice < self._shape.size:
            return choice
        return self._anchors.foreign[choice - self._shape.size].location.node

    def _traits(self, choice: int) -> frozenset[TraitId]:
        return self._tree_shape(choice).kinds[self._node(choice)].traits


def _shuffled(options: Sequence[Option], rng: random.Random) -> Sequence[Option]:
    return rng.sample(options, len(options))
