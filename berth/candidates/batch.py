# SPDX-License-Identifier: Apache-2.0
"""Batches: many candidates that the search found together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Final, NamedTuple

from berth.candidates.masks import Rows
from berth.candidates.plan import Plan
from berth.candidates.trees import Trees
from berth.index.aggregate_sets import Mask
from berth.index.block import Ints
from berth.model.ids import ClassId

#: What a batch takes, and each candidate in it: positions, scores, hosts and the like.
_BYTES_OF_BATCH: Final = 1_000
_BYTES_OF_CANDIDATE: Final = 64

#: What each choice gives of each class: one amount, or one for each candidate.
Given = Mapping[tuple[int, ClassId], int | Ints]


class Part(NamedTuple):
    """Where an amount comes from that may be split.

    Attributes:
        choices: at least one.
        amounts: of each choice, for each of `Trees.rows`; meaningful for the batch's positions.
    """

    choices: tuple[int, ...]
    amounts: Ints


class Batch:
    """Candidates that differ only in their hosts.

    Attributes:
        choices: for each demand of the plan, see `berth.candidates.trees`.
        positions: indexes into `trees.rows`, one for each candidate.
        parts: for each split of the plan, where its amount comes from.
    """

    __slots__ = ("_rows", "choices", "parts", "positions", "trees")

    def __init__(
        self,
        trees: Trees,
        choices: tuple[int, ...],
        positions: Rows,
        parts: tuple[Part, ...] = (),
    ) -> None:
        self.trees = trees
        self.choices = choices
        self.positions = positions
        self.parts = parts
        self._rows: Rows | None = None

    @property
    def size(self) -> int:
        """The bytes that it takes, about, with what is kept beside it."""
        return _BYTES_OF_BATCH + _BYTES_OF_CANDIDATE * len(self.positions)

    @property
    def rows(self) -> Rows:
        """The rows of `trees.block`, one for each candidate; always the same array."""
        if self._rows is None:
            rows = self.trees.rows
            self._rows = rows if len(rows) == 1 == len(self.positions) else rows[self.positions]
        return self._rows

    def first(self, count: int) -> Batch:
        """The first `count` candidates of the batch."""
        if len(self.positions) <= count:
            return self
        return Batch(self.trees, self.choices, self.positions[:count], self.parts)

    def split(self, count: int) -> Iterator[Batch]:
        """The candidates of the batch in batches of `count` at most."""
        for start in range(0, len(self.positions), count):
            positions = self.positions[start : start + count]
            yield Batch(self.trees, self.choices, positions, self.parts)

    def at(self, some: Mask | Rows) -> Batch:
        """Some of the candidates, by a mask or by their places in the batch."""
        return Batch(self.trees, self.choices, self.positions[some], self.parts)

    @property
    def all_choices(self) -> tuple[int, ...]:
        """The choices for each demand, and then those of each split."""
        parts = (choice for part in self.parts for choice in part.choices)
        return (*self.choices, *parts)

    @property
    def is_anchored(self) -> bool:
        """Whether the host of each candidate is the tree that it was found from: it has a provider
        that no other tree can use, or several of one split."""
        shape, sharing = self.trees.block.shape, self.trees.sharing_providers.sharing
        return (
            not sharing.by_aggregate
            or any(
                choice < shape.size and sharing.trait not in shape.node_types[choice].traits
                for choice in self.all_choices
            )
            or any(len(part.choices) > 1 for part in self.parts)
        )

    @property
    def key(self) -> Hashable:
        """The same for batches whose candidates differ in hosts and amounts only."""
        size, choices = self.trees.block.shape.size, self.all_choices
        # Which trees share is part of a shape.
        is_shared = max(choices, default=0) >= size or not self.is_anchored
        shape = self.trees.block.shape.number if is_shared else None
        return shape, size, self.choices, tuple(part.choices for part in self.parts)

    def given(self, plan: Plan) -> dict[tuple[int, ClassId], int | Ints]:
        """What each choice gives of each class: one amount, or one for each candidate."""
        given: dict[tuple[int, ClassId], int | Ints] = {}
        for demand, choice in zip(plan.demands, self.choices, strict=True):
            for class_id, amount in demand.amounts:
                key = choice, class_id
                given[key] = given.get(key, 0) + amount
        for split, part in zip(plan.splits, self.parts, strict=True):
            for choice, amounts in zip(part.choices, part.amounts, strict=True):
                key = choice, split.class_id
                given[key] = given.get(key, 0) + amounts[self.positions]
        return given

    def serving(self, plan: Plan) -> dict[str, tuple[int, ...]]:
        """suffix -> the choices that serve the group, each once."""
        serving: dict[str, dict[int, None]] = {}
        for demand, choice in zip(plan.demands, self.choices, strict=True):
            serving.setdefault(demand.suffix, {})[choice] = None
        for split, part in zip(plan.splits, self.parts, strict=True):
            serving.setdefault(split.demand.suffix, {}).update(dict.fromkeys(part.choices))
        return {suffix: tuple(choices) for suffix, choices in serving.items()}
