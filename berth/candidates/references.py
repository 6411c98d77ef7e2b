# SPDX-License-Identifier: Apache-2.0
"""What the references and names of a question stand for in a snapshot, and which stand for nothing.

A reference that stands for nothing is no error in a question: it matches nothing, and the answer
warns of it. An unknown resource class or trait is an error, because no fleet could ever match it.

Source: spec/beyond.md 1.4 and 2.3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, Literal, NamedTuple

from msgspec import json

from berth.candidates.question import LEVELS, Item, Question, QuestionGroup, QuestionHost
from berth.index.records import json_of
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import parse_uuid_lax
from berth.model.names import likely, similar

#: How many unknown names get suggestions.
SUGGESTED_FOR_MAX: Final = 3

_NOTHING: Final = frozenset[str]()

ReferenceKind = Literal["provider", "aggregate", "drain"]
_NameKind = Literal["resource_class", "trait", "flavor", "provider", "aggregate", "drain"]


class UnknownReference(NamedTuple):
    """A reference that stands for nothing; `at` is its JSON pointer in the request."""

    at: str
    kind: ReferenceKind
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
        self._locations: dict[str, Location | None] = {}
        self._aggregates: dict[str, frozenset[str]] = {}

    def are_of(self, snapshot: Snapshot) -> bool:
        """Whether they stand for the same in a snapshot: only what is used and drained differs."""
        own = self._snapshot
        return own.names is snapshot.names and own.locations is snapshot.locations

    def location(self, reference: str) -> Location | None:
        """Where the provider is, None if there is none."""
        if reference not in self._locations:
            uuid = parse_uuid_lax(reference)
            self._locations[reference] = (
                self._snapshot.locate_name(json_of(reference))
                if uuid is None
                else self._snapshot.locate_uuid(uuid)
            )
        return self._locations[reference]

    def located(self, references: Iterable[str]) -> list[Location]:
        """Where those of some providers are that exist."""
        return [at for at in map(self.location, references) if at is not None]

    def provider(self, reference: str) -> str | None:
        """The uuid of the provider, None if there is none."""
        at = self.location(reference)
        return None if at is None else self._snapshot.block(at.block_id).uuid(at.node, at.row)

    def root(self, reference: str) -> Location | None:
        """Where the root of the provider's tree is, None if there is no such provider."""
        at = self.location(reference)
        return None if at is None else at._replace(node=0)

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
            return similar(unknown.reference, names.records.drains)
        if unknown.kind == "aggregate":
            labels = (value if key == "name" else f"{key}={value}" for key, value in names.labels)
            return similar(unknown.reference, likely(unknown.reference, labels))
        blocks = (block.names.every() for _, block in self._snapshot.occupied())
        written = likely(json_of(unknown.reference), chain.from_iterable(blocks))
        return similar(unknown.reference, filter(None, map(json.decode, written)))

    def unknown(
        self, kind: ReferenceKind, named: Iterable[tuple[str, str]]
    ) -> Iterator[UnknownReference]:
        """Those of some references that stand for nothing; each with its JSON pointer."""
        for at, reference in named:
            if not self._exists(kind, reference):
                yield UnknownReference(at, kind, reference)

    def _exists(self, kind: ReferenceKind, reference: str) -> bool:
        if kind == "drain":
            return reference in self._snapshot.names.records.drains
        if kind == "aggregate":
            return bool(self.aggregates(reference))
        return self.location(reference) is not None

    def _aggregates_of(self, reference: str) -> frozenset[str]:
        names = self._snapshot.names
        uuid = parse_uuid_lax(reference)
        if uuid is not None:
            return frozenset((uuid,)) if uuid in names.aggregate_ids else frozenset()
        key, equals, value = reference.partition("=")
        label = (key, value) if equals else ("name", reference)
        return frozenset(names.labels.get(label, ()))


def unknown_references(question: Question, references: References) -> Iterator[UnknownReference]:
    """The references that stand for nothing."""
    naming: dict[str, QuestionHost | QuestionGroup] = {
        "/host": question.host,
        **{f"/groups/{escaped(name)}": group for name, group in question.groups},
    }
    for at, each in naming.items():
        for within, named in each.named_providers.items():
            yield from references.unknown("provider", placed(at + within, named))
    for at, each in naming.items():
        yield from references.unknown("aggregate", names_in(f"{at}/member_of", each.member_of))
    if question.tolerate != "*":
        yield from references.unknown("drain", placed("/tolerate", question.tolerate))


def placed(at: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The pointer to each name of a list, and the name."""
    return ((f"{at}/{place}", name) for place, name in enumerate(names))


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
        for item_at, name in names_in(at, items):
            yield item_at, "trait", name
    for group_name, group in question.groups:
        group_at = f"/groups/{escaped(group_name)}"
        for name, _ in group.resources:
            yield f"{group_at}/resources/{escaped(name)}", "resource_class", name
        for item_at, name in names_in(f"{group_at}/required", group.required):
            yield item_at, "trait", name
    for member, relations in (("together", question.together), ("apart", question.apart)):
        for place, relation in enumerate(relations):
            if relation.at not in LEVELS:
                yield f"/{member}/{place}/at", "trait", relation.at


def escaped(name: str) -> str:
    """A name as a part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def names_in(at: str, items: Iterable[Item]) -> Iterator[tuple[str, str]]:
    """The pointer to each name of some items, and the name."""
    for place, item in enumerate(items):
        for number, name in enumerate(item.names):
            yield (f"{at}/{place}/{number}" if len(item.names) > 1 else f"{at}/{place}"), name


def required_of(items: Collection[Item]) -> tuple[frozenset[str], ...]:
    """Sets of names, of each of which one must be there; each set once."""
    if not items:
        return ()
    sets = (frozenset(item.names) for item in items if not item.is_negated)
    return tuple(dict.fromkeys(sets))


def forbidden_of(items: Collection[Item]) -> frozenset[str]:
    """The names that must not be there."""
    if not items:
        return _NOTHING
    return frozenset(name for item in items if item.is_negated for name in item.names)


def member_of(items: Collection[Item], references: References) -> tuple[frozenset[str], ...]:
    """Sets of uuids of aggregates, of each of which one must match."""
    if not items:
        return ()
    sets = (
        frozenset[str]().union(*map(references.aggregates, item.names))
        for item in items
        if not item.is_negated
    )
    return tuple(dict.fromkeys(sets))


def not_member_of(items: Collection[Item], references: References) -> frozenset[str]:
    """The uuids of the aggregates that must not match."""
    if not items:
        return _NOTHING
    return frozenset(
        uuid
        for item in items
        if item.is_negated
        for name in item.names
        for uuid in references.aggregates(name)
    )
