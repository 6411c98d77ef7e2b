# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/candidates`: where a request fits, best first. Source: spec/beyond.md 2.6."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final, NamedTuple

from msgspec import field

from berth.api import examples
from berth.api.answers import encode
from berth.api.berth_v1.explain import ALTERNATIVES, EXPLANATION, explained
from berth.api.berth_v1.fleet_questions import (
    WARNING,
    Warnings,
    assumed,
    check_names,
    check_order,
    check_rights,
    expanded,
    group_names,
    order_of,
    plans_of,
    read_what_if,
)
from berth.api.berth_v1.grammar import GROUP_NAME_PATTERN, REQUEST, OrderInput, WhatIfInput, up_to
from berth.api.berth_v1.inputs import BodySchema
from berth.api.berth_v1.questions import Asked, JSONObject, Requested, read_request
from berth.api.berth_v1.routes import EXPLAIN_SECONDS
from berth.api.contract import Body, Contract, Dated, always, component, ref, shows
from berth.api.environ import BODY
from berth.api.placement import allocation_candidates
from berth.api.request import Call, Searching, Services, budget_of
from berth.api.schema import JSONSchema
from berth.api.shapes import (
    AMOUNTS,
    BOOLEAN,
    COUNT,
    TEXT,
    UUID,
    UUID_36_PATTERN,
    described,
    list_of,
    object_by,
    open_object,
)
from berth.api.struct_schema import Input
from berth.candidates.explain import Wanted
from berth.candidates.order import Order
from berth.candidates.plan import Plan
from berth.candidates.ranking import Ranked, rank
from berth.candidates.references import References
from berth.candidates.render_ranked import candidate_texts, summaries
from berth.candidates.what_if import WhatIf
from berth.index.memory import Memory
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.errors import SearchGaveUp
from berth.model.shown import UNSET, Sometimes

#: Candidates in an answer, unless the body says otherwise.
LIMIT: Final = 100


class _Body(Input):
    """What to find."""

    request: Annotated[JSONObject, REQUEST]
    order: OrderInput = field(default_factory=OrderInput)
    limit: Annotated[int, up_to("max_candidates")] = LIMIT
    per_host: Annotated[
        int | None, up_to("max_candidates"), "At most this many candidates of one host."
    ] = None
    summaries: Annotated[bool, "Whether to add `provider_summaries` as at 1.39."] = False
    explain: Annotated[bool, "Whether to add an explanation if there is no candidate."] = False
    what_if: Sometimes[WhatIfInput] = UNSET


_BODY: Final = BodySchema(_Body)
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


#: Callers repeat their questions; longer ones are not worth caching.
_KEPT_LENGTH_MAX: Final = 2048
#: What a decoded question takes, for each byte of its body.
_BYTES_FOR_BYTE: Final = 16

_NOTHING: Final = Ranked((), (), more=False)


class _Wanted(NamedTuple):
    """A body, decoded and checked against everything but the fleet."""

    requested: tuple[Requested, ...]
    body: _Body
    what_if: WhatIf | None


class _Answer(NamedTuple):
    """The candidates of one alternative; without a plan nothing can fit."""

    alternative: int
    plan: Plan | None
    ranked: Ranked


@Contract(
    summary="Find where a request fits",
    details="It changes nothing. The element of a candidate can be sent to"
    " `PUT /allocations/{consumer}` as it is.",
    body=Body(always(_BODY), always(_EXAMPLE)),
    answers=shows(_CANDIDATES, Dated.NO, means="The candidates, the best first."),
)
def find_candidates(call: Call) -> bytes:
    """Find where a request fits."""
    budget = budget_of(call)
    wanted = _decoded(call.services.index.memory, call)
    snapshot = call.services.index.snapshot()
    warnings = Warnings()
    asked = expanded(wanted.requested, snapshot)
    check_rights(call.services, asked)
    check_order(wanted.body.order, group_names(asked))
    check_names(asked, snapshot)
    with Searching(call, budget):
        fleet = assumed(call.services, snapshot, wanted.what_if, warnings, budget)
        references = References(fleet)
        warnings.add_of(asked, references)
        order = order_of(wanted.body.order, fleet, references, warnings)
        # The plans of flavors may have taken as long as a whole search.
        budget.is_spent()
        answer = _ranked(wanted.body, plans_of(fleet, asked, references), order, budget)
        rendered = _render(fleet, wanted, order, answer, warnings, budget)
        if budget.ended and not budget.candidates:
            raise SearchGaveUp(budget.seconds)
        if wanted.body.explain and not budget.candidates:
            rendered = _with_explanation(call.services, rendered, fleet, asked, budget)
    return rendered


def _with_explanation(
    services: Services, rendered: bytes, fleet: Snapshot, asked: Iterable[Asked], budget: Budget
) -> bytes:
    """An empty answer, with the reason."""
    part = budget.part(EXPLAIN_SECONDS)
    shown = explained(fleet, asked, Wanted(), part, rights=services.rights)
    return b"%b, %b" % (rendered[:-1], encode({"explanation": shown})[1:])


def _decoded(memory: Memory, call: Call) -> _Wanted:
    """The decoded body, cached for requests with the same body."""
    raw = call.env[BODY]
    key = find_candidates, raw
    wanted: _Wanted | None = memory.get(key)
    if wanted is None:
        body = _BODY.read(call)
        requested = read_request(body.request, "/request")
        wanted = _Wanted(requested, body, read_what_if(body.what_if))
        if len(raw) <= _KEPT_LENGTH_MAX:
            memory.keep(key, wanted, _BYTES_FOR_BYTE * len(raw), is_lasting=True)
    return wanted


def _ranked(
    body: _Body, plans: Iterable[tuple[int, Snapshot, Plan]], order: Order, budget: Budget
) -> _Answer:
    """The candidates of the first alternative that has any."""
    answer = _Answer(0, None, _NOTHING)
    for number, tolerant, plan in plans:
        ranked = rank(tolerant, plan, order, budget, limit=body.limit, per_host=body.per_host)
        answer = _Answer(number, plan, ranked)
        if ranked.order or budget.ended:
            break
    return answer


def _render(
    fleet: Snapshot,
    wanted: _Wanted,
    order: Order,
    answer: _Answer,
    warnings: Warnings,
    budget: Budget,
) -> bytes:
    """The body of the answer."""
    texts: list[bytes] = []
    more: dict[str, Any] = {"warnings": warnings.sent}
    summed = b', "provider_summaries": {}' if wanted.body.summaries else b""
    if answer.plan is not None and answer.ranked.order:
        texts = candidate_texts(fleet, answer.plan, order, answer.ranked, budget)
        if len(wanted.requested) > 1:
            more["alternative"] = answer.alternative
        if summed:
            shown = (batch for batch, _ in answer.ranked.batches)
            summed = b', "provider_summaries": ' + summaries(fleet, answer.plan, shown, budget)
    is_more = answer.ranked.more or len(texts) < len(answer.ranked.order)
    head = {"revision": fleet.revision, "complete": budget.ended is None, "more": is_more}
    return b"".join(
        (
            encode(head)[:-1],
            b', "candidates": [',
            b", ".join(texts),
            b"], ",
            encode(more)[1:-1],
            summed,
            b"}",
        )
    )
