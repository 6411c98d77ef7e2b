# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/candidates`: where a request fits, best first. Source: spec/beyond.md 2.6."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from berth.api.berth_v1 import body
from berth.api.berth_v1.asking import (
    Warnings,
    assumed,
    check_names,
    check_rights,
    group_names,
    plans_of,
    read_what_if,
)
from berth.api.berth_v1.expanding import expanded
from berth.api.berth_v1.explaining import explained
from berth.api.berth_v1.ordering import check_order, order_of
from berth.api.berth_v1.reading import Asked, JSONObject, Requested, read_request
from berth.api.environ import BODY
from berth.api.operations.berth_v1.candidates import BODY_SCHEMA, LIMIT
from berth.api.operations.berth_v1.explanation import SECONDS
from berth.api.rendering import answer_bytes, encode
from berth.api.request import Request, Response, Services
from berth.api.searching import Searching, budget_of
from berth.candidates.explain import Wanted
from berth.candidates.listing import candidate_texts, summaries
from berth.candidates.order import Order
from berth.candidates.plan import Plan
from berth.candidates.ranking import Ranked, rank
from berth.candidates.references import References
from berth.candidates.what_if import WhatIf
from berth.index.memory import Memory
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.errors import SearchGaveUp

#: Callers repeat their questions; longer ones are not worth caching.
_KEPT_LENGTH_MAX: Final = 2048
#: What a decoded question takes, for each byte of its body.
_BYTES_FOR_BYTE: Final = 16

_NOTHING: Final = Ranked((), (), more=False)


class _Wanted(NamedTuple):
    """A body, decoded and checked against everything but the fleet."""

    requested: tuple[Requested, ...]
    sent: JSONObject
    what_if: WhatIf | None


class _Answer(NamedTuple):
    """The candidates of one alternative; without a plan nothing can fit."""

    alternative: int
    plan: Plan | None
    ranked: Ranked


def find_candidates(services: Services, request: Request, response: Response) -> None:
    """Find where a request fits."""
    budget = budget_of(services, request)
    wanted = _decoded(services.index.memory, request)
    snapshot = services.index.snapshot()
    warnings = Warnings()
    asked = expanded(wanted.requested, snapshot)
    check_rights(services, asked)
    check_order(wanted.sent.get("order", {}), "/order", group_names(asked))
    check_names(asked, snapshot)
    with Searching(services, request, budget):
        fleet = snapshot
        if wanted.what_if is not None:
            fleet = assumed(services, snapshot, wanted.what_if, "/what_if", warnings, budget)
        references = References(fleet)
        warnings.add_of(asked, references)
        order = order_of(wanted.sent.get("order", {}), "/order", fleet, references, warnings)
        # The plans of flavors may have taken as long as a whole search.
        budget.is_spent()
        answer = _ranked(fleet, wanted, asked, order, references, budget)
        rendered = _render(fleet, wanted, order, answer, warnings, budget)
        if budget.ended and not budget.candidates:
            raise SearchGaveUp(budget.seconds)
        if wanted.sent.get("explain") and not budget.candidates:
            rendered = _with_explanation(services, rendered, fleet, asked, budget)
    answer_bytes(response, rendered)


def _with_explanation(
    services: Services, rendered: bytes, fleet: Snapshot, asked: Iterable[Asked], budget: Budget
) -> bytes:
    """An empty answer, with the reason."""
    shown = explained(fleet, asked, wanted=Wanted(), budget=budget.part(SECONDS))
    if services.rights is not None:
        shown = services.rights.only_own(shown)
    return b"%b, %b" % (rendered[:-1], encode({"explanation": shown})[1:])


def _decoded(memory: Memory, request: Request) -> _Wanted:
    """The decoded body, cached for requests with the same body."""
    raw = request.env[BODY]
    key = find_candidates, raw
    wanted: _Wanted | None = memory.get(key)
    if wanted is None:
        wanted = _wanted(body.read(request, BODY_SCHEMA))
        if len(raw) <= _KEPT_LENGTH_MAX:
            memory.keep(key, wanted, _BYTES_FOR_BYTE * len(raw), is_lasting=True)
    return wanted


def _wanted(sent: JSONObject) -> _Wanted:
    requested = read_request(sent["request"], "/request")
    what_if = sent.get("what_if")
    return _Wanted(requested, sent, None if what_if is None else read_what_if(what_if, "/what_if"))


def _ranked(
    fleet: Snapshot,
    wanted: _Wanted,
    several: Iterable[Asked],
    order: Order,
    references: References,
    budget: Budget,
) -> _Answer:
    """The candidates of the first alternative that has any."""
    answer = _Answer(0, None, _NOTHING)
    for number, tolerant, plan in plans_of(fleet, several, references):
        ranked = rank(
            tolerant,
            plan,
            order,
            limit=wanted.sent.get("limit", LIMIT),
            per_host=wanted.sent.get("per_host"),
            budget=budget,
        )
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
    summed = b', "provider_summaries": {}' if wanted.sent.get("summaries") else b""
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
