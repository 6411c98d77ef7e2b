# SPDX-License-Identifier: Apache-2.0
"""Rows that have no place in the index: the service would never write them, but other programs and
edits by hand leave them.

The index leaves them out, so that each hurts only its own provider. `db check` says more of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from berth.index.names import Names
from berth.model.ids import ProviderId, ProviderUUID
from berth.store.index_feed import FleetRows

_INT32: Final = range(-(2**31), 2**31)


class FaultyRow(NamedTuple):
    """A row that the index leaves out.

    Attributes:
        root: what the provider of the row has as its root, if anything.
        owner: the uuid of that provider, or of an aggregate.
        sentence: what is wrong.
    """

    root: ProviderId | None
    owner: str
    sentence: str


def sieved(rows: FleetRows, names: Names) -> tuple[FleetRows, set[FaultyRow]]:
    """The rows that have a place, and those that have none.

    A provider has a place if its parents lead to its root. One that has none leaves out its
    inventories, traits and aggregates too, and the providers below it.
    """
    placed = _placed(rows.providers)
    faults = {_fault(row, _misplaced(row)) for row in rows.providers if row[0] not in placed}

    def kept(owned: Iterable[Any], clause_of: Callable[[Any, Names], str | None]) -> list[Any]:
        of_placed = [row for row in owned if row[0] in placed]
        clauses = [clause_of(row, names) for row in of_placed]
        pairs = zip(of_placed, clauses, strict=True)
        faults.update(_fault(placed[row[0]], clause) for row, clause in pairs if clause)
        return [row for row, clause in zip(of_placed, clauses, strict=True) if not clause]

    inventories = kept(rows.inventories, _inventory_fault)
    traits = kept(rows.traits, _trait_fault)
    aggregates = [row for row in rows.aggregates if row[0] in placed]
    drained = [row for row in rows.drained if row[0] in placed]
    return FleetRows([*placed.values()], inventories, traits, aggregates, drained), faults


def _fault(provider: Any, clause: str) -> FaultyRow:
    _, uuid, _, root, name, *_ = provider
    return FaultyRow(root, ProviderUUID(uuid), f"provider {name} ({uuid}) {clause}")


def _placed(rows: Iterable[Any]) -> dict[ProviderId, Any]:
    """The providers whose parents lead to their root, by id."""
    children: defaultdict[ProviderId | None, list[Any]] = defaultdict(list)
    for row in rows:
        if row[1].isascii():
            children[row[2]].append(row)
    reached = [row for row in children[None] if row[3] == row[0]]
    for row in reached:
        reached.extend(child for child in children[row[0]] if child[3] == row[3])
    return {row[0]: row for row in reached}


def _misplaced(row: Any) -> str:
    return (
        f"is left out: its uuid, its parent_provider_id {row[2]} or its root_provider_id {row[3]} "
        f"is wrong"
    )


def _inventory_fault(row: Any, names: Names) -> str | None:
    _, class_id, total, reserved, ratio, _, least, most, step, _ = row
    if class_id not in names.class_names:
        return f"has an inventory of resource class number {class_id}, which does not exist"
    whole = all(number in _INT32 for number in (total, reserved, least, most, step))
    if not whole or step < 1 or not math.isfinite((total - reserved) * ratio):
        return (
            f"has an impossible inventory of {names.class_names[class_id]}: total {total}, "
            f"reserved {reserved}, step_size {step}, allocation_ratio {ratio:g}"
        )
    return None


def _trait_fault(row: Any, names: Names) -> str | None:
    if row[1] in names.trait_names:
        return None
    return f"has trait number {row[1]}, which is not defined"
