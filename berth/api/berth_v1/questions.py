# SPDX-License-Identifier: Apache-2.0
"""From the JSON of a request, which its schema admits, to questions, and back.

What a schema cannot say is checked here; the pointers of errors begin where the request stands in
the body. Flavors are still names: `berth.api.berth_v1.fleet_questions` looks them up in a snapshot.
A question goes back to JSON as the normalised request, into which the pointers of `explain` lead.

Source: spec/beyond.md 2.2 to 2.5 and 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, get_type_hints

from msgspec.structs import asdict, replace

from berth.api.berth_v1.codes import TOO_LARGE
from berth.api.berth_v1.grammar import ONE_REQUEST
from berth.api.berth_v1.inputs import PointedSchema
from berth.api.berth_v1.refusals import pointer_of, refused
from berth.api.errors import Refused
from berth.api.placement.candidates_query import DecodedQuery, decode
from berth.candidates.question import (
    Item,
    Question,
    QuestionGroup,
    QuestionHost,
    QuestionRelation,
    Split,
)
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
        query = _decoded(request["query"], f"{at}/query")
        question = replace(query.question, tolerate=_tolerated(request))
        return Asked(question, (Part(question, at, has_limit=query.limit is not None),))
    if "groups" not in request:
        raise refused(at, "lacks groups, or a query instead")
    question = Question(
        groups=tuple(
            (name, QuestionGroup(**_read(_OF_GROUP, group)))
            for name, group in request["groups"].items()
        ),
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


def read_host(sent: JSONObject, at: str) -> QuestionHost:
    """Conditions on a host; `at` is their pointer in the body.

    Raises:
        Refused: 400.
    """
    if "in" in sent:
        _check_within(sent["in"], f"{at}/in")
    host = QuestionHost(**_read(_OF_HOST, sent))
    check_no_conflict(host.required, f"{at}/required")
    check_no_conflict(host.anywhere, f"{at}/anywhere")
    return host


def _check_within(items: Sequence[str | Sequence[str]], at: str) -> None:
    """Refuse references beside lists, and a single list in a list."""
    count = len([item for item in items if not isinstance(item, str)])
    if count == 1:
        raise refused(at, "has one list of providers, which must stand there without the other")
    for place, item in enumerate(items if count else ()):
        if isinstance(item, str):
            raise refused(f"{at}/{place}", "must be a list, because other items are lists")


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


def _decoded(sent: str, at: str) -> DecodedQuery:
    """A query string."""
    try:
        # As a server passes it on.
        return decode(sent.encode().decode("latin-1"), QUERY_MINOR)
    except Refused as refusal:
        raise refused(at, f"is not a valid query. {refusal.message}".removesuffix(".")) from None


# --- The normalised request -----------------------------------------------------------------------


def request_json(question: Question) -> dict[str, Any]:
    """The request that asks a question, without members that say nothing."""
    return _said(
        groups={name: _written(_OF_GROUP, group) for name, group in question.groups},
        host=_written(_OF_HOST, question.host) or None,
        together=_relations_json(question.together),
        apart=_relations_json(question.apart),
        tolerate=question.tolerate or None,
    )


def _said(**members: object) -> dict[str, Any]:
    """An object without the members that are None."""
    return {name: value for name, value in members.items() if value is not None}


def _item_json(item: Item) -> str | tuple[str, ...]:
    if item.is_negated:
        (name,) = item.names
        return f"!{name}"
    return item.names[0] if len(item.names) == 1 else item.names


def _relations_json(relations: Iterable[QuestionRelation]) -> list[dict[str, Any]] | None:
    return [{"groups": each.groups, "at": each.at} for each in relations] or None


# --- Conditions, both ways ------------------------------------------------------------------------


def _lists(items: Sequence[str | Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """The lists of `in`, which is one list or has several."""
    lists = tuple(tuple(item) for item in items if not isinstance(item, str))
    return lists or (tuple(map(str, items)),)


def _splits(sent: JSONObject) -> tuple[tuple[str, Split], ...]:
    return tuple((name, Split(**split)) for name, split in sent.items())


#: How what a field has is read, and written again, by the type of the field.
_FORMS: Final[Mapping[object, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    tuple[tuple[str, int], ...]: (lambda sent: tuple(sent.items()), dict),
    tuple[Item, ...]: (read_items, lambda items: [_item_json(item) for item in items]),
    tuple[str, ...]: (tuple, tuple),
    tuple[str, ...] | None: (tuple, tuple),
    tuple[tuple[str, ...], ...]: (_lists, lambda lists: lists[0] if len(lists) == 1 else lists),
    tuple[tuple[str, Split], ...]: (_splits, lambda some: {n: asdict(each) for n, each in some}),
}

#: member -> its field, how it is read, and how it is written.
_Members = Mapping[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]]


def _members(conditions: type) -> _Members:
    hints = get_type_hints(conditions)
    return {{"within": "in"}.get(field, field): (field, *_FORMS[hints[field]]) for field in hints}


_OF_GROUP: Final = _members(QuestionGroup)
_OF_HOST: Final = _members(QuestionHost)


def _read(members: _Members, sent: JSONObject) -> dict[str, Any]:
    """The fields that an object says."""
    fields: dict[str, Any] = {}
    for name, value in sent.items():
        field, read, _ = members[name]
        fields[field] = read(value)
    return fields


def _written(members: _Members, conditions: QuestionGroup | QuestionHost) -> dict[str, Any]:
    """The object that says some conditions, without members that say nothing."""
    values = zip(members.items(), conditions, type(conditions)(), strict=True)
    return {name: write(value) for (name, (_, _, write)), value, none in values if value != none}
