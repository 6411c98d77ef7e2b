# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/explain`: why a request does not fit, and what would help. Source:
spec/beyond.md 3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Final

from msgspec import Meta
from msgspec.structs import replace

from berth.api import examples
from berth.api.berth_v1.consumers import CONSUMER, consumers_on
from berth.api.berth_v1.fleet_questions import (
    WARNING,
    WARNINGS_MAX,
    Warnings,
    assumed,
    check_rights,
    expanded,
    read_what_if,
)
from berth.api.berth_v1.grammar import REQUEST, WhatIfInput, up_to
from berth.api.berth_v1.inputs import BodySchema
from berth.api.berth_v1.questions import Asked, JSONObject, read_request, request_json
from berth.api.berth_v1.revisions import at_revision
from berth.api.berth_v1.routes import CONSUMERS_LIST, EXPLAIN_SECONDS
from berth.api.contract import Body, Contract, Dated, always, component, ref, shows
from berth.api.errors import Refused
from berth.api.host_rights import HostRights
from berth.api.request import Call, Searching, budget_of
from berth.api.schema import JSONSchema
from berth.api.shapes import BOOLEAN, described, list_of, open_object
from berth.api.struct_schema import REVISION, REVISION_EXAMPLE, Input, object_schema, shown
from berth.candidates.explain import Wanted, explain
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.explanation import Explanation, Explanations, NearHost
from berth.model.shown import UNSET, Sometimes, Warned

#: Nearest hosts, and seconds, unless the body says otherwise.
NEAREST: Final = 5


COMPLETE: JSONSchema = described(BOOLEAN, "False if the time cut some figure short.")
EXPLANATION: Final = shown(Explanation, parts=(WARNING, CONSUMER))
ALTERNATIVES: JSONSchema = described(
    list_of(ref("Explanation")),
    "Instead of all other members: the explanation of each alternative of the request.",
)


class _Body(Input):
    """A request to explain."""

    request: Annotated[JSONObject, REQUEST]
    what_if: Sometimes[WhatIfInput] = UNSET
    nearest_max: Annotated[
        int,
        up_to("max_nearest", least=0),
        "How many of the hosts that come nearest to fitting.",
    ] = NEAREST
    relaxations: Annotated[bool, "Whether to look for changes with which some host fits."] = True
    paint: Annotated[bool, "Whether to add one byte for each host."] = False
    seconds: Annotated[
        float,
        Meta(ge=0.001, le=3600),
        "The time for the answer; the operator's `candidates_time_budget` bounds it.",
    ] = EXPLAIN_SECONDS


_BODY: Final = BodySchema(_Body)

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


_MEMBERS: Final = object_schema(Explanation)["properties"]
#: One explanation, or those of alternatives.
_EXPLAINED: Final = component(
    "Explained",
    open_object(
        {"revision": REVISION, "complete": _MEMBERS["complete"]},
        optional={**_MEMBERS, "alternatives": ALTERNATIVES},
    ),
    example=_EXAMPLE,
    parts=(EXPLANATION,),
)

#: The number of hosts whose consumers are shown.
_HOSTS_MAX: Final = 5

#: A near host, with who holds what it lacks.
Holding = Callable[[NearHost], NearHost]


@Contract(
    summary="Explain why a request does not fit",
    details="It changes nothing. It cuts the request into single constraints, counts the hosts"
    " that fit each alone and all up to each, and finds the smallest changes with which some"
    " host fits.",
    body=Body(always(_BODY), always({"request": _REQUEST})),
    answers=shows(_EXPLAINED, Dated.NO, means="The explanation."),
)
def explain_request(call: Call) -> bytes:
    """Explain how a request fits."""
    body = _BODY.read(call)
    budget = budget_of(call, body.seconds)
    requested = read_request(body.request, "/request")
    what_if = read_what_if(body.what_if)
    fleet = call.services.index.snapshot()
    asked = expanded(requested, fleet)
    check_rights(call.services, asked)
    warnings = Warnings()
    with Searching(call, budget):
        fleet = assumed(call.services, fleet, what_if, warnings, budget)
        shown = explained(
            fleet,
            asked,
            Wanted(body.nearest_max, relaxations=body.relaxations, paint=body.paint),
            budget,
            rights=call.services.rights,
            warnings=warnings.sent,
            holding=_holding(call, fleet if what_if is None else None),
        )
    return at_revision(fleet, shown)


def _holding(call: Call, fleet: Snapshot | None) -> Holding:
    """Who holds what on the first hosts that a request names, for callers who may list the
    consumers of all projects.

    Args:
        fleet: as it is; None for a scenario, where nobody holds anything.
    """
    try:
        call.services.policy.check(CONSUMERS_LIST.name, call.caller, target={})
    except Refused:
        fleet = None
    left = iter(range(_HOSTS_MAX))

    def holding(near: NearHost) -> NearHost:
        if fleet is None or next(left, None) is None:
            return near
        return consumers_on(call.services, fleet, near)

    return holding


def explained(
    fleet: Snapshot,
    asked: Iterable[Asked],
    wanted: Wanted,
    budget: Budget,
    *,
    rights: HostRights | None,
    warnings: Sequence[Warned] = (),
    holding: Holding = lambda near: near,
) -> Explanation | Explanations:
    """The explanation of a request; of several alternatives, which share the time, a list.

    Args:
        rights: of a caller that is bound to a host; it is told of no other one.
        warnings: of the scenario.
        holding: of hosts that the request names.
    """
    shown = []
    for each in asked:
        explanation = explain(fleet, each.question, wanted=wanted, budget=budget)
        if rights is not None:
            explanation = rights.only_own(explanation)
        shown.append(_with_request(explanation, each, warnings, holding))
    if len(shown) == 1:
        return shown[0]
    return Explanations(complete=all(each.complete for each in shown), alternatives=shown)


def _with_request(
    explanation: Explanation, asked: Asked, warnings: Sequence[Warned], holding: Holding
) -> Explanation:
    """An explanation with what the search does not know."""
    limits = (part.pointer("") for part in asked.parts if part.has_limit)
    own = [*(Warned("limit_ignored", at) for at in limits), *explanation.warnings]
    nearest = explanation.nearest
    return replace(
        explanation,
        nearest=nearest and [near if near.named is UNSET else holding(near) for near in nearest],
        warnings=[*warnings, *own[:WARNINGS_MAX]],
        request=request_json(asked.question),
    )
