# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/explain`. Source: spec/beyond.md 3.6."""

from __future__ import annotations

from typing import Final

from berth.api.berth_v1.grammar import REQUEST, WHAT_IF, up_to
from berth.api.berth_v1.pointed import PointedSchema
from berth.api.operation import Body, Dated, Operation, always, component, shows
from berth.api.operations import examples
from berth.api.operations.berth_v1 import rules
from berth.api.operations.berth_v1.candidates import TAG
from berth.api.operations.berth_v1.explanation import (
    ALTERNATIVES,
    COMPLETE,
    EXPLANATION,
    MEMBERS,
    NEAREST,
    SECONDS,
    SOMETIMES,
)
from berth.api.operations.berth_v1.pieces import REVISION, REVISION_EXAMPLE
from berth.api.operations.fragments import closed_object, described, open_object

BODY_SCHEMA: Final = PointedSchema(
    closed_object(
        {
            "request": REQUEST,
            "what_if": WHAT_IF,
            "nearest_max": described(
                up_to("max_nearest", least=0, default=NEAREST),
                "How many of the hosts that come nearest to fitting.",
            ),
            "relaxations": {
                "type": "boolean",
                "default": True,
                "description": "Whether to look for changes with which some host fits.",
            },
            "paint": {
                "type": "boolean",
                "default": False,
                "description": "Whether to add one byte for each host.",
            },
            "seconds": {
                "type": "number",
                "minimum": 0.001,
                "maximum": 3600,
                "default": SECONDS,
                "description": "The time for the answer; the operator's"
                " `candidates_time_budget` bounds it.",
            },
        },
        required=("request",),
    )
)

_REQUEST: Final = {
    "groups": {
        "": {
            "resources": {"VCPU": 16, "MEMORY_MB": 32768},
            "required": ["HW_CPU_X86_AVX512F"],
        }
    },
    "host": {"member_of": ["zone=z2"]},
}
_HOST: Final = {"uuid": examples.PROVIDER, "name": "cn17"}
_EXAMPLE: Final = {
    "revision": REVISION_EXAMPLE,
    "complete": True,
    "verdict": "used_up",
    "summary": "No host fits now; 38 would with nothing used. Without trait HW_CPU_X86_AVX512F, 9"
    " hosts fit. With VCPU 12 instead of 16, 3 hosts fit.",
    "hosts": {"total": 1010, "pools": 10, "fit": 0, "fit_if_undrained": 0, "fit_if_empty": 38},
    "stages": [
        {"at": "/host/member_of/0", "text": "in zone=z2", "alone": 330, "left": 330},
        {
            "at": "/groups//resources/VCPU",
            "text": "VCPU 16",
            "has": 1000,
            "if_empty": 412,
            "alone": 57,
            "left": 22,
        },
        {
            "at": "/groups//resources/MEMORY_MB",
            "text": "MEMORY_MB 32768",
            "has": 1000,
            "if_empty": 1000,
            "alone": 610,
            "left": 9,
        },
        {
            "at": "/groups//required/0",
            "text": "trait HW_CPU_X86_AVX512F",
            "alone": 240,
            "left": 0,
        },
    ],
    "binding": ["/groups//required/0", "/groups//resources/VCPU", "/host/member_of/0"],
    "relaxations": [
        {"drop": ["/groups//required/0"], "hosts": 9},
        {
            "drop": ["/groups//resources/VCPU"],
            "hosts": 4,
            "reduce_to": 12,
            "hosts_reduced": 3,
        },
        {"drop": ["/host/member_of/0"], "hosts": 2},
    ],
    "split_would_fit": 0,
    "nearest": [
        {
            "host": _HOST,
            "lacks": [
                {
                    "at": "/groups//resources/VCPU",
                    "text": "VCPU 16",
                    "asked": 16,
                    "possible": 12,
                    "reason": "used",
                    "provider": _HOST,
                    "free": 12,
                    "capacity": 64,
                    "max_unit": 64,
                }
            ],
        }
    ],
    "unknown": [],
    "warnings": [],
    "request": _REQUEST,
}
_EXPLAINED: Final = component(
    "Explained",
    open_object(
        {"revision": REVISION, "complete": COMPLETE},
        optional={
            **MEMBERS,
            **SOMETIMES,
            "alternatives": ALTERNATIVES,
        },
    ),
    example=_EXAMPLE,
    parts=(EXPLANATION,),
)

OPERATIONS: Final = (
    Operation(
        "POST",
        "/explain",
        handler="berth_v1.explain:explain_request",
        rule=rules.EXPLAIN,
        tag=TAG,
        summary="Explain why a request does not fit",
        details="It changes nothing. It cuts the request into single constraints, counts the hosts"
        " that fit each alone and all up to each, and finds the smallest changes with which some"
        " host fits.",
        body=Body(always(BODY_SCHEMA), always({"request": _REQUEST})),
        answers=shows(_EXPLAINED, Dated.NO, means="The explanation."),
        is_search=True,
        search_seconds=SECONDS,
    ),
)
