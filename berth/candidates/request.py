# SPDX-License-Identifier: Apache-2.0
"""A candidates query as values, the operator's settings, and the form of the answer.

Everything here is parsed and normalised: uuids are lower-case with dashes, names are as sent.
Whether a name exists is checked later, against a snapshot (`berth.candidates.resolve`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple

from berth.candidates.question import Split

GroupPolicy = Literal["none", "isolate"]
GenerationStrategy = Literal["depth-first", "breadth-first"]

#: What a request takes in memory, and each of its groups and named providers in addition.
REQUEST_BYTES: Final = 1024
GROUP_BYTES: Final = 1536
NAMED_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """The parameters of a query with the same suffix: what one provider gives together.

    Several providers of one tree, and those that share with it, may serve the group with the empty
    suffix.
    """

    #: "" for the unsuffixed group; otherwise exactly as sent, for example "1" or "_NET".
    suffix: str
    #: (class name, amount of at least 1), each class once; empty only for a group that
    #: `same_subtree` names (1.36).
    resources: tuple[tuple[str, int], ...] = ()
    #: Sets of trait names; the provider has at least one of each. `required=A,B` is two sets.
    required: tuple[frozenset[str], ...] = ()
    #: Trait names that the provider does not have.
    forbidden: frozenset[str] = frozenset()
    #: Sets of aggregate uuids; the provider is in at least one of each.
    member_of: tuple[frozenset[str], ...] = ()
    #: Uuids of aggregates that the provider is not in.
    not_member_of: frozenset[str] = frozenset()
    #: Uuids of providers of the trees that may serve the group; None for any tree.
    in_tree: frozenset[str] | None = None
    #: Uuids: the provider is one of these or a descendant of one; None for any provider.
    under: frozenset[str] | None = None
    #: Uuids: the provider is none of these and no descendant of one.
    not_under: frozenset[str] = frozenset()
    #: (class name, how its amount may come from several providers).
    split: tuple[tuple[str, Split], ...] = ()

    @property
    def named_providers(self) -> frozenset[str]:
        """The uuids of all providers that it names."""
        return self.not_under.union(self.in_tree or (), self.under or ())


@dataclass(frozen=True, slots=True)
class HostConditions:
    """Conditions on the tree that anchors a candidate; traits and aggregates as in a group.

    Attributes:
        required, forbidden, member_of, not_member_of: of its root.
        anywhere, nowhere: of all its providers together: traits that some provider has, or none.
        within: uuids, of which one is a provider of the tree; None for any tree.
        not_in: uuids, of which none is a provider of the tree.
    """

    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    anywhere: tuple[frozenset[str], ...] = ()
    nowhere: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    not_member_of: frozenset[str] = frozenset()
    within: frozenset[str] | None = None
    not_in: frozenset[str] = frozenset()

    @property
    def named_providers(self) -> frozenset[str]:
        """The uuids of all providers that it names."""
        return self.not_in.union(self.within or ())


class Relation(NamedTuple):
    """Groups whose providers are together or apart at a level: "provider", "tree", "subtree", or
    the name of a trait (spec/beyond.md 2.4)."""

    is_together: bool
    suffixes: tuple[str, ...]
    at: str


@dataclass(frozen=True)
class CandidatesRequest:
    """What candidates are wanted: one `GET /allocation_candidates` of any microversion, or
    a request of `/berth/v1` whose references are resolved.

    Requests are compared by value, the order of groups and resources included, because answers
    follow that order.
    """

    #: In the order of their first keys in the query: the first group that no provider can serve
    #: ends the search.
    groups: tuple[RequestGroup, ...]
    #: "isolate": no two suffixed groups on one provider.
    group_policy: GroupPolicy | None = None
    #: The largest number of candidates, at least 1; None for all.
    limit: int | None = None
    #: Conditions on the tree that anchors a candidate.
    host: HostConditions = HostConditions()
    #: Sets of suffixes whose providers must have one of them as their common ancestor.
    same_subtree: tuple[frozenset[str], ...] = ()
    #: Further relations between groups.
    relations: tuple[Relation, ...] = ()
    #: Whether all conditions of a group without resources apply. OpenStack Placement ignores its
    #: tree, and finds no provider if it has only negative conditions
    #: (spec/allocation-candidates.md 5.2).
    is_natural: bool = False

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # PERF bench, flat: hashing all groups for each look-up would take microseconds.
        return hash(
            (
                self.groups,
                self.group_policy,
                self.limit,
                self.host,
                self.same_subtree,
                self.relations,
                self.is_natural,
            )
        )

    @cached_property
    def named_providers(self) -> tuple[str, ...]:
        """The uuids of all providers that it names."""
        named = [self.host.named_providers, *(group.named_providers for group in self.groups)]
        return tuple(dict.fromkeys(uuid for uuids in named for uuid in uuids))

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return (
            REQUEST_BYTES
            + GROUP_BYTES * (len(self.groups) + len(self.relations))
            + NAMED_BYTES * len(self.named_providers)
        )


@dataclass(frozen=True, slots=True)
class SearchSettings:
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

    def wanted(self, limit: int | None) -> int | None:
        """How many candidates a request with a limit gets at most; None for all."""
        if self.candidates_max < 0:
            return limit
        cap = max(self.candidates_max, 1)
        return cap if limit is None else min(limit, cap)


@dataclass(frozen=True, slots=True, eq=False)
class ResponseForm:
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
