# SPDX-License-Identifier: Apache-2.0
"""Trees on their way through the search: rows of one block, and the options of their demands.

An *option* is a provider that could serve a demand: a node of the row's own tree, or a sharing
provider of another tree. A *choice* is its number: a node of the shape if it is below the shape's
size K, otherwise K + a place among the sharing providers that serve the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from berth.candidates.masks import Masks, Rows
from berth.candidates.shape_tests import SharingScope
from berth.candidates.sharing import Amounts, SharingProvider, SharingProviders, room_at
from berth.index.aggregate_sets import Mask
from berth.index.block import Block, Ints
from berth.index.snapshot import Location
from berth.model.ids import ClassId, ProviderId

_ONE: Final[Ints] = np.ones(1, dtype=np.int64)


# PERF bench, flat: not frozen, because a frozen one of many attributes takes 2 us to make.
@dataclass(slots=True, eq=False)
class Trees:
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

    def room(self, choice: int, class_id: ClassId) -> Amounts | float:
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
            room: Amounts = self.block.columns[class_id].room[line, self.rows].astype(np.float64)
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


@dataclass(slots=True, eq=False)
class FilteredTrees(Trees):
    """Trees that passed every stage: each has options for every demand, each its own.

    Attributes:
        scope: of the plan that filtered them.
        masks: the options, each with the rows that have it; no mask is empty.
    """

    scope: SharingScope
    masks: Masks


@dataclass(slots=True, eq=False)
class UniformTrees(Trees):
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
