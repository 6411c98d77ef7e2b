# SPDX-License-Identifier: Apache-2.0
"""Plans: what a search needs to know of a question, with ids in place of names and references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from berth.candidates.conditions import MembershipTest, Places, Subtrees, TraitTest
from berth.index.block import Block
from berth.index.sets import Mask
from berth.index.shape import NodeType
from berth.model.ids import ClassId, TraitId

#: What a plan takes, and each of its demands in addition, without the tables of aggregates.
PLAN_BYTES: Final = 4096
DEMAND_BYTES: Final = 1024


class Demand(Struct, frozen=True):
    """One choice of a provider.

    Attributes:
        suffix: of the demand's group.
        query_id: equal for demands with equal conditions, which are answered once for all of them.
        amounts: (class, amount); empty for a group without resources.
        traits: what the provider itself must have; for the unsuffixed group only the forbidden
            ones, because its providers must have the required traits together.
        places: where the provider must be.
        unsuffixed: whether the root's memberships count for the whole tree, and `places.in_tree`
            excludes sharing providers.
    """

    suffix: str
    query_id: int
    amounts: tuple[tuple[ClassId, int], ...]
    traits: TraitTest
    membership: MembershipTest
    places: Places
    unsuffixed: bool

    def admits(self, node_type: NodeType) -> bool:
        """Whether providers of a type have the classes and meet the conditions on traits."""
        return self.traits.passes(node_type.traits) and all(
            class_id in node_type.classes for class_id, _ in self.amounts
        )

    def members(self, block: Block, node: int, rows: slice) -> Mask | None:
        """The rows in which a node's aggregates meet the conditions; None for all."""
        # An aggregate on the root spans the tree, for the unsuffixed group (5.3).
        spanning = block.aggregate_sets[0, rows] if self.unsuffixed and node else None
        return self.membership.mask(block.aggregate_sets[node, rows], spanning)


class PlannedRelation(Struct, frozen=True, dict=True):
    """Groups whose providers are together or apart (spec/beyond.md 2.4).

    Attributes:
        at: the level that is compared: "provider", "tree" or "subtree", or a trait.
        groups: the demands of each group.
    """

    is_together: bool
    at: str | TraitId
    groups: tuple[tuple[int, ...], ...]

    @cached_property
    def demands(self) -> tuple[int, ...]:
        """The demands of all its groups."""
        return tuple(number for group in self.groups for number in group)

    def others(self, number: int) -> tuple[int, ...]:
        """The demands that are compared with a demand: if together, all; if apart, those of other
        groups."""
        if self.is_together:
            return self.demands
        return tuple(each for group in self.groups if number not in group for each in group)


class Rules(Struct, frozen=True):
    """Structural rules over some demands, by their numbers (`berth.candidates.structural_rules`).

    Attributes:
        suffixed, unsuffixed: the demands of suffixed groups, and of the unsuffixed one.
        isolate: no two suffixed groups on one provider.
        one_per_tree: below 1.29: at most one provider of any tree gives resources.
        union_traits: conditions on all providers of the unsuffixed group together.
        subtrees: for each `same_subtree`, the demands whose providers need one of them as their
            common ancestor.
        relations: all other relations between groups.
    """

    suffixed: tuple[int, ...]
    unsuffixed: tuple[int, ...]
    isolate: bool
    one_per_tree: bool
    union_traits: TraitTest
    subtrees: tuple[tuple[int, ...], ...]
    relations: tuple[PlannedRelation, ...]

    @property
    def ruled(self) -> set[int]:
        """The demands of which a larger set of providers may hold where a smaller one does not:
        their traits count together, or one provider must be above all others."""
        ruled = {number for numbers in self.subtrees for number in numbers}
        return ruled.union(self.unsuffixed if self.union_traits.required else ())


class DemandClasses(Struct, frozen=True):
    """Demands with the same query, subtrees and relations form one class; classes are numbered.

    Attributes:
        of_demand: demand -> its class.
        demands, first_demands, counts: for each class its first demand, that demand's number, and
            how many demands there are.
        suffixed, unsuffixed: the classes of each sort.
        requesting: resource class -> (demand class, amount) of each that requests it.
        of_subtree: for each `same_subtree`, the classes of its demands.
        subtrees_of: for each class, the `same_subtree` restrictions of its demands.
        of_relation: for each relation, the classes of its demands.
        related: for each class, (relation, the classes that are compared with it).
    """

    of_demand: tuple[int, ...]
    demands: tuple[Demand, ...]
    first_demands: tuple[int, ...]
    counts: tuple[int, ...]
    suffixed: tuple[int, ...]
    unsuffixed: tuple[int, ...]
    requesting: Mapping[ClassId, Sequence[tuple[int, int]]]
    of_subtree: tuple[tuple[int, ...], ...]
    subtrees_of: tuple[tuple[int, ...], ...]
    of_relation: tuple[tuple[int, ...], ...]
    related: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...]

    @classmethod
    def of(
        cls,
        demands: Sequence[Demand],
        subtrees: Sequence[Sequence[int]],
        relations: Sequence[PlannedRelation] = (),
    ) -> DemandClasses:
        """The classes of some demands."""
        named = _naming(len(demands), subtrees)
        related = _naming(len(demands), [relation.demands for relation in relations])
        members: dict[tuple[int, tuple[int, ...], tuple[int, ...]], list[int]] = {}
        for number, demand in enumerate(demands):
            key = demand.query_id, tuple(named[number]), tuple(related[number])
            members.setdefault(key, []).append(number)
        class_of = {
            number: demand_class
            for demand_class, each in enumerate(members.values())
            for number in each
        }
        first = tuple(each[0] for each in members.values())
        requesting: dict[ClassId, list[tuple[int, int]]] = {}
        for demand_class, number in enumerate(first):
            for class_id, amount in demands[number].amounts:
                requesting.setdefault(class_id, []).append((demand_class, amount))
        return cls(
            of_demand=tuple(class_of[number] for number in range(len(demands))),
            demands=tuple(demands[number] for number in first),
            first_demands=first,
            counts=tuple(map(len, members.values())),
            suffixed=tuple(c for c, number in enumerate(first) if not demands[number].unsuffixed),
            unsuffixed=tuple(c for c, number in enumerate(first) if demands[number].unsuffixed),
            requesting=requesting,
            of_subtree=tuple(
                tuple(sorted({class_of[number] for number in numbers})) for numbers in subtrees
            ),
            subtrees_of=tuple(tuple(named[number]) for number in first),
            of_relation=tuple(
                tuple(sorted({class_of[number] for number in relation.demands}))
                for relation in relations
            ),
            related=tuple(
                tuple(
                    (place, tuple(sorted({class_of[n] for n in relations[place].others(number)})))
                    for place in related[number]
                )
                for number in first
            ),
        )


