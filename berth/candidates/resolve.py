# SPDX-License-Identifier: Apache-2.0
"""Resolving: from a question to a plan, in which names and references are ids, conditions are
look-up tables, and relations name demands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from msgspec.structs import replace

from berth.candidates.conditions import ANYWHERE, MembershipTest, Places, Subtrees, TraitTest
from berth.candidates.plan import Demand, Plan, PlannedRelation, PlannedSplit, Rules
from berth.candidates.question import LEVELS, Item, Question, QuestionGroup, Split
from berth.candidates.references import (
    References,
    forbidden_of,
    member_of,
    not_member_of,
    required_of,
)
from berth.index.sets import Mask
from berth.index.snapshot import Location, Snapshot
from berth.model.errors import UnknownResourceClass, UnknownTraits
from berth.model.ids import AggregateUUID, ClassId, TraitId
from berth.model.inventory import MAX_INT

_ANY_TRAITS: Final = TraitTest()


class NothingFits(Exception):
    """The answer is empty without a search: no inventory can give an amount, or a named tree does
    not exist."""


def resolve_question(
    snapshot: Snapshot,
    question: Question,
    *,
    one_per_tree: bool = False,
    references: References | None = None,
) -> Plan:
    """`plan_of`, kept for the next equal question.

    A plan depends on the question, on names, and on the places of the providers that it names.
    """
    # PERF bench, flat: resolving takes as long as all the rest of a small answer.
    memory = snapshot.memory
    places: tuple[Location | None, ...] = ()
    if question.named_providers:
        references = references or References(snapshot)
        assert references.are_of(snapshot), "places in another fleet are others"
        places = tuple(map(references.location, question.named_providers))
    key = snapshot.names, question, one_per_tree, places
    plan: Plan | None = memory.get(key)
    if plan is None:
        plan = plan_of(snapshot, question, one_per_tree=one_per_tree, references=references)
        memory.keep(key, plan, plan.size)
    return plan


def plan_of(
    snapshot: Snapshot,
    question: Question,
    *,
    one_per_tree: bool = False,
    references: References | None = None,
) -> Plan:
    """Resolve a question against a snapshot: conditions on the host first, then the groups in their
    order.

    Args:
        references: those of earlier questions about the snapshot, or about one in which only other
            amounts are used or other providers drained.

    Raises:
        UnknownResourceClass, UnknownTraits: a name that the deployment does not know.
        NothingFits: the answer is empty.
    """
    host, references = question.host, references or References(snapshot)
    assert references.are_of(snapshot), "places in another fleet are others"
    root_traits = trait_test(snapshot, required_of(host.required), forbidden_of(host.required))
    tree_traits = trait_test(snapshot, required_of(host.anywhere), forbidden_of(host.anywhere))
    relations = (*question.together, *question.apart)
    levels = trait_ids(snapshot, frozenset(each.at for each in relations) - LEVELS)
    within = Subtrees(_some(_within(host.within, references))) if host.within else None
    demands, splits, union_traits = _demands(snapshot, question, references)
    asking = (*demands, *(split.demand for split in splits))
    whole = _rules(question, asking, len(asking), union_traits, levels, one_per_tree=one_per_tree)
    rules = whole
    if splits:
        splits_union = any(split.demand.unsuffixed for split in splits)
        own_union = _ANY_TRAITS if splits_union else union_traits
        rules = _rules(question, asking, len(demands), own_union, levels, one_per_tree=one_per_tree)
    return Plan(
        demands=demands,
        root_traits=root_traits,
        tree_traits=tree_traits,
        root_membership=membership_of(snapshot, host.member_of, references),
        within=within,
        not_in=Subtrees(_roots(references.located(host.not_in))) if host.not_in else None,
        forbidden_at_root=_forbidden_at_root(asking),
        rules=rules,
        splits=splits,
        whole=whole,
    )


def _rules(
    question: Question,
    asking: Sequence[Demand],
    count: int,
    union_traits: TraitTest,
    levels: Mapping[str, TraitId],
    *,
    one_per_tree: bool,
) -> Rules:
    """What a question asks of the first `count` of its demands alone, whatever serves the others.

    Args:
        levels: the ids of the traits that relations name.
    """
    numbers_of: dict[str, tuple[int, ...]] = {}
    for number, demand in enumerate(asking):
        numbers_of[demand.suffix] = (*numbers_of.get(demand.suffix, ()), number)
    suffixed = tuple(number for number in range(count) if not asking[number].unsuffixed)
    isolate = False
    subtrees: list[tuple[int, ...]] = []
    relations: list[PlannedRelation] = []
    for is_together, several in ((True, question.together), (False, question.apart)):
        # A relation holds no more for being repeated.
        for relation in dict.fromkeys(several):
            groups = [numbers_of.get(name, ()) for name in relation.groups]
            if is_together and relation.at == "subtree":
                subtree = tuple(sorted({*chain.from_iterable(groups)}))
                # One group alone restricts nothing, and the common ancestor may be the provider of
                # a demand that does not count.
                if len({*relation.groups}) > 1 and max(subtree) < count and subtree not in subtrees:
                    subtrees.append(subtree)
                continue
            own = (tuple(number for number in group if number < count) for group in groups)
            at = levels.get(relation.at, relation.at)
            planned = PlannedRelation(is_together, at, tuple(filter(None, own)))
            isolates = not is_together and at == "provider" and {*suffixed} == {*planned.demands}
            if len(planned.groups) > 1 and isolates:
                isolate = True
            elif len(planned.groups) > 1:
                relations.append(planned)
    return Rules(
        suffixed=suffixed,
        unsuffixed=tuple(number for number in range(count) if asking[number].unsuffixed),
        isolate=isolate,
        one_per_tree=one_per_tree,
        union_traits=union_traits,
        subtrees=tuple(subtrees),
        relations=tuple(relations),
    )


def _demands(
    snapshot: Snapshot, question: Question, references: References
) -> tuple[tuple[Demand, ...], tuple[PlannedSplit, ...], TraitTest]:
    """The demands and the splits of a question; and `Rules.union_traits`."""
    asking: list[tuple[Demand, Split | None]] = []
    union_traits = _ANY_TRAITS
    of_conditions: dict[_Conditions, Demand] = {}
    names = snapshot.names.class_names
    for name, group in question.groups:
        conditions = _Conditions.of(group, references)
        if not name:
            demands, union_traits = _unsuffixed(
                snapshot, group, conditions, first_query_id=len(asking)
            )
        else:
            demand = of_conditions.get(conditions)
            if demand is None:
                demand = of_conditions[conditions] = _suffixed(
                    snapshot, group, conditions, query_id=len(asking), is_query=question.is_query
                )
            demands = [replace(demand, suffix=name)]
        split = dict(group.split)
        for demand in demands:
            of_class = names[demand.amounts[0][0]] if demand.amounts else ""
            asking.append((demand, split.get(of_class)))
    return (
        tuple(demand for demand, split in asking if split is None),
        tuple(_planned_split(demand, split) for demand, split in asking if split is not None),
        union_traits,
    )


def _planned_split(demand: Demand, split: Split) -> PlannedSplit:
    ((class_id, amount),) = demand.amounts
    having = replace(demand, amounts=((class_id, 0),))
    return PlannedSplit(having, class_id, amount, split.min, split.step, split.parts)


def _forbidden_at_root(demands: Iterable[Demand]) -> Mask | None:
    forbidden = (demand.membership.forbidden for demand in demands if demand.unsuffixed)
    return next(forbidden, None)


def any_root_passes(snapshot: Snapshot, plan: Plan) -> bool:
    """Whether any tree has a root with the traits that the plan requires of roots."""
    return any(
        plan.root_traits.passes(block.shape.node_types[0].traits)
        for _, block in snapshot.occupied()
    )


class _Conditions(NamedTuple):
    """What a group asks of its providers, in whichever order it was sent: groups with equal
    conditions share a query. Attributes are as in `QuestionGroup`."""

    resources: frozenset[tuple[str, int]]
    required: tuple[frozenset[str], ...]
    forbidden: frozenset[str]
    member_of: tuple[frozenset[str], ...]
    not_member_of: frozenset[str]
    in_tree: frozenset[Location] | None
    under: frozenset[Location] | None
    not_under: frozenset[Location]
    split: tuple[tuple[str, Split], ...]

    @classmethod
    def of(cls, group: QuestionGroup, references: References) -> _Conditions:
        """The conditions of a group."""
        return cls(
            frozenset(group.resources),
            required_of(group.required),
            forbidden_of(group.required),
            member_of(group.member_of, references),
            not_member_of(group.member_of, references),
            None if group.in_tree is None else frozenset(references.located(group.in_tree)),
            None if group.under is None else frozenset(references.located(group.under)),
            frozenset(references.located(group.not_under)) if group.not_under else frozenset(),
            group.split,
        )

    @property
    def places(self) -> Places:
        """Where the providers must be.

        Raises:
            NothingFits: nowhere.
        """
        if self.in_tree is None and self.under is None and not self.not_under:
            return ANYWHERE
        return Places(
            None if self.in_tree is None else Subtrees(_roots(_some(self.in_tree))),
            None if self.under is None else Subtrees(_some(self.under)),
            Subtrees(self.not_under) if self.not_under else None,
        )


def _suffixed(
    snapshot: Snapshot,
    group: QuestionGroup,
    conditions: _Conditions,
    *,
    query_id: int,
    is_query: bool,
) -> Demand:
    """The demand of a group with a name, which the caller gives it."""
    amounts, membership, traits, places = _resolved(snapshot, group, conditions)
    if not amounts and is_query:
        # COMPAT spec/allocation-candidates.md 5.2: no provider serves a group that has no resources
        # and only forbidden traits, forbidden aggregates or a tree.
        if not conditions.required and not conditions.member_of:
            raise NothingFits
        # COMPAT likewise: the tree of a group without resources must exist, and is then ignored.
        places = ANYWHERE
    return Demand("", query_id, amounts, traits, membership, places, unsuffixed=False)


def _unsuffixed(
    snapshot: Snapshot, group: QuestionGroup, conditions: _Conditions, *, first_query_id: int
) -> tuple[list[Demand], TraitTest]:
    amounts, membership, traits, places = _resolved(snapshot, group, conditions)
    own = TraitTest(forbidden=traits.forbidden)
    demands = [
        Demand("", query_id, (amount,), own, membership, places, unsuffixed=True)
        for query_id, amount in enumerate(amounts, first_query_id)
    ]
    return demands, TraitTest(traits.required)


def _resolved(
    snapshot: Snapshot, group: QuestionGroup, conditions: _Conditions
) -> tuple[tuple[tuple[ClassId, int], ...], MembershipTest, TraitTest, Places]:
    """Resolve a group's names in the order of the specification; the first failure ends it."""
    amounts = tuple((class_id(snapshot, name), amount) for name, amount in group.resources)
    membership = membership_test(snapshot, conditions.member_of, conditions.not_member_of)
    try:
        traits = trait_test(snapshot, conditions.required, conditions.forbidden)
    except UnknownTraits:
        if membership.member is not None and not _anybody_in(snapshot, membership.member):
            raise NothingFits from None
        raise
    places = conditions.places
    if any(amount > MAX_INT for _, amount in amounts):
        raise NothingFits
    return amounts, membership, traits, places


