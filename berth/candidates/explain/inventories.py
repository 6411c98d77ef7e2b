# SPDX-License-Identifier: Apache-2.0
"""What the providers of one host have of a class that it lacks. Source: spec/beyond.md 3.5."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from berth.candidates.explain.asking import Asking
from berth.candidates.explain.atoms import Atom
from berth.candidates.explain.explanation import Inventory, Reason, Shortage
from berth.candidates.filter import filter_trees
from berth.candidates.resolve import NothingFits, plan_of
from berth.index.named import named_provider
from berth.index.snapshot import Location
from berth.model.ids import ClassId


def shortage_of(asking: Asking, atom: Atom, kept: int, host: int, *, possible: int) -> Shortage:
    """What a host lacks of a class.

    The best provider is the one with most to give among those that meet the conditions of the
    atom's group that are kept; if none does, among all.
    """
    assert atom.asked is not None
    name, asked = atom.asked
    class_id = asking.snapshot.names.class_ids[name]
    having = list(_having(asking, atom, kept, host)) or list(_having(asking, atom, 0, host))
    if not having:
        return Shortage(asked, possible, "no_inventory", None)
    at = max(having, key=lambda at: _most(asking, at, class_id))
    block = asking.snapshot.block(at.block_id)
    columns, line = block.columns[class_id], block.shape.row_of_node[class_id][at.node]
    capacity, used = (int(each.item(line, at.row)) for each in (columns.capacity, columns.used))
    inventory = Inventory(
        provider=named_provider(block, at.node, at.row),
        free=max(capacity - used, 0),
        capacity=capacity,
        max_unit=columns.max_unit.item(line, at.row),
    )
    reason = _reason(
        asked,
        inventory,
        min_unit=columns.min_unit.item(line, at.row),
        step_size=columns.step_size.item(line, at.row),
    )
    return Shortage(asked, possible, reason, inventory)


def _having(asking: Asking, atom: Atom, kept: int, host: int) -> Iterator[Location]:
    """The providers that could serve a group on a host, if they had enough."""
    snapshot, fleet = asking.snapshot_of(kept), asking.fleet
    request = asking.reduction.request_of_group(atom, kept)
    try:
        plan = plan_of(snapshot, request, one_per_tree=False)
    except NothingFits:
        return
    span, row = fleet.place(host)
    rows = {span.block_id: np.arange(span.block.rows) == row}
    for trees in filter_trees(snapshot, plan, asking.budget, among=rows):
        for choices in trees.masks.values():
            for choice, mask in choices.items():
                if mask is not None and not mask[0]:
                    continue
                location = snapshot.locate(trees.provider_id(choice, 0))
                assert location is not None
                yield location


def _most(asking: Asking, at: Location, class_id: ClassId) -> tuple[int, float]:
    """By what the best provider is chosen: what it could give, and what it has."""
    block = asking.snapshot.block(at.block_id)
    columns, line = block.columns[class_id], block.shape.row_of_node[class_id][at.node]
    return columns.room.item(line, at.row), columns.capacity.item(line, at.row)


def _reason(asked: int, has: Inventory, *, min_unit: int, step_size: int) -> Reason:
    """Why a provider cannot give an amount, that which no release of other claims changes first."""
    if asked > has.capacity:
        return "capacity"
    if asked > has.max_unit:
        return "max_unit"
    if asked < min_unit:
        return "min_unit"
    if asked % step_size:
        return "step_size"
    # It may have enough for this group, but not for all groups together.
    return "used"
