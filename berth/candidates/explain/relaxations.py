# SPDX-License-Identifier: Apache-2.0
"""The changes with which some host fits: one atom less, less of one class, or two atoms less.

Source: spec/beyond.md 3.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.explain.amounts import Amount, Largest
from berth.candidates.explain.asking import Asking
from berth.candidates.explain.atoms import bits
from berth.candidates.explain.explanation import Relaxation
from berth.candidates.explain.stages import Prefix, is_cut
from berth.index.aggregate_sets import Mask

#: With more atoms, no pairs are left out.
PAIRS_OF_MAX: Final = 16


class Dropped(NamedTuple):
    """Some atoms, and the hosts that fit without them.

    Attributes:
        at_least: whether hosts may be missing.
    """

    atoms: tuple[int, ...]
    hosts: Mask
    at_least: bool


class Relaxing:
    """The changes that let some host fit a question that none fits.

    Args:
        prefixes: of all its atoms.
        amounts: of its atoms that ask for a class.
    """

    def __init__(self, asking: Asking, prefixes: list[Prefix], amounts: dict[int, Amount]) -> None:
        self.asking = asking
        self.amounts = amounts
        self.everything = bits(range(len(asking.atoms)))
        self._prefixes = prefixes
        self._largest: dict[int, Largest | None] = {}

    def singles(self) -> list[Dropped]:
        """Each atom without which some host fits, the most helpful first."""
        return self._dropping((number,) for number in range(len(self.asking.atoms)))

    def pairs(self) -> list[Dropped]:
        """Each pair of atoms without which some host fits, if there are few atoms; the most helpful
        first."""
        atoms = range(len(self.asking.atoms))
        if len(atoms) > PAIRS_OF_MAX:
            return []
        return self._dropping(combinations(atoms, 2))

    def _dropping(self, several: Iterable[tuple[int, ...]]) -> list[Dropped]:
        """Those of some changes with which some host fits, the most helpful first."""
        helpful = []
        for atoms in several:
            if self.asking.budget.is_spent():
                break
            fitted = (1 << atoms[0]) - 1
            hosts = self.asking.fit(self.without(atoms), among=self.among(atoms), fitted=fitted)
            if hosts.any():
                helpful.append(Dropped(atoms, hosts, is_cut(self.asking)))
        return sorted(helpful, key=lambda dropped: -np.count_nonzero(dropped.hosts))

    def without(self, atoms: tuple[int, ...]) -> int:
        """All atoms but some."""
        return self.everything & ~bits(atoms)

    def among(self, atoms: tuple[int, ...]) -> Mask:
        """The hosts that may fit if some atoms are left out or ask for less: those that fit all
        atoms before them."""
        return self._prefixes[atoms[0]].hosts

    def largest(self, dropped: Dropped) -> Largest | None:
        """The largest smaller amount with which some host fits, if one class is left out."""
        (number,) = dropped.atoms
        amount = self.amounts.get(number)
        if amount and number not in self._largest:
            # A host that fits with less may not fit without: its provider may bring a trait.
            among = self.among(dropped.atoms)
            self._largest[number] = amount.largest(self.everything, among)
        return self._largest.get(number)

    def largest_of(self, dropped: Dropped, some: Mask) -> Largest | None:
        """The same of some of the hosts that fit without the class."""
        (number,) = dropped.atoms
        amount = self.amounts.get(number)
        best = self.largest(dropped)
        if amount is None or best is None:
            return None
        hosts = best.hosts & some
        if hosts.any():
            return best._replace(hosts=hosts)
        return amount.largest(self.everything, some)

    def described(self, several: list[Dropped]) -> Iterator[Relaxation]:
        """The relaxations."""
        for dropped in several:
            reduced = self.largest(dropped) if len(dropped.atoms) == 1 else None
            atoms = [self.asking.atoms[number] for number in dropped.atoms]
            yield Relaxation(
                drop=tuple(atom.at for atom in atoms),
                texts=tuple(atom.text for atom in atoms),
                hosts=int(np.count_nonzero(dropped.hosts)),
                reduce_to=reduced and reduced.amount,
                hosts_reduced=reduced and int(np.count_nonzero(reduced.hosts)),
                at_least=dropped.at_least or is_cut(self.asking),
            )
