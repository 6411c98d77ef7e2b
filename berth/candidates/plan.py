# SPDX-License-Identifier: Apache-2.0
"""From a request to a plan: names and uuids become ids, groups become *slots*, conditions become
look-up tables.

A slot is a choice that the search has to make: which provider gives these amounts. A suffixed group
is one slot, since one provider does it all; the unsuffixed group is one slot for each of its
classes, since each may come from another provider.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from berth.candidates.request import CandidatesRequest, RequestGroup
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Location, Snapshot
from berth.model.errors import UnknownResourceClass, UnknownTraits
from berth.model.ids import AggregateId, AggregateUUID, ClassId, TraitId
from berth.model.inventory import MAX_INT

if TYPE_CHECKING:
    from berth.candidates.candidate_texts import Template
    from berth.candidates.local import Reach

#: Plans that are kept; one more, and all are forgotten. Their bytes are bounded by the fleet's
#: `Allowance`.
KEPT_MAX: Final = 1024
#: What a plan and its request take, and each slot more, without the tables of aggregates.
PLAN_BYTES: Final = 4096
SLOT_BYTES: Final = 1024


@dataclass(frozen=True, slots=True)
class TraitTest:
    """Conditions on a set of traits: one of each required set, none of the forbidden."""

    required: tuple[frozenset[TraitId], ...] = ()
    forbidden: frozenset[TraitId] = frozenset()

    def passes(self, traits: frozenset[TraitId]) -> bool:
        """Whether a provider, or a union of providers, with these traits will do."""
        return self.forbidden.isdisjoint(traits) and not any(
            wanted.isdisjoint(traits) for wanted in self.required
        )


@dataclass(frozen=True, slots=True)
class MembershipTest:
    """Conditions on aggregates as tables over ids of `AggregateSets`; None where nothing is
    asked."""

    #: True where a set satisfies every positive `member_of`.
    member: Mask | None = None
    #: True where a set contains a forbidden aggregate.
    forbidden: Mask | None = None

    @property
    def asks(self) -> bool:
        """Whether there is any condition."""
        return self.member is not None or self.forbidden is not None

    @property
    def size(self) -> int:
        """What the tables take, in bytes."""
        return sum(table.nbytes for table in (self.member, self.forbidden) if table is not None)

    def passes(self, aggregate_set: int) -> bool:
        """Whether one provider's own memberships will do."""
        return (self.member is None or bool(self.member[aggregate_set])) and not (
            self.forbidden is not None and bool(self.forbidden[aggregate_set])
        )


@dataclass(frozen=True, slots=True)
class Slot:
    """One choice of a provider.

    Attributes:
        suffix: of the slot's group.
        ask: equal for slots that ask the same, so that it is answered once for them.
        amounts: (class, amount); empty for a group without resources.
        traits: what the provider itself must have; for a slot of the unsuffixed group the forbidden
            ones only, because its required traits are asked of all providers of the group together.
        in_tree: the root of the only tree whose own providers will do.
        unsuffixed: whether root memberships count for the tree, and whether `in_tree` shuts out
            sharing providers.
    """

    suffix: str
    ask: int
    amounts: tuple[tuple[ClassId, int], ...]
    traits: TraitTest
    membership: MembershipTest
    in_tree: Location | None
    unsuffixed: bool


