# SPDX-License-Identifier: Apache-2.0
"""Atoms: the single constraints that a question is cut into, each with a JSON pointer and words.

Sets of atoms are integers with a bit for each. Source: spec/beyond.md 3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from berth.candidates.question import Item, Question, QuestionGroup, QuestionHost
from berth.candidates.references import escaped, pointers_of_within

#: How many references an atom's words name.
_NAMED_MAX: Final = 3


#: The pointer and the words of the atom that no provider is drained.
DRAINS_AT: Final = "/drains"
DRAINS_TEXT: Final = "not drained"


class Part(Enum):
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


@dataclass(frozen=True, slots=True)
class Atom:
    """One constraint.

    Attributes:
        at: its JSON pointer in the normalised request.
        text: what it says, for people.
        part: what it constrains.
        group: the name of its group; None for the host and for relations.
        place: its number among the items of its list, the classes of its group, or the relations.
        asked: (class, amount), if it asks for one.
    """

    at: str
    text: str
    part: Part
    group: str | None
    place: int
    asked: tuple[str, int] | None = None

    @property
    def is_relation(self) -> bool:
        """Whether it relates groups."""
        return self.part in (Part.TOGETHER, Part.APART)


def atoms_of(question: Question, *, has_drained: bool) -> Iterator[Atom]:
    """The atoms of a question, in the order in which each further one only removes hosts.

    Args:
        has_drained: whether any provider is drained that the question does not tolerate.
    """
    if has_drained:
        yield Atom(DRAINS_AT, DRAINS_TEXT, Part.DRAINS, None, 0)
    yield from _of_host(question.host)
    for name, group in question.groups:
        yield from _of_group(name, group)
    for part, relations in ((Part.TOGETHER, question.together), (Part.APART, question.apart)):
        for place, relation in enumerate(relations):
            groups = ", ".join(name or '""' for name in relation.groups)
            text = f"{part.value} at {relation.at}: {groups}"
            yield Atom(f"/{part.value}/{place}", text, part, None, place)


def _of_host(host: QuestionHost) -> Iterator[Atom]:
    for place, (at, several) in enumerate(zip(pointers_of_within(host), host.within, strict=True)):
        yield Atom(at, f"on {_listed(several)}", Part.IN, None, place)
    if host.not_in:
        yield Atom("/host/not_in", f"not on {_listed(host.not_in)}", Part.NOT_IN, None, 0)
    for part, items, word, where in (
        (Part.REQUIRED, host.required, "trait", " on the root"),
        (Part.ANYWHERE, host.anywhere, "trait", " anywhere"),
        (Part.MEMBER_OF, host.member_of, "in", ""),
    ):
        for place, item in enumerate(items):
            at = f"/host/{part.value}/{place}"
            yield Atom(at, _item_text(item, word) + where, part, None, place)


def _of_group(name: str, group: QuestionGroup) -> Iterator[Atom]:
    at = f"/groups/{escaped(name)}"
    whose = f" for {name}" if name else ""
    for place, (class_name, amount) in enumerate(group.resources):
        text = f"{class_name} {amount}{whose}"
        pointer = f"{at}/resources/{escaped(class_name)}"
        yield Atom(pointer, text, Part.RESOURCES, name, place, (class_name, amount))
    for part, items, word in (
        (Part.REQUIRED, group.required, "trait"),
        (Part.MEMBER_OF, group.member_of, "in"),
    ):
        for place, item in enumerate(items):
            text = _item_text(item, word) + whose
            yield Atom(f"{at}/{part.value}/{place}", text, part, name, place)
    for part, references, words in (
        (Part.IN_TREE, group.in_tree, "in the tree of"),
        (Part.UNDER, group.under, "under"),
        (Part.NOT_UNDER, group.not_under or None, "not under"),
    ):
        if references is not None:
            text = f"{words} {_listed(references)}{whose}"
            yield Atom(f"{at}/{part.value}", text, part, name, 0)


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
