# SPDX-License-Identifier: Apache-2.0
"""Which queries a node could serve by its classes and traits, answered once for each type of node.

A fleet may have as many shapes as trees, but most nodes are of few types. Where the types are many
too, a plan distinguishes them only by the *conditions* that they meet: so each type costs a few
look-ups, and each combination of conditions is evaluated once.

Sets of queries and of conditions are integers with a bit for each.
"""

from __future__ import annotations

from typing import NamedTuple

from berth.candidates.plan import Plan
from berth.index.shape import NodeType
from berth.model.ids import ClassId, TraitId


class NodeAnswer(NamedTuple):
    """What a type of node could do for a plan.

    Attributes:
        queries: the queries that it could serve, amounts and aggregates aside.
        met: the conditions that it meets.
    """

    queries: int
    met: int


class NodeTests:
    """The answers for one plan, for the length of one search.

    Attributes:
        of_union: the conditions that the providers of the unsuffixed group must meet together.
    """

    def __init__(self, plan: Plan) -> None:
        #: Class or trait -> the conditions that it meets.
        self._by_class: dict[ClassId, int] = {}
        self._by_trait: dict[TraitId, int] = {}
        #: Trait -> the queries that it rules out.
        self._ruled_out: dict[TraitId, int] = {}
        self._conditions: dict[ClassId | frozenset[TraitId], int] = {}
        #: (bit of a query, the conditions that it needs).
        self._needs: list[tuple[int, int]] = []
        self._answers: dict[NodeType, NodeAnswer] = {}
        self._able: dict[int, int] = {}
        for query_id, demand in plan.queries.items():
            need = 0
            for class_id, _ in demand.amounts:
                need |= self._condition(class_id)
            for wanted in demand.traits.required:
                need |= self._condition(wanted)
            self._needs.append((1 << query_id, need))
            for trait in demand.traits.forbidden:
                self._ruled_out[trait] = self._ruled_out.get(trait, 0) | 1 << query_id
        self.of_union = 0
        for wanted in plan.union_traits.required:
            self.of_union |= self._condition(wanted)
        self._traits = frozenset(self._by_trait) | frozenset(self._ruled_out)

    def of(self, node_type: NodeType) -> NodeAnswer:
        """What a type of node could do."""
        answer = self._answers.get(node_type)
        if answer is None:
            answer = self._answers[node_type] = self._answer(node_type)
        return answer

    def _answer(self, node_type: NodeType) -> NodeAnswer:
        met = ruled_out = 0
        for class_id in node_type.classes:
            met |= self._by_class.get(class_id, 0)
        for trait in self._traits & node_type.traits:
            met |= self._by_trait.get(trait, 0)
            ruled_out |= self._ruled_out.get(trait, 0)
        able = self._able.get(met)
        if able is None:
            able = self._able[met] = sum(bit for bit, need in self._needs if not need & ~met)
        return NodeAnswer(able & ~ruled_out, met)

    def _condition(self, wanted: ClassId | frozenset[TraitId]) -> int:
        """The bit of a condition: having a class, or having one of some traits."""
        bit = self._conditions.get(wanted)
        if bit is None:
            bit = self._conditions[wanted] = 1 << len(self._conditions)
            if isinstance(wanted, frozenset):
                for trait in wanted:
                    self._by_trait[trait] = self._by_trait.get(trait, 0) | bit
            else:
                self._by_class[wanted] = bit
        return bit
