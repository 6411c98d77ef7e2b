# SPDX-License-Identifier: Apache-2.0
"""What the choices of some trees are like and how they stand to each other: the same in all rows,
whatever their amounts."""

from __future__ import annotations

from collections.abc import Iterator

from berth.candidates.anchors import Trees
from berth.index.snapshot import Snapshot
from berth.model.ids import TraitId


class Structure:
    """The choices of some trees; a set of choices is an integer with a bit for each."""

    def __init__(self, snapshot: Snapshot, trees: Trees) -> None:
        self._snapshot = snapshot
        self._shape = trees.block.shape
        self._size = self._shape.size
        self._foreign = trees.foreign

    def traits(self, choice: int) -> frozenset[TraitId]:
        """The traits of a choice's provider."""
        if choice < self._size:
            return self._shape.kinds[choice].traits
        location = self._foreign[choice - self._size].location
        return self._snapshot.block(location.slot).shape.kinds[location.node].traits

    def of_tree(self, choice: int) -> int:
        """All choices of the tree that a choice is in."""
        if choice < self._size:
            return (1 << self._size) - 1
        tree = self._foreign[choice - self._size].location[:2]
        return sum(
            1 << place
            for place, foreign in enumerate(self._foreign, self._size)
            if foreign.location[:2] == tree
        )

    def lineage(self, choice: int) -> int:
        """The choices that are ancestors of a choice, and itself."""
        if choice < self._size:
            return self._shape.lineage[choice]
        location = self._foreign[choice - self._size].location
        lineage = self._snapshot.block(location.slot).shape.lineage[location.node]
        return sum(
            1 << other
            for other in bits_of(self.of_tree(choice))
            if lineage >> self._foreign[other - self._size].location.node & 1
        )

    def below(self, choice: int) -> int:
        """The choices that are descendants of a choice, and itself."""
        if choice < self._size:
            return self._shape.below[choice]
        bit = 1 << choice
        return sum(
            1 << other for other in bits_of(self.of_tree(choice)) if self.lineage(other) & bit
        )


def bits_of(choices: int) -> Iterator[int]:
    """The choices of a set, ascending."""
    while choices:
        bit = choices & -choices
        choices ^= bit
        yield bit.bit_length() - 1
