# SPDX-License-Identifier: Apache-2.0
"""Explain: why nothing fits a question, and what would help.

This is no second search, and counts nothing inside the first. It asks the same search *derived
requests*: the question with some of its atoms left out, or in another scenario, and counts the
hosts that fit. So what it says is true by the definition of the search.

Source: spec/beyond.md 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from berth.candidates.explain.amounts import Amount
from berth.candidates.explain.asking import Asking
from berth.candidates.explain.atoms import Atom, atoms_of, bits
from berth.candidates.explain.effect import ineffective_relations
from berth.candidates.explain.explanation import (
    Count,
    Explanation,
    HostCounts,
    Impossible,
    NearHost,
    Relaxation,
    Verdict,
    Wanted,
)
from berth.candidates.explain.impossible import impossible_in
from berth.candidates.explain.nearest import Nearest
from berth.candidates.explain.reduction import Reduction
from berth.candidates.explain.relaxations import Relaxing
from berth.candidates.explain.splitting import fitting_if_split
from berth.candidates.explain.stages import Prefix, count, is_cut, painted, prefixes_of, stage_of
from berth.candidates.explain.verdict import summary_of, verdict_of
from berth.candidates.fleet import Fleet
from berth.candidates.naming import named_hosts, with_name_instead
from berth.candidates.question import Question
from berth.candidates.references import References, UnknownName, unknown_names, unknown_references
from berth.index.aggregate_sets import Mask
from berth.index.draining import tolerating
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget

__all__ = ["Explanation", "Wanted", "explain"]


def explain(
    snapshot: Snapshot, question: Question, *, wanted: Wanted, budget: Budget
) -> Explanation:
    """Explain how a question fits a fleet.

    What the time of `budget` cuts short is a lower bound; the verdict comes first.
    """
    snapshot = tolerating(snapshot, question.tolerate)
    references = References(snapshot)
    unknown = tuple(unknown_names(question, snapshot))
    explaining = _Explaining(snapshot, question, references, unknown, budget)
    return explaining.explanation(wanted)


@dataclass(frozen=True, slots=True)
class _Help:
    """What would let some host fit."""

    binding: tuple[str, ...] = ()
    relaxations: tuple[Relaxation, ...] | None = None
    split_would_fit: Count | None = None
    nearest: tuple[NearHost, ...] | None = None


class _Explaining:
    """One question of one fleet."""

    def __init__(
        self,
        snapshot: Snapshot,
        question: Question,
        references: References,
        unknown: tuple[UnknownName, ...],
        budget: Budget,
    ) -> None:
        self._snapshot = snapshot
        self._question = question
        self._references = references
        self._unknown = unknown
        self._fleet = Fleet(snapshot)
        atoms = atoms_of(question, has_drained=snapshot.has_drained)
        self._atoms = [atom for atom in atoms if not _names(atom, unknown)]
        self._reduction = Reduction(question, self._atoms, references)
        self._asking = Asking(snapshot, self._fleet, self._atoms, self._reduction, budget)
        self._all = bits(range(len(self._atoms)))

    def explanation(self, wanted: Wanted) -> Explanation:
        asking, fleet = self._asking, self._fleet
        references = tuple(unknown_references(self._question, self._references))
        prefixes = prefixes_of(asking)
        fit = Count(int(prefixes[-1].hosts.sum()), prefixes[-1].at_least)
        empty = asking.with_nothing_used()
        undrained = self._all & ~asking.drains
        if_undrained = count(asking, asking.fit(undrained)) if asking.drains else fit
        if_empty = self._if_empty(empty, prefixes)
        counts = HostCounts(
            total=fleet.size,
            pools=int(fleet.pools().sum()),
            fit=fit,
            fit_if_undrained=if_undrained,
            fit_if_empty=count(asking, if_empty),
        )
        verdict = verdict_of(asking, counts, if_empty, self._unknown)
        impossible: tuple[Impossible, ...] = ()
        if verdict is Verdict.NEVER:
            impossible = tuple(impossible_in(empty, undrained, self._amounts(empty), references))
        stages = tuple(
            stage_of(asking, empty, number, prefixes[number + 1])
            for number in range(len(self._atoms))
        )
        near = empty if verdict is Verdict.NEVER else asking
        help_ = _Help() if fit.hosts else self._help(wanted, prefixes, near)
        return Explanation(
            verdict=verdict,
            summary=summary_of(verdict, counts, self._unknown, impossible, help_.relaxations or ()),
            hosts=counts,
            stages=stages,
            binding=help_.binding,
            relaxations=help_.relaxations,
            split_would_fit=help_.split_would_fit,
            nearest=help_.nearest,
            impossible=impossible,
            unknown_names=self._unknown,
            instead=dict(self._instead()),
            unknown_references=references,
            ineffective=tuple(
                ineffective_relations(asking, self._question, self._all, prefixes[-1].hosts)
            ),
            paint=painted(asking, prefixes) if wanted.paint else None,
            is_complete=not is_cut(asking),
        )

    def _if_empty(self, empty: Asking, prefixes: list[Prefix]) -> Mask:
        """The hosts that would fit without drains and with nothing used."""
        # Nothing that an atom of the host says depends on what is used.
        first = next((n for n, atom in enumerate(self._atoms) if atom.group is not None), 0)
        among = prefixes[first].hosts
        if empty.drains:
            among = self._asking.fit(bits(range(first)) & ~empty.drains)
        return empty.fit(self._all & ~empty.drains, among=among)

    def _help(self, wanted: Wanted, prefixes: list[Prefix], near: Asking) -> _Help:
        """What would help.

        Args:
            near: what the nearest hosts are asked: with nothing used, where even that would not
                help.
        """
        relaxing = Relaxing(self._asking, prefixes, self._amounts(self._asking))
        if not wanted.relaxations and not wanted.nearest_max:
            return _Help(nearest=())
        singles = relaxing.singles()
        pairs = [] if singles else relaxing.pairs()
        binding = tuple(self._atoms[single.atoms[0]].at for single in singles)
        described: tuple[Relaxation, ...] = ()
        if wanted.relaxations:
            described = tuple(relaxing.described(singles or pairs))
        nearest: list[NearHost] = []
        if wanted.nearest_max and not self._asking.budget.is_spent():
            named = named_hosts(self._question, self._references, self._fleet)
            if near is not self._asking:
                relaxing = Relaxing(near, prefixes_of(near), self._amounts(near))
                singles = relaxing.singles()
                pairs = [] if singles else relaxing.pairs()
            nearest = Nearest(relaxing, named).hosts(singles, pairs, wanted.nearest_max)
        return _Help(
            binding=binding,
            relaxations=described if wanted.relaxations else None,
            # Last, because sets of providers may take all of the time.
            split_would_fit=self._split_would_fit() if wanted.relaxations else None,
            nearest=tuple(nearest),
        )

    def _split_would_fit(self) -> Count | None:
        hosts = fitting_if_split(self._asking, self._all)
        return None if hosts is None else count(self._asking, hosts)

    def _instead(self) -> Iterator[tuple[tuple[str, str], int]]:
        """For each suggestion how many hosts fit with it instead of the unknown name."""
        for unknown in self._unknown:
            for name in unknown.did_you_mean:
                question = with_name_instead(self._question, unknown, name)
                if question is not None and not self._asking.budget.is_spent():
                    others = tuple(each for each in self._unknown if each.name != unknown.name)
                    other = _Explaining(
                        self._snapshot, question, self._references, others, self._asking.budget
                    )
                    hosts = other._asking.fit(other._all)
                    if not is_cut(self._asking):
                        yield (unknown.at, name), int(hosts.sum())

    def _amounts(self, asking: Asking) -> dict[int, Amount]:
        groups = dict(self._question.groups)
        amounts = {}
        for number, atom in enumerate(self._atoms):
            if atom.asked is not None and atom.group is not None:
                split = dict(groups[atom.group].split).get(atom.asked[0])
                amounts[number] = Amount(asking, number, split)
        return amounts


def _names(atom: Atom, unknown: tuple[UnknownName, ...]) -> bool:
    """Whether an atom has an unknown name."""
    return any(each.at == atom.at or each.at.startswith(f"{atom.at}/") for each in unknown)
