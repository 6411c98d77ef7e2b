# SPDX-License-Identifier: Apache-2.0
"""`GET /allocation_candidates` (1.10): search, and respond in the form of the microversion.

Source: spec/allocation-candidates.md 1 and 7.
"""

from __future__ import annotations

import logging

from berth.api import answers, examples
from berth.api.answers import Pieces
from berth.api.contract import Contract, component, ref, shows
from berth.api.microversion import ByMicroversion
from berth.api.placement.allocations import CLAIM, CLAIM_AS_LIST
from berth.api.placement.candidates_query import KEYS, DecodedQuery, decode
from berth.api.request import Call, Searching, budget_of
from berth.api.schema import JSONSchema
from berth.api.shapes import (
    AMOUNTS,
    CLASS_NAME_PATTERN,
    SHOWN_TRAITS,
    UUID,
    UUID_36_PATTERN,
    UUID_OR_NULL,
    exact_object,
    list_of,
    object_by,
)
from berth.candidates import Budget, find_candidates
from berth.candidates.question import ResponseForm
from berth.index.memory import Memory

LOG = logging.getLogger(__name__)

#: When the response changes its form.
BY_PROVIDER_SINCE = 12
TRAITS_SINCE = 17
ALL_CLASSES_SINCE = 27
TREES_SINCE = 29
MAPPINGS_SINCE = 34

#: Callers repeat their queries; longer ones are not worth caching.
_KEPT_QUERY_LENGTH_MAX = 2048


def _candidate(microversion: int) -> JSONSchema:
    resources = {"resources": {**AMOUNTS, "minProperties": 1}}
    if microversion < BY_PROVIDER_SINCE:
        provider = {"resource_provider": exact_object({"uuid": UUID})}
        allocations = list_of(exact_object({**provider, **resources}))
    else:
        allocations = object_by(UUID_36_PATTERN, exact_object(resources), at_least_one=True)
    providers = {**list_of(UUID), "minItems": 1}
    mappings = {"mappings": object_by(r"^[a-zA-Z0-9_-]{0,64}\Z", providers)}
    return exact_object(
        {"allocations": allocations, **(mappings if microversion >= MAPPINGS_SINCE else {})}
    )


def _provider_summary(microversion: int) -> JSONSchema:
    room = exact_object(
        {"capacity": {"type": "integer"}, "used": {"type": "integer", "minimum": 0}}
    )
    traits = {"traits": SHOWN_TRAITS}
    trees = {"parent_provider_uuid": UUID_OR_NULL, "root_provider_uuid": UUID}
    return exact_object(
        {
            "resources": object_by(CLASS_NAME_PATTERN, room),
            **(traits if microversion >= TRAITS_SINCE else {}),
            **(trees if microversion >= TREES_SINCE else {}),
        }
    )


def _example(allocations: object) -> dict[str, object]:
    return {
        "allocation_requests": [
            {"allocations": allocations, "mappings": {"": [examples.PROVIDER]}}
        ],
        "provider_summaries": {
            examples.PROVIDER: {
                "resources": {"VCPU": {"capacity": 248, "used": 16}},
                "traits": ["HW_CPU_X86_AVX2"],
                "parent_provider_uuid": None,
                "root_provider_uuid": examples.PROVIDER,
            }
        },
    }


_CANDIDATE = component(
    "AllocationCandidate",
    *((minor, _candidate(minor)) for minor in (10, BY_PROVIDER_SINCE, MAPPINGS_SINCE)),
)
PROVIDER_SUMMARY = component(
    "ProviderSummary",
    *((minor, _provider_summary(minor)) for minor in (10, TRAITS_SINCE, TREES_SINCE)),
)
_CANDIDATES = component(
    "AllocationCandidates",
    (
        10,
        exact_object(
            {
                "allocation_requests": list_of(ref("AllocationCandidate")),
                "provider_summaries": object_by(UUID_36_PATTERN, ref("ProviderSummary")),
            }
        ),
    ),
    example=ByMicroversion(
        {
            0: _example(CLAIM_AS_LIST["allocations"]),
            BY_PROVIDER_SINCE: _example(CLAIM["allocations"]),
        }
    ),
    parts=(_CANDIDATE, PROVIDER_SUMMARY),
)

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


@Contract(
    summary="List allocation candidates",
    details="At least one group must request resources. Rejects unknown parameters.",
    query=KEYS,
    answers=shows(_CANDIDATES, means="The candidates; empty if nothing fits."),
)
def list_candidates(call: Call) -> bytes | Pieces:
    """List the candidates for a request."""
    microversion = call.microversion
    query = _decoded(call.services.index.memory, call.query_string, microversion)
    snapshot = call.services.index.snapshot()
    budget = budget_of(call)
    with Searching(call, budget):
        rendered = find_candidates(
            snapshot,
            query.question,
            limit=query.limit,
            settings=call.services.search,
            form=FORMS.at(microversion),
            rng=call.services.rng,
            budget=budget,
        )
    if budget.ended in ("time", "size", "memory"):
        _log_incomplete(query, budget, len(rendered))
    elif not budget.candidates and call.services.empty_answers is not None:
        call.services.empty_answers.note(snapshot, query.question, call)
    answers.stamp_now(call)
    return rendered if isinstance(rendered, bytes) else Pieces(iter(rendered), len(rendered))


def _log_incomplete(query: DecodedQuery, budget: Budget, size: int) -> None:
    """Warn the operator that a response may be incomplete, and log its request."""
    LOG.warning(
        "A search for candidates stopped at its %s limit; the response of %d bytes may be "
        "incomplete. Request: %d groups, group_policy %s, %d same_subtree, limit %s.",
        budget.ended,
        size,
        len(query.question.groups),
        query.group_policy,
        len(query.same_subtree),
        query.limit,
    )


def _decoded(memory: Memory, query_string: str, microversion: int) -> DecodedQuery:
    """`decode`, cached for requests with the same query string."""
    key = query_string, microversion
    query: DecodedQuery | None = memory.get(key)
    if query is None:
        query = decode(query_string, microversion)
        if len(query_string) <= _KEPT_QUERY_LENGTH_MAX:
            memory.keep(key, query, query.question.size, is_lasting=True)
    return query
