# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/candidates`. Source: spec/beyond.md 2.6."""

from __future__ import annotations

from typing import Final

from berth.api.berth_v1.grammar import GROUP_NAME_PATTERN, ORDER, REQUEST, WHAT_IF, up_to
from berth.api.berth_v1.pointed import PointedSchema
from berth.api.operation import Body, Dated, Operation, always, component, ref, shows
from berth.api.operations import allocation_candidates, examples
from berth.api.operations.berth_v1 import rules
from berth.api.operations.berth_v1.explanation import ALTERNATIVES, EXPLANATION
from berth.api.operations.berth_v1.warnings import WARNING
from berth.api.operations.fragments import (
    AMOUNTS,
    BOOLEAN,
    COUNT,
    TEXT,
    UUID,
    UUID_36_PATTERN,
    closed_object,
    described,
    list_of,
    object_by,
    open_object,
)
from berth.api.schema import JSONSchema

TAG = "Questions"

#: Candidates in an answer, unless the body says otherwise.
LIMIT: Final = 100

BODY_SCHEMA: Final = PointedSchema(
    closed_object(
        {
            "request": REQUEST,
            "order": ORDER,
            "limit": up_to("max_candidates", default=LIMIT),
            "per_host": described(
                up_to("max_candidates"), "At most this many candidates of one host."
            ),
            "summaries": {
                "type": "boolean",
                "default": False,
                "description": "Whether to add `provider_summaries` as at 1.39.",
            },
            "explain": {
                "type": "boolean",
                "default": False,
                "description": "Whether to add an explanation if there is no candidate.",
            },
            "what_if": WHAT_IF,
        },
        required=("request",),
    )
)
_EXAMPLE: Final = {
    "request": {
        "groups": {"": {"resources": {"VCPU": 8, "MEMORY_MB": 16384}}},
        "host": {"required": ["HW_CPU_X86_AVX2"]},
    },
    "order": {"by": "pack", "prefer": [{"weight": 5, "required": ["COMPUTE_NODE"]}]},
    "limit": 20,
    "per_host": 1,
}

SCORE: Final = open_object(
    {
        "total": {"type": "number"},
        "prefer": described(
            list_of({"type": "number"}), "What each preference adds, in the order of the request."
        ),
    },
    optional={
        name: {"type": "number", "description": "What the strategy gives, from 0 to 1."}
        for name in ("random", "pack", "spread", "preserve")
    },
)
#: What a candidate says beside its score.
CANDIDATE_MEMBERS: Final[dict[str, JSONSchema]] = {
    "host": described(UUID, "The root that anchors the candidate."),
    "allocations": object_by(
        UUID_36_PATTERN, open_object({"resources": {**AMOUNTS, "minProperties": 1}})
    ),
    "mappings": object_by(GROUP_NAME_PATTERN, list_of(UUID)),
}
_CANDIDATE = component("Candidate", open_object(CANDIDATE_MEMBERS, optional={"score": SCORE}))
_CANDIDATES = component(
    "Candidates",
    open_object(
        {
            "revision": described(TEXT, "The state that was searched."),
            "complete": described(BOOLEAN, "False if the time ended the search."),
            "more": described(BOOLEAN, "Whether `limit` or `per_host` left candidates out."),
            "candidates": list_of(ref("Candidate")),
            "warnings": list_of(ref("Warning")),
        },
        optional={
            "alternative": described(COUNT, "Which of the alternatives has these candidates."),
            "provider_summaries": object_by(UUID_36_PATTERN, ref("ProviderSummary")),
            "explanation": {
                "anyOf": [
                    ref("Explanation"),
                    open_object({"alternatives": ALTERNATIVES}),
                ],
                "description": "Why there is no candidate; of alternatives, why none has.",
            },
        },
    ),
    example={
        "revision": "b1.AAECAwQFBgcBBw",
        "complete": True,
        "more": True,
        "candidates": [
            {
                "host": examples.PROVIDER,
                "allocations": {examples.PROVIDER: {"resources": {"VCPU": 8, "MEMORY_MB": 16384}}},
                "mappings": {"": [examples.PROVIDER]},
                "score": {"total": 5.72, "pack": 0.72, "prefer": [5]},
            }
        ],
        "warnings": [],
    },
    parts=(_CANDIDATE, WARNING, EXPLANATION, allocation_candidates.PROVIDER_SUMMARY),
)

OPERATIONS: Final = (
    Operation(
        "POST",
        "/candidates",
        handler="berth_v1.candidates:find_candidates",
        rule=rules.CANDIDATES,
        tag=TAG,
        summary="Find where a request fits",
        details="It changes nothing. The element of a candidate can be sent to"
        " `PUT /allocations/{consumer}` as it is.",
        body=Body(always(BODY_SCHEMA), always(_EXAMPLE)),
        answers=shows(_CANDIDATES, Dated.NO, means="The candidates, the best first."),
        is_search=True,
    ),
)
