# SPDX-License-Identifier: Apache-2.0
"""Allocation candidates: from a parsed request to the answer, in four stages.

`plan` resolves names and makes conditions of them; `anchors` filters trees by what they are and
have; `search` puts the groups together, lazily; `render` writes the answer. Nothing here knows SQL,
HTTP or the clock.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import chain

from berth.candidates.budget import Budget
from berth.candidates.plan import NothingFits, any_root_passes, kept_plan_of, plan_of
from berth.candidates.render import NO_CANDIDATES, render
from berth.candidates.request import (
    CandidatesRequest,
    RequestGroup,
    ResponseForm,
    SearchSettings,
)
from berth.candidates.search import search
from berth.index.snapshot import Snapshot
from berth.model.errors import SearchGaveUp, UnknownResourceClass, UnknownTraits

__all__ = [
    "Budget",
    "CandidatesRequest",
    "RequestGroup",
    "ResponseForm",
    "SearchSettings",
    "find_candidates",
]


def find_candidates(
    snapshot: Snapshot,
    request: CandidatesRequest,
    *,
    settings: SearchSettings,
    form: ResponseForm,
    rng: random.Random,
    budget: Budget | None = None,
) -> bytes:
    """Where could this fit? The whole body of `GET /allocation_candidates`.

    Args:
        budget: when it ends, the answer has the candidates found so far, and `Budget.ended` says
            why; None for no bound.

    Raises:
        UnknownResourceClass, UnknownTraits: a name that the deployment does not know, unless an
            earlier part of the request already has the empty answer (spec/allocation-candidates.md
            4, point 8).
        SearchGaveUp: the time was over before any candidate was found.
    """
    budget = budget or Budget()
    try:
        plan = kept_plan_of(snapshot, request, one_per_tree=not form.trees)
    except NothingFits:
        return NO_CANDIDATES
    except (UnknownResourceClass, UnknownTraits):
        if _ends_before_unknown_name(snapshot, request, budget):
            return NO_CANDIDATES
        raise
    batches = search(snapshot, plan, settings, request.limit, rng=rng, budget=budget)
    first = next(batches, None)
    if first is None:
        if budget.ended:
            raise SearchGaveUp(budget.seconds)
        return NO_CANDIDATES
    return render(snapshot, plan, form, chain((first,), batches), budget)


def _ends_before_unknown_name(
    snapshot: Snapshot, request: CandidatesRequest, budget: Budget
) -> bool:
    """Whether a request with an unknown name has the empty answer before that name is looked up.

    Its parts are looked at one by one, as the original does: the roots, then each group alone.
    """
    alone = replace(request, groups=(), same_subtree=(), group_policy=None)
    asks_roots = bool(request.root_required or request.root_forbidden)
    roots = plan_of(snapshot, alone, one_per_tree=False)
    if asks_roots and not any_root_passes(snapshot, roots):
        return True
    for group in request.groups:
        try:
            plan = plan_of(snapshot, replace(alone, groups=(group,)), one_per_tree=False)
        except NothingFits:
            return True
        except (UnknownResourceClass, UnknownTraits):
            return False
        found = search(snapshot, plan, SearchSettings(), 1, rng=random.Random(0), budget=budget)
        if next(found, None) is None and not budget.ended:
            return True
    raise AssertionError("no name of the request is unknown")
