# SPDX-License-Identifier: Apache-2.0
"""Resolving: from a request to a plan, in which names and uuids are ids and conditions are look-up
tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from berth.candidates.places import ANYWHERE, Places, Subtrees
from berth.candidates.plan import (
    Demand,
    MembershipTest,
    Plan,
    PlannedSplit,
    Rules,
    TraitTest,
    by_suffix,
)
from berth.candidates.question import LEVELS, Split
from berth.candidates.relations import Relations, relations_of
from berth.candidates.request import CandidatesRequest, RequestGroup
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Location, Snapshot
from berth.model.errors import UnknownResourceClass, UnknownTraits
from berth.model.ids import AggregateUUID, ClassId, TraitId
from berth.model.inventory import MAX_INT


class NothingFits(Exception):
    """The answer is empty without a search: no inventory can give an amount, or a named tree does
    not exist."""


def resolve(snapshot: Snapshot, request: CandidatesRequest, *, one_per_tree: bool) -> Plan:
    """The plan of a request, kept for the next equal request.

    A plan depends on the request, on names, and on the positions of the providers that it names.
    """
    # PERF bench, flat: resolving takes as long as all the rest of a small answer.
    memory = snapshot.memory
    named = request.named_providers
    places = tuple(map(snapshot.locate_uuid, named)) if named else ()
    key = snapshot.names, request, one_per_tree, places
    plan: Plan | None = memory.get(key)
    if plan is None:
        plan = plan_of(snapshot, request, one_per_tree=one_per_tree)
        memory.keep(key, plan, plan.size)
    return plan


def plan_of(snapshot: Snapshot, request: CandidatesRequest, *, one_per_tree: bool) -> Plan:
    """Resolve a request against a snapshot: conditions on the host first, then the groups in their
    order.

    Raises:
        UnknownResourceClass, UnknownTraits: a name that the deployment does not know.
        NothingFits: the answer is empty.
    """
    host = request.host
    roots = trait_ids(snapshot, host.forbidden.union(*host.required))
    anywhere = trait_ids(snapshot, host.nowhere.union(*host.anywhere))
    levels = trait_ids(snapshot, frozenset(relation.at for relation in request.relations) - LEVELS)
    within = None if host.within is None else _trees(snapshot, host.within)
    demands, splits, demands_of, union_traits = _demands(snapshot, request)
    relations = relations_of(request, demands_of, levels)
    own = relations.among(len(demands))
    suffixed = set(by_suffix(demands)[0])
    isolate = request.group_policy == "isolate"
    splits_union = any(split.demand.unsuffixed for split in splits)
    return Plan(
        demands=demands,
        root_traits=trait_test(roots, host.required, host.forbidden),
        tree_traits=trait_test(anywhere, host.anywhere, host.nowhere),
        root_membership=membership_test(snapshot, host.member_of, host.not_member_of),
        within=within,
        not_in=_trees(snapshot, host.not_in, may_be_none=True) if host.not_in else None,
        forbidden_at_root=_forbidden_at_root((*demands, *(split.demand for split in splits))),
        union_traits=TraitTest() if splits_union else union_traits,
        isolate=isolate or own.isolates(suffixed),
        subtrees=own.subtrees,
        one_per_tree=one_per_tree,
        relations=own.without_isolation(suffixed),
        splits=splits,
        whole=_whole(demands, splits, union_traits, relations) if splits else None,
    )


def _whole(
    demands: tuple[Demand, ...],
    splits: tuple[PlannedSplit, ...],
    union_traits: TraitTest,
    relations: Relations,
) -> Rules:
    """`Plan.whole`; requests with splits have no group policy."""
    suffixed, unsuffixed = by_suffix((*demands, *(split.demand for split in splits)))
    return Rules(
        suffixed,
        unsuffixed,
        isolate=False,
        one_per_tree=False,
        union_traits=union_traits,
        subtrees=relations.subtrees,
        relations=relations.others,
    )


def _demands(
    snapshot: Snapshot, request: CandidatesRequest
) -> tuple[tuple[Demand, ...], tuple[PlannedSplit, ...], dict[str, tuple[int, ...]], TraitTest]:
    """The demands and the splits of a request; for each suffix the numbers of its demands, those of
    splits behind all others; and `Plan.union_traits`."""
    asking: list[tuple[str, Demand]] = []
    union_traits = TraitTest()
    of_conditions: dict[object, Demand] = {}
    for group in request.groups:
        if not group.suffix:
            of_class, union_traits = _unsuffixed(snapshot, group, first_query_id=len(asking))
            asking.extend((group.suffix, demand) for demand in of_class)
            continue
        same = _conditions_of(group)
        demand = of_conditions.get(same)
        if demand is None:
            demand = of_conditions[same] = _suffixed(
                snapshot, group, query_id=len(asking), is_natural=request.is_natural
            )
        asking.append((group.suffix, replace(demand, suffix=group.suffix)))
    asked = {group.suffix: dict(group.split) for group in request.groups if group.split}
    names = snapshot.names.class_names
    demands: list[Demand] = []
    splits: list[PlannedSplit] = []
    for suffix, demand in asking:
        split = asked.get(suffix, {}).get(names[demand.amounts[0][0]]) if demand.amounts else None
        if split is None:
            demands.append(demand)
        else:
            splits.append(_planned_split(demand, split))
    numbered = [*demands, *(split.demand for split in splits)]
    demands_of = {
        group.suffix: tuple(n for n, demand in enumerate(numbered) if demand.suffix == group.suffix)
        for group in request.groups
    }
    return tuple(demands), tuple(splits), demands_of, union_traits


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


def _conditions_of(group: RequestGroup) -> tuple[object, ...]:
    """Everything of a group but its suffix: groups with equal conditions share a query."""
    return (
        frozenset(group.resources),
        group.required,
        group.forbidden,
        group.member_of,
        group.not_member_of,
        group.in_tree,
        group.under,
        group.not_under,
        group.split,
    )


def _suffixed(
    snapshot: Snapshot, group: RequestGroup, *, query_id: int, is_natural: bool
) -> Demand:
    amounts, membership, traits, places = _resolved(snapshot, group)
    if not amounts and not is_natural:
        # COMPAT spec/allocation-candidates.md 5.2: no provider serves a group that has no resources
        # and only forbidden traits, forbidden aggregates or a tree.
        if not group.required and not group.member_of:
            raise NothingFits
        # COMPAT likewise: the tree of a group without resources must exist, and is then ignored.
        places = ANYWHERE
    return Demand(group.suffix, query_id, amounts, traits, membership, places, unsuffixed=False)


def _unsuffixed(
    snapshot: Snapshot, group: RequestGroup, *, first_query_id: int
) -> tuple[list[Demand], TraitTest]:
    amounts, membership, traits, places = _resolved(snapshot, group)
    own = TraitTest(forbidden=traits.forbidden)
    demands = [
        Demand(group.suffix, query_id, (amount,), own, membership, places, unsuffixed=True)
        for query_id, amount in enumerate(amounts, first_query_id)
    ]
    return demands, TraitTest(traits.required)


def _resolved(
    snapshot: Snapshot, group: RequestGroup
) -> tuple[tuple[tuple[ClassId, int], ...], MembershipTest, TraitTest, Places]:
    """Resolve a group's names in the order of the specification; the first failure ends it."""
    amounts = tuple((class_id(snapshot, name), amount) for name, amount in group.resources)
    membership = membership_test(snapshot, group.member_of, group.not_member_of)
    named = frozenset().union(group.forbidden, *group.required)
    try:
        ids = trait_ids(snapshot, named)
    except UnknownTraits:
        if membership.member is not None and not _anybody_in(snapshot, membership.member):
            raise NothingFits from None
        raise
    places = _places(snapshot, group)
    if any(amount > MAX_INT for _, amount in amounts):
        raise NothingFits
    return amounts, membership, trait_test(ids, group.required, group.forbidden), places


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
    ids: Mapping[str, TraitId], required: Iterable[frozenset[str]], forbidden: Iterable[str]
) -> TraitTest:
    """Conditions on traits, given by name."""
    return TraitTest(
        tuple(frozenset(ids[name] for name in names) for names in required),
        frozenset(ids[name] for name in forbidden),
    )


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


def _places(snapshot: Snapshot, group: RequestGroup) -> Places:
    if group.in_tree is None and group.under is None and not group.not_under:
        return ANYWHERE
    return Places(
        None if group.in_tree is None else _trees(snapshot, group.in_tree),
        None if group.under is None else Subtrees(_some(_located(snapshot, group.under))),
        Subtrees(_located(snapshot, group.not_under)) if group.not_under else None,
    )


def _trees(snapshot: Snapshot, uuids: Iterable[str], *, may_be_none: bool = False) -> Subtrees:
    """The trees of those of some providers that exist.

    Raises:
        NothingFits: there are none, and there must be some.
    """
    located = [location._replace(node=0) for location in _located(snapshot, uuids)]
    return Subtrees(located if may_be_none else _some(located))


def _located(snapshot: Snapshot, uuids: Iterable[str]) -> list[Location]:
    locations = map(snapshot.locate_uuid, uuids)
    return [location for location in locations if location is not None]


def _some(locations: list[Location]) -> list[Location]:
    if not locations:
        raise NothingFits
    return locations
