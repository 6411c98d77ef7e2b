# SPDX-License-Identifier: Apache-2.0
"""Q|K: a question reduced to some of its atoms, as a request. Source: spec/beyond.md 3.2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from berth.candidates.explain.atoms import Atom, Part
from berth.candidates.question import (
    Item,
    Question,
    QuestionGroup,
    QuestionHost,
    QuestionRelation,
)
from berth.candidates.references import References, request_of
from berth.candidates.request import CandidatesRequest

#: atom -> another amount than it asks for; 0 asks for any inventory of the class.
Amounts = Mapping[int, int]

_Listed = TypeVar("_Listed", Item, QuestionRelation, tuple[str, ...])

#: (part, place) of the atoms of one group, or of the host and the relations -> the atom's number.
_Numbers = Mapping[tuple[Part, int], int]


class Reduction:
    """The requests that a question leaves when some of its atoms are left out."""

    def __init__(self, question: Question, atoms: Sequence[Atom], references: References) -> None:
        self._question = question
        self._references = references
        self._groups = dict(question.groups)
        self._numbers: dict[str | None, dict[tuple[Part, int], int]] = {None: {}}
        for number, atom in enumerate(atoms):
            self._numbers.setdefault(atom.group, {})[atom.part, atom.place] = number

    def request(self, kept: int, amounts: Amounts) -> CandidatesRequest:
        """The request of some atoms."""
        own = self._numbers[None]
        together = _some(self._question.together, Part.TOGETHER, own, kept)
        apart = _some(self._question.apart, Part.APART, own, kept)
        named = {name for relation in (*together, *apart) for name in relation.groups}
        groups: list[tuple[str, QuestionGroup]] = []
        gone: set[str] = set()
        for name, whole in self._question.groups:
            group = self._group(name, whole, kept, amounts)
            if group.resources:
                groups.append((name, group))
            elif not name:
                gone.add(name)
                groups.extend(_by_itself(group))
            elif name in named or group != QuestionGroup():
                groups.append((name, group))
            else:
                gone.add(name)
        reduced = Question(
            groups=tuple(groups),
            host=self._host(kept),
            together=tuple(_without(together, gone)),
            apart=tuple(_without(apart, gone)),
        )
        return request_of(reduced, self._references)

    def is_split(self, atom: Atom) -> bool:
        """Whether the amount of an atom may come from several providers."""
        assert atom.asked is not None
        assert atom.group is not None
        return atom.asked[0] in dict(self._groups[atom.group].split)

    def trait_item(self, atom: Atom) -> Item | None:
        """What an atom asks of traits, if it asks for nothing else and is read naturally."""
        if atom.group is not None:
            group = self._groups[atom.group]
            is_natural = not self._question.is_query or bool(group.resources)
            wanted = atom.part is Part.REQUIRED and is_natural
            return group.required[atom.place] if wanted else None
        host = self._question.host
        items = {Part.REQUIRED: host.required, Part.ANYWHERE: host.anywhere}.get(atom.part)
        return None if items is None else items[atom.place]

    def request_of_group(self, atom: Atom, kept: int) -> CandidatesRequest:
        """Any inventory of an atom's class, and the conditions that are kept of its group."""
        assert atom.group is not None
        assert atom.asked is not None
        whole = self._groups[atom.group]
        group = self._group(atom.group, whole, kept, {})
        having = replace(group, resources=((atom.asked[0], 0),), split=())
        return request_of(Question(groups=((atom.group, having),)), self._references)

    def _group(self, name: str, group: QuestionGroup, kept: int, amounts: Amounts) -> QuestionGroup:
        own = self._numbers.get(name, {})
        resources = []
        for place, (class_name, amount) in enumerate(group.resources):
            number = own.get((Part.RESOURCES, place))
            if number is not None and kept >> number & 1:
                resources.append((class_name, amounts.get(number, amount)))
        wanted = dict(resources)
        reduced = QuestionGroup(
            resources=tuple(resources),
            required=_some(group.required, Part.REQUIRED, own, kept),
            member_of=_some(group.member_of, Part.MEMBER_OF, own, kept),
            in_tree=group.in_tree if _has(Part.IN_TREE, own, kept) else None,
            under=group.under if _has(Part.UNDER, own, kept) else None,
            not_under=group.not_under if _has(Part.NOT_UNDER, own, kept) else (),
            # Any inventory of a class is one provider's.
            split=tuple(each for each in group.split if wanted.get(each[0])),
        )
        if self._question.is_query and not group.resources:
            return self._as_placement_reads_it(group, reduced)
        return reduced

    def _as_placement_reads_it(self, whole: QuestionGroup, reduced: QuestionGroup) -> QuestionGroup:
        """A group of a query string that was sent without resources."""
        # COMPAT spec/allocation-candidates.md 5.2: nothing serves it if it has no positive
        # condition, and its tree must exist and is otherwise ignored.
        if reduced == QuestionGroup():
            return reduced
        if not any(not item.is_negated for item in (*whole.required, *whole.member_of)):
            return replace(reduced, under=())
        exists = any(self._references.provider(each) for each in reduced.in_tree or ())
        return replace(reduced, in_tree=None) if exists else reduced

    def _host(self, kept: int) -> QuestionHost:
        host, own = self._question.host, self._numbers[None]
        return QuestionHost(
            required=_some(host.required, Part.REQUIRED, own, kept),
            anywhere=_some(host.anywhere, Part.ANYWHERE, own, kept),
            member_of=_some(host.member_of, Part.MEMBER_OF, own, kept),
            within=_some(host.within, Part.IN, own, kept),
            not_in=host.not_in if _has(Part.NOT_IN, own, kept) else (),
        )


def _has(part: Part, own: _Numbers, kept: int, place: int = 0) -> bool:
    number = own.get((part, place))
    return number is not None and bool(kept >> number & 1)


def _some(several: Sequence[_Listed], part: Part, own: _Numbers, kept: int) -> tuple[_Listed, ...]:
    return tuple(each for place, each in enumerate(several) if _has(part, own, kept, place))


def _by_itself(group: QuestionGroup) -> Iterator[tuple[str, QuestionGroup]]:
    """The conditions of the unsuffixed group, each of which some provider meets by itself."""
    alone = [
        *(QuestionGroup(required=(item,)) for item in group.required),
        *(QuestionGroup(member_of=(item,)) for item in group.member_of),
    ]
    if group.in_tree is not None:
        alone.append(QuestionGroup(in_tree=group.in_tree))
    if group.under is not None:
        alone.append(QuestionGroup(under=group.under))
    if group.not_under:
        alone.append(QuestionGroup(not_under=group.not_under))
    # No group of a request has a name with a slash.
    return ((f"/{place}", condition) for place, condition in enumerate(alone))


def _without(relations: Iterable[QuestionRelation], gone: set[str]) -> Iterator[QuestionRelation]:
    """The relations between groups that are left."""
    for relation in relations:
        left = tuple(name for name in relation.groups if name not in gone)
        if len(left) > 1:
            yield QuestionRelation(left, relation.at)
