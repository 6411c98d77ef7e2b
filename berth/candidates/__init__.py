# SPDX-License-Identifier: Apache-2.0
"""Allocation candidates: from a parsed request to the answer, in four stages.

`plan` resolves names and makes conditions of them; `anchors` filters trees by what they are and
have; `search` puts the groups together, lazily; `render` writes the answer. Nothing here knows SQL,
HTTP or the clock.
"""

from __future__ import annotations

import random
from dataclasses import replace

from berth.candidates.plan import NothingFits, any_root_passes, plan_of
from berth.candidates.render import NO_CANDIDATES, render
from berth.candidates.request import (
    CandidatesRequest,
    RequestGroup,
    ResponseForm,
    SearchSettings,
)
from berth.candidates.search import search
from berth.index.snapshot import Snapshot
from berth.model.errors import UnknownResourceClass, UnknownTraits

__all__ = [
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
) -> bytes:
    """Where could this fit? The whole body of `GET /allocation_candidates`.

    Raises:
        UnknownResourceClass, UnknownTraits: a name that the deployment does not know, unless an
            earlier part of the request already has the empty answer (spec/allocation-candidates.md
            4, point 8).
    """
    try:
        plan = plan_of(snapshot, request, one_per_tree=not form.trees)
    except NothingFits:
        return NO_CANDIDATES
    except (UnknownResourceClass, UnknownTraits):
        if _ends_before_unknown_name(snapshot, request):
            return NO_CANDIDATES
        raise
    batches = search(snapshot, plan, settings, request.limit, rng)
    return render(snapshot, plan, form, batches)


def _ends_before_unknown_name(snapshot: Snapshot, request: CandidatesRequest) -> bool:
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
        if next(search(snapshot, plan, SearchSettings(), 1, random.Random(0)), None) is None:
            return True
    raise AssertionError("no name of the request is unknown")
