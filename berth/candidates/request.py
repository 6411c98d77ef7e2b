# SPDX-License-Identifier: Apache-2.0
"""What a candidates query asks, as values, and the form in which its answer is wanted.

Everything here is already parsed and normalised: uuids are lower-case with dashes, names are as
sent, and whether a name exists has not been asked yet (that needs a snapshot, see
`berth.candidates.search`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

GroupPolicy = Literal["none", "isolate"]
GenerationStrategy = Literal["depth-first", "breadth-first"]


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """The parameters of a query that share one suffix: what one provider gives together.

    The group with the empty suffix may be served by several providers of one tree, and by those
    that share with it.
    """

    #: "" for the unsuffixed group; otherwise exactly as sent, for example "1" or "_NET".
    suffix: str
    #: Class name to amount, at least 1; empty only for a group that `same_subtree` names (1.36).
    resources: Mapping[str, int] = field(default_factory=dict)
    #: ANDed sets of trait names, of each of which one must be there; `required=A,B` is two sets.
    required: tuple[frozenset[str], ...] = ()
    #: Trait names of which none may be there.
    forbidden: frozenset[str] = frozenset()
    #: ANDed sets of aggregate uuids, of each of which one must hold the provider.
    member_of: tuple[frozenset[str], ...] = ()
    #: Aggregate uuids of which none may hold the provider.
    not_member_of: frozenset[str] = frozenset()
    #: The uuid of any provider of the one tree that may serve the group.
    in_tree: str | None = None


@dataclass(frozen=True, slots=True)
class CandidatesRequest:
    """One `GET /allocation_candidates`, whatever the microversion it came in."""

    #: In the order in which their first keys stand in the query: the first group that nobody can
    #: serve ends the search.
    groups: tuple[RequestGroup, ...]
    #: "isolate": no two suffixed groups on one provider.
    group_policy: GroupPolicy | None = None
    #: At most this many candidates, at least 1; None for all.
    limit: int | None = None
    #: Trait names that the root of a candidate's tree must have.
    root_required: frozenset[str] = frozenset()
    #: Trait names that the root of a candidate's tree must not have.
    root_forbidden: frozenset[str] = frozenset()
    #: Sets of suffixes whose providers must have one of them as their common ancestor.
    same_subtree: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What the operator decides about every search (groups `[placement]` and `[berth]` of the
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


@dataclass(frozen=True, slots=True, eq=False)
class ResponseForm:
    """How the answer looks at a microversion, and what of it the search itself must know; one
    object for each form, compared by identity."""

    #: Below 1.12: `allocations` is a list of objects instead of an object keyed by provider.
    allocations_as_list: bool
    #: From 1.17: summaries tell the traits.
    traits: bool
    #: From 1.27: summaries tell every class of a provider; before, those that the request names.
    all_classes: bool
    #: From 1.29: several providers of one tree in a candidate, and whole trees in the summaries.
    trees: bool
    #: From 1.34: each candidate says which providers serve which suffix.
    mappings: bool
