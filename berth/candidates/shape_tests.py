# SPDX-License-Identifier: Apache-2.0
"""What a plan asks of trees: what follows from their structure once for each type of node and once
for each shape, and numbers and aggregates as tests for the rows of a block.

A fleet may have as many shapes as trees, but most nodes are of few types. Where the types are many
too, a plan distinguishes them only by the *conditions* that they meet: so each type costs a few
look-ups, and each combination of conditions is evaluated once. Sets of queries and of conditions
are integers with a bit for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from berth.candidates.conditions import Masks
from berth.candidates.plan import Demand, Plan
from berth.index.shape import NodeType, Shape
from berth.index.snapshot import Location, Sharing, Snapshot
from berth.model.budget import Budget
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
        for wanted in plan.rules.union_traits.required:
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


#: What a `SharingScope` takes, and each of its queries in addition.
SCOPE_BYTES: Final = 500
QUERY_BYTES: Final = 100


class Fit(NamedTuple):
    """Whether the node in one line of a class's columns could give an amount."""

    class_id: ClassId
    line: int
    amount: int


class UnsettledTest(NamedTuple):
    """A query that several nodes, or sharing providers too, could serve.

    Attributes:
        is_needed: whether one of the nodes must serve it, because no sharing provider could.
    """

    query_id: int
    demand: Demand
    nodes: tuple[int, ...]
    is_needed: bool


class ShapeTests(Struct, frozen=True, eq=False):
    """What a plan asks of the trees of one shape.

    Attributes:
        settled: the queries that only one node can serve, as `Masks`.
        fits, members: the conditions on those nodes: amounts, and (demand, node) where the demand
            has conditions on aggregates.
        unsettled: all other queries.
    """

    settled: Masks
    fits: tuple[Fit, ...]
    members: tuple[tuple[Demand, int], ...]
    unsettled: tuple[UnsettledTest, ...]

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        nodes = sum(len(test.nodes) for test in self.unsettled)
        queries = 300 * len(self.settled) + 200 * len(self.unsettled)
        return 600 + queries + 120 * len(self.fits) + 8 * nodes


#: The tests of all shapes whose structure rules every tree out.
NEVER: Final = ShapeTests({}, (), (), ())


class SharingScope(Struct, frozen=True, eq=False):
    """Which queries of a plan sharing providers could serve, and what follows from that.

    Attributes:
        shareable: query id -> whether some sharing provider has the classes.
        is_shared: whether there is any such query.
        fixed_root: the root of the only tree that can anchor candidates; None if any tree can.
    """

    shareable: Mapping[int, bool]
    is_shared: bool
    fixed_root: Location | None


def sharing_scope_of(plan: Plan, snapshot: Snapshot) -> SharingScope:
    """What sharing providers can do for a plan; kept, because the classes that they have seldom
    change."""
    sharing, memory = snapshot.sharing, snapshot.memory
    key = plan, sharing.classes if sharing.by_aggregate else None
    scope: SharingScope | None = memory.get(key)
    if scope is None:
        shareable = {
            query_id: _is_shareable(sharing, demand) for query_id, demand in plan.queries.items()
        }
        trees = [
            demand.places.in_tree
            for query_id, demand in plan.queries.items()
            if not shareable[query_id]
        ]
        only = (each.only for each in (*trees, plan.within) if each is not None)
        fixed = next((root for root in only if root is not None), None)
        scope = SharingScope(shareable, any(shareable.values()), fixed)
        memory.keep(key, scope, SCOPE_BYTES + QUERY_BYTES * len(shareable))
    return scope


def shape_tests(
    plan: Plan, shape: Shape, shareable: Mapping[int, bool], nodes: NodeTests, budget: Budget
) -> ShapeTests:
    """What a plan asks of the trees of a shape; `NEVER` if its structure rules them out.

    If the budget ends meanwhile, the answer is `NEVER` too: the caller must not keep it.

    Args:
        shareable: query id -> whether some sharing provider has its classes.
        nodes: what each type of node could serve.
    """
    if not plan.root_traits.passes(shape.node_types[0].traits):
        return NEVER
    if plan.tree_traits.has_conditions and not plan.tree_traits.passes(shape.traits):
        return NEVER
    answers = list(map(nodes.of, shape.node_types))
    able = 0
    for answer in answers:
        able |= answer.queries
    unsuffixed, is_shared = 0, False
    for query_id, demand in plan.queries.items():
        if not (able >> query_id & 1 or shareable[query_id]):
            return NEVER
        if demand.unsuffixed:
            unsuffixed |= 1 << query_id
            is_shared |= shareable[query_id]
    if nodes.of_union and not is_shared:
        missing = nodes.of_union
        for answer in answers:
            if answer.queries & unsuffixed:
                missing &= ~answer.met
        if missing:
            return NEVER
    settled: dict[int, dict[int, None]] = {}
    amounts: dict[Fit, None] = {}
    members: dict[tuple[int, int], tuple[Demand, int]] = {}
    unsettled = []
    for query_id, demand in plan.queries.items():
        if budget.is_spent():
            return NEVER
        allowed = tuple(
            [node for node, answer in enumerate(answers) if answer.queries >> query_id & 1]
        )
        if len(allowed) > 1 or shareable[query_id] or demand.places.has_conditions:
            unsettled.append(UnsettledTest(query_id, demand, allowed, not shareable[query_id]))
            continue
        (node,) = allowed
        settled[query_id] = {node: None}
        for class_id, amount in demand.amounts:
            amounts[Fit(class_id, shape.row_of_node[class_id][node], amount)] = None
        if demand.membership.has_conditions:
            # The demands of the unsuffixed group share one test.
            members[id(demand.membership), node] = demand, node
    return ShapeTests(settled, tuple(amounts), tuple(members.values()), tuple(unsettled))


def _is_shareable(sharing: Sharing, demand: Demand) -> bool:
    """Whether some sharing provider has the classes of a demand."""
    return (
        not (demand.unsuffixed and demand.places.in_tree is not None)
        and bool(sharing.by_aggregate)
        and sharing.classes.issuperset(class_id for class_id, _ in demand.amounts)
    )
