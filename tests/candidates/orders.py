# SPDX-License-Identifier: Apache-2.0
"""Random orders, and candidates as `POST /berth/v1/candidates` shows them, without HTTP."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from berth.api.berth_v1.asking import Warnings
from berth.api.berth_v1.ordering import order_of
from berth.candidates import Budget
from berth.candidates.listing import candidate_texts
from berth.candidates.ranking import rank
from berth.candidates.references import References, request_of
from berth.candidates.resolve import NothingFits, resolve
from berth.index.draining import tolerating
from berth.index.snapshot import Snapshot
from tests.brute_force import Candidate
from tests.brute_order import Order
from tests.brute_question import Request
from tests.candidates.question_strategies import references_to_aggregates
from tests.candidates.strategies import CLASSES, TRAITS, seldom, sometimes
from tests.candidates.wire_questions import question_of, read_candidate
from tests.worlds import SHARING_TRAIT, World


@dataclass(frozen=True, slots=True)
class Shown:
    """A candidate of an answer, by names."""

    candidate: Candidate
    host: str
    score: dict[str, Any] | None


def shown(
    snapshot: Snapshot,
    fleet: World,
    request: Request,
    order: Order,
    *,
    limit: int = 10_000,
    per_host: int | None = None,
) -> tuple[list[Shown], bool]:
    """The candidates in their order, and whether there are more."""
    question = question_of(request, snapshot)
    snapshot = tolerating(snapshot, question.tolerate)
    references, budget = References(snapshot), Budget()
    wanted = order_of(order, "", snapshot, references, Warnings())
    try:
        plan = resolve(snapshot, request_of(question, references), one_per_tree=False)
    except NothingFits:
        return [], False
    ranked = rank(snapshot, plan, wanted, limit=limit, per_host=per_host, budget=budget)
    texts = candidate_texts(snapshot, plan, wanted, ranked, budget)
    return [_read(json.loads(text), fleet) for text in texts], ranked.more


def _read(item: dict[str, Any], fleet: World) -> Shown:
    return Shown(read_candidate(item, fleet), fleet.names[item["host"]], item.get("score"))


@st.composite
def orders(draw: st.DrawFn, groups: list[str]) -> Order:
    """Orders for a request with some groups."""
    order: dict[str, Any] = {"by": draw(st.sampled_from(("any", "random", "pack", "spread")))}
    if draw(sometimes()):
        order["weight"] = draw(st.sampled_from((0, 0.5, 3, 1000)))
    if draw(sometimes()):
        weights = st.sampled_from((0, 0.25, 1, 7))
        order["classes"] = draw(st.dictionaries(st.sampled_from(CLASSES), weights))
    if draw(sometimes()):
        order["seed"] = draw(st.sampled_from((1, 2**64 - 1)))
    if draw(st.booleans()):
        order["prefer"] = draw(st.lists(preferences(groups), max_size=3))
    return order


@st.composite
def preferences(draw: st.DrawFn, groups: list[str]) -> dict[str, Any]:
    """Preferences with or without conditions."""
    preference: dict[str, Any] = {"weight": draw(st.sampled_from((-1000, -0.5, 0, 1, 2.5)))}
    if draw(st.booleans()):
        preference["of"] = draw(st.sampled_from(("host", *groups)))
    traits = (*TRAITS, SHARING_TRAIT, *(f"!{trait}" for trait in TRAITS))
    if draw(st.booleans()):
        preference["required"] = [draw(st.sampled_from(traits))]
    if draw(sometimes()):
        names = references_to_aggregates()
        item: Any = draw(st.sampled_from((*names, *(f"!{name}" for name in names))))
        if draw(seldom()):
            item = [*names[:2]]
        preference["member_of"] = [item]
    return preference
