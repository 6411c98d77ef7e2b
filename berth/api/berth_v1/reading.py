# SPDX-License-Identifier: Apache-2.0
"""From the JSON of a request, which its schema admits, to questions.

What a schema cannot say is checked here; the pointers of errors begin where the request stands in
the body. Flavors are still names: `berth.api.berth_v1.expanding` looks them up in a snapshot.

Source: spec/beyond.md 2.2 to 2.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from berth.api.allocation_candidates import decode
from berth.api.berth_v1.grammar import ONE_REQUEST
from berth.api.berth_v1.pointed import PointedSchema, pointer_of, refused
from berth.api.errors import Refused
from berth.api.operations.berth_v1.codes import TOO_LARGE
from berth.candidates.question import (
    Item,
    Question,
    QuestionGroup,
    QuestionHost,
    QuestionRelation,
    Split,
)
from berth.candidates.request import CandidatesRequest, RequestGroup
from berth.model.bounds import RELATIONS_MAX
from berth.pasted import NotReadable, request_in

#: The microversion at which a query string is read.
QUERY_MINOR: Final = 39

#: What a command asks for.
_PASTED: Final = PointedSchema(ONE_REQUEST)

_INSTEAD_OF_FLAVOR: Final = ("groups", "together", "apart", "query")
_INSTEAD_OF_ALTERNATIVES: Final = (*_INSTEAD_OF_FLAVOR, "host", "tolerate", "flavor")
_INSTEAD_OF_QUERY: Final = ("groups", "host", "together", "apart")

JSONObject = Mapping[str, Any]
#: Names of drains, or "*" for all of them.
Tolerated = tuple[str, ...] | Literal["*"]


class Part(NamedTuple):
    """What one member of a body, or several, ask for.

    Attributes:
        at: the pointer to the request in the body.
        flavor: the flavor that asks for it; "" for the request itself.
        has_limit: whether it is a query string with a limit, which is ignored.
        is_own: whether a consumer has asked for it, so that it is not in the body.
    """

    question: Question
    at: str
    flavor: str = ""
    has_limit: bool = False
    is_own: bool = False

    def pointer(self, within: str) -> str:
        """The pointer into the body of a pointer into the normalised request."""
        if self.is_own:
            return self.at
        if self.flavor:
            return f"{self.at}/flavor"
        return f"{self.at}/query" if self.question.is_query else self.at + within


class Asked(NamedTuple):
    """One question, and the parts that it is made of: one, or a flavor and the rest."""

    question: Question
    parts: tuple[Part, ...]


class AskedByFlavor(NamedTuple):
    """A request that names a flavor.

    Attributes:
        own: everything else that it asks for, without groups.
        at: the pointer to the request in the body.
    """

    flavor: str
    own: Question
    at: str


Requested = Asked | AskedByFlavor


def read_request(request: JSONObject, at: str) -> tuple[Requested, ...]:
    """The alternatives of a request, or the one question that it is.

    Args:
        at: the pointer to the request in the body.

    Raises:
        Refused: 400.
    """
    alternatives = request.get("alternatives")
    if alternatives is None:
        return (_requested(request, at),)
    _check_instead(request, at, "alternatives", _INSTEAD_OF_ALTERNATIVES)
    return tuple(
        _requested(each, f"{at}/alternatives/{place}") for place, each in enumerate(alternatives)
    )


def read_question(request: JSONObject, at: str) -> Asked:
    """The question of a request without `flavor` and `alternatives`.

    Raises:
        Refused: 400.
    """
    request = _without_paste(request, at)
    if "query" in request:
        wanted = _decoded(request["query"], f"{at}/query")
        question = question_of(wanted, _tolerated(request))
        return Asked(question, (Part(question, at, has_limit=wanted.limit is not None),))
    if "groups" not in request:
        raise refused(at, "lacks groups, or a query instead")
    question = Question(
        groups=tuple((name, _group(group)) for name, group in request["groups"].items()),
        host=read_host(request.get("host", {}), f"{at}/host"),
        together=_relations(request.get("together", ())),
        apart=_relations(request.get("apart", ())),
        tolerate=_tolerated(request),
    )
    _check(question, at)
    return Asked(question, (Part(question, at),))


def _requested(request: JSONObject, at: str) -> Requested:
    request = _without_paste(request, at)
    if "flavor" in request:
        _check_instead(request, at, "flavor", _INSTEAD_OF_FLAVOR)
        host = read_host(request.get("host", {}), f"{at}/host")
        own = Question((), host, tolerate=_tolerated(request))
        return AskedByFlavor(request["flavor"], own, at)
    if "groups" not in request and "query" not in request:
        raise refused(at, "lacks groups, or a flavor, a query or alternatives instead")
    return read_question(request, at)


def _without_paste(request: JSONObject, at: str) -> JSONObject:
    """The request with the query string alone, or the request of a command, for what was pasted."""
    if "query" not in request:
        return request
    _check_instead(request, at, "query", _INSTEAD_OF_QUERY)
    others = {name: value for name, value in request.items() if name != "query"}
    try:
        _PASTED.check(pasted := request_in(request["query"]))
    except (NotReadable, Refused) as fault:
        message = f"is not a valid query. {fault}".removesuffix(".")
        raise refused(f"{at}/query", message) from None
    return {**pasted, **others}


def _tolerated(request: JSONObject) -> Tolerated:
    tolerate = request.get("tolerate", ())
    return "*" if tolerate == "*" else tuple(tolerate)


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


def read_host(sent: JSONObject, at: str) -> QuestionHost:
    """Conditions on a host; `at` is their pointer in the body.

    Raises:
        Refused: 400.
    """
    host = QuestionHost(
        required=read_items(sent.get("required", ())),
        anywhere=read_items(sent.get("anywhere", ())),
        member_of=read_items(sent.get("member_of", ())),
        within=_within(sent, f"{at}/in"),
        not_in=tuple(sent.get("not_in", ())),
    )
    check_no_conflict(host.required, f"{at}/required")
    check_no_conflict(host.anywhere, f"{at}/anywhere")
    return host


def _within(host: JSONObject, at: str) -> tuple[tuple[str, ...], ...]:
    """The lists of `in`, which is one list or has several.

    Raises:
        Refused: 400 for references beside lists, and for a single list in a list.
    """
    if "in" not in host:
        return ()
    items: Sequence[str | Sequence[str]] = host["in"]
    lists = tuple(tuple(item) for item in items if not isinstance(item, str))
    if not lists:
        return (tuple(host["in"]),)
    if len(lists) == 1:
        raise refused(at, "has one list of providers, which must stand there without the other")
    for place, item in enumerate(items):
        if isinstance(item, str):
            raise refused(f"{at}/{place}", "must be a list, because other items are lists")
    return lists


def read_conditions(sent: JSONObject) -> Part:
    """The conditions `host` and `tolerate` of a body itself.

    Raises:
        Refused: 400.
    """
    host = read_host(sent.get("host", {}), "/host")
    return Part(Question((), host, tolerate=_tolerated(sent)), "")


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
    for place, names in conflicts(items):
        raise refused(f"{at}/{place}", f"is both required and forbidden: {names}")


def conflicts(items: Sequence[Item]) -> Iterator[tuple[int, str]]:
    """The place of each item that others forbid, and what they forbid."""
    forbidden = {name for item in items if item.is_negated for name in item.names}
    for place, item in enumerate(items):
        if not item.is_negated and forbidden.issuperset(item.names):
            yield place, " or ".join(item.names)


def _check_relations(question: Question, at: str) -> set[str]:
    """The groups that the relations name, all of which must exist."""
    groups = {name for name, _ in question.groups}
    related: set[str] = set()
    if len(question.together) + len(question.apart) > RELATIONS_MAX:
        message = f"and together may have at most {RELATIONS_MAX} relations (max_relations) in all"
        raise refused(f"{at}/apart", message, code=TOO_LARGE)
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
    """A query string."""
    try:
        # As a server passes it on.
        return decode(sent.encode().decode("latin-1"), QUERY_MINOR)
    except Refused as refusal:
        raise refused(at, f"is not a valid query. {refusal.message}".removesuffix(".")) from None


def question_of(wanted: CandidatesRequest, tolerate: Tolerated = ()) -> Question:
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