def class_id(snapshot: Snapshot, name: str) -> ClassId:
    """The id of a resource class.

    Raises:
        UnknownResourceClass: there is none.
    """
    number = snapshot.names.class_ids.get(name)
    if number is None:
        raise UnknownResourceClass(name)
    return number


def trait_ids(snapshot: Snapshot, names: frozenset[str]) -> dict[str, TraitId]:
    """The ids of some traits.

    Raises:
        UnknownTraits: some do not exist.
    """
    ids = snapshot.names.trait_ids
    unknown = sorted(name for name in names if name not in ids)
    if unknown:
        raise UnknownTraits(unknown)
    return {name: ids[name] for name in names}


def trait_test(
    snapshot: Snapshot, required: Collection[frozenset[str]], forbidden: frozenset[str]
) -> TraitTest:
    """Conditions on traits, given by name.

    Raises:
        UnknownTraits: some do not exist.
    """
    if not required and not forbidden:
        return _ANY_TRAITS
    ids = trait_ids(snapshot, forbidden.union(*required))
    return TraitTest(
        tuple(frozenset(ids[name] for name in names) for names in required),
        frozenset(ids[name] for name in forbidden),
    )


def membership_of(
    snapshot: Snapshot, items: Collection[Item], references: References
) -> MembershipTest:
    """Conditions on aggregates, given by reference."""
    return membership_test(snapshot, member_of(items, references), not_member_of(items, references))


