# SPDX-License-Identifier: Apache-2.0
"""Whether the structural rules of a request hold, amounts aside: which providers may serve its
groups together.

The choices for a demand are a set, an integer with a bit for each: one choice, or several where an
amount is split. The traits of the choices of some trees, and their ancestors and descendants, are
the same in all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from berth.candidates.plan import PlannedRelation, Rules
from berth.candidates.trees import Trees
from berth.index.shape import NO_PARENT, Shape
from berth.index.snapshot import Snapshot
from berth.model.ids import TraitId


class Structure:
    """The choices of some trees; a set of choices is an integer with a bit for each."""

    def __init__(self, snapshot: Snapshot, trees: Trees) -> None:
        self._snapshot = snapshot
        self._shape = trees.block.shape
        self._size = self._shape.size
        self._sharing = trees.serving
        self._levels: dict[tuple[str | TraitId, int], int] = {}

    def traits(self, choice: int) -> frozenset[TraitId]:
        """The traits of a choice's provider."""
        shape, node = self._in_tree(choice)
        return shape.node_types[node].traits

    def _in_tree(self, choice: int) -> tuple[Shape, int]:
        """The shape of the tree that a choice is in, and its node there."""
        if choice < self._size:
            return self._shape, choice
        location = self._sharing[choice - self._size].location
        return self._snapshot.block(location.block_id).shape, location.node

    def of_tree(self, choice: int) -> int:
        """All choices of the tree that a choice is in."""
        if choice < self._size:
            return (1 << self._size) - 1
        tree = self._sharing[choice - self._size].location[:2]
        return sum(
            1 << place
            for place, foreign in enumerate(self._sharing, self._size)
            if foreign.location[:2] == tree
        )

    def lineage(self, choice: int) -> int:
        """The choices that are ancestors of a choice, and itself."""
        if choice < self._size:
            return self._shape.lineage[choice]
        shape, node = self._in_tree(choice)
        lineage = shape.lineage[node]
        return sum(
            1 << other
            for other in bits_of(self.of_tree(choice))
            if lineage >> self._sharing[other - self._size].location.node & 1
        )

    def below(self, choice: int) -> int:
        """The choices that are descendants of a choice, and itself."""
        if choice < self._size:
            return self._shape.below[choice]
        bit = 1 << choice
        return sum(
            1 << other for other in bits_of(self.of_tree(choice)) if self.lineage(other) & bit
        )

    def on_level(self, at: str | TraitId, choice: int) -> int:
        """The choices that are together with a choice at a level, and itself (spec/beyond.md 2.4):
        none if the level is not defined for it."""
        key = at, choice
        together = self._levels.get(key)
        if together is None:
            together = self._levels[key] = self._on_level(at, choice)
        return together

    def _on_level(self, at: str | TraitId, choice: int) -> int:
        if at == "provider":
            return 1 << choice
        if at == "tree":
            return self.of_tree(choice)
        if at == "subtree":
            return self.lineage(choice) | self.below(choice)
        top = self._nearest(at, choice)
        if top is None:
            return 0
        tree = bits_of(self.of_tree(choice))
        return sum(1 << other for other in tree if self._nearest(at, other) == top)

    def _nearest(self, trait: str | TraitId, choice: int) -> int | None:
        """The node, of a choice's tree, of the nearest of its provider and that one's ancestors
        that has a trait; None if none has."""
        shape, node = self._in_tree(choice)
        while node != NO_PARENT and trait not in shape.node_types[node].traits:
            node = shape.parents[node]
        return None if node == NO_PARENT else node


def bits_of(choices: int) -> Iterator[int]:
    """The choices of a set, ascending."""
    while choices:
        bit = choices & -choices
        choices ^= bit
        yield bit.bit_length() - 1


def allows(rules: Rules, structure: Structure, sets: Sequence[int]) -> bool:
    """Whether the sets of choices for all demands are allowed.

    Source: spec/allocation-candidates.md 5.3 and 5.4, spec/beyond.md 2.4.
    """
    if rules.isolate and _overlap([sets[number] for number in rules.suffixed]):
        return False
    if rules.one_per_tree and not _is_one_per_tree(structure, union_of(sets)):
        return False
    return (
        (not rules.union_traits.required or _union_holds(rules, structure, sets))
        and all(
            _is_subtree(structure, union_of([sets[number] for number in numbers]))
            for numbers in rules.subtrees
        )
        and all(_is_related(structure, relation, sets) for relation in rules.relations)
    )


def _union_holds(rules: Rules, structure: Structure, sets: Sequence[int]) -> bool:
    """Whether the providers of the unsuffixed group have the required traits together."""
    choices = bits_of(union_of([sets[number] for number in rules.unsuffixed]))
    traits = frozenset().union(*map(structure.traits, choices))
    return not any(wanted.isdisjoint(traits) for wanted in rules.union_traits.required)


def union_of(sets: Sequence[int]) -> int:
    """All choices of some sets."""
    union = 0
    for each in sets:
        union |= each
    return union


def _overlap(sets: Sequence[int]) -> bool:
    return union_of(sets).bit_count() < sum(each.bit_count() for each in sets)


def _is_one_per_tree(structure: Structure, together: int) -> bool:
    return all(structure.of_tree(choice) & together == 1 << choice for choice in bits_of(together))


def _is_subtree(structure: Structure, together: int) -> bool:
    """Whether one of some choices is an ancestor of all others."""
    tops = together
    for choice in bits_of(together):
        tops &= structure.lineage(choice)
    return tops != 0


def _is_related(structure: Structure, relation: PlannedRelation, sets: Sequence[int]) -> bool:
    """Whether the groups of a relation are together, or apart."""
    groups = [union_of([sets[number] for number in numbers]) for numbers in relation.groups]
    if not relation.is_together and _overlap(groups):
        return False
    everywhere = union_of(groups)
    for group in groups:
        for choice in bits_of(group):
            together = structure.on_level(relation.at, choice)
            excluded = everywhere & ~together if relation.is_together else together & ~group
            if not together or excluded & everywhere:
                return False
    return True
