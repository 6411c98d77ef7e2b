# SPDX-License-Identifier: Apache-2.0
"""`GET /allocation_candidates` (1.10): decode the query string, search, and respond.

Source: spec/allocation-candidates.md 1 to 4 and 7; the checks here are in the order of 4.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from berth.api import caching, filters
from berth.api.errors import (
    QUERY_BAD_VALUE,
    QUERY_MISSING_VALUE,
    Refused,
)
from berth.api.microversion import ByMicroversion
from berth.api.operations.allocation_candidates import (
    BY_PROVIDER_SINCE,
    GROUP_KEYS,
    KEYS,
    MAPPINGS_SINCE,
    TRAITS_SINCE,
    TREES_SINCE,
    conflicting_traits,
    read_request_parameters,
    too_many,
)
from berth.api.query_string import Pairs, parse_pairs, values_of
from berth.api.rendering import answer_bytes, answer_pieces
from berth.api.request import Request, Response, Services
from berth.api.schema import QUERY
from berth.api.searching import Searching, budget_of
from berth.candidates import Budget, find_candidates
from berth.candidates.request import (
    CandidatesRequest,
    HostConditions,
    RequestGroup,
    ResponseForm,
)
from berth.index.memory import Memory
from berth.model.ids import parse_uuid_lax

LOG = logging.getLogger(__name__)

RESOURCELESS_GROUPS_SINCE = 36
ALL_CLASSES_SINCE = 27

FORMS = ByMicroversion(
    {
        minor: ResponseForm(
            allocations_as_list=minor < BY_PROVIDER_SINCE,
            traits=minor >= TRAITS_SINCE,
            all_classes=minor >= ALL_CLASSES_SINCE,
            trees=minor >= TREES_SINCE,
            mappings=minor >= MAPPINGS_SINCE,
        )
        for minor in (
            *(10, BY_PROVIDER_SINCE, TRAITS_SINCE),
            *(ALL_CLASSES_SINCE, TREES_SINCE, MAPPINGS_SINCE),
        )
    }
)

#: Schedulers send a handful; thousands would take many seconds.
GROUPS_MAX = 64

#: Callers repeat their queries; longer ones are not worth caching.
_KEPT_QUERY_LENGTH_MAX = 2048


def list_candidates(services: Services, request: Request, response: Response) -> None:
    """List the candidates for a request."""
    microversion = request.microversion
    wanted = _decoded(services.index.memory, request.query_string, microversion)
    snapshot = services.index.snapshot()
    budget = budget_of(services, request)
    with Searching(services, request, budget):
        rendered = find_candidates(
            snapshot,
            wanted,
            settings=services.search,
            form=FORMS.at(microversion),
            rng=services.rng,
            budget=budget,
        )
    if budget.ended in ("time", "size", "memory"):
        _log_incomplete(wanted, budget, len(rendered))
    elif not budget.candidates and services.empty_answers is not None:
        services.empty_answers.note(snapshot, wanted, request)
    caching.stamp_now(services, request, response)
    if isinstance(rendered, bytes):
        answer_bytes(response, rendered)
    else:
        answer_pieces(response, iter(rendered), len(rendered))


def _log_incomplete(wanted: CandidatesRequest, budget: Budget, size: int) -> None:
    """Warn the operator that a response may be incomplete, and log its request."""
    LOG.warning(
        "A search for candidates stopped at its %s limit; the response of %d bytes may be "
        "incomplete. Request: %d groups, group_policy %s, %d same_subtree, limit %s.",
        budget.ended,
        size,
        len(wanted.groups),
        wanted.group_policy,
        len(wanted.same_subtree),
        wanted.limit,
    )


def decode(query_string: str, microversion: int) -> CandidatesRequest:
    """Decode a raw query string.

    Raises:
        Refused: 400 for every error that can be found without the data.
    """
    pairs = parse_pairs(query_string)
    _check_keys(pairs, microversion)
    of_request = dict(read_request_parameters(pairs, microversion))
    host = HostConditions(**of_request.pop("host", {}))
    drafts = _decode_groups(pairs, microversion)
    if microversion < RESOURCELESS_GROUPS_SINCE:
        _check_all_have_resources(drafts)
    else:
        _check_resourceless_are_named(drafts, of_request.get("same_subtree", ()))
    _check_no_conflicts(drafts)
    if "group_policy" not in of_request and sum(1 for draft in drafts if draft.suffix) > 1:
        raise Refused(
            400,
            'The "group_policy" parameter is required when specifying more than one '
            '"resources{N}" parameter.',
        )
    groups = tuple(draft.finished() for draft in drafts)
    return CandidatesRequest(groups=groups, host=host, **of_request)


def _decoded(memory: Memory, query_string: str, microversion: int) -> CandidatesRequest:
    """`decode`, cached for requests with the same query string."""
    key = query_string, microversion
    wanted: CandidatesRequest | None = memory.get(key)
    if wanted is None:
        wanted = decode(query_string, microversion)
        if len(query_string) <= _KEPT_QUERY_LENGTH_MAX:
            memory.keep(key, wanted, wanted.size, is_lasting=True)
    return wanted


@dataclass(slots=True)
class _Draft:
    """A group while its keys are read; `keys` are as sent, for messages."""

    suffix: str
    keys: list[str] = field(default_factory=list)
    resources: dict[str, int] = field(default_factory=dict)
    traits: filters.TraitCondition = filters.ANY_TRAITS
    memberships: filters.MembershipCondition = filters.ANY_MEMBERSHIP
    in_tree: str | None = None

    def finished(self) -> RequestGroup:
        return RequestGroup(
            suffix=self.suffix,
            resources=tuple(self.resources.items()),
            required=tuple(dict.fromkeys(self.traits.required)),
            forbidden=self.traits.forbidden,
            member_of=cast(tuple[frozenset[str], ...], self.memberships.member_of),
            not_member_of=cast(frozenset[str], self.memberships.not_member_of),
            in_tree=None if self.in_tree is None else frozenset((self.in_tree,)),
        )


def _check_keys(pairs: Pairs, microversion: int) -> None:
    """Check that all keys are allowed, and each occurrence of values with a schema."""
    schema = KEYS.schema.at(microversion)
    last = dict(pairs)
    schema.check(last)
    # The rest has passed; checking it again would be slow with many limits and many groups.
    mandatory = {key: value for key, value in last.items() if key == "resources"}
    for key in ("limit", "group_policy"):
        for earlier in values_of(pairs, key)[:-1]:
            schema.check({**mandatory, key: earlier})


def _decode_groups(pairs: Pairs, microversion: int) -> list[_Draft]:
    """The groups, ordered by first key; all values of a key are read together."""
    values: dict[str, list[str]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    drafts: dict[str, _Draft] = {}
    for key, given in values.items():
        parameter = next((name for name in GROUP_KEYS if key.startswith(name)), None)
        if parameter is not None:
            suffix = key.removeprefix(parameter)
            draft = drafts.setdefault(suffix, _Draft(suffix))
            draft.keys.append(key)
            _decode_into(draft, key, parameter, given, microversion)
    if len(drafts) > GROUPS_MAX:
        raise too_many("request groups", GROUPS_MAX, len(drafts))
    return list(drafts.values())


def _decode_into(
    draft: _Draft, key: str, parameter: str, values: list[str], microversion: int
) -> None:
    if parameter == "resources":
        for value in values:
            draft.resources = filters.parse_resources(value)
    elif parameter == "required":
        counting = values if microversion >= filters.ANY_TRAITS_SINCE else values[-1:]
        draft.traits = filters.parse_traits(counting, microversion)
    elif parameter == "member_of":
        draft.memberships = filters.parse_member_of(values, microversion, key=key)
    else:
        for value in values:
            draft.in_tree = _parse_in_tree(value)


def _parse_in_tree(value: str) -> str:
    uuid = parse_uuid_lax(value.strip())
    if uuid is None:
        raise Refused(
            400, f"{QUERY}: Expected 'in_tree' parameter to be a format of uuid. Got: {value}"
        )
    return uuid


def _check_all_have_resources(drafts: list[_Draft]) -> None:
    """Up to 1.35: there is a group, and each requests resources."""
    orphans = [draft for draft in drafts if not draft.resources]
    traits = _keys_of((draft for draft in orphans if draft.traits.required), "required")
    if traits:
        raise Refused(
            400,
            # COMPAT: with two spaces.
            "All traits parameters must be associated with resources.  Found the following "
            f"orphaned traits keys: {traits}",
        )
    memberships = _keys_of(orphans, "member_of")
    if memberships:
        raise Refused(
            400,
            "All member_of parameters must be associated with resources. Found the following "
            f"orphaned member_of keys: {memberships}",
        )
    if orphans:
        raise Refused(400, "All request groups must specify resources.")
    if not drafts:
        raise Refused(
            400, "At least one request group (`resources` or `resources{$S}`) is required."
        )


def _keys_of(drafts: Iterable[_Draft], parameter: str) -> str:
    return ", ".join(key for draft in drafts for key in draft.keys if key.startswith(parameter))


def _check_resourceless_are_named(
    drafts: list[_Draft], same_subtree: tuple[frozenset[str], ...]
) -> None:
    """From 1.36: each group without resources is in a `same_subtree`, which names real groups."""
    if not any(draft.resources for draft in drafts):
        raise Refused(
            400,
            "There must be at least one resources or resources[$S] parameter.",
            code=QUERY_MISSING_VALUE,
        )
    named: frozenset[str] = frozenset().union(*same_subtree)
    unnamed = [draft for draft in drafts if not draft.resources and draft.suffix not in named]
    if unnamed:
        raise Refused(
            400,
            "Resourceless suffixed group request should be specified in `same_subtree` query "
            f"param: bad group(s) - {[draft.suffix for draft in unnamed]}.",
            code=QUERY_BAD_VALUE,
        )
    suffixes = sorted({draft.suffix for draft in drafts})
    unreal = sorted(named.difference(suffixes))
    if unreal:
        raise Refused(
            400,
            f"Real suffixes should be specified in `same_subtree`: {unreal} not found in "
            f"{suffixes}.",
            code=QUERY_BAD_VALUE,
        )


def _check_no_conflicts(drafts: list[_Draft]) -> None:
    conflicts = [
        f"required{draft.suffix}: ({', '.join(names)})"
        for draft in drafts
        # COMPAT: in this order, and as often as requested.
        for names in sorted(map(sorted, conflicting_traits(draft.traits)))
    ]
    if conflicts:
        raise Refused(
            400,
            "Conflicting required and forbidden traits found in the following traits keys: "
            + ", ".join(conflicts),
        )
