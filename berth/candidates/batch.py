# SPDX-License-Identifier: Apache-2.0
"""Candidates as the search gives them: many at once."""

from __future__ import annotations

from berth.candidates.anchors import Trees
from berth.candidates.local import Rows
from berth.index.aggregate_sets import Mask


class Batch:
    """Candidates that differ in their hosts only.

    Attributes:
        choices: for each slot of the plan, see `berth.candidates.anchors`.
        positions: places in `trees.rows`, one candidate for each.
    """

    __slots__ = ("_rows", "choices", "positions", "trees")

    def __init__(self, trees: Trees, choices: tuple[int, ...], positions: Rows) -> None:
        self.trees = trees
        self.choices = choices
        self.positions = positions
        self._rows: Rows | None = None

    @property
    def rows(self) -> Rows:
        """The rows of `trees.block`, one candidate for each; always the same array."""
        if self._rows is None:
            rows = self.trees.rows
            self._rows = rows if len(rows) == 1 else rows[self.positions]
        return self._rows

    def first(self, count: int) -> Batch:
        """The batch without what goes beyond `count`."""
        if len(self.positions) <= count:
            return self
        return Batch(self.trees, self.choices, self.positions[:count])

    def at(self, some: Mask) -> Batch:
        """Some of the batch's candidates."""
        return Batch(self.trees, self.choices, self.positions[some])
