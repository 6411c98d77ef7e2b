# SPDX-License-Identifier: Apache-2.0
"""Allocation candidates: from a parsed request to the answer, in four stages.

1. `resolve_question` turns names into ids and conditions into tests. It comes first because an
   unknown name, or an amount that no inventory can give, ends the search before it begins.
2. `filter_trees` removes trees by what they are and have, whole arrays at a time. `STAGES` names
   its filters: the cheap and selective ones come first.
3. `assign_groups` puts the groups together on the trees that are left. It is the expensive stage,
   so it is lazy and stops with the last candidate that is wanted.
4. `render_answer` writes the answer, and ends it when it is large enough.

Each stage takes the values of the one before and changes none of them. Nothing here knows SQL, HTTP
or the clock.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from berth.candidates.assign import assign_groups, first, one_of_each
from berth.candidates.batch import Batch, Duplicates
from berth.candidates.conditions import Rows
from berth.candidates.filter import filter_trees
from berth.candidates.plan import Plan
from berth.candidates.question import Question, ResponseForm, SearchSettings
from berth.candidates.render import NO_CANDIDATES, LongAnswer, render_answer
from berth.candidates.resolve import NothingFits, any_root_passes, plan_of, resolve_question
from berth.candidates.splits import with_splits
from berth.candidates.trees import Trees, marks_in
from berth.index.sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.errors import SearchGaveUp, UnknownResourceClass, UnknownTraits

__all__ = [
    "Budget",
    "LongAnswer",
    "ResponseForm",
    "SearchSettings",
    "find_candidates",
    "search",
]


def find_candidates(
    snapshot: Snapshot,
    question: Question,
    *,
    limit: int | None = None,
    settings: SearchSettings,
    form: ResponseForm,
    rng: random.Random,
    budget: Budget | None = None,
) -> bytes | LongAnswer:
    """Search for the candidates of a question: the whole body of `GET /allocation_candidates`.

    Args:
        limit: the largest number of candidates, at least 1; None for all.
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
        plan = resolve_question(snapshot, question, one_per_tree=not form.trees)
    except NothingFits:
        return NO_CANDIDATES
    except (UnknownResourceClass, UnknownTraits):
        if _is_empty_before_unknown_name(snapshot, question, budget):
            return NO_CANDIDATES
        raise
    batches = search(
        snapshot,
        plan,
        budget,
        wanted=settings.wanted(limit),
        depth_first=settings.is_depth_first,
        rng=rng if settings.randomize else None,
    )
    body = render_answer(snapshot, plan, form, batches, budget)
    if budget.ended and not budget.candidates:
        raise SearchGaveUp(budget.seconds)
    return body


def search(
    snapshot: Snapshot,
    plan: Plan,
    budget: Budget,
    *,
    wanted: int | None = None,
    depth_first: bool = False,
    rng: random.Random | None = None,
    most_per_tree: int | None = None,
    start: int = 0,
    among: Mapping[int, Mask] | None = None,
) -> Iterator[Batch]:
    """The candidates of a plan, each once, or as many as are wanted and the budget allows.

    Their order is that of `berth.candidates.assign.assign_groups`; with splits it is unspecified.

    Args:
        most_per_tree: as of `assign_groups`; `wanted` is then no more than a hint.
        start: where among all trees to begin, modulo their number.
        among: the rows of each block that count; None for all of all blocks.
    """
    trees = filter_trees(snapshot, plan, budget, wanted=wanted, among=among, start=start)
    duplicates = Duplicates(snapshot)
    if not plan.splits:
        return assign_groups(
            snapshot,
            plan,
            trees,
            budget,
            wanted=wanted,
            depth_first=depth_first,
            rng=rng,
            duplicates=duplicates,
            most_per_tree=most_per_tree,
        )
    batches = with_splits(
        snapshot, plan, assign_groups(snapshot, plan, trees, budget), budget, duplicates
    )
    return batches if wanted is None or most_per_tree is not None else first(wanted, batches)


def _is_empty_before_unknown_name(snapshot: Snapshot, question: Question, budget: Budget) -> bool:
    """Whether the parts of a question before its first unknown name make the answer empty.

    Its parts are searched one by one, as OpenStack Placement does: the roots, then each group
    alone.
    """
    alone = replace(question, groups=(), together=(), apart=())
    roots = plan_of(snapshot, alone)
    if question.host.required and not any_root_passes(snapshot, roots):
        return True
    for group in question.groups:
        try:
            # Not `plan_of`: what a search keeps in the memory holds on to its plan, and
            # only plans that the memory keeps count towards its bound.
            plan = resolve_question(snapshot, replace(alone, groups=(group,)))
        except NothingFits:
            return True
        except (UnknownResourceClass, UnknownTraits):
            return False
        batches = search(snapshot, plan, budget, wanted=1)
        if next(batches, None) is None and not budget.ended:
            return True
    raise AssertionError("no name of the question is unknown")


def fitting_hosts(
    snapshot: Snapshot,
    plan: Plan,
    budget: Budget,
    among: Mapping[int, Mask] | None = None,
) -> Mapping[int, Mask]:
    """The rows of each block that fit; blocks without any are left out.

    If the budget ends, some are missing.

    Args:
        among: the rows of each block that count; None for all of all blocks.
    """
    parts: Iterator[tuple[Trees, Rows]]
    if plan.is_filter:
        # PERF bench, explain: most derived requests have one condition.
        every = filter_trees(snapshot, plan, budget, among=among)
        parts = ((trees, trees.rows) for trees in every)
    else:
        batches = one_candidate_each(snapshot, plan, budget, among, any_set=True)
        parts = ((batch.trees, batch.rows) for batch in batches)
    hosts: dict[int, Mask] = {}
    for trees, rows in parts:
        marks_in(hosts, trees.block_id, trees.block)[rows] = True
    return hosts


def one_candidate_each(
    snapshot: Snapshot,
    plan: Plan,
    budget: Budget,
    among: Mapping[int, Mask] | None = None,
    *,
    any_set: bool = False,
) -> Iterator[Batch]:
    """One candidate of each host that fits; arguments as of `fitting_hosts` and `with_splits`."""
    trees = filter_trees(snapshot, plan, budget, among=among)
    if not plan.splits:
        yield from one_of_each(snapshot, plan, trees, budget)
        return
    served: dict[int, Mask] = {}
    for batch in assign_groups(snapshot, plan, trees, budget):
        of_block = marks_in(served, batch.trees.block_id, batch.trees.block)
        batch = batch.at(~of_block[batch.rows])
        if not len(batch.positions):
            continue
        for candidates in with_splits(snapshot, plan, [batch], budget, None, any_set=any_set):
            new = candidates.at(~of_block[candidates.rows])
            of_block[new.rows] = True
            if len(new.positions):
                yield new
            if of_block[batch.rows].all():
                break
