# SPDX-License-Identifier: Apache-2.0
"""The hosts that come nearest to fitting, and what each lacks: of a class, what its providers have.

Source: spec/beyond.md 3.5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import nsmallest
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.assign import assign_groups
from berth.candidates.explain.atoms import Atom, bits
from berth.candidates.explain.derived import DerivedQuestions
from berth.candidates.explain.relaxations import Dropped, Relaxing
from berth.candidates.filter import filter_trees
from berth.index.providers import named_provider
from berth.index.sets import Mask
from berth.index.snapshot import Location
from berth.model.explanation import Lack, NearHost
from berth.model.ids import ClassId
from berth.model.inventory import Reason
from berth.model.shown import UNSET, NamedProvider


class Shortages:
    """What some hosts lack of classes.

    Args:
        hosts: those that are asked about.
    """

    def __init__(self, derived: DerivedQuestions, hosts: Iterable[int]) -> None:
        self._derived = derived
        self._hosts = {
            (span.block_id, row): n for n in hosts for span, row in (derived.fleet.place(n),)
        }
        self._among = derived.fleet.none()
        self._among[[*self._hosts.values()]] = True
        #: (atom, kept atoms) -> host -> see `_having`.
        self._had: dict[tuple[str, int], Mapping[int, set[Location]]] = {}

    def of(self, atom: Atom, kept: int, host: int, *, possible: int) -> Lack:
        """What a host lacks of a class.

        The best provider is the one with most to give among those that meet the conditions of the
        atom's group that are kept; if none does, among all.
        """
        assert atom.asked is not None
        derived = self._derived
        name, asked = atom.asked
        class_id = derived.present.names.class_ids[name]
        conditions = [*derived.conditions_on(atom, kept)]
        met = self._having(atom, bits(conditions), host)
        unmet: dict[Location, list[str]] = {at: [] for at in met or self._having(atom, 0, host)}
        if not unmet:
            return Lack(atom.at, atom.text, asked, possible, "no_inventory")
        # PERF bench, explain: what each lacks is asked only where none meets all.
        for number in () if met else conditions:
            for at in unmet.keys() - self._having(atom, 1 << number, host):
                unmet[at].append(derived.atoms[number].at)
        at = max(unmet, key=lambda at: (not unmet[at], _most(derived, at, class_id)))
        has, reason = _inventory(derived, at, class_id, asked)
        reason = "conditions" if unmet[at] else reason
        lacking = unmet[at] if reason == "conditions" else UNSET
        return Lack(atom.at, atom.text, asked, possible, reason, lacking, *has)

    def _having(self, atom: Atom, kept: int, host: int) -> set[Location]:
        """The providers that could serve a group on a host, if they had enough."""
        key = atom.at, kept
        if key not in self._had:
            # PERF bench, explain: the nearest hosts mostly lack the same, and are asked at once.
            self._had[key] = self._having_each(atom, kept)
        return self._had[key].get(host, set())

    def _having_each(self, atom: Atom, kept: int) -> Mapping[int, set[Location]]:
        derived = self._derived
        snapshot, budget = derived.offered(kept), derived.budget
        having: defaultdict[int, set[Location]] = defaultdict(set)
        plan = derived.plan_of(derived.reduction.question_of_group(atom, kept), snapshot)
        if plan is None:
            return having
        trees = filter_trees(snapshot, plan, budget, among=derived.fleet.by_block(self._among))
        for batch in assign_groups(snapshot, plan, trees, budget):
            block_id, choice = batch.trees.block_id, batch.choices[0]
            for position, row in zip(batch.positions.tolist(), batch.rows.tolist(), strict=True):
                at = snapshot.locate(batch.trees.provider_id(choice, position))
                if at is not None:
                    having[self._hosts[block_id, row]].add(at)
        return having


class _Inventory(NamedTuple):
    """What a provider has of a class."""

    provider: NamedProvider
    free: int
    capacity: int
    max_unit: int


def _inventory(
    derived: DerivedQuestions, at: Location, class_id: ClassId, asked: int
) -> tuple[_Inventory, Reason]:
    """What a provider has of a class, and why it cannot give so much."""
    block = derived.present.block(at.block_id)
    columns, line = block.columns[class_id], block.shape.row_of_node[class_id][at.node]
    capacity, used = int(columns.capacity.item(line, at.row)), derived.used(columns, line, at.row)
    has = _Inventory(
        provider=named_provider(block, at.node, at.row),
        free=max(capacity - used, 0),
        capacity=capacity,
        max_unit=columns.max_unit.item(line, at.row),
    )
    min_unit, step_size = (
        each.item(line, at.row) for each in (columns.min_unit, columns.step_size)
    )
    return has, _reason(asked, has, min_unit=min_unit, step_size=step_size)


def _most(derived: DerivedQuestions, at: Location, class_id: ClassId) -> tuple[int, float]:
    """By what the best provider is chosen: what it could give, and what it has."""
    has, _ = _inventory(derived, at, class_id, 0)
    return min(has.free, has.max_unit), has.capacity


def _reason(asked: int, has: _Inventory, *, min_unit: int, step_size: int) -> Reason:
    """Why a provider cannot give an amount, that which no release of other claims changes first."""
    if asked > has.capacity:
        return "capacity"
    if asked > has.max_unit:
        return "max_unit"
    if asked < min_unit:
        return "min_unit"
    if asked % step_size:
        return "step_size"
    # It may have enough for this group, but not next to the others.
    return "used" if asked > has.free else "conditions"


#: Of how many hosts the smallest sets of atoms are sought, if no host lacks only two.
_SOUGHT_MAX: Final = 64


class _Near(NamedTuple):
    """A host and what it lacks; the nearest is the least.

    Attributes:
        size: how many atoms.
        missing: how much, each atom at most 1.
        classes: how many of the atoms ask for a class: if as much is missing, a condition is
            nearer.
        possible: of each atom the largest smaller amount that fits; 0 if there is none.
    """

    size: int
    missing: float
    classes: int
    uuid: str
    atoms: tuple[int, ...]
    host: int
    possible: tuple[int, ...]


class Nearest:
    """The nearest hosts of a question that none fits.

    Only what was decided in time is said of a host, so once the budget is spent, hosts are left
    out.

    Args:
        named: the hosts that the question names.
    """

    def __init__(self, relaxing: Relaxing, named: Mask) -> None:
        self._relaxing = relaxing
        self._derived: DerivedQuestions = relaxing.derived
        self._budget = self._derived.budget
        self._named = named

    def hosts(self, singles: list[Dropped], pairs: list[Dropped], most: int) -> list[NearHost]:
        """The hosts that the question names, and then others: those at which one atom is missing,
        or else two, or else few."""
        named = self._best(singles, most, self._named) if singles else []
        rest = self._named.copy()
        rest[[near.host for near in named]] = False
        named += self._sought(most - len(named), rest)
        others = self._others(singles or pairs, most - len(named), ~self._named)
        nearest = [*named, *others]
        shortages = Shortages(self._derived, (near.host for near in nearest))
        return [*self._budget.within(self._host(near, shortages) for near in nearest)]

    def _others(self, helpful: list[Dropped], most: int, among: Mask) -> list[_Near]:
        return self._best(helpful, most, among) if helpful else self._sought(most, among)

    def _best(self, helpful: list[Dropped], most: int, among: Mask) -> list[_Near]:
        """Those of some hosts at which some atoms are missing; of pairs, those of each pair that
        come first by uuid."""
        best: dict[int, _Near] = {}
        for dropped in helpful:
            for near in self._budget.within(self._of(dropped, most, among)):
                if near.host not in best or near < best[near.host]:
                    best[near.host] = near
        return nsmallest(most, best.values())

    def _of(self, dropped: Dropped, wanted: int, among: Mask) -> Iterator[_Near]:
        """The first of some hosts that lack some atoms."""
        rest = dropped.hosts & among
        if len(dropped.atoms) > 1:
            for host in self._derived.fleet.first(rest, wanted):
                yield self._near(host, dropped.atoms)
            return
        while wanted > 0 and rest.any():
            largest = self._relaxing.largest_of(dropped, rest)
            self._budget.check()
            hosts = largest.hosts if largest else rest
            possible = (largest.amount if largest else 0,)
            for host in self._derived.fleet.first(hosts, wanted):
                yield self._near_with(host, dropped.atoms, possible)
            wanted -= int(np.count_nonzero(hosts))
            rest = rest & ~hosts

    def _sought(self, most: int, among: Mask) -> list[_Near]:
        """Those of some hosts that fail few atoms alone, by the number of atoms that they lack."""
        if most <= 0 or not among.any():
            return []
        several = (self._near(host, atoms) for host, atoms in self._smallest(among))
        return nsmallest(most, self._budget.within(several))

    def _near(self, host: int, atoms: tuple[int, ...]) -> _Near:
        possible = tuple(self._possible(host, atoms, number) for number in atoms)
        return self._near_with(host, atoms, possible)

    def _near_with(self, host: int, atoms: tuple[int, ...], possible: tuple[int, ...]) -> _Near:
        missing, classes = 0.0, 0
        for number, each in zip(atoms, possible, strict=True):
            amount = self._relaxing.amounts.get(number)
            missing += (amount.asked - each) / amount.asked if amount else 1.0
            classes += amount is not None
        uuid = self._derived.fleet.uuid(host)
        return _Near(len(atoms), missing, classes, uuid, atoms, host, possible)

    def _possible(self, host: int, atoms: tuple[int, ...], number: int) -> int:
        """The largest smaller amount of one of some atoms with which a host fits without the
        others; 0 if there is none."""
        amount = self._relaxing.amounts.get(number)
        if amount is None:
            return 0
        kept = self._relaxing.without(atoms) | 1 << number
        largest = amount.largest(kept, self._derived.fleet.only(host))
        self._budget.check()
        return largest.amount if largest else 0

    def _smallest(self, among: Mask) -> Iterator[tuple[int, tuple[int, ...]]]:
        """For each of those of some hosts at which most atoms hold alone, some atoms without which
        it fits; with none of them it does not."""
        self._budget.check()
        numbers = range(len(self._derived.atoms))
        # Hosts that the same atoms were put back for are asked together.
        kept: dict[int, Mask] = {0: self._derived.fit(0, among=self._promising(among))}
        put_back = -1
        while put_back != (put_back := _put_back_in(kept)):
            for number in numbers:
                kept = self._put_back(kept, number)
        for atoms, hosts in kept.items():
            left_out = tuple(number for number in numbers if not atoms >> number & 1)
            for host in hosts.nonzero()[0].tolist():
                yield host, left_out

    def _put_back(self, kept: dict[int, Mask], number: int) -> dict[int, Mask]:
        """Put an atom back for the hosts that fit with it."""
        after: dict[int, Mask] = {}
        for atoms, hosts in kept.items():
            more = atoms | 1 << number
            fitting = hosts if more == atoms else self._derived.fit(more, among=hosts, fitted=atoms)
            self._budget.check()
            for some, each in ((more, fitting), (atoms, hosts & ~fitting)):
                if each.any():
                    after[some] = after[some] | each if some in after else each
        return after

    def _promising(self, among: Mask) -> Mask:
        """Those of some hosts at which most atoms hold alone."""
        fleet = self._derived.fleet
        holding = np.where(among, 0, -len(self._derived.atoms) - 1)
        for number, atom in enumerate(self._derived.atoms):
            if not atom.is_relation:
                holding += self._derived.alone(number)
        promising = fleet.none()
        for most in range(int(holding.max(initial=0)), -1, -1):
            wanted = _SOUGHT_MAX - int(np.count_nonzero(promising))
            promising[fleet.first(holding == most, wanted)] = True
        return promising

    def _host(self, near: _Near, shortages: Shortages) -> NearHost:
        span, row = self._derived.fleet.place(near.host)
        lacks = tuple(
            self._lack(near, number, possible, shortages)
            for number, possible in zip(near.atoms, near.possible, strict=True)
        )
        is_named = bool(self._named[near.host])
        return NearHost(
            host=named_provider(span.block, 0, row), named=True if is_named else UNSET, lacks=lacks
        )

    def _lack(self, near: _Near, number: int, possible: int, shortages: Shortages) -> Lack:
        atom = self._derived.atoms[number]
        if atom.asked is None:
            return Lack(atom.at, atom.text)
        kept = self._relaxing.without(near.atoms)
        lack = shortages.of(atom, kept, near.host, possible=possible)
        self._budget.check()
        return lack


def _put_back_in(kept: dict[int, Mask]) -> int:
    """How many atoms were put back for all hosts together."""
    return sum(atoms.bit_count() * int(np.count_nonzero(hosts)) for atoms, hosts in kept.items())
