# SPDX-License-Identifier: Apache-2.0
"""The hosts that come nearest to fitting, and what each lacks. Source: spec/beyond.md 3.5."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.explain.asking import Asking
from berth.candidates.explain.explanation import Lack, NearHost
from berth.candidates.explain.inventories import shortage_of
from berth.candidates.explain.relaxations import Dropped, Relaxing
from berth.index.aggregate_sets import Mask
from berth.index.named import named_provider

#: Of how many hosts the smallest sets of atoms are sought, if no host lacks only two.
_SOUGHT_MAX: Final = 64


class _Near(NamedTuple):
    """A host and what it lacks.

    Attributes:
        missing: how much, each atom at most 1.
        possible: of each atom the largest smaller amount that fits; 0 if there is none.
    """

    missing: float
    uuid: str
    atoms: tuple[int, ...]
    host: int
    possible: tuple[int, ...]


class Nearest:
    """The nearest hosts of a question that none fits."""

    def __init__(self, relaxing: Relaxing, most: int) -> None:
        self._relaxing = relaxing
        self._asking: Asking = relaxing.asking
        self._most = most

    def of_one(self, singles: Iterable[Dropped]) -> list[NearHost]:
        """The hosts that one atom is missing at, those that miss least of it first."""
        return self._described(near for dropped in singles for near in self._ranked(dropped))

    def of_two(self, pairs: Iterable[Dropped]) -> list[NearHost]:
        """The hosts that two atoms are missing at; of each pair those that come first by uuid."""
        return self._described(
            self._near(host, dropped.atoms)
            for dropped in pairs
            for host in self._asking.fleet.first(dropped.hosts, self._most)
        )

    def of_many(self) -> list[NearHost]:
        """The hosts that fail few atoms alone, by the number of atoms that they lack."""
        hosts = [self._near(host, atoms) for host, atoms in self._smallest()]
        hosts.sort(key=lambda near: (len(near.atoms), near.missing, near.uuid))
        return [self._host(near) for near in hosts[: self._most]]

    def _described(self, several: Iterable[_Near]) -> list[NearHost]:
        best: dict[int, _Near] = {}
        for near in several:
            if near.host not in best or near < best[near.host]:
                best[near.host] = near
        return [self._host(near) for near in nsmallest(self._most, best.values())]

    def _ranked(self, dropped: Dropped) -> Iterator[_Near]:
        """The first of the hosts that lack one atom."""
        rest, wanted = dropped.hosts, self._most
        while wanted > 0 and rest.any():
            largest = self._relaxing.largest_of(dropped, rest)
            hosts = largest.hosts if largest else rest
            possible = (largest.amount if largest else 0,)
            for host in self._asking.fleet.first(hosts, wanted):
                yield self._near_with(host, dropped.atoms, possible)
            wanted -= int(np.count_nonzero(hosts))
            rest = rest & ~hosts

    def _near(self, host: int, atoms: tuple[int, ...]) -> _Near:
        possible = tuple(self._possible(host, atoms, number) for number in atoms)
        return self._near_with(host, atoms, possible)

    def _near_with(self, host: int, atoms: tuple[int, ...], possible: tuple[int, ...]) -> _Near:
        missing = 0.0
        for number, each in zip(atoms, possible, strict=True):
            amount = self._relaxing.amounts.get(number)
            missing += (amount.asked - each) / amount.asked if amount else 1.0
        return _Near(missing, self._asking.fleet.uuid(host), atoms, host, possible)

    def _possible(self, host: int, atoms: tuple[int, ...], number: int) -> int:
        """The largest smaller amount of one of some atoms with which a host fits without the
        others; 0 if there is none."""
        amount = self._relaxing.amounts.get(number)
        if amount is None:
            return 0
        kept = self._relaxing.without(atoms) | 1 << number
        largest = amount.largest(kept, self._asking.fleet.only(host))
        return largest.amount if largest else 0

    def _smallest(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """For each of the hosts at which most atoms hold alone, some atoms without which it fits;
        with none of them it does not."""
        numbers = range(len(self._asking.atoms))
        # Hosts that the same atoms were put back for are asked together.
        kept: dict[int, Mask] = {0: self._asking.fit(0, among=self._promising())}
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
            fitting = hosts if more == atoms else self._asking.fit(more, among=hosts)
            for some, each in ((more, fitting), (atoms, hosts & ~fitting)):
                if each.any():
                    after[some] = after[some] | each if some in after else each
        return after

    def _promising(self) -> Mask:
        """The hosts at which most atoms hold alone."""
        fleet = self._asking.fleet
        holding = np.zeros(fleet.size, dtype=np.int64)
        for number, atom in enumerate(self._asking.atoms):
            if not atom.is_relation:
                holding += self._asking.alone(number)
        promising = fleet.none()
        for most in range(int(holding.max(initial=0)), -1, -1):
            wanted = _SOUGHT_MAX - int(np.count_nonzero(promising))
            promising[fleet.first(holding == most, wanted)] = True
        return promising

    def _host(self, near: _Near) -> NearHost:
        span, row = self._asking.fleet.place(near.host)
        lacks = tuple(
            self._lack(near, number, possible)
            for number, possible in zip(near.atoms, near.possible, strict=True)
        )
        return NearHost(named_provider(span.block, 0, row), lacks)

    def _lack(self, near: _Near, number: int, possible: int) -> Lack:
        atom = self._asking.atoms[number]
        if atom.asked is None:
            return Lack(atom.at, atom.text, None)
        kept = self._relaxing.without(near.atoms)
        shortage = shortage_of(self._asking, atom, kept, near.host, possible=possible)
        return Lack(atom.at, atom.text, shortage)


def _put_back_in(kept: dict[int, Mask]) -> int:
    """How many atoms were put back for all hosts together."""
    return sum(atoms.bit_count() * int(np.count_nonzero(hosts)) for atoms, hosts in kept.items())
