# SPDX-License-Identifier: Apache-2.0
"""Explain: why nothing fits a question, and what would help.

This is no second search, and counts nothing inside the first. It asks the same search *derived
requests*: the question with some of its atoms left out, or in another scenario, and counts the
hosts that fit. So what it says cannot contradict the search.

Source: spec/beyond.md 3.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from berth.candidates.explain.atoms import (
    Atom,
    Reduction,
    atoms_of,
    bits,
    named_hosts,
    with_name_instead,
)
from berth.candidates.explain.derived import DerivedQuestions, fitting_if_split
from berth.candidates.explain.impossible import impossible_in
from berth.candidates.explain.nearest import Nearest
from berth.candidates.explain.relaxations import (
    Count,
    Described,
    Prefix,
    Relaxing,
    count,
    is_cut,
    painted,
    prefixes_of,
    stage_of,
)
from berth.candidates.explain.verdict import (
    FittingHosts,
    ineffective_relations,
    summary_of,
    verdict_of,
)
from berth.candidates.fleet import Fleet
from berth.candidates.question import Question
from berth.candidates.references import References, UnknownName, unknown_names, unknown_references
from berth.index.draining import tolerating
from berth.index.sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.explanation import Explanation, Impossible, NearHost, Unknown, Verdict
from berth.model.shown import UNSET, Sometimes, Warned

__all__ = ["Wanted", "explain"]


def explain(
    snapshot: Snapshot, question: Question, *, wanted: Wanted, budget: Budget
) -> Explanation:
    """Explain how a question fits a fleet.

    What the time of `budget` cuts short is a lower bound; the verdict comes first.
    """
    snapshot = tolerating(snapshot, question.tolerate)
    return _Explaining(snapshot, question, budget).explanation(wanted)


class Wanted(Struct, frozen=True):
    """Which parts of an explanation are wanted.

    Attributes:
        nearest_max: how many of the nearest hosts.
    """

    nearest_max: int = 5
    relaxations: bool = True
    paint: bool = False


class _Help(Struct, frozen=True):
    """What would let some host fit."""

    binding: tuple[str, ...] = ()
    relaxations: tuple[Described, ...] | None = None
    split_would_fit: Sometimes[int] = UNSET
    nearest: Sometimes[tuple[NearHost, ...]] = UNSET


class _Explaining:
    """One question of one fleet."""

    def __init__(self, snapshot: Snapshot, question: Question, budget: Budget) -> None:
        self._snapshot = snapshot
        self._question = question
        self._references = References(snapshot)
        self._unknown = tuple(unknown_names(question, snapshot))
        self._fleet = Fleet(snapshot)
        self._budget = budget
        self._derived = self._derived_questions(question, self._unknown)
        self._atoms = self._derived.atoms

    def _derived_questions(
        self, question: Question, unknown: tuple[UnknownName, ...]
    ) -> DerivedQuestions:
        """What is asked of a question, apart from names that do not exist."""
        atoms = atoms_of(question, has_drained=self._snapshot.has_drained)
        existing = [atom for atom in atoms if not _names(atom, unknown)]
        reduction = Reduction(question, existing, self._references)
        return DerivedQuestions(self._snapshot, self._fleet, reduction, self._budget)

    def explanation(self, wanted: Wanted) -> Explanation:
        derived, fleet = self._derived, self._fleet
        references = tuple(unknown_references(self._question, self._references))
        prefixes = prefixes_of(derived)
        fit = Count(int(prefixes[-1].hosts.sum()), prefixes[-1].at_least)
        empty = derived.with_nothing_used()
        undrained = derived.everything & ~derived.drains
        if_undrained = count(derived, derived.fit(undrained)) if derived.drains else fit
        if_empty = self._if_empty(empty, prefixes)
        counts = FittingHosts(
            total=fleet.size,
            pools=int(fleet.pools().sum()),
            fit=fit,
            fit_if_undrained=if_undrained,
            fit_if_empty=count(derived, if_empty),
        )
        verdict = verdict_of(derived, counts, if_empty, self._unknown)
        impossible: tuple[Impossible, ...] = ()
        if verdict is Verdict.NEVER:
            impossible = tuple(impossible_in(empty, undrained, references))
        stages = tuple(
            stage_of(derived, empty, number, prefixes[number + 1])
            for number in range(len(self._atoms))
        )
        near = empty if verdict is Verdict.NEVER else derived
        help_ = _Help() if fit.hosts else self._help(wanted, prefixes, near)
        return Explanation(
            verdict=verdict,
            summary=summary_of(verdict, counts, self._unknown, impossible, help_.relaxations or ()),
            hosts=counts.shown(),
            stages=stages,
            binding=help_.binding,
            relaxations=UNSET
            if help_.relaxations is None
            else [each.relaxation for each in help_.relaxations],
            split_would_fit=help_.split_would_fit,
            nearest=help_.nearest,
            impossible=impossible or UNSET,
            unknown=self._unknown_shown(),
            warnings=[
                *(Warned(f"unknown_{each.kind}", each.at, each.reference) for each in references),
                *ineffective_relations(derived, self._question, prefixes[-1].hosts),
            ],
            paint=painted(derived, prefixes) if wanted.paint else UNSET,
            complete=not is_cut(derived),
        )

    def _if_empty(self, empty: DerivedQuestions, prefixes: list[Prefix]) -> Mask:
        """The hosts that would fit without drains and with nothing used."""
        # Nothing that an atom of the host says depends on what is used.
        first = next((n for n, atom in enumerate(self._atoms) if atom.group is not None), 0)
        among = prefixes[first].hosts
        if empty.drains:
            among = self._derived.fit(bits(range(first)) & ~empty.drains)
        return empty.fit(empty.everything & ~empty.drains, among=among)

    def _help(self, wanted: Wanted, prefixes: list[Prefix], near: DerivedQuestions) -> _Help:
        """What would help.

        Args:
            near: what the nearest hosts are asked: with nothing used, where even that would not
                help.
        """
        relaxing = Relaxing(self._derived, prefixes)
        if not wanted.relaxations and not wanted.nearest_max:
            return _Help(nearest=())
        singles = relaxing.singles()
        pairs = [] if singles else relaxing.pairs()
        binding = tuple(self._atoms[single.atoms[0]].at for single in singles)
        described: tuple[Described, ...] = ()
        if wanted.relaxations:
            described = tuple(relaxing.described(singles or pairs))
        nearest: list[NearHost] = []
        if wanted.nearest_max and not self._derived.budget.is_spent():
            named = named_hosts(self._question, self._references, self._fleet)
            if near is not self._derived:
                relaxing = Relaxing(near, prefixes_of(near))
                singles = relaxing.singles()
                pairs = [] if singles else relaxing.pairs()
            nearest = Nearest(relaxing, named).hosts(singles, pairs, wanted.nearest_max)
        return _Help(
            binding=binding,
            relaxations=described if wanted.relaxations else None,
            # Last, because sets of providers may take all of the time.
            split_would_fit=self._split_would_fit() if wanted.relaxations else UNSET,
            nearest=tuple(nearest),
        )

    def _split_would_fit(self) -> Sometimes[int]:
        hosts = fitting_if_split(self._derived, self._derived.everything)
        return UNSET if hosts is None else count(self._derived, hosts).hosts

    def _unknown_shown(self) -> list[Unknown]:
        return [
            Unknown(each.at, each.kind, each.name, each.did_you_mean, dict(self._instead(each)))
            for each in self._unknown
        ]

    def _instead(self, unknown: UnknownName) -> Iterator[tuple[str, int]]:
        """For each suggestion how many hosts fit with it instead of an unknown name."""
        for name in unknown.did_you_mean:
            question = with_name_instead(self._question, unknown, name)
            if question is not None and not self._budget.is_spent():
                others = tuple(each for each in self._unknown if each.name != unknown.name)
                derived = self._derived_questions(question, others)
                hosts = derived.fit(derived.everything)
                if not is_cut(self._derived):
                    yield name, int(hosts.sum())


def _names(atom: Atom, unknown: tuple[UnknownName, ...]) -> bool:
    """Whether an atom has an unknown name."""
    return any(each.at == atom.at or each.at.startswith(f"{atom.at}/") for each in unknown)
