# SPDX-License-Identifier: Apache-2.0
"""Relations that change nothing: their groups are served by one provider anyway.

A `together` at `subtree` is met by groups on one provider, so a caller who meant "below one NUMA
node" and gets a host without NUMA nodes hears nothing of it.

Source: spec/beyond.md 3.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from berth.candidates.explain.asking import Asking
from berth.candidates.explain.atoms import Part
from berth.candidates.explain.explanation import Ineffective
from berth.candidates.filter import filter_trees
from berth.candidates.plan import Plan
from berth.candidates.question import Question, QuestionRelation
from berth.candidates.resolve import plan_of
from berth.candidates.trees import UniformTrees
from berth.candidates.uniform import split_by_options
from berth.index.aggregate_sets import Mask


def ineffective_relations(
    asking: Asking, question: Question, kept: int, hosts: Mask
) -> Iterator[Ineffective]:
    """The relations whose groups the same provider serves on every host that fits.

    Args:
        hosts: those that fit.
    """
    relations = {
        atom.at: question.together[atom.place]
        for atom in asking.atoms
        if atom.part is Part.TOGETHER and question.together[atom.place].at == "subtree"
    }
    if not relations or not hosts.any():
        return
    snapshot = asking.snapshot_of(kept)
    plan = plan_of(snapshot, asking.reduction.request(kept, {}), one_per_tree=False)
    rows = asking.fleet.by_block(hosts)
    for trees in filter_trees(snapshot, plan, asking.budget, among=rows):
        for uniform in split_by_options(trees, plan):
            relations = {
                at: relation
                for at, relation in relations.items()
                if _are_on_one(plan, uniform, relation)
            }
            if not relations:
                return
    if asking.budget.ended is None:
        yield from map(Ineffective, relations)


def _are_on_one(plan: Plan, trees: UniformTrees, relation: QuestionRelation) -> bool:
    """Whether one provider alone can serve the groups of a relation."""
    choices = 0
    for demand, options in zip(plan.asking, trees.options, strict=True):
        if demand.suffix in relation.groups:
            choices |= options
    return choices.bit_count() == 1
