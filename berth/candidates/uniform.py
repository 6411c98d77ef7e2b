# SPDX-License-Identifier: Apache-2.0
"""From filtered trees to groups of trees with the same options, which a walk serves together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

import numpy as np

from berth.candidates.masks import Masks, Rows
from berth.candidates.plan import Demand, Plan
from berth.candidates.sharing import Amounts
from berth.candidates.trees import FilteredTrees, UniformTrees
from berth.index.aggregate_sets import Mask
from berth.model.ids import ClassId

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

    def total(masks: Mapping[int, Mask | None], room: Callable[[int], Amounts | float]) -> Amounts:
        room_sum: Amounts = np.zeros(len(trees.rows))
        for choice, mask in masks.items():
            room_sum += room(choice) if mask is None else np.where(mask, room(choice), 0.0)
        return room_sum

    for numbers in plan.identical_groups:
        demand = plan.demands[numbers[0]]

        def times(
            choice: int, demand: Demand = demand, most: int = len(numbers)
        ) -> Amounts | float:
            if plan.isolate:
                return 1.0
            least: Amounts | float = float(most)
            for class_id, each in demand.amounts:
                if each:
                    least = np.minimum(least, trees.room(choice, class_id) // each)
            return least

        alive &= total(trees.masks[demand.query_id], times) >= len(numbers)
    for class_id, amount, query_ids in plan.totals:

        def room(choice: int, class_id: ClassId = class_id) -> Amounts | float:
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
