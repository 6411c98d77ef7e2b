# SPDX-License-Identifier: Apache-2.0
"""Trees on their way through the search: rows of one block, and the options of their demands.

An *option* is a provider that could serve a demand: a node of the row's own tree, or a sharing
provider of another tree. A *choice* is its number: a node of the shape if it is below the shape's
size K, otherwise K + a place among the sharing providers that serve the row.

`with_sharing` adds the options of sharing providers to trees that a filter has left, and
`split_by_options` makes the groups of trees that a walk serves together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
from msgspec import Struct

from berth.candidates.conditions import Masks, Rows, any_of, take_rows
from berth.candidates.plan import Demand, Plan
from berth.candidates.shape_tests import SharingScope
from berth.candidates.sharing import SharingProvider, SharingProviders, room_at
from berth.index.block import Block, Floats, Ints
from berth.index.sets import Mask
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ClassId, ProviderId

_ONE: Final[Ints] = np.ones(1, dtype=np.int64)


# PERF bench, flat: not frozen, because a frozen one of many attributes takes 2 us to make.
class Trees(Struct, eq=False):
    """Some trees of one block that are served by sharing providers of the same structure.

    Attributes:
        block_id: the block's number in the snapshot.
        rows: (N,) rows of the block.
        serving: the sharing providers of other trees that the first row can use; of one tree,
            parents come before their children. Those of the other rows are like them, place by
            place: they would serve the same demands, and are in trees of the same shapes.
        served_by: (F, N), for each place and row a number in `sharing_providers`; None if those of
            the first row serve all rows.
        sharing_providers: all that the search has met.
    """

    block_id: int
    block: Block
    rows: Rows
    serving: tuple[SharingProvider, ...]
    served_by: Rows | None
    sharing_providers: SharingProviders

    def provider_id(self, choice: int, position: int) -> ProviderId:
        """The provider that a choice means for one of the rows."""
        place = choice - self.block.shape.size
        if place < 0:
            return ProviderId(int(self.block.provider_ids[choice, self.rows[position]]))
        if self.served_by is None:
            return self.serving[place].provider_id
        return self.sharing_providers[int(self.served_by[place, position])].provider_id

    def provider_ids(self, choice: int, at: slice | Rows = slice(None)) -> Ints:
        """The provider that a choice means, for each of some positions in `rows`."""
        place = choice - self.block.shape.size
        if place < 0:
            own: Ints = self.block.provider_ids[choice, self.rows[at]]
            return own
        if self.served_by is None:
            return np.full(len(self.rows[at]), self.serving[place].provider_id, dtype=np.int64)
        return self.sharing_providers.ids(self.served_by[place, at])

    def serving_at(self, position: int) -> tuple[SharingProvider, ...]:
        """The sharing providers that serve one of the rows."""
        if self.served_by is None:
            return self.serving
        return tuple(self.sharing_providers[n] for n in self.served_by[:, position].tolist())

    def locations(self, choice: int, mask: Mask | None) -> set[Location]:
        """The sharing providers that a choice means in some rows; None for all."""
        place = choice - self.block.shape.size
        if self.served_by is None:
            return {self.serving[place].location}
        numbers = self.served_by[place] if mask is None else self.served_by[place][mask]
        return {self.sharing_providers[n].location for n in np.unique(numbers).tolist()}

    def room(self, choice: int, class_id: ClassId) -> Floats | float:
        """What all groups together may take of a class from a choice: for each row, or one number
        where it is the same for all.

        Source: spec/allocation-candidates.md 5.4.
        """
        place = choice - self.block.shape.size
        if place < 0:
            if len(self.rows) == 1:
                # PERF bench, wide: arrays of one element take ten times as long as numbers.
                return room_at(self.block, choice, int(self.rows[0]), class_id)
            line = self.block.shape.row_of_node[class_id][choice]
            room: Floats = self.block.columns[class_id].room[line, self.rows].astype(np.float64)
            return room
        if self.served_by is None:
            return self.sharing_providers.room(self.serving[place], class_id)
        return self.sharing_providers.rooms(class_id, self.served_by[place])

    def units(self, choice: int, class_id: ClassId) -> tuple[Ints, Ints]:
        """min_unit and step_size of a class that a choice has: for each row, or one number where
        they are the same for all."""
        place = choice - self.block.shape.size
        if place < 0:
            columns = self.block.columns[class_id]
            if not columns.stepped and columns.min_unit_max <= 1:
                return _ONE, _ONE
            at = self.block.shape.row_of_node[class_id][choice], self.rows
            return columns.min_unit[at].astype(np.int64), columns.step_size[at].astype(np.int64)
        if self.served_by is None:
            serving = [self.serving[place]] * len(self.rows)
        else:
            serving = [self.sharing_providers[n] for n in self.served_by[place].tolist()]
        units = np.array([self.sharing_providers.units(each, class_id) for each in serving])
        return units[:, 0], units[:, 1]


class FilteredTrees(Trees, eq=False):
    """Trees that passed every stage: each has options for every demand, each its own.

    Attributes:
        scope: of the plan that filtered them.
        masks: the options, each with the rows that have it; no mask is empty.
    """

    scope: SharingScope
    masks: Masks


class UniformTrees(Trees, eq=False):
    """Trees that have the same options.

    Attributes:
        options: for each demand of the plan, and each of its splits, the choices that could serve
            it in every row, as an integer with a bit for each; never 0.
    """

    options: tuple[int, ...]

    def only(self, position: int) -> UniformTrees:
        """One of the rows alone."""
        assert 0 <= position < len(self.rows)
        return UniformTrees(
            self.block_id,
            self.block,
            self.rows[position : position + 1],
            self.serving_at(position),
            None,
            self.sharing_providers,
            self.options,
        )


def with_sharing(snapshot: Snapshot, trees: FilteredTrees) -> Iterator[FilteredTrees]:
    """Those of some trees that have an option for every demand once sharing providers count,
    grouped by the structure of those providers.

    Args:
        trees: with the options that they have themselves.
    """
    block, sharing_providers = trees.block, trees.sharing_providers
    combinations, which = _serving(snapshot, block, trees.rows)
    serving = [sharing_providers.useful(providers) for providers in combinations]
    for positions, first, served_by in _by_structure(sharing_providers, serving, which):
        extended = _with_options(trees, positions, first)
        if extended is not None:
            kept, masks = extended
            yield FilteredTrees(
                trees.block_id,
                block,
                trees.rows[positions[kept]],
                first,
                None if served_by is None else served_by[:, kept],
                sharing_providers,
                trees.scope,
                _certain(masks),
            )


def _serving(
    snapshot: Snapshot, block: Block, rows: Rows
) -> tuple[list[tuple[ProviderId, ...]], Rows]:
    """The combinations of sharing providers of other trees that serve some rows, each once; and
    for each row the number of its combination."""
    sharing, sets = snapshot.sharing, snapshot.aggregate_sets
    distinct, which = _numbered(block.tree_aggregate_sets[rows], len(sets))
    serving = [sharing.serving(tree_set, sets) for tree_set in distinct.tolist()]
    if sharing.trait not in block.shape.traits:
        return serving, which
    # A tree's own sharing providers are nodes of it.
    others: dict[tuple[ProviderId, ...], int] = {}
    for position, number in enumerate(which.tolist()):
        own = set(block.provider_ids[:, rows[position]].tolist())
        kept = tuple(provider for provider in serving[number] if provider not in own)
        which[position] = others.setdefault(kept, len(others))
    return list(others), which


def _by_structure(
    sharing_providers: SharingProviders,
    serving: Sequence[tuple[SharingProvider, ...]],
    which: Rows,
) -> Iterator[tuple[Rows, tuple[SharingProvider, ...], Rows | None]]:
    """Split rows by the structure of the sharing providers that serve them: positions of rows, and
    `serving` and `served_by` of `Trees`.

    Args:
        serving: combinations of sharing providers.
        which: for each row the number of its combination.
    """
    by_structure: dict[Hashable, list[int]] = {}
    for number, providers in enumerate(serving):
        by_structure.setdefault(sharing_providers.structure(providers), []).append(number)
    for combinations in by_structure.values():
        if len(by_structure) == 1:
            positions = np.arange(len(which))
        else:
            positions = np.flatnonzero(np.isin(which, combinations))
        first = serving[which[positions[0]]]
        if len(combinations) == 1 or not first:
            yield positions, first, None
            continue
        numbers = np.zeros((len(first), len(serving)), dtype=np.int64)
        for number in combinations:
            numbers[:, number] = [provider.number for provider in serving[number]]
        yield positions, first, numbers[:, which[positions]]


def _with_options(
    trees: FilteredTrees, positions: Rows, serving: Sequence[SharingProvider]
) -> tuple[Rows, dict[int, dict[int, Mask | None]]] | None:
    """The options of rows that are served alike: which of the positions have some for every
    demand, and their masks; None if there are none."""
    alive: Mask | None = None
    masks = take_rows(positions, trees.masks)
    foreign = [*enumerate(serving, trees.block.shape.size)]
    for query_id, shareable in trees.scope.shareable.items():
        if not shareable:
            continue
        choices = [choice for choice, provider in foreign if query_id in provider.serves]
        if not choices:
            if not masks[query_id]:
                return None
            some = any_of(masks[query_id].values())
            if some is not None:
                alive = some if alive is None else alive & some
        masks[query_id] |= dict.fromkeys(choices)
    if alive is None:
        return np.arange(len(positions)), masks
    kept = np.flatnonzero(alive)
    return (kept, take_rows(kept, masks)) if len(kept) else None


def _numbered(values: Rows, values_count: int) -> tuple[Rows, Rows]:
    """The distinct ones of some values, all below `values_count`, ascending; and for each value its
    place among them."""
    # PERF bench, sharing: `np.unique` would sort.
    marked = np.zeros(values_count, dtype=np.bool_)
    marked[values] = True
    distinct = marked.nonzero()[0]
    numbers = np.empty(values_count, dtype=np.int64)
    numbers[distinct] = np.arange(len(distinct))
    return distinct, numbers[values]


def _certain(masks: Mapping[int, Mapping[int, Mask | None]]) -> Masks:
    """The masks; the only choice of a query is known to serve it in all rows that are left."""
    return {
        query_id: dict.fromkeys(choices) if len(choices) == 1 else choices
        for query_id, choices in masks.items()
    }


def marks_in(marks: dict[int, Mask], block_id: int, block: Block) -> Mask:
    """The rows of a block that are marked, which the caller may change; none at first."""
    of_block = marks.get(block_id)
    if of_block is None:
        of_block = marks[block_id] = np.zeros(block.rows, dtype=np.bool_)
    return of_block


Key = TypeVar("Key", bound=Hashable)


def split_by_options(trees: FilteredTrees, plan: Plan) -> Iterator[UniformTrees]:
    """Those of some trees that may have room for all groups together, split by their options."""
    for positions, choices in _by_options(trees.masks, np.flatnonzero(room_for_all(trees, plan))):
        served_by = None
        if len(positions) > 1 and trees.served_by is not None:
            served_by = trees.served_by[:, positions]
        yield UniformTrees(
            trees.block_id,
            trees.block,
            trees.rows[positions],
            trees.serving_at(positions.item(0)),
            served_by,
            trees.sharing_providers,
            tuple(choices[demand.query_id] for demand in plan.asking),
        )


def room_for_all(trees: FilteredTrees, plan: Plan) -> Mask:
    """The trees in which the sums of all groups fit.

    The last filter, and only for trees that are walked: without it each of a thousand full hosts
    would be searched on its own. It is necessary but not sufficient; the walk finds out the rest.
    """
    alive: Mask = np.ones(len(trees.rows), dtype=np.bool_)

    def total(masks: Mapping[int, Mask | None], room: Callable[[int], Floats | float]) -> Floats:
        room_sum: Floats = np.zeros(len(trees.rows))
        for choice, mask in masks.items():
            room_sum += room(choice) if mask is None else np.where(mask, room(choice), 0.0)
        return room_sum

    for numbers in plan.identical_groups:
        demand = plan.demands[numbers[0]]

        def times(choice: int, demand: Demand = demand, most: int = len(numbers)) -> Floats | float:
            if plan.rules.isolate:
                return 1.0
            least: Floats | float = float(most)
            for class_id, each in demand.amounts:
                if each:
                    least = np.minimum(least, trees.room(choice, class_id) // each)
            return least

        alive &= total(trees.masks[demand.query_id], times) >= len(numbers)
    for class_id, amount, query_ids in plan.totals:

        def room(choice: int, class_id: ClassId = class_id) -> Floats | float:
            return trees.room(choice, class_id)

        alive &= total(united([trees.masks[query_id] for query_id in query_ids]), room) >= amount
    return alive


def united(several: Iterable[Mapping[Key, Mask | None]]) -> dict[Key, Mask | None]:
    """Options, each with the rows that have it in at least one of several; None for all rows."""
    united: dict[Key, Mask | None] = {}
    for masks in several:
        for option, mask in masks.items():
            other = united.get(option, mask)
            united[option] = None if mask is None or other is None else mask | other
    return united


def _by_options(masks: Masks, rows: Rows) -> Iterator[tuple[Rows, dict[int, int]]]:
    """Split rows by their options: the rows of each part, and their choices for each query."""
    if not len(rows):
        return
    certain: dict[int, int] = {}
    places: list[tuple[int, int]] = []
    lines: list[Mask] = []
    for query_id, choices in masks.items():
        certain[query_id] = 0
        for choice, mask in choices.items():
            line = None if mask is None else mask[rows]
            if line is None or line.all():
                certain[query_id] |= 1 << choice
            else:
                places.append((query_id, 1 << choice))
                lines.append(line)
    if not lines:
        yield rows, certain
        return
    table = np.array(lines).T
    packed = np.ascontiguousarray(np.packbits(table, axis=1))
    patterns = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0].tolist()
    positions_of: dict[bytes, list[int]] = {}
    for position, pattern in enumerate(patterns):
        positions_of.setdefault(pattern, []).append(position)
    for positions in positions_of.values():
        options = certain.copy()
        for place in np.flatnonzero(table[positions[0]]).tolist():
            query_id, bit = places[place]
            options[query_id] |= bit
        yield rows[positions], options
