# SPDX-License-Identifier: Apache-2.0
"""The ways in which hosts serve a request, and how often they fit into what is left.

A *way* is what one candidate takes: amounts of *cells*, which are classes of choices. Candidates
that take the same are one way. Where the ways are all combinations of the ways of some *factors*,
and no two factors take of one cell, a host serves the request as often as its least factor allows.

What providers have left is counted in integers.

Source: spec/beyond.md 4.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.batch import Batch
from berth.candidates.conditions import any_of
from berth.candidates.fleet import FREE_MAX, Fleet
from berth.candidates.plan import Plan
from berth.candidates.trees import Trees, united
from berth.index.block import Ints
from berth.index.sets import Mask
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ClassId, ProviderId

#: A choice (`berth.candidates.trees`), and one of its classes.
Cell = tuple[int, ClassId]

#: What the providers that serve a host count as having left together at most: two of these, or one
#: and `FREE_MAX`, still are an int64.
TOGETHER_MAX: Final = 1 << 62

#: If no number is above this, the sum over all hosts of a fleet fits into 64 bits.
_SUMMED_MAX: Final = 1 << 36

#: The quotients that are kept take at most about this many bytes.
_KEPT_BYTES_MAX: Final = 64 << 20


def together(several: Iterable[Ints]) -> Ints:
    """The sum of some columns, at most `TOGETHER_MAX`."""
    first, *others = several
    total = first
    for each in others:
        total = np.minimum(total + each, TOGETHER_MAX)
    return total


def summable(values: Ints) -> Ints:
    """The values; as integers of Python if 64 bits might be too few for their sum."""
    return values if values.max(initial=0) <= _SUMMED_MAX else values.astype(object)


class Free:
    """What the providers of one snapshot have left; for all requests of one question."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._free: dict[tuple[int, ClassId], Ints] = {}
        self._times: dict[tuple[int, ClassId, int], Ints] = {}
        self._kept_bytes = 0
        self._of_hosts: dict[ClassId, Ints] = {}

    def of_block(self, block_id: int, class_id: ClassId) -> Ints:
        """What is free of a class in a block, at least 0; of the shape of its columns."""
        key = block_id, class_id
        free = self._free.get(key)
        if free is None:
            columns = self._snapshot.block(block_id).columns[class_id]
            left = columns.capacity - columns.used
            free = self._free[key] = np.clip(left, 0.0, FREE_MAX, out=left).astype(np.int64)
        return free

    def times_in_block(self, block_id: int, class_id: ClassId, amount: int) -> Ints:
        """How often an amount goes into what is free; of the shape of the columns."""
        key = block_id, class_id, amount
        times = self._times.get(key)
        if times is None:
            # PERF bench, capacity: integers divide ten times as fast as doubles, and flavors often
            # have some of their amounts in common.
            times = self.of_block(block_id, class_id) // amount
            self._kept_bytes += times.nbytes
            if self._kept_bytes > _KEPT_BYTES_MAX:
                self._times.clear()
                self._kept_bytes = times.nbytes
            self._times[key] = times
        return times

    def of_hosts(self, fleet: Fleet, class_id: ClassId) -> Ints:
        """What all providers that may serve each host of the fleet have left of a class: those of
        its tree, and all sharing providers."""
        of_hosts = self._of_hosts.get(class_id)
        if of_hosts is None:
            shared = min(self._shared(class_id), TOGETHER_MAX)
            of_hosts = np.full(fleet.size, shared, dtype=np.int64)
            for block_id, block, hosts in fleet.spans:
                if class_id in block.columns:
                    own = self.of_block(block_id, class_id)
                    of_hosts[hosts] = together([of_hosts[hosts], *own])
            self._of_hosts[class_id] = of_hosts
        return of_hosts

    def _shared(self, class_id: ClassId) -> int:
        """What all sharing providers have left of a class."""
        sharing = self._snapshot.sharing
        providers = {each for several in sharing.by_aggregate.values() for each in several}
        return sum(
            self.at(at, class_id)
            for at in filter(None, map(self._snapshot.locate, providers))
            if class_id in self._snapshot.block(at.block_id).shape.node_types[at.node].classes
        )

    def times(self, trees: Trees, cell: Cell, amount: int) -> Ints:
        """How often an amount goes into what a choice has left, for each of `Trees.rows`."""
        choice, class_id = cell
        block, rows = trees.block, trees.rows
        place = choice - block.shape.size
        if place < 0:
            line = block.shape.row_of_node[class_id][choice]
            of_block = self.times_in_block(trees.block_id, class_id, amount)
            local: Ints = of_block[line] if len(rows) == block.rows else of_block[line, rows]
            return local
        if trees.served_by is None:
            only = self.at(trees.serving[place].location, class_id) // amount
            return np.broadcast_to(np.int64(only), rows.shape)
        numbers, which = np.unique(trees.served_by[place], return_inverse=True)
        met = trees.sharing_providers
        each = [self.at(met[n].location, class_id) // amount for n in numbers.tolist()]
        times = np.array(each, dtype=np.int64)[which]
        return times

    def at(self, location: Location, class_id: ClassId) -> int:
        """What one provider has left of a class that it has."""
        block_id, row, node = location
        line = self._snapshot.block(block_id).shape.row_of_node[class_id][node]
        return int(self.of_block(block_id, class_id)[line, row])

    def of_provider(self, provider: ProviderId, class_id: ClassId) -> int:
        """`at` by the id of a provider."""
        location = self._snapshot.locate(provider)
        assert location is not None, "the snapshot has the providers that it names"
        return self.at(location, class_id)


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
        solved: what was searched of it: what its cells have and which ways there are -> so often at
            least, and at most.
    """

    amounts: tuple[Mapping[ClassId, int], ...]
    ways: tuple[Way, ...]
    solved: dict[tuple[int, ...], tuple[int, int]] = field(init=False, default_factory=dict)

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
    rows_of: dict[tuple[int, ...], list[Mask | None]] = {}
    for batch in batches:
        choices = tuple([batch.choices[number] for number in giving])
        rows_of.setdefault(choices, []).append(_rows(batch))
    chosen = {choices: any_of(several) for choices, several in rows_of.items()}
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
    taking: dict[tuple[tuple[Cell, int], ...], list[tuple[tuple[int, ...], Mask | None]]] = {}
    for choices, rows in chosen.items():
        own = tuple([choices[place] for place in places])
        taking.setdefault(_taken(own, amounts), []).append((own, rows))
    ways = (
        Way(takes, several[0][0], any_of(rows for _, rows in several))
        for takes, several in taking.items()
    )
    return Factor(amounts, tuple(ways))


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
