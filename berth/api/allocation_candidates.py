# SPDX-License-Identifier: Apache-2.0
"""`GET /allocation_candidates` (1.10): from the query to a request of `candidates`, and its answer.

Source: spec/allocation-candidates.md 1 to 4 and 7; the order of the checks here is that of 4.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Literal, cast

from berth.api import caching, filters
from berth.api.errors import (
    QUERY_BAD_VALUE,
    QUERY_DUPLICATE_KEY,
    QUERY_MISSING_VALUE,
    Refused,
)
from berth.api.in_front import overloaded
from berth.api.microversion import ByMicroversion
from berth.api.query_string import Pairs, last_values, parse_pairs, values_of
from berth.api.receiving import CLIENT_GONE
from berth.api.rendering import answer_bytes
from berth.api.request import Request, Response, Services
from berth.api.schema import QUERY
from berth.api.schemas.allocation_candidates import GROUP_KEYS, KEYS
from berth.candidates import Budget, find_candidates
from berth.candidates.request import CandidatesRequest, RequestGroup, ResponseForm
from berth.model.ids import parse_uuid_lax

if TYPE_CHECKING:
    from berth.api.instruments import SearchInstruments

LOG = logging.getLogger(__name__)

RESOURCELESS_GROUPS_SINCE = 36

FORMS = ByMicroversion(
    {
        minor: ResponseForm(
            allocations_as_list=minor < 12,
            traits=minor >= 17,
            all_classes=minor >= 27,
            trees=minor >= 29,
            mappings=minor >= 34,
        )
        for minor in (10, 12, 17, 27, 29, 34)
    }
)

#: A scheduler asks for a handful of either; thousands were many seconds of work.
GROUPS_MAX = 64
SAME_SUBTREE_MAX = 400

#: Callers ask the same again and again; a longer query than this is not worth keeping.
_KEPT_QUERY_LENGTH_MAX = 2048


def list_candidates(services: Services, request: Request, response: Response) -> None:
    """Answer the ways in which what is asked for could be given."""
    query_string, microversion = request.query_string, request.microversion
    decode_it = _decode_kept if len(query_string) <= _KEPT_QUERY_LENGTH_MAX else decode
    wanted = decode_it(query_string, microversion)
    snapshot = services.index.snapshot()
    if not services.searching.enter():
        services.instruments.searches_line.refused()
        raise overloaded()
    try:
        budget = Budget(
            monotonic,
            seconds=services.search.time_budget_s,
            answer_bytes_max=services.search.answer_bytes_max,
            gone=request.env.get(CLIENT_GONE),
        )
        try:
            rendered = find_candidates(
                snapshot,
                wanted,
                settings=services.search,
                form=FORMS.at(microversion),
                rng=services.rng,
                budget=budget,
            )
        finally:
            _count(services.instruments.searches, budget)
    finally:
        services.searching.leave()
    if budget.ended in ("time", "size"):
        _log_incomplete(wanted, budget, len(rendered))
    caching.stamp_now(request, response)
    answer_bytes(response, rendered)


def _count(searches: SearchInstruments, budget: Budget) -> None:
    searches.trees.add(budget.trees)
    searches.returned.add(budget.candidates)
    if budget.ended:
        searches.ended_early(budget.ended).inc()


def _log_incomplete(wanted: CandidatesRequest, budget: Budget, size: int) -> None:
    """Tell the operator that somebody may have got less than there is, and what was asked for."""
    LOG.warning(
        "A search for candidates ended early, for %s: the answer of %d bytes may lack some. "
        "Asked: %d groups, group_policy %s, %d same_subtree, limit %s.",
        "its time was over" if budget.ended == "time" else "its answer was large enough",
        size,
        len(wanted.groups),
        wanted.group_policy,
        len(wanted.same_subtree),
        wanted.limit,
    )


def decode(query_string: str, microversion: int) -> CandidatesRequest:
    """What a raw query string asks for.

    Raises:
        Refused: 400, by everything that can be judged without looking at the data.
    """
    pairs = parse_pairs(query_string)
    _check_keys(pairs, microversion)
    root = _decode_root_required(values_of(pairs, "root_required"), microversion)
    same_subtree = _decode_same_subtree(values_of(pairs, "same_subtree"))
    drafts = _decode_groups(pairs, microversion)
    if microversion < RESOURCELESS_GROUPS_SINCE:
        _check_all_have_resources(drafts)
    else:
        _check_resourceless_are_named(drafts, same_subtree)
    _check_no_conflicts(drafts)
    group_policy = values_of(pairs, "group_policy")
    if not group_policy and sum(1 for draft in drafts if draft.suffix) > 1:
        raise Refused(
            400,
            'The "group_policy" parameter is required when specifying more than one '
            '"resources{N}" parameter.',
        )
    limit = values_of(pairs, "limit")
    return CandidatesRequest(
        groups=tuple(draft.finished() for draft in drafts),
        group_policy=cast(Literal["none", "isolate"], group_policy[0]) if group_policy else None,
        limit=_decode_limit(limit[0]) if limit else None,
        root_required=frozenset().union(*root.required),
        root_forbidden=root.forbidden,
        same_subtree=same_subtree,
    )


#: `decode`, with the last requests kept: the text and the microversion decide it, and no database
#: does. It gives the same object again, by which `berth.candidates.plan` knows its plan.
_decode_kept = lru_cache(maxsize=1024)(decode)


@dataclass(slots=True)
class _Draft:
    """A group while its keys are gathered; `keys` are as sent, for messages."""

    suffix: str
    keys: list[str] = field(default_factory=list)
    resources: dict[str, int] = field(default_factory=dict)
    traits: filters.TraitCondition = filters.ANY_TRAITS
    memberships: filters.MembershipCondition = filters.ANY_MEMBERSHIP
    in_tree: str | None = None

    def finished(self) -> RequestGroup:
        return RequestGroup(
            suffix=self.suffix,
            resources=self.resources,
            required=tuple(dict.fromkeys(self.traits.required)),
            forbidden=self.traits.forbidden,
            member_of=cast(tuple[frozenset[str], ...], self.memberships.member_of),
            not_member_of=cast(frozenset[str], self.memberships.not_member_of),
            in_tree=self.in_tree,
        )


def _check_keys(pairs: Pairs, microversion: int) -> None:
    """The closed key set, and the values that a schema judges, each occurrence of them."""
    schema = KEYS.at(microversion)
    last = last_values(pairs)
    schema.check(last)
    # The rest has passed and is not looked at again: many limits and many groups would take long.
    mandatory = {key: value for key, value in last.items() if key == "resources"}
    for key in ("limit", "group_policy"):
        for earlier in values_of(pairs, key)[:-1]:
            schema.check({**mandatory, key: earlier})


def _decode_root_required(values: list[str], microversion: int) -> filters.TraitCondition:
    if len(values) > 1:
        raise Refused(
            400,
            "Query parameter 'root_required' may be specified only once.",
            code=QUERY_DUPLICATE_KEY,
        )
    for value in values:
        if value.startswith("in:"):
            raise filters.any_traits_refused(value)
    condition = filters.parse_traits(values, microversion)
    if conflicts := frozenset().union(*_conflicts(condition)):
        raise Refused(
            400,
            "Conflicting required and forbidden traits found in root_required: "
            f"{', '.join(sorted(conflicts))}",
            code=QUERY_BAD_VALUE,
        )
    return condition


def _decode_same_subtree(values: list[str]) -> tuple[frozenset[str], ...]:
    subtrees = []
    for value in values:
        suffixes = frozenset(item.strip() for item in value.split(","))
        if "" in suffixes:
            raise Refused(
                400,
                # COMPAT: with the blank at the end.
                "Empty string (unsuffixed group) can not be specified in `same_subtree` ",
                code=QUERY_BAD_VALUE,
            )
        subtrees.append(suffixes)
    distinct = tuple(dict.fromkeys(subtrees))
    if len(distinct) > SAME_SUBTREE_MAX:
        raise _too_many("different `same_subtree` values", SAME_SUBTREE_MAX, len(distinct))
    return distinct


def _too_many(what: str, most: int, got: int) -> Refused:
    return Refused(
        400,
        f"{QUERY}: A request may have at most {most} {what}. Got: {got}",
        code=QUERY_BAD_VALUE,
    )


def _decode_groups(pairs: Pairs, microversion: int) -> list[_Draft]:
    """The groups in order of their first keys, each key's values read together."""
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
        raise _too_many("request groups", GROUPS_MAX, len(drafts))
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
    """Up to 1.35: every group gives something, and there is one."""
    orphans = [draft for draft in drafts if not draft.resources]
    traits = _keys_of((draft for draft in orphans if draft.traits.required), "required")
    if traits:
        raise Refused(
            400,
            # COMPAT: with two blanks.
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
    """From 1.36: a group without resources stands in a `same_subtree`, which names real groups."""
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
    found = [
        f"required{draft.suffix}: ({', '.join(names)})"
        for draft in drafts
        # COMPAT: in this order, and as often as they were asked for.
        for names in sorted(map(sorted, _conflicts(draft.traits)))
    ]
    if found:
        raise Refused(
            400,
            "Conflicting required and forbidden traits found in the following traits keys: "
            + ", ".join(found),
        )


def _conflicts(condition: filters.TraitCondition) -> list[frozenset[str]]:
    """The required sets of traits that are forbidden as a whole."""
    return [wanted for wanted in condition.required if wanted <= condition.forbidden]


def _decode_limit(value: str) -> int | None:
    """A limit of thousands of digits, which Python does not convert, limits nothing."""
    try:
        return int(value)
    except ValueError:
        return None