@dataclass(frozen=True, slots=True)
class Kinds:
    """Slots that ask the same and stand in the same subtrees are of one kind; kinds are numbered.

    Attributes:
        of_slot: slot -> its kind.
        slots, first_slots, counts: per kind, a slot that stands for it, that slot's number, and how
            many there are.
        suffixed, unsuffixed: the kinds of each sort.
        asking: class -> (kind, amount) of those that ask it.
        of_subtree: for each `same_subtree`, the kinds of its slots.
        subtrees_of: the same the other way round.
    """

    of_slot: tuple[int, ...]
    slots: tuple[Slot, ...]
    first_slots: tuple[int, ...]
    counts: tuple[int, ...]
    suffixed: tuple[int, ...]
    unsuffixed: tuple[int, ...]
    asking: Mapping[ClassId, Sequence[tuple[int, int]]]
    of_subtree: tuple[tuple[int, ...], ...]
    subtrees_of: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, slots: Sequence[Slot], subtrees: Sequence[Sequence[int]]) -> Kinds:
        """The kinds of some slots."""
        named: list[list[int]] = [[] for _ in slots]
        for subtree, numbers in enumerate(subtrees):
            for number in numbers:
                named[number].append(subtree)
        members: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for number, slot in enumerate(slots):
            members.setdefault((slot.ask, tuple(named[number])), []).append(number)
        kind_of = {number: kind for kind, each in enumerate(members.values()) for number in each}
        first = tuple(each[0] for each in members.values())
        asking: dict[ClassId, list[tuple[int, int]]] = {}
        for kind, number in enumerate(first):
            for class_id, amount in slots[number].amounts:
                asking.setdefault(class_id, []).append((kind, amount))
        return cls(
            of_slot=tuple(kind_of[number] for number in range(len(slots))),
            slots=tuple(slots[number] for number in first),
            first_slots=first,
            counts=tuple(map(len, members.values())),
            suffixed=tuple(k for k, number in enumerate(first) if not slots[number].unsuffixed),
            unsuffixed=tuple(k for k, number in enumerate(first) if slots[number].unsuffixed),
            asking=asking,
            of_subtree=tuple(
                tuple(sorted({kind_of[number] for number in numbers})) for numbers in subtrees
            ),
            subtrees_of=tuple(tuple(named[number]) for number in first),
        )


@dataclass(frozen=True)
class Plan:
    """Everything that the search needs to know of a request.

    Attributes:
        slots: in the order of the request.
        root_traits: asked of the root of a candidate's tree.
        union_traits: asked of the providers of the unsuffixed group together.
        isolate: no two suffixed groups on one provider.
        subtrees: for each `same_subtree`, the slots whose providers need one of them as their
            common ancestor.
        one_per_tree: below 1.29: at most one provider of any tree gives resources.
        reaches, templates: caches of the stages behind, of what follows from the plan
            alone; a plan that is kept has them ready.
    """

    slots: tuple[Slot, ...]
    root_traits: TraitTest
    union_traits: TraitTest
    isolate: bool
    subtrees: tuple[tuple[int, ...], ...]
    one_per_tree: bool
    reaches: dict[frozenset[ClassId] | None, Reach] = field(default_factory=dict)
    templates: dict[Hashable, Template] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """What the plan takes, in bytes, without what later stages keep with it."""
        tables = {id(slot.membership): slot.membership.size for slot in self.slots}
        return PLAN_BYTES + SLOT_BYTES * len(self.slots) + sum(tables.values())

    @cached_property
    def asks(self) -> Mapping[int, Slot]:
        """ask -> a slot that asks it."""
        return {slot.ask: slot for slot in self.slots}

    @cached_property
    def forbidden_at_root(self) -> Mask | None:
        """Aggregate sets that shut a root out, with all that would serve its tree (5.3)."""
        forbidden = (slot.membership.forbidden for slot in self.slots if slot.unsuffixed)
        return next(forbidden, None)

    @cached_property
    def giving(self) -> tuple[int, ...]:
        """The slots whose providers give something."""
        return tuple(number for number, slot in enumerate(self.slots) if slot.amounts)

    @cached_property
    def kinds(self) -> Kinds:
        """What the search may treat alike."""
        return Kinds.of(self.slots, self.subtrees)

    @cached_property
    def alike(self) -> tuple[tuple[int, ...], ...]:
        """Suffixed slots with resources that ask the same, where there are several."""
        asking: dict[int, list[int]] = {}
        for number, slot in enumerate(self.slots):
            if slot.amounts and not slot.unsuffixed:
                asking.setdefault(slot.ask, []).append(number)
        return tuple(tuple(numbers) for numbers in asking.values() if len(numbers) > 1)

    @cached_property
    def totals(self) -> tuple[tuple[ClassId, int, tuple[int, ...]], ...]:
        """(class, amount, asks) of each class that is asked for in several ways: what all slots
        want of it together."""
        amounts: dict[ClassId, int] = {}
        asks: dict[ClassId, set[int]] = {}
        for slot in self.slots:
            for class_id, amount in slot.amounts:
                amounts[class_id] = amounts.get(class_id, 0) + amount
                asks.setdefault(class_id, set()).add(slot.ask)
        return tuple(
            (class_id, amounts[class_id], tuple(sorted(several)))
            for class_id, several in asks.items()
            if len(several) > 1
        )


