# SPDX-License-Identifier: Apache-2.0
"""From the JSON of a request, which its schema admits, to questions.

What a schema cannot say is checked here; the pointers of errors begin where the request stands in
the body.

Source: spec/beyond.md 2.2 to 2.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from berth.api.allocation_candidates import decode
from berth.api.berth_v1.pointed import pointer_of, refused
from berth.api.errors import Refused
from berth.candidates.question import (
    Item,
    Question,
    QuestionGroup,
    QuestionHost,
    QuestionRelation,
    Split,
)
from berth.candidates.request import CandidatesRequest, RequestGroup

#: The microversion at which a query string is read.
QUERY_MINOR: Final = 39

_INSTEAD_OF_ALTERNATIVES: Final = ("groups", "host", "together", "apart", "tolerate", "query")
_INSTEAD_OF_QUERY: Final = ("groups", "host", "together", "apart")

JSONObject = Mapping[str, Any]
_Tolerated = tuple[str, ...] | Literal["*"]


class Asked(NamedTuple):
    """One question, and where it stands.

    Attributes:
        at: the pointer to its request in the body.
        has_limit: whether it is a query string with a limit, which is ignored.
    """

    question: Question
    at: str
    has_limit: bool = False

    def pointer(self, within: str) -> str:
        """The pointer into the body of a pointer into the normalised request."""
        return f"{self.at}/query" if self.question.is_query else self.at + within


def read_request(request: JSONObject, at: str) -> tuple[Asked, ...]:
    """The alternatives of a request, or the one question that it is.

    Args:
        at: the pointer to the request in the body.

    Raises:
        Refused: 400.
    """
    alternatives = request.get("alternatives")
    if alternatives is None:
        return (_asked(request, at),)
    _check_instead(request, at, "alternatives", _INSTEAD_OF_ALTERNATIVES)
    return tuple(
        _asked(each, f"{at}/alternatives/{place}") for place, each in enumerate(alternatives)
    )


def _asked(request: JSONObject, at: str) -> Asked:
    tolerate = request.get("tolerate", ())
    tolerated: _Tolerated = "*" if tolerate == "*" else tuple(tolerate)
    if "query" in request:
        _check_instead(request, at, "query", _INSTEAD_OF_QUERY)
        wanted = _decoded(request["query"], f"{at}/query")
        return Asked(question_of(wanted, tolerated), at, wanted.limit is not None)
    if "groups" not in request:
        raise refused(at, "lacks groups, or a query or alternatives instead")
    question = Question(
        groups=tuple((name, _group(group)) for name, group in request["groups"].items()),
        host=_host(request.get("host", {})),
        together=_relations(request.get("together", ())),
        apart=_relations(request.get("apart", ())),
        tolerate=tolerated,
    )
    _check(question, at)
    return Asked(question, at)


def _check_instead(request: JSONObject, at: str, member: str, others: Iterable[str]) -> None:
    for other in others:
        if other in request:
            raise refused(f"{at}/{other}", f"cannot be given together with {member}")


def _group(group: JSONObject) -> QuestionGroup:
    return QuestionGroup(
        resources=tuple(group.get("resources", {}).items()),
        required=read_items(group.get("required", ())),
        member_of=read_items(group.get("member_of", ())),
        in_tree=_references(group, "in_tree"),
        under=_references(group, "under"),
        not_under=tuple(group.get("not_under", ())),
        split=tuple((name, Split(**split)) for name, split in group.get("split", {}).items()),
    )


def _host(host: JSONObject) -> QuestionHost:
    return QuestionHost(
        required=read_items(host.get("required", ())),
        anywhere=read_items(host.get("anywhere", ())),
        member_of=read_items(host.get("member_of", ())),
        within=_references(host, "in"),
        not_in=tuple(host.get("not_in", ())),
    )


def read_items(items: Iterable[str | Sequence[str]]) -> tuple[Item, ...]:
    """The conditions of a list."""
    return tuple(
        Item((item.removeprefix("!"),), item.startswith("!"))
        if isinstance(item, str)
        else Item(tuple(item))
        for item in items
    )


def _references(conditions: JSONObject, member: str) -> tuple[str, ...] | None:
    references = conditions.get(member)
    return None if references is None else tuple(references)


def _relations(relations: Iterable[JSONObject]) -> tuple[QuestionRelation, ...]:
    return tuple(QuestionRelation(tuple(each["groups"]), each["at"]) for each in relations)


def _check(question: Question, at: str) -> None:
    """Check the rules of the grammar.

    Raises:
        Refused: 400.
    """
    host = f"{at}/host"
    check_no_conflict(question.host.required, f"{host}/required")
    check_no_conflict(question.host.anywhere, f"{host}/anywhere")
    related = _check_relations(question, at)
    splitting: dict[str, str] = {}
    for name, group in question.groups:
        group_at = at + pointer_of(("groups", name))
        check_no_conflict(group.required, f"{group_at}/required")
        if not group.resources:
            _check_resourceless(name, group, group_at, related)
        _check_split(name, group, group_at, splitting)


def check_no_conflict(items: Sequence[Item], at: str) -> None:
    """Refuse items that demand a trait, or some alternatives, and forbid them too."""
    forbidden = {name for item in items if item.is_negated for name in item.names}
    for place, item in enumerate(items):
        if not item.is_negated and forbidden.issuperset(item.names):
            names = " or ".join(item.names)
            raise refused(f"{at}/{place}", f"is both required and forbidden: {names}")


def _check_relations(question: Question, at: str) -> set[str]:
    """The groups that the relations name, all of which must exist."""
    groups = {name for name, _ in question.groups}
    related: set[str] = set()
    for member, relations in (("together", question.together), ("apart", question.apart)):
        for place, relation in enumerate(relations):
            for number, name in enumerate(relation.groups):
                if name not in groups:
                    pointer = f"{at}/{member}/{place}/groups/{number}"
                    raise refused(pointer, f'names no group of the request: "{name}"')
            related.update(relation.groups)
    return related


def _check_resourceless(name: str, group: QuestionGroup, at: str, related: set[str]) -> None:
    if not name:
        raise refused(at, "has no resources; conditions on the host belong into host")
    if name not in related:
        raise refused(at, "has no resources, so together or apart must name it")
    if group == QuestionGroup():
        raise refused(at, "has neither resources nor conditions")


def _check_split(name: str, group: QuestionGroup, at: str, splitting: dict[str, str]) -> None:
    """Check what a group splits.

    Args:
        splitting: class -> the group that splits it. At most one may: where several groups divide
            one provider's amount, the minimal sets of one depend on the amounts of another.
    """
    classes = [class_name for class_name, _ in group.resources]
    for class_name, _ in group.split:
        split_at = at + pointer_of(("split", class_name))
        if class_name not in classes:
            raise refused(split_at, "is no class that the group asks for")
        if name and len(classes) > 1:
            raise refused(split_at, "cannot be split: a named group may split its only class")
        if class_name in splitting:
            other = splitting[class_name]
            raise refused(split_at, f'cannot be split twice: group "{other}" splits it too')
        splitting[class_name] = name


def _decoded(sent: str, at: str) -> CandidatesRequest:
    """A query string, with or without the path before it."""
    before, mark, after = sent.partition("?")
    try:
        return decode(after if mark and "=" not in before else sent, QUERY_MINOR)
    except Refused as refusal:
        raise refused(at, f"is no valid query. {refusal.message}".removesuffix(".")) from None


def question_of(wanted: CandidatesRequest, tolerate: _Tolerated = ()) -> Question:
    """The question that a query is."""
    suffixes = tuple(group.suffix for group in wanted.groups if group.suffix)
    isolates = wanted.group_policy == "isolate" and len(suffixes) > 1
    return Question(
        groups=tuple((group.suffix, _translated_group(group)) for group in wanted.groups),
        host=QuestionHost(required=tuple(_items_of(wanted.host.required, wanted.host.forbidden))),
        together=tuple(
            QuestionRelation(tuple(sorted(names)), "subtree")
            for names in wanted.same_subtree
            if len(names) > 1
        ),
        apart=(QuestionRelation(suffixes, "provider"),) if isolates else (),
        tolerate=tolerate,
        is_query=True,
    )


def _translated_group(group: RequestGroup) -> QuestionGroup:
    return QuestionGroup(
        resources=group.resources,
        required=tuple(_items_of(group.required, group.forbidden)),
        member_of=tuple(_items_of(group.member_of, group.not_member_of)),
        in_tree=None if group.in_tree is None else tuple(group.in_tree),
    )


def _items_of(required: Iterable[frozenset[str]], forbidden: Iterable[str]) -> Iterator[Item]:
    for names in required:
        yield Item(tuple(sorted(names)))
    for name in sorted(forbidden):
        yield Item((name,), is_negated=True)
