# SPDX-License-Identifier: Apache-2.0
"""Snapshots in which other drains are in effect: for questions that tolerate some, and for
scenarios.

They share everything else with the snapshot that they are made from.

Source: spec/beyond.md 2.2, 3.2 and 4.4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from berth.index.block import Block, SmallInts
from berth.index.snapshot import Location, Snapshot
from berth.model.drain import DrainId, DrainName

#: The drain of the providers that a scenario assumes to be drained; a database never has it.
ASSUMED: Final = DrainId(0)

#: Names of drains, or "*" for all of them.
Tolerated = Collection[str] | Literal["*"]


def undrained(snapshot: Snapshot) -> Snapshot:
    """The fleet as if no drain were in effect."""
    return excluding(snapshot, frozenset())


def tolerating(snapshot: Snapshot, tolerated: Tolerated) -> Snapshot:
    """The fleet as if some drains were not in effect; names of no drain are passed over."""
    if not tolerated:
        return snapshot
    if tolerated == "*":
        return undrained(snapshot)
    return excluding(snapshot, snapshot.excluding - drains_named(snapshot, tolerated))


def drains_named(snapshot: Snapshot, names: Iterable[str]) -> frozenset[DrainId]:
    """The drains with some names; names of no drain are passed over."""
    drains = snapshot.names.drains
    return frozenset(drains[DrainName(name)].id for name in names if name in drains)


def excluding(snapshot: Snapshot, drains: frozenset[DrainId]) -> Snapshot:
    """The fleet as if just these drains were in effect. Cost: in proportion to the blocks with
    providers that any drain names."""
    if drains == snapshot.excluding:
        return snapshot
    table = snapshot.drain_sets.having_any(drains)
    blocks = [None if block is None else block.with_drained(table) for block in snapshot.blocks]
    return replace(snapshot, blocks=blocks, excluding=drains)


def assuming(
    snapshot: Snapshot, *, drained: Sequence[Location], without: frozenset[DrainId]
) -> Snapshot:
    """The fleet as if some drains were not in effect, and then some providers were drained, with
    all below them."""
    drains = snapshot.excluding - without
    if not drained:
        return excluding(snapshot, drains)
    # Other readers of the registry must not see sets of something assumed.
    registry = snapshot.drain_sets.fork()
    of_block: dict[int, list[Location]] = {}
    for at in drained:
        of_block.setdefault(at.block_id, []).append(at)
    blocks = list(snapshot.blocks)
    for block_id, places in of_block.items():
        block = snapshot.block(block_id)
        sets = _sets_of(block).copy()
        for at in places:
            members = registry.members(int(sets[at.node, at.row]))
            sets[at.node, at.row] = registry.id_of(members | {ASSUMED})
        blocks[block_id] = replace(block, drain_sets=sets)
    assumed = replace(snapshot, blocks=blocks, drain_sets=registry)
    return excluding(assumed, drains | {ASSUMED})


def _sets_of(block: Block) -> SmallInts:
    if block.drain_sets is not None:
        return block.drain_sets
    return np.zeros(block.provider_ids.shape, dtype=np.int32)
