# SPDX-License-Identifier: Apache-2.0
"""From a question to a request: what its references stand for in a snapshot.

A reference that stands for nothing is no error in a question: it matches nothing, and the answer
warns of it. An unknown resource class or trait is an error, because no fleet could ever match it.

Source: spec/beyond.md 1.4 and 2.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, Literal, NamedTuple

from msgspec import json

from berth.candidates.question import LEVELS, Item, Question, QuestionGroup, QuestionHost
from berth.candidates.request import CandidatesRequest, HostConditions, Relation, RequestGroup
from berth.index.records import json_of
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import parse_uuid_lax
from berth.model.similar_names import likely, similar

#: How many unknown names get suggestions.
SUGGESTED_FOR_MAX: Final = 3

_NameKind = Literal["resource_class", "trait", "flavor", "provider", "aggregate", "drain"]


class UnknownReference(NamedTuple):
    """A reference that stands for nothing; `at` is its JSON pointer in the request."""

    at: str
    kind: Literal["provider", "aggregate", "drain"]
    reference: str


class UnknownName(NamedTuple):
    """A resource class, trait or flavor that does not exist; `at` is its JSON pointer in the
    request."""

    at: str
    kind: _NameKind
    name: str
    did_you_mean: tuple[str, ...]


class References:
    """What references stand for in one snapshot; each is looked up once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._providers: dict[str, str | None] = {}
        self._aggregates: dict[str, frozenset[str]] = {}

    def provider(self, reference: str) -> str | None:
        """The uuid of the provider, None if there is none."""
        if reference not in self._providers:
            self._providers[reference] = self._provider(reference)
        return self._providers[reference]

    def root(self, reference: str) -> Location | None:
        """Where the root of the provider's tree is, None if there is no such provider."""
        uuid = self.provider(reference)
        location = None if uuid is None else self._snapshot.locate_uuid(uuid)
        return None if location is None else location._replace(node=0)

    def aggregates(self, reference: str) -> frozenset[str]:
        """The uuids of the aggregates; empty if there is none."""
        uuids = self._aggregates.get(reference)
        if uuids is None:
            uuids = self._aggregates[reference] = self._aggregates_of(reference)
        return uuids

    def similar(self, unknown: UnknownReference) -> tuple[str, ...]:
        """The references that the client may have meant by one that stands for nothing."""
        names = self._snapshot.names
        if unknown.kind == "drain":
            return similar(unknown.reference, names.drains)
        if unknown.kind == "aggregate":
            labels = (value if key == "name" else f"{key}={value}" for key, value in names.labels)
            return similar(unknown.reference, likely(unknown.reference, labels))
        blocks = (block.names.every() for _, block in self._snapshot.occupied())
        written = likely(json_of(unknown.reference), chain.from_iterable(blocks))
        return similar(unknown.reference, filter(None, map(json.decode, written)))

    def is_drain(self, name: str) -> bool:
        """Whether there is a drain with a name."""
        return name in self._snapshot.names.drains

    def _provider(self, reference: str) -> str | None:
        uuid = parse_uuid_lax(reference)
        if uuid is not None:
            return uuid if self._snapshot.locate_uuid(uuid) is not None else None
        location = self._snapshot.locate_name(json_of(reference))
        if location is None:
            return None
        return self._snapshot.block(location.block_id).uuid(location.node, location.row)

    def _aggregates_of(self, reference: str) -> frozenset[str]:
        names = self._snapshot.names
        uuid = parse_uuid_lax(reference)
        if uuid is not None:
            return frozenset((uuid,)) if uuid in names.aggregate_ids else frozenset()
        key, equals, value = reference.partition("=")
        label = (key, value) if equals else ("name", reference)
        return frozenset(names.labels.get(label, ()))


def request_of(question: Question, references: References) -> CandidatesRequest:
    """The request that a question stands for; what a search takes."""
    relations = [
        Relation(is_together, relation.groups, relation.at)
        for is_together, several in ((True, question.together), (False, question.apart))
        for relation in several
    ]
    return CandidatesRequest(
        groups=tuple(_group(name, group, references) for name, group in question.groups),
        host=_host(question.host, references),
        relations=tuple(relations),
        is_natural=not question.is_query,
    )


def unknown_references(question: Question, references: References) -> Iterator[UnknownReference]:
    """The references that stand for nothing."""
    host = question.host
    providers: dict[str, Iterable[str]] = {
        **dict(zip(pointers_of_within(host), host.within, strict=True)),
        "/host/not_in": host.not_in,
    }
    members = {"/host/member_of": host.member_of}
    for name, group in question.groups:
        at = f"/groups/{escaped(name)}"
        providers |= {
            f"{at}/in_tree": group.in_tree or (),
            f"{at}/under": group.under or (),
            f"{at}/not_under": group.not_under,
        }
        members[f"{at}/member_of"] = group.member_of
    for at, named in providers.items():
        for place, reference in enumerate(named):
            if references.provider(reference) is None:
                yield UnknownReference(f"{at}/{place}", "provider", reference)
    for at, items in members.items():
        for item_at, reference in _names_in(at, items):
            if not references.aggregates(reference):
                yield UnknownReference(item_at, "aggregate", reference)
    if question.tolerate != "*":
        for place, name in enumerate(question.tolerate):
            if not references.is_drain(name):
                yield UnknownReference(f"/tolerate/{place}", "drain", name)