class NothingFits(Exception):
    """The answer is empty before any search: an amount that no inventory can give, a tree that does
    not exist."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A plan, and what it was made of: as long as that is so, the same request has this plan."""

    request: CandidatesRequest
    plan: Plan
    sets_count: int
    aggregate_ids: Mapping[AggregateUUID, AggregateId]


class KeptPlans:
    """The plans of requests that come again as the same object: a part of a fleet's `Memory`.

    A plan depends on the names of classes and traits, with which the memory ends; on the ids of
    aggregates and on how many sets of them there are, which an entry says and each use compares;
    and on nothing else, for one that names a tree is not kept. What the later stages keep with a
    plan ends with it. All of it ends when the fleet's `Allowance` is used up.
    """

    def __init__(self) -> None:
        #: (request's identity, one_per_tree) -> its plan. An entry holds the request, so that no
        #: other one can have that identity.
        self.entries: dict[tuple[int, bool], _Kept] = {}

    def forget(self) -> None:
        """See `berth.index.allowance.Memory`."""
        self.entries.clear()


def kept_plan_of(snapshot: Snapshot, request: CandidatesRequest, *, one_per_tree: bool) -> Plan:
    """`plan_of`, remembered for requests that come again as the same object."""
    # PERF bench, flat: half of a small answer's time went into finding out the same again.
    plans = snapshot.memory.part(KeptPlans)
    entries = plans.entries
    key = id(request), one_per_tree
    kept = entries.get(key)
    # Counted first: what comes meanwhile makes the plan be made again.
    sets_count, aggregate_ids = len(snapshot.aggregate_sets), snapshot.aggregate_ids
    if kept is not None and kept.sets_count == sets_count and kept.aggregate_ids is aggregate_ids:
        return kept.plan
    plan = plan_of(snapshot, request, one_per_tree=one_per_tree)
    if all(group.in_tree is None for group in request.groups):
        if len(entries) >= KEPT_MAX:
            plans.forget()
        snapshot.allowance.add(plans)
        if snapshot.allowance.grow(plan.size):
            entries[key] = _Kept(request, plan, sets_count, aggregate_ids)
    return plan


def plan_of(snapshot: Snapshot, request: CandidatesRequest, *, one_per_tree: bool) -> Plan:
    """Resolve a request against a snapshot: `root_required` first, then the groups in their order.

    Raises:
        UnknownResourceClass, UnknownTraits: a name that the deployment does not know.
        NothingFits: no need to search.
    """
    roots = _trait_ids(snapshot, request.root_required | request.root_forbidden)
    slots: list[Slot] = []
    union_traits = TraitTest()
    slot_of_suffix: dict[str, int] = {}
    asked: dict[object, Slot] = {}
    for group in request.groups:
        if not group.suffix:
            of_class, union_traits = _unsuffixed(snapshot, group, first_ask=len(slots))
            slots.extend(of_class)
            continue
        slot_of_suffix[group.suffix] = len(slots)
        same = _what_is_asked(group)
        slot = asked.get(same)
        if slot is None:
            slot = asked[same] = _suffixed(snapshot, group, ask=len(slots))
        slots.append(replace(slot, suffix=group.suffix))
    return Plan(
        slots=tuple(slots),
        root_traits=_trait_test(
            roots, (frozenset((name,)) for name in request.root_required), request.root_forbidden
        ),
        union_traits=union_traits,
        isolate=request.group_policy == "isolate",
        # One suffix alone restricts nothing, and a restriction holds no more for being repeated.
        subtrees=tuple(
            tuple(sorted(slot_of_suffix[suffix] for suffix in suffixes))
            for suffixes in dict.fromkeys(request.same_subtree)
            if len(suffixes) > 1
        ),
        one_per_tree=one_per_tree,
    )


def any_root_passes(snapshot: Snapshot, plan: Plan) -> bool:
    """Whether there is a tree whose root has the traits asked of roots."""
    return any(
        plan.root_traits.passes(block.shape.kinds[0].traits) for _, block in snapshot.occupied()
    )


