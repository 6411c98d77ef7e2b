# SPDX-License-Identifier: Apache-2.0
"""What is asked of the search: a question, with references as they were sent; the operator's
settings; and the form of the answer.

A reference names a provider by uuid or by name, and an aggregate by uuid, by its label `name`, or
as `key=value`. What it stands for depends on the fleet, so references and names are looked up in
a snapshot (`berth.candidates.resolve`). All questions take the same form, whichever way they came.

Source: spec/beyond.md 2.2.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain
from typing import Final, Literal, NamedTuple

from msgspec import Struct

GenerationStrategy = Literal["depth-first", "breadth-first"]

#: What a question takes in memory, and each of its groups and named providers in addition.
QUESTION_BYTES: Final = 1024
GROUP_BYTES: Final = 1536
NAMED_BYTES: Final = 256

#: How a relation compares providers; anything else is the name of a trait.
LEVELS: frozenset[str] = frozenset({"provider", "tree", "subtree"})


class Item(NamedTuple):
    """One condition of a list: one of some names, or, if negated, not this name."""

    names: tuple[str, ...]
    is_negated: bool = False


class Split(Struct, frozen=True):
    """How one amount may come from several providers: in at most `parts` parts, each at least
    `min` and a multiple of `step`."""

    min: int = 1
    step: int = 1
    parts: int = 2


class QuestionGroup(NamedTuple):
    """What is wanted together, and the conditions on the providers that give it.

    Attributes:
        resources: (class, amount), each class once. Several providers of one tree, and those that
            share with it, may serve the group with the empty name.
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

    @property
    def named_providers(self) -> dict[str, tuple[str, ...]]:
        """The references to providers, by the pointers to their lists in the group."""
        return {
            "/in_tree": self.in_tree or (),
            "/under": self.under or (),
            "/not_under": self.not_under,
        }


class QuestionHost(NamedTuple):
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

    @property
    def lists_within(self) -> dict[str, tuple[str, ...]]:
        """The lists of `within` by their pointers, which are nested only if there are several."""
        if len(self.within) == 1:
            return {"/in": self.within[0]}
        return {f"/in/{place}": each for place, each in enumerate(self.within)}

    @property
    def named_providers(self) -> dict[str, tuple[str, ...]]:
        """The references to providers, by the pointers to their lists in the host."""
        return {**self.lists_within, "/not_in": self.not_in}


_ANY_HOST: Final = QuestionHost()


class QuestionRelation(NamedTuple):
    """Groups whose providers are together, or apart, at a level: one of `LEVELS`, or a trait."""

    groups: tuple[str, ...]
    at: str


class Question(Struct, frozen=True, dict=True):
    """What is wanted: a request of `/berth/v1`, or one `GET /allocation_candidates` of any
    microversion.

    Questions are compared by value, the order of groups and resources included, because answers
    follow that order.

    Attributes:
        groups: (name, group) in the order in which they were sent: the first group that no provider
            can serve ends the search.
        tolerate: names of drains, or "*" for all of them.
        is_query: it was sent as a query string, so groups without resources are read as
            OpenStack Placement reads them: it ignores their tree, and finds no provider if they
            have only negative conditions (spec/allocation-candidates.md 5.2).
    """

    groups: tuple[tuple[str, QuestionGroup], ...]
    host: QuestionHost = _ANY_HOST
    together: tuple[QuestionRelation, ...] = ()
    apart: tuple[QuestionRelation, ...] = ()
    tolerate: tuple[str, ...] | Literal["*"] = ()
    is_query: bool = False

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # PERF bench, flat: hashing all groups for each look-up would take microseconds.
        return hash((self.groups, self.host, self.together, self.apart, self.is_query))

    @cached_property
    def named_providers(self) -> tuple[str, ...]:
        """The references to providers."""
        lists = [*self.host.named_providers.values()]
        for _, group in self.groups:
            lists += group.named_providers.values()
        return tuple(dict.fromkeys(chain.from_iterable(lists)))

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return (
            QUESTION_BYTES
            + GROUP_BYTES * (len(self.groups) + len(self.together) + len(self.apart))
            + NAMED_BYTES * len(self.named_providers)
        )


class SearchSettings(Struct, frozen=True):
    """The operator's settings for every search (groups `[placement]` and `[berth]` of the
    configuration)."""

    #: With a limit: a random sample instead of the first ones.
    randomize: bool = False
    #: Candidates generated per request at most; negative for no bound, 0 counts as 1.
    candidates_max: int = -1
    strategy: GenerationStrategy = "depth-first"
    #: Seconds after which a search ends with what it has; 0 for no bound.
    time_budget_s: float = 0.0
    #: The candidates of one answer take about this many bytes at most; 0 for no bound.
    answer_bytes_max: int = 0

    @property
    def is_depth_first(self) -> bool:
        """Whether all candidates of one tree come before those of the next."""
        return self.candidates_max >= 0 and self.strategy == "depth-first"

    def wanted(self, limit: int | None) -> int | None:
        """How many candidates a request with a limit gets at most; None for all."""
        if self.candidates_max < 0:
            return limit
        cap = max(self.candidates_max, 1)
        return cap if limit is None else min(limit, cap)


class ResponseForm(Struct, frozen=True, eq=False):
    """The form of the answer at a microversion; one object for each form, compared by identity."""

    #: Below 1.12: `allocations` is a list of objects instead of an object keyed by provider.
    allocations_as_list: bool
    #: From 1.17: summaries have traits.
    traits: bool
    #: From 1.27: summaries have every class of a provider; before, those that the request names.
    all_classes: bool
    #: From 1.29: several providers of one tree in a candidate, and whole trees in the summaries.
    trees: bool
    #: From 1.34: each candidate says which providers serve which suffix.
    mappings: bool
