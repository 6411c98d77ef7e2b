# SPDX-License-Identifier: Apache-2.0
"""From a question to JSON: the normalised request, into which the pointers of `explain` lead.

Source: spec/beyond.md 2.2 and 3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from berth.candidates.question import (
    Item,
    Question,
    QuestionGroup,
    QuestionHost,
    QuestionRelation,
)


def request_json(question: Question) -> dict[str, Any]:
    """The request that asks a question, without members that say nothing."""
    host = _host(question.host)
    tolerate = question.tolerate if question.tolerate == "*" else [*question.tolerate]
    return {
        "groups": {name: _group(group) for name, group in question.groups},
        **({"host": host} if host else {}),
        **_relations("together", question.together),
        **_relations("apart", question.apart),
        **({"tolerate": tolerate} if tolerate else {}),
    }


def _group(group: QuestionGroup) -> dict[str, Any]:
    return {
        **({"resources": dict(group.resources)} if group.resources else {}),
        **_items("required", group.required),
        **_items("member_of", group.member_of),
        **_references("in_tree", group.in_tree),
        **_references("under", group.under),
        **_references("not_under", group.not_under or None),
        **({"split": {name: asdict(split) for name, split in group.split}} if group.split else {}),
    }


def _host(host: QuestionHost) -> dict[str, Any]:
    return {
        **_items("required", host.required),
        **_items("anywhere", host.anywhere),
        **_items("member_of", host.member_of),
        **_within(host.within),
        **_references("not_in", host.not_in or None),
    }


def _within(lists: Sequence[Sequence[str]]) -> dict[str, Any]:
    """One list as it is, several as a list of lists."""
    if not lists:
        return {}
    return {"in": [*lists[0]] if len(lists) == 1 else [[*several] for several in lists]}


def _items(member: str, items: Iterable[Item]) -> dict[str, Any]:
    written = [_item(item) for item in items]
    return {member: written} if written else {}


def _item(item: Item) -> str | list[str]:
    if item.is_negated:
        (name,) = item.names
        return f"!{name}"
    return item.names[0] if len(item.names) == 1 else [*item.names]


def _references(member: str, references: tuple[str, ...] | None) -> dict[str, Any]:
    return {} if references is None else {member: [*references]}


def _relations(member: str, relations: Iterable[QuestionRelation]) -> dict[str, Any]:
    written = [{"groups": [*each.groups], "at": each.at} for each in relations]
    return {member: written} if written else {}
