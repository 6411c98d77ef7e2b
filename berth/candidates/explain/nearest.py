# SPDX-License-Identifier: Apache-2.0
"""The hosts that come nearest to fitting, and what each lacks. Source: spec/beyond.md 3.5."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.explain.asking import Asking
from berth.candidates.explain.explanation import Lack, NearHost
from berth.candidates.explain.inventories import Shortages
from berth.candidates.explain.relaxations import Dropped, Relaxing
from berth.index.aggregate_sets import Mask
from berth.index.named import named_provider

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
        self._asking: Asking = relaxing.asking
        self._budget = self._asking.budget
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
        shortages = Shortages(self._asking, (near.host for near in nearest))
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
            for host in self._asking.fleet.first(rest, wanted):
                yield self._near(host, dropped.atoms)
            return
        while wanted > 0 and rest.any():
            largest = self._relaxing.largest_of(dropped, rest)
            self._budget.check()
            hosts = largest.hosts if largest else rest
            possible = (largest.amount if largest else 0,)
            for host in self._asking.fleet.first(hosts, wanted):
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
        uuid = self._asking.fleet.uuid(host)
        return _Near(len(atoms), missing, classes, uuid, atoms, host, possible)

    def _possible(self, host: int, atoms: tuple[int, ...], number: int) -> int:
        """The largest smaller amount of one of some atoms with which a host fits without the
        others; 0 if there is none."""
        amount = self._relaxing.amounts.get(number)
        if amount is None:
            return 0
        kept = self._relaxing.without(atoms) | 1 << number
        largest = amount.largest(kept, self._asking.fleet.only(host))
        self._budget.check()
        return largest.amount if largest else 0

    def _smallest(self, among: Mask) -> Iterator[tuple[int, tuple[int, ...]]]:
        """For each of those of some hosts at which most atoms hold alone, some atoms without which
        it fits; with none of them it does not."""
        self._budget.check()
        numbers = range(len(self._asking.atoms))
        # Hosts that the same atoms were put back for are asked together.
        kept: dict[int, Mask] = {0: self._asking.fit(0, among=self._promising(among))}
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
            fitting = hosts if more == atoms else self._asking.fit(more, among=hosts, fitted=atoms)
            self._budget.check()
            for some, each in ((more, fitting), (atoms, hosts & ~fitting)):
                if each.any():
                    after[some] = after[some] | each if some in after else each
        return after

    def _promising(self, among: Mask) -> Mask:
        """Those of some hosts at which most atoms hold alone."""
        fleet = self._asking.fleet
        holding = np.where(among, 0, -len(self._asking.atoms) - 1)
        for number, atom in enumerate(self._asking.atoms):
            if not atom.is_relation:
                holding += self._asking.alone(number)
        promising = fleet.none()
        for most in range(int(holding.max(initial=0)), -1, -1):
            wanted = _SOUGHT_MAX - int(np.count_nonzero(promising))
            promising[fleet.first(holding == most, wanted)] = True
        return promising

    def _host(self, near: _Near, shortages: Shortages) -> NearHost:
        span, row = self._asking.fleet.place(near.host)
        lacks = tuple(
            self._lack(near, number, possible, shortages)
            for number, possible in zip(near.atoms, near.possible, strict=True)
        )
        return NearHost(named_provider(span.block, 0, row), lacks, bool(self._named[near.host]))

    def _lack(self, near: _Near, number: int, possible: int, shortages: Shortages) -> Lack:
        atom = self._asking.atoms[number]
        if atom.asked is None:
            return Lack(atom.at, atom.text)
        kept = self._relaxing.without(near.atoms)
        shortage = shortages.of(atom, kept, near.host, possible=possible)
        self._budget.check()
        return Lack(atom.at, atom.text, atom.asked[0], shortage)


def _put_back_in(kept: dict[int, Mask]) -> int:
    """How many atoms were put back for all hosts together."""
    return sum(atoms.bit_count() * int(np.count_nonzero(hosts)) for atoms, hosts in kept.items())
