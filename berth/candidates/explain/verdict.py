# SPDX-License-Identifier: Apache-2.0
"""The verdict, and the sentences that sum an explanation up; and the relations that change nothing,
because their groups are served by one provider anyway.

A `together` at `subtree` is met by groups on one provider, so a caller who meant "below one NUMA
node" and gets a host without NUMA nodes hears nothing of it.

Source: spec/beyond.md 3.4 and 3.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from berth.candidates.explain.atoms import DRAINS_TEXT, AtomKind
from berth.candidates.explain.derived import DerivedQuestions
from berth.candidates.explain.relaxations import Count, Described, at_least
from berth.candidates.filter import filter_trees
from berth.candidates.plan import Plan
from berth.candidates.question import Question, QuestionRelation
from berth.candidates.references import UnknownName
from berth.candidates.trees import UniformTrees, split_by_options
from berth.index.sets import Mask
from berth.model.explanation import Hosts, Impossible, Verdict
from berth.model.shown import Warned


class FittingHosts(NamedTuple):
    """How many hosts fit.

    Attributes:
    total, pools: of the fleet.
    fit, fit_if_undrained, fit_if_empty: as asked, without drains, and with nothing used as well.
    """

    total: int
    pools: int
    fit: Count
    fit_if_undrained: Count
    fit_if_empty: Count

    def shown(self) -> Hosts:
        """The counts as the explanation has them."""
        counts = (self.fit, self.fit_if_undrained, self.fit_if_empty)
        fit, undrained, empty = (count.hosts for count in counts)
        is_cut = at_least(any(count.at_least for count in counts))
        return Hosts(self.total, self.pools, fit, undrained, empty, is_cut)


def ineffective_relations(
    derived: DerivedQuestions, question: Question, hosts: Mask
) -> Iterator[Warned]:
    """The relations whose groups the same provider serves on every host that fits.

    Args:
        hosts: those that fit.
    """
    relations = {
        atom.at: question.together[atom.place]
        for atom in derived.atoms
        if atom.kind is AtomKind.TOGETHER and question.together[atom.place].at == "subtree"
    }
    if not relations or not hosts.any():
        return
    snapshot = derived.snapshot_of(derived.everything)
    plan = derived.plan(derived.everything, {})
    assert plan is not None, "some hosts fit"
    rows = derived.fleet.by_block(hosts)
    for trees in filter_trees(snapshot, plan, derived.budget, among=rows):
        for uniform in split_by_options(trees, plan):
            relations = {
                at: relation
                for at, relation in relations.items()
                if _are_on_one(plan, uniform, relation)
            }
            if not relations:
                return
    if derived.budget.ended is None:
        yield from (Warned("relation_without_effect", at) for at in relations)


def _are_on_one(plan: Plan, trees: UniformTrees, relation: QuestionRelation) -> bool:
    """Whether one provider alone can serve the groups of a relation."""
    choices = 0
    for demand, options in zip(plan.asking, trees.options, strict=True):
        if demand.suffix in relation.groups:
            choices |= options
    return choices.bit_count() == 1


#: How many relaxations a summary names.
_NAMED_MAX: Final = 2


def verdict_of(
    derived: DerivedQuestions, counts: FittingHosts, if_empty: Mask, unknown: Sequence[UnknownName]
) -> Verdict:
    """The first verdict that applies.

    Args:
        if_empty: the hosts that would fit with nothing used.
    """
    if unknown:
        return Verdict.UNKNOWN_NAME
    if counts.fit.hosts:
        return Verdict.FITS
    if counts.fit.at_least:
        return Verdict.GAVE_UP
    if counts.fit_if_undrained.hosts:
        return Verdict.DRAINED
    if counts.fit_if_undrained.at_least:
        return Verdict.GAVE_UP
    if not counts.fit_if_empty.hosts:
        # Nothing is said of what could fit, before all hosts were looked at.
        return Verdict.GAVE_UP if counts.fit_if_empty.at_least else Verdict.NEVER
    is_enough_free = _is_enough_free(derived, if_empty)
    if derived.budget.is_spent():
        return Verdict.GAVE_UP
    return Verdict.FRAGMENTED if is_enough_free else Verdict.USED_UP


def _is_enough_free(derived: DerivedQuestions, hosts: Mask) -> bool:
    """Whether what is free on some hosts, and in the pools that serve them, adds up to what is
    asked of each class."""
    asked: dict[str, int] = {}
    for atom in derived.atoms:
        if atom.asked is not None:
            name, amount = atom.asked
            asked[name] = asked.get(name, 0) + amount
    sharing = derived.sharing_with(derived.everything, hosts)
    ids = derived.present.names.class_ids
    return all(
        not derived.budget.is_spent()
        and derived.fleet.free(hosts, ids[name], sharing.get(ids[name], ())) >= amount
        for name, amount in asked.items()
    )


def summary_of(
    verdict: Verdict,
    counts: FittingHosts,
    unknown: Sequence[UnknownName],
    impossible: Sequence[Impossible],
    relaxations: Sequence[Described],
) -> str:
    """One or two sentences, what is impossible, and what would help most."""
    others = [each for each in relaxations if each.texts != (DRAINS_TEXT,)]
    # The sentence of this verdict says what fits without drains.
    helpful = others if verdict is Verdict.DRAINED else relaxations
    why = [each.text for each in impossible[:1]]
    sentences = [_said(verdict, counts, unknown), *why, _helpful(helpful)]
    return " ".join(filter(None, sentences))


def _said(verdict: Verdict, counts: FittingHosts, unknown: Sequence[UnknownName]) -> str:
    if verdict is Verdict.UNKNOWN_NAME:
        return " ".join(map(_unknown_text, unknown))
    if verdict is Verdict.FITS:
        return f"{_hosts(counts.fit.hosts)}."
    return {
        Verdict.GAVE_UP: "The search ran out of time; whether a host fits is not known.",
        Verdict.DRAINED: f"No host fits now; {counts.fit_if_undrained.hosts:,} would without"
        " drains.",
        Verdict.NEVER: "No host could hold this, even with nothing used.",
        Verdict.FRAGMENTED: f"No host fits now; {_would(counts)}. Enough is free in total, but not"
        " on one host.",
        Verdict.USED_UP: f"No host fits now; {_would(counts)}.",
    }[verdict]


def _would(counts: FittingHosts) -> str:
    return f"{counts.fit_if_empty.hosts:,} would with nothing used"


def _hosts(number: int) -> str:
    return "1 host fits" if number == 1 else f"{number:,} hosts fit"


def _unknown_text(unknown: UnknownName) -> str:
    kind = "resource class" if unknown.kind == "resource_class" else "trait"
    meant = " or ".join(unknown.did_you_mean)
    return f"There is no {kind} {unknown.name}{f'; did you mean {meant}?' if meant else '.'}"


def _helpful(relaxations: Sequence[Described]) -> str:
    sentences = []
    for relaxation, texts in relaxations[:_NAMED_MAX]:
        sentences.append(f"{_change(texts)}, {_hosts(relaxation.hosts)}.")
        if relaxation.reduce_to and relaxation.hosts_reduced:
            amount, number = relaxation.reduce_to, relaxation.hosts_reduced
            less = _reduced(texts[0], amount)
            sentences[-1] = f"With {less}, {_hosts(number)}."
    return " ".join(sentences)


def _change(texts: Sequence[str]) -> str:
    """Without some conditions; for `on cn7` alone: `On any other host`."""
    if len(texts) == 1 and texts[0].startswith("on "):
        return "On any other host"
    return f"Without {' and '.join(map(_condition, texts))}"


def _condition(text: str) -> str:
    """`VCPU 16`, `trait HW_CPU_X86_AVX2` and `drains`, but `"in zone=z1"`, in a sentence."""
    if text == DRAINS_TEXT:
        return "drains"
    is_noun = text[0].isupper() or text.startswith("trait ")
    return text if is_noun else f'"{text}"'


def _reduced(text: str, amount: int) -> str:
    """`VCPU 16 for _A` with another amount, and with what it is instead."""
    name, asked, *whose = text.split(" ", 2)
    return " ".join([name, f"{amount:,} instead of {int(asked):,}", *whose])
