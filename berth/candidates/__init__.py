# SPDX-License-Identifier: Apache-2.0
"""Allocation candidates: from a parsed request to the answer, in four stages.

1. `resolve` turns names into ids and conditions into tests. It comes first because an unknown name,
   or an amount that no inventory can give, ends the search before it begins.
2. `filter_trees` removes trees by what they are and have, whole arrays at a time. `STAGES` names
   its filters: the cheap and selective ones come first.
3. `assign` puts the groups together on the trees that are left. It is the expensive stage, so it is
   lazy and stops with the last candidate that is wanted.
4. `render` writes the answer, and ends it when it is large enough.

Each stage takes the values of the one before and changes none of them. Nothing here knows SQL, HTTP
or the clock.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace

from berth.candidates.assign import PerTree, assign, first
from berth.candidates.batch import Batch
from berth.candidates.filter import filter_trees
from berth.candidates.plan import Plan
from berth.candidates.render import NO_CANDIDATES, LongAnswer, render
from berth.candidates.request import (
    CandidatesRequest,
    RequestGroup,
    ResponseForm,
    SearchSettings,
)
from berth.candidates.resolve import NothingFits, any_root_passes, plan_of, resolve
from berth.candidates.splits import with_splits
from berth.candidates.walk import Duplicates
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.errors import SearchGaveUp, UnknownResourceClass, UnknownTraits

__all__ = [
    "Budget",
    "CandidatesRequest",
    "LongAnswer",
    "RequestGroup",
    "ResponseForm",
    "SearchSettings",
    "find_candidates",
    "search",
]


def find_candidates(
    snapshot: Snapshot,
    request: CandidatesRequest,
    *,
    settings: SearchSettings,
    form: ResponseForm,
    rng: random.Random,
    budget: Budget | None = None,
) -> bytes | LongAnswer:
    """Search for the candidates of a request: the whole body of `GET /allocation_candidates`.

    Args:
        budget: when it ends, the answer has the candidates found so far, and `Budget.ended` says
            why; None for no bound.

    Raises:
        UnknownResourceClass, UnknownTraits: a name that the deployment does not know, unless an
            earlier part of the request already makes the answer empty
            (spec/allocation-candidates.md 4, point 8).
        SearchGaveUp: the budget ended before any candidate was found.
    """
    budget = budget or Budget()
    try:
        plan = resolve(snapshot, request, one_per_tree=not form.trees)
    except NothingFits:
        return NO_CANDIDATES
    except (UnknownResourceClass, UnknownTraits):
        if _is_empty_before_unknown_name(snapshot, request, budget):
            return NO_CANDIDATES
        raise
    wanted = settings.wanted(request.limit)
    batches = search(snapshot, plan, settings, wanted, rng=rng, budget=budget)
    body = render(snapshot, plan, form, batches, budget)
    if budget.ended and not budget.candidates:
        raise SearchGaveUp(budget.seconds)
    return body


def search(
    snapshot: Snapshot,
    plan: Plan,
    settings: SearchSettings,
    wanted: int | None,
    *,
    rng: random.Random,
    budget: Budget,
    per_tree: PerTree | None = None,
    start: int = 0,
    among: Mapping[int, Mask] | None = None,
) -> Iterator[Batch]:
    """The candidates of a plan, each once, or as many as are wanted and the budget allows.

    The order is that of `berth.candidates.assign.assign`; with splits it is unspecified.

    Args:
        per_tree: bounds the candidates of each tree; `wanted` is then no more than a hint.
        start: where among all trees to begin, modulo their number.
        among: the rows of each block that count; None for all of all blocks.
    """
    trees = filter_trees(snapshot, plan, budget, wanted=wanted, among=among, start=start)
    duplicates = Duplicates(snapshot)
    if not plan.splits:
        return assign(
            snapshot,
            plan,
            trees,
            settings,
            wanted,
            rng=rng,
            budget=budget,
            duplicates=duplicates,
            per_tree=per_tree,
        )
    unsplit = assign(
        snapshot, plan, trees, SearchSettings(), None, rng=rng, budget=budget, duplicates=None
    )
    batches = with_splits(snapshot, plan, unsplit, budget, duplicates)
    if per_tree is not None:
        return per_tree.among(batches)
    return batches if wanted is None else first(wanted, batches)


def _is_empty_before_unknown_name(
    snapshot: Snapshot, request: CandidatesRequest, budget: Budget
) -> bool:
    """Whether the parts of a request before its first unknown name make the answer empty.

    Its parts are searched one by one, as OpenStack Placement does: the roots, then each group
    alone.
    """
    alone = replace(request, groups=(), same_subtree=(), group_policy=None, relations=())
    roots = plan_of(snapshot, alone, one_per_tree=False)
    if (request.host.required or request.host.forbidden) and not any_root_passes(snapshot, roots):
        return True
    for group in request.groups:
        try:
            # `resolve`, not `plan_of`: what a search keeps in the memory holds on to its plan, and
            # only plans that the memory keeps count towards its bound.
            plan = resolve(snapshot, replace(alone, groups=(group,)), one_per_tree=False)
        except NothingFits:
            return True
        except (UnknownResourceClass, UnknownTraits):
            return False
        batches = search(snapshot, plan, SearchSettings(), 1, rng=random.Random(0), budget=budget)
        if next(batches, None) is None and not budget.ended:
            return True
    raise AssertionError("no name of the request is unknown")