def _what_is_asked(group: RequestGroup) -> tuple[object, ...]:
    """All of a group but its suffix, to be compared."""
    return (
        frozenset(group.resources.items()),
        group.required,
        group.forbidden,
        group.member_of,
        group.not_member_of,
        group.in_tree,
    )


def _suffixed(snapshot: Snapshot, group: RequestGroup, *, ask: int) -> Slot:
    amounts, membership, traits, in_tree = _resolved(snapshot, group)
    if not amounts and not group.required and not group.member_of:
        # COMPAT spec/allocation-candidates.md 5.2: without resources and with forbidden things or a
        # tree alone, nobody.
        raise NothingFits
    # COMPAT likewise: the tree of a group without resources must exist, and is then ignored.
    return Slot(
        group.suffix,
        ask,
        amounts,
        traits,
        membership,
        in_tree if amounts else None,
        unsuffixed=False,
    )


def _unsuffixed(
    snapshot: Snapshot, group: RequestGroup, *, first_ask: int
) -> tuple[list[Slot], TraitTest]:
    amounts, membership, traits, in_tree = _resolved(snapshot, group)
    own = TraitTest(forbidden=traits.forbidden)
    slots = [
        Slot(group.suffix, ask, (amount,), own, membership, in_tree, unsuffixed=True)
        for ask, amount in enumerate(amounts, first_ask)
    ]
    return slots, TraitTest(traits.required)


def _resolved(
    snapshot: Snapshot, group: RequestGroup
) -> tuple[tuple[tuple[ClassId, int], ...], MembershipTest, TraitTest, Location | None]:
    """A group's names in the order in which they are looked up; the first thing that fails ends
    it."""
    amounts = tuple((_class_id(snapshot, name), amount) for name, amount in group.resources.items())
    membership = _membership_test(snapshot, group)
    named = frozenset().union(group.forbidden, *group.required)
    try:
        trait_ids = _trait_ids(snapshot, named)
    except UnknownTraits:
        if membership.member is not None and not _anybody_in(snapshot, membership.member):
            raise NothingFits from None
        raise
    in_tree = None
    if group.in_tree is not None:
        in_tree = _root_of(snapshot, group.in_tree)
    if any(amount > MAX_INT for _, amount in amounts):
        raise NothingFits
    return amounts, membership, _trait_test(trait_ids, group.required, group.forbidden), in_tree


def _class_id(snapshot: Snapshot, name: str) -> ClassId:
    class_id = snapshot.names.class_ids.get(name)
    if class_id is None:
        raise UnknownResourceClass(name)
    return class_id


def _trait_ids(snapshot: Snapshot, names: frozenset[str]) -> dict[str, TraitId]:
    known = snapshot.names.trait_ids
    unknown = sorted(name for name in names if name not in known)
    if unknown:
        raise UnknownTraits(unknown)
    return {name: known[name] for name in names}


def _trait_test(
    ids: Mapping[str, TraitId], required: Iterable[frozenset[str]], forbidden: Iterable[str]
) -> TraitTest:
    return TraitTest(
        tuple(frozenset(ids[name] for name in names) for names in required),
        frozenset(ids[name] for name in forbidden),
    )


def _membership_test(snapshot: Snapshot, group: RequestGroup) -> MembershipTest:
    def having(uuids: frozenset[str]) -> Mask:
        known = (snapshot.aggregate_ids.get(AggregateUUID(uuid)) for uuid in uuids)
        return snapshot.aggregate_sets.having_any(number for number in known if number is not None)

    member: Mask | None = None
    for uuids in group.member_of:
        table = having(uuids)
        # RACE: the registry may grow between two tables; a set given out since is in no block of
        # this snapshot.
        member = table if member is None else member & table[: len(member)]
    return MembershipTest(member, having(group.not_member_of) if group.not_member_of else None)


def _anybody_in(snapshot: Snapshot, member: Mask) -> bool:
    return any(bool(member[block.aggregate_sets].any()) for _, block in snapshot.occupied())


def _root_of(snapshot: Snapshot, uuid: str) -> Location:
    location = snapshot.locate_uuid(uuid)
    if location is None:
        raise NothingFits
    return location._replace(node=0)