def _naming(count: int, several: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each of some demands, the places of the sequences that name it."""
    naming: list[list[int]] = [[] for _ in range(count)]
    for place, numbers in enumerate(several):
        for number in numbers:
            naming[number].append(place)
    return naming


class PlannedSplit(Struct, frozen=True):
    """An amount that may come from several providers (spec/beyond.md 2.5).

    Attributes:
        demand: the providers that may give a part; it asks them for an amount of 0.
        amount: what all parts add up to.
        min, step, parts: each part is at least `min` and a multiple of `step`; there are at most
            `parts`.
    """

    demand: Demand
    class_id: ClassId
    amount: int
    min: int
    step: int
    parts: int


class Plan(Struct, frozen=True, eq=False, dict=True):
    """Everything that the search needs to know of a request; compared by identity.

    Attributes:
        demands: in the order of the request.
        root_traits: conditions on the root of a candidate's tree.
        tree_traits: conditions on all traits of that tree together.
        root_membership: conditions on the root's own aggregates.
        within, not_in: the trees that may anchor candidates, by their roots; None for all.
        forbidden_at_root: sets of aggregates that exclude a root and everything that would serve
            its tree (5.3).
        rules: over the demands.
        splits: the amounts that may be split. No demand has them; each is numbered as a demand in
            `whole`, after all demands.
        whole: the rules over demands and splits.
    """

    demands: tuple[Demand, ...]
    root_traits: TraitTest
    tree_traits: TraitTest
    root_membership: MembershipTest
    within: Subtrees | None
    not_in: Subtrees | None
    forbidden_at_root: Mask | None
    rules: Rules
    splits: tuple[PlannedSplit, ...]
    whole: Rules

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        parts: tuple[MembershipTest | Places | Subtrees | None, ...] = (
            *(demand.membership for demand in self.asking),
            *(demand.places for demand in self.asking),
            *(self.root_membership, self.within, self.not_in),
        )
        sizes = {id(part): part.size for part in parts if part is not None}
        demands = len(self.asking) + len(self.rules.relations)
        return PLAN_BYTES + DEMAND_BYTES * demands + sum(sizes.values())

    @cached_property
    def queries(self) -> Mapping[int, Demand]:
        """query id -> a demand with that query."""
        return {demand.query_id: demand for demand in self.asking}

    @cached_property
    def asking(self) -> tuple[Demand, ...]:
        """The demands, and behind them those of the splits."""
        return (*self.demands, *(split.demand for split in self.splits))

    @property
    def is_filter(self) -> bool:
        """Whether each tree that passes every filter anchors a candidate."""
        rules = self.rules
        has_rules = rules.relations or rules.subtrees or rules.union_traits.required
        return len(self.demands) <= 1 and not self.splits and not has_rules

    @cached_property
    def giving(self) -> tuple[int, ...]:
        """The demands whose providers give something."""
        return tuple(number for number, demand in enumerate(self.demands) if demand.amounts)

    @cached_property
    def demand_classes(self) -> DemandClasses:
        """The classes of interchangeable demands."""
        return DemandClasses.of(self.demands, self.rules.subtrees, self.rules.relations)

    @cached_property
    def identical_groups(self) -> tuple[tuple[int, ...], ...]:
        """Suffixed demands with resources and the same query, if there are several of them."""
        by_query: dict[int, list[int]] = {}
        for number, demand in enumerate(self.demands):
            if demand.amounts and not demand.unsuffixed:
                by_query.setdefault(demand.query_id, []).append(number)
        return tuple(tuple(numbers) for numbers in by_query.values() if len(numbers) > 1)

    @cached_property
    def totals(self) -> tuple[tuple[ClassId, int, tuple[int, ...]], ...]:
        """(resource class, total amount, query ids) of each class that several queries name."""
        amounts: dict[ClassId, int] = {}
        query_ids: dict[ClassId, set[int]] = {}
        for demand in self.demands:
            for class_id, amount in demand.amounts:
                amounts[class_id] = amounts.get(class_id, 0) + amount
                query_ids.setdefault(class_id, set()).add(demand.query_id)
        return tuple(
            (class_id, amounts[class_id], tuple(sorted(several)))
            for class_id, several in query_ids.items()
            if len(several) > 1
        )
