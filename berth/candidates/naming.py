# SPDX-License-Identifier: Apache-2.0
"""What a question names: its hosts, and another class or trait in place of one that does not
exist."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from berth.candidates.fleet import Fleet
from berth.candidates.question import Item, Question, QuestionGroup
from berth.candidates.references import References, UnknownName
from berth.index.aggregate_sets import Mask

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
            (suffix, replace(group, required=other(group.required)))
            for suffix, group in question.groups
        ),
        host=replace(host, required=other(host.required), anywhere=other(host.anywhere)),
        together=tuple(each._replace(at=level(each.at)) for each in question.together),
        apart=tuple(each._replace(at=level(each.at)) for each in question.apart),
    )


def _with_class(group: QuestionGroup, old: str, new: str) -> QuestionGroup:
    def renamed(pairs: Iterable[tuple[str, Value]]) -> tuple[tuple[str, Value], ...]:
        return tuple((new if name == old else name, value) for name, value in pairs)

    return replace(group, resources=renamed(group.resources), split=renamed(group.split))
