# SPDX-License-Identifier: Apache-2.0
"""The traits of the choices of some trees, and their ancestors and descendants: the same in all
rows, whatever their amounts."""

from __future__ import annotations

from collections.abc import Iterator

from berth.candidates.trees import Trees
from berth.index.shape import NO_PARENT
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
        if choice < self._size:
            return self._shape.node_types[choice].traits
        location = self._sharing[choice - self._size].location
        return self._snapshot.block(location.block_id).shape.node_types[location.node].traits

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
        location = self._sharing[choice - self._size].location
        lineage = self._snapshot.block(location.block_id).shape.lineage[location.node]
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
        shape, node = self._shape, choice
        if choice >= self._size:
            location = self._sharing[choice - self._size].location
            shape, node = self._snapshot.block(location.block_id).shape, location.node
        while node != NO_PARENT and trait not in shape.node_types[node].traits:
            node = shape.parents[node]
        return None if node == NO_PARENT else node


def bits_of(choices: int) -> Iterator[int]:
    """The choices of a set, ascending."""
    while choices:
        bit = choices & -choices
        choices ^= bit
        yield bit.bit_length() - 1