def membership_test(
    snapshot: Snapshot, member_of: Iterable[frozenset[str]], not_member_of: frozenset[str]
) -> MembershipTest:
    """Conditions on aggregates, given by uuid."""

    def having(uuids: frozenset[str]) -> Mask:
        ids = (snapshot.names.aggregate_ids.get(AggregateUUID(uuid)) for uuid in uuids)
        return snapshot.aggregate_sets.having_any(each for each in ids if each is not None)

    member: Mask | None = None
    for uuids in member_of:
        table = having(uuids)
        # RACE: the registry may grow between two tables; a set given out since is in no block of
        # this snapshot.
        member = table if member is None else member & table[: len(member)]
    return MembershipTest(member, having(not_member_of) if not_member_of else None)


def _anybody_in(snapshot: Snapshot, member: Mask) -> bool:
    return any(bool(member[block.aggregate_sets].any()) for _, block in snapshot.occupied())


def _within(lists: Sequence[Sequence[str]], references: References) -> frozenset[Location]:
    """The roots of the trees with one provider of each list."""
    return frozenset.intersection(
        *(frozenset(_roots(references.located(named))) for named in lists)
    )


def _roots(locations: Iterable[Location]) -> list[Location]:
    return [location._replace(node=0) for location in locations]


def _some(locations: frozenset[Location]) -> frozenset[Location]:
    if not locations:
        raise NothingFits
    return locations
