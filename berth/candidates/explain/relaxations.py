# SPDX-License-Identifier: Apache-2.0
"""The hosts that each further atom leaves, and the changes with which some host fits: one atom
less, less of one class, or two atoms less.

The largest smaller amount is bisected. What one provider may give of a class, the rest of
a candidate unchanged, are the multiples of its step_size from its min_unit up to some amount. So
among the multiples of one step, from one least amount on, those that some host fits with end where
the largest that such a provider can give ends: they are bisected for each pair of step_size and
min_unit that the fleet has. An amount that may be split comes in multiples of a common step, from
the sum of the least parts on.

Source: spec/beyond.md 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import combinations, combinations_with_replacement
from math import comb, lcm
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.explain.atoms import bits
from berth.candidates.explain.derived import DerivedQuestions
from berth.index.sets import Mask
from berth.model.explanation import Relaxation, Stage
from berth.model.inventory import MAX_INT
from berth.model.shown import UNSET, Sometimes

#: The bytes of a painted host that fits, or that was not decided in time.
FITS: Final = 255
UNDECIDED: Final = 254


class Prefix(NamedTuple):
    """The hosts that the first atoms leave.

    Attributes:
        at_least: whether some may be missing.
    """

    hosts: Mask
    at_least: bool


class Count(NamedTuple):
    """A number of hosts.

    Attributes:
        at_least: whether the time has cut it short: it is a lower bound.
    """

    hosts: int
    at_least: bool


def prefixes_of(derived: DerivedQuestions) -> list[Prefix]:
    """The hosts that the first atoms leave: none of them, one, two ... and all."""
    prefixes = [Prefix(derived.fit(0), is_cut(derived))]
    for number in range(len(derived.atoms)):
        if derived.budget.is_spent():
            return [
                *prefixes,
                *[Prefix(derived.fleet.none(), True)] * (len(derived.atoms) - number),
            ]
        before = (1 << number) - 1
        hosts = derived.fit(before | 1 << number, among=prefixes[-1].hosts, fitted=before)
        prefixes.append(Prefix(hosts, is_cut(derived)))
    return prefixes


def stage_of(
    derived: DerivedQuestions, empty: DerivedQuestions, number: int, left: Prefix
) -> Stage:
    """One atom of a stage list."""
    atom = derived.atoms[number]
    alone = None if atom.is_relation else _number(derived.alone(number))
    has: Sometimes[int] = UNSET
    if_empty: Sometimes[int] = UNSET
    if atom.asked is not None:
        has = _number(derived.having(number))
        if_empty = _number(empty.alone(number))
    return Stage(
        at=atom.at,
        text=atom.text,
        left=_number(left.hosts),
        alone=alone,
        has=has,
        if_empty=if_empty,
        at_least=at_least(left.at_least or is_cut(derived)),
    )


def at_least(is_lower_bound: bool) -> Sometimes[bool]:
    """The member that marks figures that the time has cut short."""
    return True if is_lower_bound else UNSET


def painted(derived: DerivedQuestions, prefixes: list[Prefix]) -> bytes:
    """One byte for each host: the first atom whose prefix it no longer fits."""
    paint = np.full(derived.fleet.size, FITS, dtype=np.uint8)
    for number in reversed(range(len(derived.atoms))):
        left = prefixes[number + 1]
        # More atoms than a byte can tell apart share the last number.
        reason = UNDECIDED if left.at_least else min(number, UNDECIDED - 1)
        paint[~left.hosts] = reason
    if prefixes[0].at_least:
        paint[~prefixes[0].hosts] = UNDECIDED
    return paint[derived.fleet.in_order()].tobytes()


def count(derived: DerivedQuestions, hosts: Mask) -> Count:
    """How many hosts an answer has that was just given."""
    return Count(_number(hosts), is_cut(derived))


def is_cut(derived: DerivedQuestions) -> bool:
    """Whether the time has ended."""
    return derived.budget.ended is not None


def _number(hosts: Mask) -> int:
    return int(np.count_nonzero(hosts))


#: More pairs than this are not bisected: every amount is tried instead.
_GRIDS_MAX: Final = 256


#: The hosts among some that fit with an amount.
_Fit = Callable[[int, Mask], Mask]


class Grid(NamedTuple):
    """Amounts: the multiples of `step` from `least` on."""

    step: int
    least: int


class Largest(NamedTuple):
    """An amount, and the hosts that fit with it."""

    amount: int
    hosts: Mask


class Amount:
    """The amount of an atom that asks for a class, and what else may be asked for."""

    def __init__(self, derived: DerivedQuestions, number: int) -> None:
        self._derived = derived
        self._number = number
        asked = derived.atoms[number].asked
        assert asked is not None
        name, self.asked = asked
        self._class_id = derived.present.names.class_ids[name]
        self._split = derived.reduction.split_of(derived.atoms[number])

    def largest(self, kept: int, among: Mask) -> Largest | None:
        """The largest smaller amount with which one of some hosts fits some atoms, this one
        included; None if there is none."""
        return self.largest_within(kept, among, most=self.asked - 1)

    def largest_within(
        self, kept: int, among: Mask, *, most: int = MAX_INT, above: int = 0
    ) -> Largest | None:
        """The same, but any amount above one and up to another."""
        if self._derived.budget.is_spent():
            return None
        most = min(most, self._most(among))

        def fit(amount: int, among: Mask) -> Mask:
            return self._derived.fit(kept, among=among, amounts={self._number: amount})

        if self._grids is None:
            return self._first_below(most + 1, fit, among, above)
        best = None
        for grid in self._grids:
            best = _largest_of(grid, best.amount if best else above, most, fit, among) or best
        if best is None or len(self._grids) == 1:
            return best
        # Who cannot give less in steps of that grid may still give this amount.
        return best._replace(hosts=fit(best.amount, among))

    def _first_below(self, end: int, fit: _Fit, among: Mask, above: int) -> Largest | None:
        """Try every amount, the largest first."""
        for amount in range(end - 1, above, -1):
            hosts = fit(amount, among)
            if hosts.any():
                return Largest(amount, hosts)
            if self._derived.budget.is_spent():
                break
        return None

    def _most(self, among: Mask) -> int:
        """None of some hosts can give more, and no other tree to one of them."""
        most = 0
        is_shared = self._class_id in self._derived.present.sharing.classes
        for _, block, hosts in self._derived.fleet.spans:
            columns = block.columns.get(self._class_id)
            if columns is not None:
                room = self._derived.at_once(columns)
                room = room if is_shared else room[:, among[hosts]]
                if room.size and self._split is None:
                    most = max(most, int(room.max()))
                elif room.size:
                    most = max(most, int(room.sum(axis=0, dtype=np.int64).max()))
        return most

    @cached_property
    def _grids(self) -> list[Grid] | None:
        """The grids that have every amount that some host may fit with; None if there are too
        many."""
        units = sorted(self._units())
        if self._split is None:
            return units
        grids = set(units)
        for count in range(2, self._split.parts + 1):
            if comb(len(units) + count - 1, count) > _GRIDS_MAX:
                return None
            for several in combinations_with_replacement(units, count):
                step = lcm(self._split.step, *(unit.step for unit in several))
                least = sum(_part(unit, step, self._split.min) for unit in several)
                grids.add(Grid(step, least))
        return sorted(grids)

    def _units(self) -> set[Grid]:
        """step_size and min_unit of every inventory of the class."""
        units: set[Grid] = set()
        blocks = (block for _, block in self._derived.present.occupied())
        for columns in filter(None, (block.columns.get(self._class_id) for block in blocks)):
            if not columns.stepped and columns.min_unit_max <= 1:
                units.add(Grid(1, 1))
                continue
            pairs = np.stack((columns.step_size.ravel(), columns.min_unit.ravel()), axis=1)
            units.update(Grid(*pair) for pair in np.unique(pairs, axis=0).tolist())
        return units


def _part(unit: Grid, step: int, least: int) -> int:
    """The least multiple of a step that one provider may give as a part."""
    return -(-max(unit.least, least) // step) * step


def _largest_of(grid: Grid, best: int, most: int, fit: _Fit, among: Mask) -> Largest | None:
    """The largest amount of a grid with which some host fits, if it is above the best so far;
    otherwise None."""
    low, high = -(-max(grid.least, best + 1) // grid.step), most // grid.step
    if low > high:
        return None
    # Mostly some host can give all that its provider has.
    hosts = fit(high * grid.step, among)
    if hosts.any():
        return Largest(high * grid.step, hosts)
    high -= 1
    hosts = fit(low * grid.step, among) if low <= high else hosts
    if not hosts.any():
        return None
    while low < high:
        at = (low + high + 1) // 2
        # Who gives more in steps of this grid can give this.
        more = fit(at * grid.step, hosts)
        if more.any():
            hosts, low = more, at
        else:
            high = at - 1
    return Largest(low * grid.step, hosts)


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


class Described(NamedTuple):
    """A change, and the words for the atoms that it leaves out."""

    relaxation: Relaxation
    texts: tuple[str, ...]


class Relaxing:
    """The changes that let some host fit a question that none fits.

    Args:
        prefixes: of all its atoms.
    """

    def __init__(self, derived: DerivedQuestions, prefixes: list[Prefix]) -> None:
        self.derived = derived
        #: Of the atoms that ask for a class.
        self.amounts = {
            number: Amount(derived, number)
            for number, atom in enumerate(derived.atoms)
            if atom.asked
        }
        self._prefixes = prefixes
        self._largest: dict[int, Largest | None] = {}

    def singles(self) -> list[Dropped]:
        """Each atom without which some host fits, the most helpful first."""
        return self._dropping((number,) for number in range(len(self.derived.atoms)))

    def pairs(self) -> list[Dropped]:
        """Each pair of atoms without which some host fits, if there are few atoms; the most helpful
        first."""
        atoms = range(len(self.derived.atoms))
        if len(atoms) > PAIRS_OF_MAX:
            return []
        return self._dropping(combinations(atoms, 2))

    def _dropping(self, several: Iterable[tuple[int, ...]]) -> list[Dropped]:
        """Those of some changes with which some host fits, the most helpful first."""
        helpful = []
        for atoms in several:
            if self.derived.budget.is_spent():
                break
            fitted = (1 << atoms[0]) - 1
            hosts = self.derived.fit(self.without(atoms), among=self.among(atoms), fitted=fitted)
            if hosts.any():
                helpful.append(Dropped(atoms, hosts, is_cut(self.derived)))
        return sorted(helpful, key=lambda dropped: -np.count_nonzero(dropped.hosts))

    def without(self, atoms: tuple[int, ...]) -> int:
        """All atoms but some."""
        return self.derived.everything & ~bits(atoms)

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
            self._largest[number] = amount.largest(self.derived.everything, among)
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
        return amount.largest(self.derived.everything, some)

    def described(self, several: list[Dropped]) -> Iterator[Described]:
        """The relaxations."""
        for dropped in several:
            reduced = self.largest(dropped) if len(dropped.atoms) == 1 else None
            atoms = [self.derived.atoms[number] for number in dropped.atoms]
            relaxation = Relaxation(
                drop=tuple(atom.at for atom in atoms),
                hosts=int(np.count_nonzero(dropped.hosts)),
                reduce_to=reduced.amount if reduced else UNSET,
                hosts_reduced=int(np.count_nonzero(reduced.hosts)) if reduced else UNSET,
                at_least=at_least(dropped.at_least or is_cut(self.derived)),
            )
            yield Described(relaxation, tuple(atom.text for atom in atoms))
