# SPDX-License-Identifier: Apache-2.0
"""Masks over the rows of a block: which trees, or which of their nodes, pass a condition.

A mask that would be true everywhere is None: most conditions hold for all rows, and nothing is
computed for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from berth.candidates.plan import Demand
from berth.index.aggregate_sets import Mask
from berth.index.block import Block, Columns

Rows = NDArray[np.int64]

#: query id -> choice -> the rows in which that choice could serve the query; None for all of them.
Masks = Mapping[int, Mapping[int, Mask | None]]


def any_of(masks: Iterable[Mask | None]) -> Mask | None:
    """The union of some masks; None if it is all rows."""
    union: Mask | None = None
    for mask in masks:
        if mask is None:
            return None
        union = mask if union is None else union | mask
    return union


def take_rows(rows: Rows, masks: Masks) -> dict[int, dict[int, Mask | None]]:
    """The masks of some of the rows."""
    return {
        query_id: {choice: None if mask is None else mask[rows] for choice, mask in choices.items()}
        for query_id, choices in masks.items()
    }


def fits(columns: Columns, amount: int, at: tuple[int | slice, slice]) -> Mask:
    """Which providers could give `amount` more of one class.

    Args:
        amount: 1 to 2147483647; 0 asks for any inventory of the class.
        at: the nodes of the class, and the rows of the block.

    Source: spec/allocation-candidates.md 5.1.
    """
    # PERF bench, flat: `room` and the two bounds make one comparison of what would be four.
    fit: Mask = columns.room[at] >= amount
    return _in_units(fit, columns, amount, at)


def fits_if_unused(columns: Columns, amount: int, at: tuple[int | slice, slice]) -> Mask:
    """As `fits`, with nothing used."""
    fit: Mask = columns.capacity[at] >= amount
    fit &= columns.max_unit[at] >= amount
    return _in_units(fit, columns, amount, at)


def _in_units(fit: Mask, columns: Columns, amount: int, at: tuple[int | slice, slice]) -> Mask:
    if 0 < amount < columns.min_unit_max:
        fit &= columns.min_unit[at] <= amount
    if columns.stepped:
        fit &= amount % columns.step_size[at] == 0
    return fit


def has_membership(block: Block, demand: Demand, node: int, window: slice) -> Mask:
    """The rows in which a node's aggregates satisfy a demand that has conditions on them."""
    member, forbidden = demand.membership.member, demand.membership.forbidden
    own = block.aggregate_sets[node, window]
    mask: Mask | None = None
    if member is not None:
        mask = member[own]
        if demand.unsuffixed and node:
            # An aggregate on the root spans the tree, for the unsuffixed group (5.3).
            mask = mask | member[block.aggregate_sets[0, window]]
    if forbidden is not None:
        outside = ~forbidden[own]
        mask = outside if mask is None else mask & outside
    assert mask is not None, "a membership test has a condition"
    return mask
