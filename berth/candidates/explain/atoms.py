# SPDX-License-Identifier: Apache-2.0
"""Atoms: the single constraints that a question is cut into, each with a JSON pointer and words;
and questions that are made of others: of some atoms only, or with a name that exists.

Sets of atoms are integers with a bit for each.

Source: spec/beyond.md 3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from berth.candidates.fleet import Fleet
from berth.candidates.question import (
    Item,
    Question,
    QuestionGroup,
    QuestionHost,
    QuestionRelation,
    Split,
)
from berth.candidates.references import References, UnknownName, escaped
from berth.index.sets import Mask

#: How many references an atom's words name.
_NAMED_MAX: Final = 3


#: The pointer and the words of the atom that no provider is drained.
DRAINS_AT: Final = "/drains"
DRAINS_TEXT: Final = "not drained"


class AtomKind(Enum):
    """What an atom constrains; the value is the member of the request."""

    DRAINS = "drains"
    IN = "in"
    NOT_IN = "not_in"
    REQUIRED = "required"
    ANYWHERE = "anywhere"
    MEMBER_OF = "member_of"
    RESOURCES = "resources"
    IN_TREE = "in_tree"
    UNDER = "under"
    NOT_UNDER = "not_under"
    TOGETHER = "together"
    APART = "apart"


class Atom(Struct, frozen=True):
    """One constraint.

    Attributes:
        at: its JSON pointer in the normalised request.
        text: what it says, for people.
        kind: what it constrains.
        group: the name of its group; None for the host and for relations.
        place: its number among the items of its list, the classes of its group, or the relations.
        asked: (class, amount), if it asks for one.
    """

    at: str
    text: str
    kind: AtomKind
    group: str | None
    place: int
    asked: tuple[str, int] | None = None

    @property
    def is_relation(self) -> bool:
        """Whether it relates groups."""
        return self.kind in (AtomKind.TOGETHER, AtomKind.APART)


def atoms_of(question: Question, *, has_drained: bool) -> Iterator[Atom]:
    """The atoms of a question, in the order in which each further one only removes hosts.

    Args:
        has_drained: whether any provider is drained that the question does not tolerate.
    """
    if has_drained:
        yield Atom(DRAINS_AT, DRAINS_TEXT, AtomKind.DRAINS, None, 0)
    yield from _of_host(question.host)
    for name, group in question.groups:
        yield from _of_group(name, group)
    for kind, relations in (
        (AtomKind.TOGETHER, question.together),
        (AtomKind.APART, question.apart),
    ):
        for place, relation in enumerate(relations):
            groups = ", ".join(name or '""' for name in relation.groups)
            text = f"{kind.value} at {relation.at}: {groups}"
            yield Atom(f"/{kind.value}/{place}", text, kind, None, place)


def _of_host(host: QuestionHost) -> Iterator[Atom]:
    for place, (at, several) in enumerate(host.lists_within.items()):
        yield Atom(f"/host{at}", f"on {_listed(several)}", AtomKind.IN, None, place)
    if host.not_in:
        yield Atom("/host/not_in", f"not on {_listed(host.not_in)}", AtomKind.NOT_IN, None, 0)
    for kind, items, word, where in (
        (AtomKind.REQUIRED, host.required, "trait", " on the root"),
        (AtomKind.ANYWHERE, host.anywhere, "trait", " anywhere"),
        (AtomKind.MEMBER_OF, host.member_of, "in", ""),
    ):
        for place, item in enumerate(items):
            at = f"/host/{kind.value}/{place}"
            yield Atom(at, _item_text(item, word) + where, kind, None, place)


def _of_group(name: str, group: QuestionGroup) -> Iterator[Atom]:
    at = f"/groups/{escaped(name)}"
    whose = f" for {name}" if name else ""
    for place, (class_name, amount) in enumerate(group.resources):
        text = f"{class_name} {amount}{whose}"
        pointer = f"{at}/resources/{escaped(class_name)}"
        yield Atom(pointer, text, AtomKind.RESOURCES, name, place, (class_name, amount))
    for kind, items, word in (
        (AtomKind.REQUIRED, group.required, "trait"),
        (AtomKind.MEMBER_OF, group.member_of, "in"),
    ):
        for place, item in enumerate(items):
            text = _item_text(item, word) + whose
            yield Atom(f"{at}/{kind.value}/{place}", text, kind, name, place)
    for kind, references, words in (
        (AtomKind.IN_TREE, group.in_tree, "in the tree of"),
        (AtomKind.UNDER, group.under, "under"),
        (AtomKind.NOT_UNDER, group.not_under or None, "not under"),
    ):
        if references is not None:
            text = f"{words} {_listed(references)}{whose}"
            yield Atom(f"{at}/{kind.value}", text, kind, name, 0)


def _item_text(item: Item, word: str) -> str:
    names = _listed(item.names, " or ")
    return f"not {word} {names}" if item.is_negated else f"{word} {names}"


def _listed(names: Sequence[str], joint: str = ", ") -> str:
    """Some names, of many only the first."""
    if len(names) <= _NAMED_MAX:
        return joint.join(names) or "nothing"
    return f"{joint.join(names[:_NAMED_MAX])}{joint}{len(names) - _NAMED_MAX:,} more"


def bits(numbers: Iterable[int]) -> int:
    """The set of some atoms, by their numbers."""
    together = 0
    for number in numbers:
        together |= 1 << number
    return together


#: atom -> another amount than it asks for; 0 asks for any inventory of the class.
Amounts = Mapping[int, int]

_Listed = TypeVar("_Listed", Item, QuestionRelation, tuple[str, ...])

#: (kind, place) of the atoms of one group, or of the host and the relations -> the atom's number.
_Numbers = Mapping[tuple[AtomKind, int], int]


class Reduction:
    """The questions that a question leaves when some of its atoms are left out."""

    def __init__(self, question: Question, atoms: Sequence[Atom], references: References) -> None:
        self._question = question
        self.atoms = atoms
        self.references = references
        self._groups = dict(question.groups)
        self._numbers: dict[str | None, dict[tuple[AtomKind, int], int]] = {None: {}}
        for number, atom in enumerate(atoms):
            self._numbers.setdefault(atom.group, {})[atom.kind, atom.place] = number

    def question(self, kept: int, amounts: Amounts) -> Question:
        """The question of some atoms."""
        own = self._numbers[None]
        together = _some(self._question.together, AtomKind.TOGETHER, own, kept)
        apart = _some(self._question.apart, AtomKind.APART, own, kept)
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
        return Question(
            groups=tuple(groups),
            host=self._host(kept),
            together=tuple(_without(together, gone)),
            apart=tuple(_without(apart, gone)),
        )

    def split_of(self, atom: Atom) -> Split | None:
        """How the amount of an atom may come from several providers; None if it may not."""
        assert atom.asked is not None and atom.group is not None
        return dict(self._groups[atom.group].split).get(atom.asked[0])

    def trait_item(self, atom: Atom) -> Item | None:
        """What an atom asks of traits, if it asks for nothing else and is read naturally."""
        if atom.group is not None:
            group = self._groups[atom.group]
            is_natural = not self._question.is_query or bool(group.resources)
            wanted = atom.kind is AtomKind.REQUIRED and is_natural
            return group.required[atom.place] if wanted else None
        host = self._question.host
        items = {AtomKind.REQUIRED: host.required, AtomKind.ANYWHERE: host.anywhere}.get(atom.kind)
        return None if items is None else items[atom.place]

    def question_of_group(self, atom: Atom, kept: int) -> Question:
        """Any inventory of an atom's class, and the conditions that are kept of its group."""
        assert atom.group is not None
        assert atom.asked is not None
        whole = self._groups[atom.group]
        group = self._group(atom.group, whole, kept, {})
        having = group._replace(resources=((atom.asked[0], 0),), split=())
        return Question(groups=((atom.group, having),))

    def _group(self, name: str, group: QuestionGroup, kept: int, amounts: Amounts) -> QuestionGroup:
        own = self._numbers.get(name, {})
        resources = []
        for place, (class_name, amount) in enumerate(group.resources):
            number = own.get((AtomKind.RESOURCES, place))
            if number is not None and kept >> number & 1:
                resources.append((class_name, amounts.get(number, amount)))
        wanted = dict(resources)
        reduced = QuestionGroup(
            resources=tuple(resources),
            required=_some(group.required, AtomKind.REQUIRED, own, kept),
            member_of=_some(group.member_of, AtomKind.MEMBER_OF, own, kept),
            in_tree=group.in_tree if _has(AtomKind.IN_TREE, own, kept) else None,
            under=group.under if _has(AtomKind.UNDER, own, kept) else None,
            not_under=group.not_under if _has(AtomKind.NOT_UNDER, own, kept) else (),
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
            return reduced._replace(under=())
        exists = any(self.references.location(each) for each in reduced.in_tree or ())
        return reduced._replace(in_tree=None) if exists else reduced

    def _host(self, kept: int) -> QuestionHost:
        host, own = self._question.host, self._numbers[None]
        return QuestionHost(
            required=_some(host.required, AtomKind.REQUIRED, own, kept),
            anywhere=_some(host.anywhere, AtomKind.ANYWHERE, own, kept),
            member_of=_some(host.member_of, AtomKind.MEMBER_OF, own, kept),
            within=_some(host.within, AtomKind.IN, own, kept),
            not_in=host.not_in if _has(AtomKind.NOT_IN, own, kept) else (),
        )


def _has(kind: AtomKind, own: _Numbers, kept: int, place: int = 0) -> bool:
    number = own.get((kind, place))
    return number is not None and bool(kept >> number & 1)


def _some(
    several: Sequence[_Listed], kind: AtomKind, own: _Numbers, kept: int
) -> tuple[_Listed, ...]:
    return tuple(each for place, each in enumerate(several) if _has(kind, own, kept, place))


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


Value = TypeVar("Value")


def named_hosts(question: Question, references: References, fleet: Fleet) -> Mask:
    """The hosts that `host.in`, `in_tree` and `under` name, by any provider of their trees."""
    lists = [*question.host.within]
    for _, group in question.groups:
        lists += [group.in_tree or (), group.under or ()]
    hosts = fleet.none()
    for root in (references.root(each) for several in lists for each in several):
        if root is not None:
            hosts[fleet.starts[root.block_id] + root.row] = True
    return hosts


def with_name_instead(question: Question, unknown: UnknownName, name: str) -> Question | None:
    """The question with another name wherever it has an unknown one; None if a group would then
    ask for one class twice."""
    if unknown.kind == "resource_class":
        if any({name, unknown.name} <= {*dict(group.resources)} for _, group in question.groups):
            return None
        groups = (
            (suffix, _with_class(each, unknown.name, name)) for suffix, each in question.groups
        )
        return replace(question, groups=tuple(groups))

    def other(items: Iterable[Item]) -> tuple[Item, ...]:
        return tuple(
            Item(
                tuple(name if each == unknown.name else each for each in item.names),
                item.is_negated,
            )
            for item in items
        )

    def level(at: str) -> str:
        return name if at == unknown.name else at

    host = question.host
    return replace(
        question,
        groups=tuple(
            (suffix, group._replace(required=other(group.required)))
            for suffix, group in question.groups
        ),
        host=host._replace(required=other(host.required), anywhere=other(host.anywhere)),
        together=tuple(each._replace(at=level(each.at)) for each in question.together),
        apart=tuple(each._replace(at=level(each.at)) for each in question.apart),
    )


def _with_class(group: QuestionGroup, old: str, new: str) -> QuestionGroup:
    def renamed(pairs: Iterable[tuple[str, Value]]) -> tuple[tuple[str, Value], ...]:
        return tuple((new if name == old else name, value) for name, value in pairs)

    return group._replace(resources=renamed(group.resources), split=renamed(group.split))
