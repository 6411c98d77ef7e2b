# SPDX-License-Identifier: Apache-2.0
"""Derived questions: which hosts fit some of a question's atoms, by the search itself.

Each atom is first asked alone. A host that fails it fails every request that has it, so most
derived requests look at few hosts, or at none. Groups that neither a relation nor a class connects
are asked one by one. For a host of one provider, with which no other tree shares anything, the
answers to single atoms are enough.

Source: spec/beyond.md 3.2 and 3.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain, combinations, product
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from berth.candidates import fitting_hosts
from berth.candidates.conditions import TraitTest, fits, fits_if_unused
from berth.candidates.explain.atoms import Amounts, Atom, AtomKind, Reduction, bits
from berth.candidates.filter import filter_trees
from berth.candidates.fleet import Fleet
from berth.candidates.plan import Plan
from berth.candidates.question import Question, QuestionGroup, Split
from berth.candidates.resolve import NothingFits, plan_of
from berth.candidates.structural_rules import bits_of
from berth.index.block import Block, Columns
from berth.index.draining import undrained
from berth.index.memory import Memory
from berth.index.scenario import nothing_used
from berth.index.sets import Mask
from berth.index.snapshot import Location, Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId
from berth.model.inventory import MAX_INT

#: No tree has more providers.
_PARTS_MAX = 1 << 16


def fitting_if_split(derived: DerivedQuestions, kept: int) -> Mask | None:
    """The hosts that fit some atoms if every amount may be split, where no host fits otherwise.
    None if several groups ask for the same class: only one of them may split it."""
    question = derived.reduction.question(kept, {})
    classes = [name for _, group in question.groups for name, _ in group.resources]
    if len(classes) > len(set(classes)):
        return None
    among = _promising(derived, question)
    if not among.any():
        return among
    return derived.fit_question(_split(question), kept, among)


def _promising(derived: DerivedQuestions, question: Question) -> Mask:
    """The hosts that may fit if amounts are split: their providers have enough of each class
    together. Several of them have the same class, or a named group asks for several classes."""
    fleet, class_ids = derived.fleet, derived.present.names.class_ids
    amounts = {
        class_ids[name]: amount for _, group in question.groups for name, amount in group.resources
    }
    has_parts = any(name and len(group.resources) > 1 for name, group in question.groups)
    hosts = fleet.none()
    for span in fleet.spans:
        block: Block = span.block
        if not has_parts and not any(
            len(block.shape.nodes_of_class.get(each, ())) > 1 for each in amounts
        ):
            continue
        rows: Mask = np.ones(block.rows, dtype=np.bool_)
        for class_id, amount in amounts.items():
            # Another tree may share what a tree has none of.
            if class_id in block.columns and class_id not in derived.present.sharing.classes:
                room = derived.at_once(block.columns[class_id])
                rows &= room.sum(axis=0, dtype=np.float64) >= amount
        hosts[span.hosts] = rows
    # One provider serves these, split or not.
    return hosts & ~derived.fleet.settled


def _split(question: Question) -> Question:
    """The question with every amount split. A named group of several classes becomes one group for
    each: a group that splits an amount has no other."""
    parts_of = {name: tuple(_parts(name, group)) for name, group in question.groups}
    names_of = {name: [part for part, _ in parts] for name, parts in parts_of.items()}
    return replace(
        question,
        groups=tuple(chain.from_iterable(parts_of.values())),
        together=tuple(
            each._replace(groups=tuple(chain.from_iterable(names_of[name] for name in each.groups)))
            for each in question.together
        ),
        apart=tuple(
            each._replace(groups=pair)
            for each in question.apart
            for several in combinations([names_of[name] for name in each.groups], 2)
            for pair in product(*several)
        ),
    )


def _parts(name: str, group: QuestionGroup) -> Iterator[tuple[str, QuestionGroup]]:
    if not name or len(group.resources) < 2:
        yield name, _with_splits(group)
        return
    for class_name, amount in group.resources:
        part = group._replace(resources=((class_name, amount),))
        yield f"{name}/{class_name}", _with_splits(part)


def _with_splits(group: QuestionGroup) -> QuestionGroup:
    return group._replace(
        split=tuple((name, Split(parts=_PARTS_MAX)) for name, _ in group.resources)
    )


#: What the searches of one explanation keep takes at most about this many bytes.
_KEPT_BYTES_MAX: Final = 16 << 20


class DerivedQuestions:
    """One fleet, asked about the atoms of one question.

    Once the budget has ended, hosts are missing from every answer.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        fleet: Fleet,
        reduction: Reduction,
        budget: Budget,
        *,
        is_unused: bool = False,
        giving: dict[tuple[ClassId, int], Mask] | None = None,
    ) -> None:
        """The hosts of a snapshot, as they are or with nothing used.

        Args:
            giving: (class, amount) -> the hosts of which one provider can give it; several
                questions share it.
        """
        #: The fleet as it is.
        self.present = snapshot
        self._is_unused = is_unused
        self._locally: dict[tuple[ClassId, int], Mask] = {} if giving is None else giving
        self.fleet = fleet
        self.atoms = atoms = reduction.atoms
        self.reduction = reduction
        #: All atoms.
        self.everything = bits(range(len(atoms)))
        #: Asks for any inventory of each class.
        self.any_amounts: Amounts = {n: 0 for n, atom in enumerate(atoms) if atom.asked}
        self.budget = budget
        self._alone: dict[int, Mask] = {}
        self._relations = bits(n for n, atom in enumerate(atoms) if atom.is_relation)
        self._of_class: dict[str, int] = {}
        groups: dict[str, int] = {}
        for number, atom in enumerate(atoms):
            if atom.group is not None:
                groups[atom.group] = groups.get(atom.group, 0) | 1 << number
            if atom.asked is not None:
                name = atom.asked[0]
                self._of_class[name] = self._of_class.get(name, 0) | 1 << number
        self._groups = tuple(groups.values())
        #: Atoms of one group -> the hosts that were asked, and those of them that fit. Every prefix
        #: asks for all groups before its own.
        self._asked: dict[int, tuple[Mask, Mask]] = {}
        #: The atom that nothing is drained, if there is one.
        self.drains = bits(n for n, atom in enumerate(atoms) if atom.kind is AtomKind.DRAINS)

    @cached_property
    def snapshot(self) -> Snapshot:
        """The fleet as if nothing were drained; what searches keep ends with this object."""
        return undrained(self._drained)

    @cached_property
    def _drained(self) -> Snapshot:
        # PERF bench, explain: copying what is used of 100,000 hosts takes as long as two searches,
        # and flat hosts need none.
        return nothing_used(self._offered) if self._is_unused else self._offered

    @cached_property
    def _offered(self) -> Snapshot:
        return replace(self.present, memory=Memory(_KEPT_BYTES_MAX, is_brief=True))

    def offered(self, kept: int) -> Snapshot:
        """As `snapshot_of`, for a caller to whom it does not matter how much is used."""
        return self._offered if kept & self.drains else undrained(self._offered)

    def snapshot_of(self, kept: int) -> Snapshot:
        """The fleet that is asked for some atoms: `snapshot`, unless one of them says that nothing
        is drained."""
        return self._drained if kept & self.drains else self.snapshot

    @cached_property
    def _affected(self) -> Mask:
        """The hosts of which a drain may have taken a provider: one of their own, or one that
        shares with them."""
        affected = self.fleet.none()
        is_shared = False
        for _, block, hosts in self.fleet.spans:
            if block.drained is not None:
                affected[hosts] = block.drained.any(axis=0)
                is_shared |= self.present.sharing.trait in block.shape.traits
        return affected | self.fleet.shared if is_shared else affected

    def with_nothing_used(self) -> DerivedQuestions:
        """The same questions of the same hosts with nothing used."""
        other = DerivedQuestions(
            self.present, self.fleet, self.reduction, self.budget, is_unused=True
        )
        other._alone = {
            number: hosts
            for number, hosts in self._alone.items()
            if self.atoms[number].asked is None
        }
        return other

    def alone(self, number: int) -> Mask:
        """The hosts that fit one atom alone."""
        hosts = self._alone.get(number)
        if hosts is None:
            asked = self.atoms[number].asked
            if 1 << number == self.drains:
                hosts = self.fleet.undrained()
            elif asked is not None:
                hosts = self._giving(number, asked[1])
            else:
                hosts = self._meeting(number)
            self._alone[number] = hosts
        return hosts

    def used(self, columns: Columns, line: int, row: int) -> int:
        """How much of one inventory is used."""
        return 0 if self._is_unused else int(columns.used.item(line, row))

    def at_once(self, columns: Columns) -> NDArray[np.integer | np.floating]:
        """The most that each inventory can give at once."""
        if self._is_unused:
            return np.minimum(columns.capacity, columns.max_unit)
        return columns.room

    def conditions_on(self, atom: Atom, kept: int) -> Iterator[int]:
        """Those of some atoms that a provider must meet by itself to serve the class that an atom
        asks for.

        Other providers may bring the traits of the unsuffixed group if it splits the amount, or
        asks for another class too.
        """
        own = [n for n, each in enumerate(self.atoms) if kept >> n & 1 and each.group == atom.group]
        has_others = any(self.atoms[number].asked for number in own)
        alone = bool(atom.group) or not (has_others or self.reduction.split_of(atom))
        yield from bits_of(kept & self.drains)
        for number in own:
            item = self.reduction.trait_item(self.atoms[number])
            is_brought = item is not None and not item.is_negated and not alone
            if self.atoms[number].asked is None and not is_brought:
                yield number

    def having(self, number: int) -> Mask:
        """The hosts that have any inventory of the class of an atom."""
        return self._giving(number, 0)

    def fit(
        self,
        kept: int,
        *,
        among: Mask | None = None,
        fitted: int = 0,
        amounts: Amounts | None = None,
    ) -> Mask:
        """The hosts that fit some atoms.

        Args:
            among: the hosts that count; None for all.
            fitted: atoms that these hosts are known to fit.
            amounts: what to ask for instead.
        """
        if self.budget.is_spent():
            return self.fleet.none()
        amounts = amounts or {}
        if kept & self.drains:
            return self._fit_undrained(kept, among, fitted, amounts)
        bound = self._bound(kept & ~fitted, among, amounts)
        if not bound.any():
            return bound
        if self.are_independent(kept):
            for own in self._groups:
                if kept & own and bound.any():
                    bound &= self._fit_group(kept & own, amounts, bound)
            return bound
        return self._search(kept, amounts, bound)

    def _fit_undrained(self, kept: int, among: Mask | None, fitted: int, amounts: Amounts) -> Mask:
        """`fit` with drains. A drain only takes providers away, so only hosts that would fit
        without are asked, and of those only the ones that may have lost a provider."""
        bound = self._bound(self.drains, among, {})
        fitting = self.fit(kept & ~self.drains, among=bound, fitted=fitted, amounts=amounts)
        affected = fitting & self._affected
        if affected.any():
            fitting &= ~affected
            fitting |= self._search(kept, amounts, affected)
        return fitting

    def _fit_group(self, kept: int, amounts: Amounts, bound: Mask) -> Mask:
        """The hosts that fit some atoms of one group together, among those that fit each alone."""
        changed = {number: amount for number, amount in amounts.items() if kept >> number & 1}
        if kept.bit_count() == 1:
            # The hosts fit it with the amount that was asked for, which may be another one.
            for number, amount in changed.items():
                bound = bound & self._giving(number, amount)
            return bound
        settled = bound & self.fleet.settled
        for number, amount in changed.items():
            settled &= self._locally_giving(number, amount)
        rest = bound & ~self.fleet.settled
        if not rest.any():
            return settled
        if changed:
            return settled | self._search(kept, changed, rest)
        return settled | self._asked_once(kept, rest)

    def _asked_once(self, kept: int, among: Mask) -> Mask:
        """Those of some hosts that fit some atoms; each host is asked once."""
        asked, fitting = self._asked.get(kept) or (self.fleet.none(), self.fleet.none())
        new = among & ~asked
        if new.any():
            if 2 * self.fleet.size * len(self._asked) > _KEPT_BYTES_MAX:
                self._asked.clear()
            asked, fitting = asked | new, fitting | self._search(kept, {}, new)
            self._asked[kept] = asked, fitting
        return among & fitting

    def _meeting(self, number: int) -> Mask:
        """The hosts that fit one atom alone, which asks for no class."""
        if self.budget.is_spent():
            return self.fleet.none()
        item = self.reduction.trait_item(self.atoms[number])
        if item is None:
            return self._search(1 << number, {}, None)
        names = frozenset(map(self.present.names.trait_ids.__getitem__, item.names))
        test = TraitTest(forbidden=names) if item.is_negated else TraitTest((names,))
        kind, group = self.atoms[number].kind, self.atoms[number].group
        meeting = self.fleet.none()
        for _, block, hosts in self.fleet.spans:
            shape = block.shape
            if group is not None:
                meeting[hosts] = any(test.passes(node.traits) for node in shape.node_types)
            elif kind is AtomKind.ANYWHERE:
                meeting[hosts] = test.passes(shape.traits)
            else:
                meeting[hosts] = test.passes(shape.node_types[0].traits)
        if group is None:
            return meeting
        rest = ~meeting & self.fleet.shared
        return meeting | self._search(1 << number, {}, rest) if rest.any() else meeting

    def _giving(self, number: int, amount: int) -> Mask:
        """The hosts that fit a request for an amount of the class of an atom, and nothing else."""
        if self.budget.is_spent():
            return self.fleet.none()
        giving = self._locally_giving(number, amount)
        if self.fleet.is_settled:
            return giving
        split_or_shared = ~giving
        if not (self.reduction.split_of(self.atoms[number]) and amount):
            split_or_shared &= self.fleet.shared
        if not split_or_shared.any():
            return giving
        return giving | self._search(1 << number, {number: amount}, split_or_shared)

    def _locally_giving(self, number: int, amount: int) -> Mask:
        """The hosts of which one provider can give an amount of the class of an atom."""
        asked = self.atoms[number].asked
        assert asked is not None
        key = self.present.names.class_ids[asked[0]], amount
        giving = self._locally.get(key)
        if giving is None:
            giving = self._giving_of_class(*key)
            if amount in (0, asked[1]):
                # Other amounts are bisected, and not asked for again.
                self._locally[key] = giving
        return giving

    def _giving_of_class(self, class_id: ClassId, amount: int) -> Mask:
        fit = fits_if_unused if self._is_unused else fits
        giving = self.fleet.none()
        if amount > MAX_INT:
            # A query string may ask for any amount, and no inventory gives so much.
            return giving
        for _, block, hosts in self.fleet.spans:
            if class_id in block.columns and not amount:
                giving[hosts] = True
            elif class_id in block.columns:
                every = fit(block.columns[class_id], amount, (slice(None), slice(0, block.rows)))
                giving[hosts] = every[0] if len(every) == 1 else every.any(axis=0)
        return giving

    def fit_question(self, question: Question, kept: int, among: Mask | None) -> Mask:
        """The hosts that fit a question, in the fleet that is asked for some atoms."""
        snapshot = self.snapshot_of(kept)
        plan = None if self.budget.is_spent() else self.plan_of(question, snapshot)
        if plan is None:
            return self.fleet.none()
        rows = None if among is None else self.fleet.by_block(among)
        return self.fleet.of_blocks(fitting_hosts(snapshot, plan, self.budget, rows))

    def sharing_with(self, kept: int, hosts: Mask) -> Mapping[ClassId, set[Location]]:
        """For each class, the sharing providers of other trees that may serve a group that asks for
        it on some hosts: they meet the conditions that are kept, drains and amounts aside."""
        kept &= ~self.drains
        giving: dict[ClassId, set[Location]] = {}
        if not self.present.sharing.by_aggregate:
            return giving
        plan = self.plan(kept, self.any_amounts)
        if plan is None:
            return giving
        among = self.fleet.by_block(hosts)
        for trees in filter_trees(self.snapshot, plan, self.budget, among=among):
            for demand in plan.demands:
                for choice, mask in trees.masks[demand.query_id].items():
                    for class_id, _ in demand.amounts if choice >= trees.block.shape.size else ():
                        giving.setdefault(class_id, set()).update(trees.locations(choice, mask))
        return giving

    def plan(self, kept: int, amounts: Amounts) -> Plan | None:
        """The plan of some atoms; None if nothing fits without a search.

        Args:
            amounts: what to ask for instead.
        """
        return self.plan_of(self.reduction.question(kept, amounts), self.snapshot_of(kept))

    def _bound(self, kept: int, among: Mask | None, amounts: Amounts) -> Mask:
        """The hosts that fit each of some atoms alone."""
        bound = self.fleet.all() if among is None else among.copy()
        for number in bits_of(kept & ~self._relations):
            if number not in amounts:
                bound &= self.alone(number)
        return bound

    def are_independent(self, kept: int) -> bool:
        """Whether what serves one group does not matter to the others."""
        return not kept & self._relations and all(
            (kept & asking).bit_count() < 2 for asking in self._of_class.values()
        )

    def _search(self, kept: int, amounts: Amounts, among: Mask | None) -> Mask:
        return self.fit_question(self.reduction.question(kept, amounts), kept, among)

    def plan_of(self, question: Question, snapshot: Snapshot) -> Plan | None:
        """The plan of a question of the same providers; None if nothing fits without a search."""
        references = self.reduction.references
        try:
            return plan_of(snapshot, question, references=references)
        except NothingFits:
            return None
