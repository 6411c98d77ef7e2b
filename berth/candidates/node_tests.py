# SPDX-License-Identifier: Apache-2.0
"""What a plan asks of a node's classes and traits, answered once for each kind of node.

A fleet may have as many shapes as trees; the nodes of these are mostly of few kinds. And where even
the kinds are many, they differ for a plan only in which of its *conditions* they meet: so each kind
costs a few look-ups, and each asked combination of conditions is judged once.

Sets of asks and of conditions are integers with a bit for each.
"""

from __future__ import annotations

from typing import NamedTuple

from berth.candidates.plan import Plan
from berth.index.shape import Kind
from berth.model.ids import ClassId, TraitId


class NodeAnswer(NamedTuple):
    """What a node of some kind could do for a plan.

    Attributes:
        asks: the asks that it could answer, amounts and aggregates aside.
        met: the conditions that it meets.
    """

    asks: int
    met: int


class NodeTests:
    """The answers for one plan; to be used for one search, and forgotten with it.

    Attributes:
        of_union: the conditions that the providers of the unsuffixed group must meet together.
    """

    def __init__(self, plan: Plan) -> None:
        #: Class or trait -> the conditions that it meets.
        self._by_class: dict[ClassId, int] = {}
        self._by_trait: dict[TraitId, int] = {}
        #: Trait -> the asks that it rules out.
        self._ruled_out: dict[TraitId, int] = {}
        self._conditions: dict[ClassId | frozenset[TraitId], int] = {}
        #: (ask, the conditions that it needs).
        self._needs: list[tuple[int, int]] = []
        self._answers: dict[Kind, NodeAnswer] = {}
        self._able: dict[int, int] = {}
        for ask, slot in plan.asks.items():
            need = 0
            for class_id, _ in slot.amounts:
                need |= self._condition(class_id)
            for wanted in slot.traits.required:
                need |= self._condition(wanted)
            self._needs.append((1 << ask, need))
            for trait in slot.traits.forbidden:
                self._ruled_out[trait] = self._ruled_out.get(trait, 0) | 1 << ask
        self.of_union = 0
        for wanted in plan.union_traits.required:
            self.of_union |= self._condition(wanted)
        self._traits = frozenset(self._by_trait) | frozenset(self._ruled_out)

    def of(self, kind: Kind) -> NodeAnswer:
        """What a node of a kind could do."""
        answer = self._answers.get(kind)
        if answer is None:
            answer = self._answers[kind] = self._answer(kind)
        return answer

    def _answer(self, kind: Kind) -> NodeAnswer:
        met = ruled_out = 0
        for class_id in kind.classes:
            met |= self._by_class.get(class_id, 0)
        for trait in self._traits & kind.traits:
            met |= self._by_trait.get(trait, 0)
            ruled_out |= self._ruled_out.get(trait, 0)
        able = self._able.get(met)
        if able is None:
            able = self._able[met] = sum(bit for bit, need in self._needs if not need & ~met)
        return NodeAnswer(able & ~ruled_out, met)

    def _condition(self, wanted: ClassId | frozenset[TraitId]) -> int:
        """The bit of a condition: to have a class, or one of some traits."""
        bit = self._conditions.get(wanted)
        if bit is None:
            bit = self._conditions[wanted] = 1 << len(self._conditions)
            if isinstance(wanted, frozenset):
                for trait in wanted:
                    self._by_trait[trait] = self._by_trait.get(trait, 0) | bit
            else:
                self._by_class[wanted] = bit
        return bit
