# SPDX-License-Identifier: Apache-2.0
"""Questions of `/berth/v1` in a fleet: what their names, flavors, scenario and order stand for.

A question that names a flavor takes its groups and relations from the flavor, and the conditions on
the host from both. Whatever is wrong with the flavor's part has the pointer to its name, because
nothing else of it stands in the body.

Source: spec/beyond.md 1.4, 2.2, 2.7, 4.4 and 4.5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Literal, TypeVar

from msgspec.structs import replace

from berth.api.berth_v1.codes import TOO_LARGE
from berth.api.berth_v1.grammar import FLAVOR_REQUEST, OrderInput, PreferenceInput, WhatIfInput
from berth.api.berth_v1.inputs import PointedSchema
from berth.api.berth_v1.questions import (
    Asked,
    AskedByFlavor,
    Part,
    Requested,
    Tolerated,
    check_no_conflict,
    conflicts,
    read_items,
    read_question,
)
from berth.api.berth_v1.refusals import pointer_of, refused, unknown_name
from berth.api.body import decode
from berth.api.errors import Refused
from berth.api.request import Services
from berth.api.struct_schema import shown
from berth.candidates.order import HOST, Order, Preference
from berth.candidates.plan import Plan
from berth.candidates.question import Question, QuestionHost
from berth.candidates.references import (
    References,
    UnknownName,
    UnknownReference,
    forbidden_of,
    names_in,
    required_of,
    unknown_names,
    unknown_references,
)
from berth.candidates.resolve import NothingFits, membership_of, resolve_question, trait_test
from berth.candidates.what_if import HostsAssumed, RatioAssumed, WhatIf, scenario_of, unknown_in
from berth.index.draining import tolerating
from berth.index.scenario import imagine, providers_added
from berth.index.snapshot import Snapshot
from berth.model.bounds import (
    ADDED_HOSTS_MAX,
    ADDED_PROVIDERS_MAX,
    ADDED_SHARING_MAX,
    PRESERVE_AMONG_MAX,
)
from berth.model.budget import Budget
from berth.model.capacity import Capacity
from berth.model.explanation import Unknown
from berth.model.ids import ConsumerUUID, parse_uuid_lax
from berth.model.named import Flavor, FlavorName
from berth.model.names import similar
from berth.model.shown import UNSET, Sometimes, Warned
from berth.store.allocations import held_by

WARNING: Final = shown(Warned)
#: More warnings are left out.
WARNINGS_MAX: Final = 100

#: Where a body has its assumptions, and its order.
_WHAT_IF: Final = "/what_if"
_ORDER: Final = "/order"


class Warnings:
    """The warnings of one answer."""

    def __init__(self) -> None:
        self.sent: list[Warned] = []

    def add(self, code: str, at: str, *, reference: Sometimes[str] = UNSET) -> None:
        """Warn of a place of the body."""
        if len(self.sent) < WARNINGS_MAX:
            self.sent.append(Warned(code, at, reference))

    def add_unknown(self, at: str, unknown: UnknownReference) -> None:
        """Warn of a reference that stands for nothing."""
        self.add(f"unknown_{unknown.kind}", at, reference=unknown.reference)

    def add_labels(self, keys: Mapping[str, str], snapshot: Snapshot) -> None:
        """Warn of the keys of labels that no aggregate has; `keys` by the pointers to them."""
        for at, key in keys.items():
            if not any(key == each for each, _ in snapshot.names.labels):
                self.add("unknown_label", at, reference=key)

    def add_of(self, asked: Iterable[Asked], references: References) -> None:
        """Warn of what some questions have without effect."""
        for part in chain.from_iterable(each.parts for each in asked):
            if part.has_limit:
                self.add("limit_ignored", part.pointer(""))
            for unknown in unknown_references(part.question, references):
                self.add_unknown(part.pointer(unknown.at), unknown)


def check_rights(services: Services, asked: Iterable[Asked]) -> None:
    """Refuse questions about other hosts than that to which the caller is bound.

    Raises:
        OutsideHost, NotOfHost: one is about more.
    """
    if services.rights is not None:
        parts = chain.from_iterable(each.parts for each in asked)
        services.rights.check_questions(part.question for part in parts)


def check_names(asked: Iterable[Asked], snapshot: Snapshot) -> None:
    """Refuse questions that name a resource class or a trait that does not exist.

    Raises:
        Refused: 400.
    """
    for part in chain.from_iterable(each.parts for each in asked):
        for unknown in unknown_names(part.question, snapshot):
            at = part.pointer(unknown.at)
            raise unknown_name(unknown._replace(at=at), flavor=part.flavor)


def read_what_if(sent: Sometimes[WhatIfInput]) -> WhatIf | None:
    """The assumptions of a body.

    Raises:
        Refused: 400.
    """
    if sent is UNSET:
        return None
    added = tuple(HostsAssumed(each.like, each.count) for each in sent.add_hosts)
    if sum(each.copies for each in added) > ADDED_HOSTS_MAX:
        raise refused(
            f"{_WHAT_IF}/add_hosts",
            f"may add at most {ADDED_HOSTS_MAX} hosts (max_added_hosts) in all",
            code=TOO_LARGE,
        )
    return WhatIf(
        nothing_used=sent.nothing_used,
        without_consumers=tuple(filter(None, map(parse_uuid_lax, sent.without_consumers))),
        allocation_ratio=tuple(
            RatioAssumed(each.resource_class, each.ratio, read_items(each.member_of))
            for each in sent.allocation_ratio
        ),
        undrain=tuple(sent.undrain),
        drain=tuple(sent.drain),
        without_hosts=tuple(sent.without_hosts),
        add_hosts=added,
    )


def assumed(
    services: Services,
    snapshot: Snapshot,
    what_if: WhatIf | None,
    warnings: Warnings,
    budget: Budget,
) -> Snapshot:
    """The snapshot that a question assumes; the same one if it assumes nothing.

    Raises:
        Refused: 400 for a resource class that does not exist, and for a scenario that is too large.
        SearchGaveUp: the budget is spent.
    """
    if what_if is None:
        return snapshot
    references = References(snapshot)
    for unknown in unknown_in(what_if, snapshot, references):
        if isinstance(unknown, UnknownName):
            raise unknown_name(unknown, within=_WHAT_IF)
        warnings.add_unknown(_WHAT_IF + unknown.at, unknown)
    consumers = [ConsumerUUID(uuid) for uuid in what_if.without_consumers]
    freed = held_by(services.database, consumers) if consumers else {}
    scenario = scenario_of(snapshot, what_if, references, freed)
    added, sharing = providers_added(snapshot, scenario)
    for count, most, bound, kind in (
        (added, ADDED_PROVIDERS_MAX, "max_added_providers", "providers"),
        (sharing, ADDED_SHARING_MAX, "max_added_sharing", "sharing providers"),
    ):
        if count > most:
            raise refused(
                f"{_WHAT_IF}/add_hosts",
                f"would add {count:,} {kind}, more than {most:,} ({bound})",
                code=TOO_LARGE,
            )
    return imagine(snapshot, scenario, budget)


def group_names(asked: Sequence[Asked]) -> frozenset[str]:
    """The names of the groups of all alternatives."""
    return frozenset(name for each in asked for name, _ in each.question.groups)


def plans_of(
    fleet: Snapshot, several: Iterable[Asked], references: References
) -> Iterator[tuple[int, Snapshot, Plan]]:
    """The plans of some alternatives, without those that nothing can fit.

    Yields:
        its number, the fleet with the drains that it tolerates, and its plan.
    """
    for number, asked in enumerate(several):
        tolerant = tolerating(fleet, asked.question.tolerate)
        try:
            plan = resolve_question(tolerant, asked.question, references=references)
        except NothingFits:
            continue
        yield number, tolerant, plan


# --- Flavors --------------------------------------------------------------------------------------


T = TypeVar("T")

#: A release may know less than the one that stored the flavor.
_STORED: Final = PointedSchema(FLAVOR_REQUEST)
#: What a decoded flavor takes, for each byte of its text.
_BYTES_FOR_BYTE: Final = 16


def expanded(requested: Iterable[Requested], snapshot: Snapshot) -> tuple[Asked, ...]:
    """The questions of some requests, with the flavors of a snapshot.

    Raises:
        Refused: 400 for a flavor that does not exist, that this release cannot read, or that
            contradicts the rest of the request.
    """
    return tuple(
        each if isinstance(each, Asked) else _expanded(each, snapshot) for each in requested
    )


def narrowed(asked: Asked, conditions: Part) -> Asked:
    """A question with further conditions, whose list `host.in` takes the place of its own.

    Raises:
        Refused: 400 if one requires what the other forbids.
    """
    own = conditions.question
    if own == Question(()):
        return asked
    parts = asked.parts
    question = asked.question
    if own.host.within:
        parts = tuple(part._replace(question=_anywhere(part.question)) for part in parts)
        question = _anywhere(question)
    question = replace(
        question,
        host=_both(question.host, own.host),
        tolerate=_either(question.tolerate, own.tolerate),
    )
    _check_no_conflict(question.host, conditions.at, "the request")
    return Asked(question, (conditions, *parts))


def _anywhere(question: Question) -> Question:
    return replace(question, host=question.host._replace(within=()))


def stored_question(name: str, flavor: Flavor, snapshot: Snapshot, at: str) -> Part:
    """The question of a flavor, decoded once for all requests.

    Args:
        at: the pointer to the request that names it.

    Raises:
        Refused: 400 if this release cannot read it.
    """
    key = stored_question, flavor.request
    part: Part | None = snapshot.memory.get(key)
    if part is None:
        try:
            (part,) = _read(flavor).parts
        except Refused as refusal:
            raise refused(
                f"{at}/flavor",
                f"names the flavor {name}, which this release cannot read; set it again."
                f" {refusal.message}".removesuffix("."),
            ) from None
        snapshot.memory.keep(key, part, _BYTES_FOR_BYTE * len(flavor.request))
    return part._replace(at=at, flavor=name)


def flavor_to_count(snapshot: Snapshot, name: FlavorName) -> Asked | Capacity:
    """The question of a stored flavor, or why its capacity cannot be counted.

    Pointers into the question begin with `/flavors/` and the name.
    """
    try:
        part = stored_question(name, snapshot.names.records.flavors[name], snapshot, "")
    except Refused:
        return Capacity(invalid=f"This release cannot read flavor {name}; set it again.")
    # Where several are counted, pointers into a flavor begin with its name.
    part = part._replace(at=pointer_of(("flavors", name)), flavor="")
    asked = Asked(part.question, (part,))
    if not takes_anything(asked):
        message = f"Flavor {name} asks for no resources, so it fits any number of times."
        return Capacity(invalid=message)
    unknown = [
        Unknown(part.pointer(each.at), each.kind, each.name, each.did_you_mean)
        for each in unknown_names(part.question, snapshot)
    ]
    return Capacity(unknown=unknown) if unknown else asked


def takes_anything(asked: Asked) -> bool:
    """Whether a question asks for any resources."""
    return any(group.resources for _, group in asked.question.groups)


def _read(flavor: Flavor) -> Asked:
    sent = decode(flavor.request.encode())
    _STORED.check(sent)
    assert isinstance(sent, dict), "the schema admits objects only"
    return read_question(sent, "")


def _expanded(asked: AskedByFlavor, snapshot: Snapshot) -> Asked:
    flavors = snapshot.names.records.flavors
    flavor = flavors.get(FlavorName(asked.flavor))
    if flavor is None:
        unknown = UnknownName("/flavor", "flavor", asked.flavor, similar(asked.flavor, flavors))
        raise unknown_name(unknown, within=asked.at)
    stored = stored_question(asked.flavor, flavor, snapshot, asked.at)
    question = replace(
        stored.question,
        host=_both(stored.question.host, asked.own.host),
        tolerate=_either(stored.question.tolerate, asked.own.tolerate),
    )
    _check_no_conflict(question.host, asked.at, f"flavor {asked.flavor}")
    return Asked(question, (Part(asked.own, asked.at), stored))


def _both(stored: QuestionHost, own: QuestionHost) -> QuestionHost:
    """The conditions of both; one that both have stands there once."""
    return QuestionHost._make(map(_joined, stored, own))


def _joined(stored: tuple[T, ...], own: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*stored, *own)))


def _either(stored: Tolerated, own: Tolerated) -> Tolerated:
    return "*" if stored == "*" or own == "*" else _joined(stored, own)


def _check_no_conflict(host: QuestionHost, at: str, other: str) -> None:
    """Refuse conditions that each can hold, but not together."""
    for member, items in (("required", host.required), ("anywhere", host.anywhere)):
        for _, names in conflicts(items):
            raise refused(
                f"{at}/host/{member}",
                f"contradicts {other}: {names} would be required and forbidden",
            )


# --- Orders ---------------------------------------------------------------------------------------


#: How many hosts `preserve` scores, unless the order says otherwise.
_AMONG: Final = 512


def check_order(order: OrderInput, groups: Collection[str]) -> None:
    """Check what a schema cannot say.

    Args:
        groups: the names of all groups.

    Raises:
        Refused: 400.
    """
    for place, preference in enumerate(order.prefer):
        at = f"{_ORDER}/prefer/{place}"
        if preference.of != HOST and preference.of not in groups:
            raise refused(f"{at}/of", f'names no group of the request: "{preference.of}"')
        check_no_conflict(read_items(preference.required), f"{at}/required")
    if order.by != "preserve":
        if order.preserve is not None:
            raise refused(f"{_ORDER}/preserve", 'needs "by": "preserve"')
    elif order.preserve is None:
        raise refused(_ORDER, "lacks preserve, the flavors to leave room for")
    elif order.among is not None and order.among > PRESERVE_AMONG_MAX:
        message = f"must be at most {PRESERVE_AMONG_MAX:,} with preserve (max_preserve_among)"
        raise refused(f"{_ORDER}/among", message)


def order_of(
    order: OrderInput, snapshot: Snapshot, references: References, warnings: Warnings
) -> Order:
    """The order that a snapshot gives to the names of a body.

    Raises:
        Refused: 400 for a resource class, a trait or a flavor that does not exist.
    """
    ids = snapshot.names.class_ids
    named = ((pointer_of(("classes", name)), name) for name in order.classes)
    _check("resource_class", named, ids, _ORDER)
    preserve = order.preserve or {}
    return Order(
        by=order.by,
        weight=order.weight,
        classes={ids[name]: weight for name, weight in order.classes.items()},
        prefer=tuple(
            _preference(each, f"{_ORDER}/prefer/{place}", snapshot, references, warnings)
            for place, each in enumerate(order.prefer)
        ),
        seed=order.seed,
        among=_AMONG if order.among is None and preserve else order.among,
        preserve=tuple(_preserved(preserve, snapshot)),
    )


def _preserved(sent: Mapping[str, float], snapshot: Snapshot) -> Iterator[tuple[Plan, float]]:
    """The flavors to leave room for; one that nothing can fit has no room to lose."""
    references = References(snapshot)
    stored = snapshot.names.records.flavors
    for name, weight in sent.items():
        pointer = _ORDER + pointer_of(("preserve", name))
        if name not in stored:
            raise unknown_name(UnknownName(pointer, "flavor", name, similar(name, stored)))
        try:
            part = stored_question(name, stored[FlavorName(name)], snapshot, pointer)
        except Refused:
            message = "names a flavor that this release cannot read; set it again"
            raise refused(pointer, message) from None
        for unknown in unknown_names(part.question, snapshot):
            raise unknown_name(unknown._replace(at=pointer), flavor=name)
        if not any(group.resources for _, group in part.question.groups):
            raise refused(pointer, "names a flavor that asks for no resources")
        try:
            yield (
                resolve_question(snapshot, part.question, references=references),
                weight,
            )
        except NothingFits:
            continue


def _preference(
    sent: PreferenceInput, at: str, snapshot: Snapshot, references: References, warnings: Warnings
) -> Preference:
    required = read_items(sent.required)
    members = read_items(sent.member_of)
    _check("trait", names_in("/required", required), snapshot.names.trait_ids, at)
    for place, reference in names_in("/member_of", members):
        if not references.aggregates(reference):
            unknown = UnknownReference(place, "aggregate", reference)
            warnings.add_unknown(at + place, unknown)
    return Preference(
        weight=sent.weight,
        of=sent.of,
        traits=trait_test(snapshot, required_of(required), forbidden_of(required)),
        membership=membership_of(snapshot, members, references),
    )


def _check(
    kind: Literal["resource_class", "trait"],
    named: Iterable[tuple[str, str]],
    existing: Mapping[str, Any],
    at: str,
) -> None:
    for place, name in named:
        if name not in existing:
            raise unknown_name(UnknownName(place, kind, name, similar(name, existing)), within=at)
