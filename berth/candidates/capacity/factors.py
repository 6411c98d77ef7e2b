# SPDX-License-Identifier: Apache-2.0
"""The ways in which hosts serve a request, cut into parts that do not matter to each other.

A *way* is what one candidate takes: amounts of *cells*, which are classes of choices. Candidates
that take the same are one way. Where the ways are all combinations of the ways of some *factors*,
and no two factors take of one cell, a host serves the request as often as its least factor allows.

Source: spec/beyond.md 4.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.batch import Batch
from berth.candidates.capacity.free import Cell
from berth.candidates.plan import Plan
from berth.candidates.uniform import united
from berth.index.aggregate_sets import Mask
from berth.model.ids import ClassId

#: More ways than this are neither listed nor searched.
WAYS_MAX: Final = 64


class Way(NamedTuple):
    """What one candidate takes, or the part of it that belongs to one factor.

    Attributes:
        takes: of each cell, at least 1; ascending.
        choices: the choices of the factor's demands, of one of the candidates that take this.
        rows: those of `Trees.rows` that have it; None for all.
    """

    takes: tuple[tuple[Cell, int], ...]
    choices: tuple[int, ...]
    rows: Mask | None


class Cut(NamedTuple):
    """No row has more placements than a sum of quotients over `divisor`.

    Attributes:
        quotients: of each the least of (cell, amount): what the cell has over the amount.
    """

    quotients: tuple[tuple[tuple[Cell, int], ...], ...]
    divisor: int


@dataclass(frozen=True)
class Factor:
    """A part of the demands, and all ways to serve them.

    Attributes:
        amounts: of each demand of the factor, by class.
    """

    amounts: tuple[Mapping[ClassId, int], ...]
    ways: tuple[Way, ...]

    @cached_property
    def cells(self) -> set[Cell]:
        """The cells that some way takes of."""
        return {cell for way in self.ways for cell, _ in way.takes}

    @cached_property
    def having(self) -> dict[Cell, Mask | None]:
        """The cells, each with the rows in which some way takes of it; None for all."""
        return united(dict.fromkeys((cell for cell, _ in way.takes), way.rows) for way in self.ways)

    @cached_property
    def cuts(self) -> tuple[Cut, ...]:
        """Bounds on the number of placements, each true by itself.

        For any unit, the whole units of an amount are superadditive: so all placements together
        take no more units of a class than its cells have, and each takes at least `divisor`. And
        each placement has a place for each demand.
        """
        return (*self._cuts_of_classes(), *self._cuts_of_demands())

    def _cuts_of_classes(self) -> Iterator[Cut]:
        for class_id in sorted({class_id for _, class_id in self.cells}):
            cells = sorted(cell for cell in self.cells if cell[1] == class_id)
            taken = [
                [amount for cell, amount in way.takes if cell[1] == class_id] for way in self.ways
            ]
            for unit in sorted({1}.union(*taken)):
                divisor = min(sum(amount // unit for amount in each) for each in taken)
                if divisor:
                    yield Cut(tuple(((cell, unit),) for cell in cells), divisor)

    def _cuts_of_demands(self) -> Iterator[Cut]:
        for place, amounts in enumerate(self.amounts):
            choices = sorted({way.choices[place] for way in self.ways})
            yield Cut(tuple(_cells_of(choice, amounts) for choice in choices), 1)

    @cached_property
    def nested(self) -> list[tuple[int, Cell, int]] | None:
        """(ways, cell, amount) of each cell, inner sets first; None if two sets cross, or if ways
        take different amounts of one cell."""
        taking: dict[Cell, dict[int, int]] = {}
        for number, way in enumerate(self.ways):
            for cell, amount in way.takes:
                taking.setdefault(cell, {})[number] = amount
        sets = []
        for cell, amounts in taking.items():
            if len(set(amounts.values())) > 1:
                return None
            ways = sum(1 << number for number in amounts)
            sets.append((ways, cell, next(iter(amounts.values()))))
        for (inner, _, _), (other, _, _) in combinations(sets, 2):
            if inner & other not in (0, inner, other):
                return None
        return sorted(sets, key=lambda each: each[0].bit_count())


def factors_of(plan: Plan, batches: Sequence[Batch]) -> tuple[Factor, ...]:
    """The factors of some trees.

    Args:
        batches: all candidates of the same trees, demands that are alike in one order only.
    """
    giving = plan.giving
    chosen: dict[tuple[int, ...], Mask | None] = {}
    for batch in batches:
        choices = tuple([batch.choices[number] for number in giving])
        chosen[choices] = _united(chosen.get(choices, False), _rows(batch))
    return tuple(
        _factor(plan, tuple(giving[place] for place in places), places, chosen)
        for places in _independent(plan, giving, list(chosen))
    )


def _rows(batch: Batch) -> Mask | None:
    if len(batch.positions) == len(batch.trees.rows):
        return None
    rows: Mask = np.zeros(len(batch.trees.rows), dtype=np.bool_)
    rows[batch.positions] = True
    return rows


def _united(before: Mask | bool | None, rows: Mask | None) -> Mask | None:
    """The union of two sets of rows; None stands for all, False for none."""
    if before is False:
        return rows
    if before is None or rows is None:
        return None
    union: Mask = before | rows
    return union


def _independent(
    plan: Plan, giving: Sequence[int], chosen: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """The places of the demands of each factor."""
    parts = [frozenset({place}) for place in range(len(giving))]
    cells = [
        {(choices[place], each) for choices in chosen for each, _ in plan.demands[number].amounts}
        for place, number in enumerate(giving)
    ]
    for number, other in combinations(range(len(giving)), 2):
        if cells[number] & cells[other] or not _is_product(chosen, [(number,), (other,)]):
            parts = _joined(parts, number, other)
    ordered = [tuple(sorted(part)) for part in parts]
    # Three demands may depend on each other although no
    # two of them do.
    return ordered if _is_product(chosen, ordered) else [tuple(range(len(giving)))]


def _joined(parts: list[frozenset[int]], place: int, other: int) -> list[frozenset[int]]:
    together = frozenset().union(*(part for part in parts if place in part or other in part))
    return [*(part for part in parts if not part & together), together]


def _is_product(chosen: Iterable[tuple[int, ...]], parts: Sequence[tuple[int, ...]]) -> bool:
    """Whether some choices are all combinations of the choices of their parts."""
    projected = [{tuple([c[place] for place in part]) for c in chosen} for part in parts]
    every = tuple(place for part in parts for place in part)
    return prod(map(len, projected)) == len({tuple([c[p] for p in every]) for c in chosen})


def _factor(
    plan: Plan,
    numbers: Sequence[int],
    places: Sequence[int],
    chosen: Mapping[tuple[int, ...], Mask | None],
) -> Factor:
    amounts = tuple(dict(plan.demands[number].amounts) for number in numbers)
    ways: dict[tuple[tuple[Cell, int], ...], Way] = {}
    for choices, rows in chosen.items():
        own = tuple([choices[place] for place in places])
        takes = _taken(own, amounts)
        before = ways.get(takes)
        united = _united(before.rows if before else False, rows)
        ways[takes] = Way(takes, before.choices if before else own, united)
    return Factor(amounts, tuple(ways.values()))


def _cells_of(choice: int, amounts: Mapping[ClassId, int]) -> tuple[tuple[Cell, int], ...]:
    return tuple(((choice, class_id), amount) for class_id, amount in amounts.items())


def _taken(
    choices: Sequence[int], amounts: Sequence[Mapping[ClassId, int]]
) -> tuple[tuple[Cell, int], ...]:
    taken: dict[Cell, int] = {}
    for choice, each in zip(choices, amounts, strict=True):
        for class_id, amount in each.items():
            cell = choice, class_id
            taken[cell] = taken.get(cell, 0) + amount
    return tuple(sorted(taken.items()))