def pointers_of_within(host: QuestionHost) -> Sequence[str]:
    """The JSON pointers to the lists of `host.in`, which are nested only if there are several."""
    count = len(host.within)
    return ["/host/in"] if count == 1 else [f"/host/in/{place}" for place in range(count)]


def unknown_names(question: Question, snapshot: Snapshot) -> Iterator[UnknownName]:
    """The resource classes and traits that do not exist, in the order of the request; the first
    few with suggestions."""
    names = snapshot.names
    existing: Mapping[_NameKind, Mapping[str, int]] = {
        "resource_class": names.class_ids,
        "trait": names.trait_ids,
    }
    unknown = (each for each in _names(question) if each[2] not in existing[each[1]])
    for count, (at, kind, name) in enumerate(unknown):
        suggested = similar(name, existing[kind]) if count < SUGGESTED_FOR_MAX else ()
        yield UnknownName(at, kind, name, suggested)


def _names(question: Question) -> Iterator[tuple[str, _NameKind, str]]:
    """The pointer, the kind and the name of each resource class and trait of a question."""
    host = question.host
    for at, items in (("/host/required", host.required), ("/host/anywhere", host.anywhere)):
        for item_at, name in _names_in(at, items):
            yield item_at, "trait", name
    for group_name, group in question.groups:
        group_at = f"/groups/{escaped(group_name)}"
        for name, _ in group.resources:
            yield f"{group_at}/resources/{escaped(name)}", "resource_class", name
        for item_at, name in _names_in(f"{group_at}/required", group.required):
            yield item_at, "trait", name
    for member, relations in (("together", question.together), ("apart", question.apart)):
        for place, relation in enumerate(relations):
            if relation.at not in LEVELS:
                yield f"/{member}/{place}/at", "trait", relation.at


def escaped(name: str) -> str:
    """A name as a part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def _names_in(at: str, items: Iterable[Item]) -> Iterator[tuple[str, str]]:
    """The pointer to each name of some items, and the name."""
    for place, item in enumerate(items):
        for number, name in enumerate(item.names):
            yield (f"{at}/{place}/{number}" if len(item.names) > 1 else f"{at}/{place}"), name


def _group(name: str, group: QuestionGroup, references: References) -> RequestGroup:
    return RequestGroup(
        suffix=name,
        resources=group.resources,
        required=_required(group.required),
        forbidden=_forbidden(group.required),
        member_of=member_of(group.member_of, references),
        not_member_of=not_member_of(group.member_of, references),
        in_tree=_providers(group.in_tree, references),
        under=_providers(group.under, references),
        not_under=_providers(group.not_under, references) or frozenset(),
        split=group.split,
    )


def _host(host: QuestionHost, references: References) -> HostConditions:
    return HostConditions(
        required=_required(host.required),
        forbidden=_forbidden(host.required),
        anywhere=_required(host.anywhere),
        nowhere=_forbidden(host.anywhere),
        member_of=member_of(host.member_of, references),
        not_member_of=not_member_of(host.member_of, references),
        within=_within(host.within, references),
        not_in=_providers(host.not_in, references) or frozenset(),
    )


def _within(lists: Sequence[Sequence[str]], references: References) -> frozenset[str] | None:
    """Providers that all trees with one provider of each list have, and no other tree; None for no
    condition."""
    if len(lists) <= 1:
        return _providers(lists[0], references) if lists else None
    roots = [{references.root(each) for each in several} for several in lists]
    common = set.intersection(*roots)
    return _providers((each for each in lists[0] if references.root(each) in common), references)


def _required(items: Iterable[Item]) -> tuple[frozenset[str], ...]:
    sets = (frozenset(item.names) for item in items if not item.is_negated)
    return tuple(dict.fromkeys(sets))


def _forbidden(items: Iterable[Item]) -> frozenset[str]:
    return frozenset(name for item in items if item.is_negated for name in item.names)


def member_of(items: Iterable[Item], references: References) -> tuple[frozenset[str], ...]:
    """Sets of uuids of aggregates, of each of which one must match."""
    sets = (
        frozenset[str]().union(*map(references.aggregates, item.names))
        for item in items
        if not item.is_negated
    )
    return tuple(dict.fromkeys(sets))


def not_member_of(items: Iterable[Item], references: References) -> frozenset[str]:
    """The uuids of the aggregates that must not match."""
    return frozenset(
        uuid
        for item in items
        if item.is_negated
        for name in item.names
        for uuid in references.aggregates(name)
    )


def _providers(named: Iterable[str] | None, references: References) -> frozenset[str] | None:
    """The uuids of those providers that exist; None for no condition."""
    if named is None:
        return None
    uuids = map(references.provider, named)
    return frozenset(uuid for uuid in uuids if uuid is not None)
