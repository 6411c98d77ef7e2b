# SPDX-License-Identifier: Apache-2.0
"""A request of `/berth/v1` as values: what is wanted, with references as they were sent.

A reference names a provider by uuid or by name, and an aggregate by uuid, by its label `name`, or
as `key=value`. What it stands for depends on the fleet, so references are resolved against
a snapshot (`berth.candidates.references`). All questions take the same request.

Source: spec/beyond.md 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

#: How a relation compares providers; anything else is the name of a trait.
LEVELS: frozenset[str] = frozenset({"provider", "tree", "subtree"})


class Item(NamedTuple):
    """One condition of a list: one of some names, or, if negated, not this name."""

    names: tuple[str, ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Split:
    """How one amount may come from several providers: in at most `parts` parts, each at least
    `min` and a multiple of `step`."""

    min: int = 1
    step: int = 1
    parts: int = 2


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """What is wanted together, and the conditions on the providers that give it.

    Attributes:
        resources: (class, amount), each class once.
        required, member_of: conditions on traits and aggregates, all of which must hold.
        in_tree, under: provider references, of which one must match; None for no condition.
        not_under: provider references, of which none may match.
        split: (class, how its amount may be split).
    """

    resources: tuple[tuple[str, int], ...] = ()
    required: tuple[Item, ...] = ()
    member_of: tuple[Item, ...] = ()
    in_tree: tuple[str, ...] | None = None
    under: tuple[str, ...] | None = None
    not_under: tuple[str, ...] = ()
    split: tuple[tuple[str, Split], ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionHost:
    """Conditions on the tree that anchors a candidate.

    Attributes:
        required, member_of: on the root itself.
        anywhere: on the traits of all its providers together.
        within: lists of provider references: the tree has one of each list.
        not_in: provider references: the tree has none of them.
    """

    required: tuple[Item, ...] = ()
    anywhere: tuple[Item, ...] = ()
    member_of: tuple[Item, ...] = ()
    within: tuple[tuple[str, ...], ...] = ()
    not_in: tuple[str, ...] = ()


class QuestionRelation(NamedTuple):
    """Groups whose providers are together, or apart, at a level: one of `LEVELS`, or a trait."""

    groups: tuple[str, ...]
    at: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is wanted.

    Attributes:
        groups: (name, group) in the order in which they were sent.
        tolerate: names of drains, or "*" for all of them.
        is_query: it was sent as a query string, so groups without resources are read as
            OpenStack Placement reads them (spec/allocation-candidates.md 5.2).
    """

    groups: tuple[tuple[str, QuestionGroup], ...]
    host: QuestionHost = QuestionHost()
    together: tuple[QuestionRelation, ...] = ()
    apart: tuple[QuestionRelation, ...] = ()
    tolerate: tuple[str, ...] | Literal["*"] = ()
    is_query: bool = False
