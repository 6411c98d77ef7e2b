# SPDX-License-Identifier: Apache-2.0
"""Drained providers, counted and listed; and snapshots in which other drains are in effect, for
questions that tolerate some and for scenarios.

Such a snapshot shares everything else with the one that it is made from.

Source: spec/beyond.md 2.2, 3.2, 4.4 and 7.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from msgspec.structs import replace

from berth.index.block import Block, SmallInts
from berth.index.sets import Mask
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ProviderId
from berth.model.named import DrainId, DrainName

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
    drains = snapshot.names.records.drains
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


class Reach(NamedTuple):
    """How many providers are drained, and how many hosts have one of them."""

    hosts: int
    providers: int


def reach(snapshot: Snapshot) -> Reach:
    """How many providers are drained."""
    hosts = providers = 0
    for block in snapshot.blocks:
        if block is not None and block.drained is not None:
            hosts += int(np.count_nonzero(block.drained.any(axis=0)))
            providers += int(np.count_nonzero(block.drained))
    return Reach(hosts, providers)


def reaches(snapshot: Snapshot) -> dict[DrainId, Reach]:
    """What each drain reaches by itself, announced or in effect; without those that reach nothing.

    Cost: in proportion to the drains that name providers of each block.
    """
    sets = snapshot.drain_sets
    having: dict[DrainId, Mask] = {}
    reached: dict[DrainId, Reach] = {}
    for _, block in snapshot.occupied():
        if block.drain_sets is None:
            continue
        numbers = np.unique(block.drain_sets).tolist()
        for drain in set[DrainId]().union(*map(sets.members, numbers)):
            if drain not in having:
                having[drain] = sets.having_any((drain,))
            drained = block.with_drained(having[drain]).drained
            assert drained is not None, "it names a provider of this block"
            before = reached.get(drain, Reach(0, 0))
            reached[drain] = Reach(
                before.hosts + int(np.count_nonzero(drained.any(axis=0))),
                before.providers + int(np.count_nonzero(drained)),
            )
    return reached


def drained_in_use(snapshot: Snapshot) -> dict[ProviderId, Location]:
    """The drained providers of which anything is used, each with the place of its root."""
    in_use: dict[ProviderId, Location] = {}
    for block_id, block in snapshot.occupied():
        if block.drained is not None:
            for node, row in np.argwhere(block.drained & _used(block)).tolist():
                provider = ProviderId(block.provider_ids.item(node, row))
                in_use[provider] = Location(block_id, row, 0)
    return in_use


def drained_hosts(snapshot: Snapshot) -> Iterator[Location]:
    """The roots of the trees that have a drained provider."""
    for block_id, block in snapshot.occupied():
        if block.drained is not None:
            for row in np.flatnonzero(block.drained.any(axis=0)).tolist():
                yield Location(block_id, row, 0)


def named_by(snapshot: Snapshot, drain: DrainId) -> Iterator[Location]:
    """The providers that a drain, announced or in effect, names itself. Cost: in proportion to the
    blocks with providers that any drain names."""
    having = snapshot.drain_sets.having_any((drain,))
    for block_id, block in snapshot.occupied():
        if block.drain_sets is not None:
            for node, row in np.argwhere(having[block.drain_sets]).tolist():
                yield Location(block_id, row, node)


def drains_naming(snapshot: Snapshot, at: Location) -> list[DrainName]:
    """The drains, announced ones too, that name a provider itself, in order."""
    drain_sets = snapshot.block(at.block_id).drain_sets
    if drain_sets is None:
        return []
    return drains_of_set(snapshot, int(drain_sets[at.node, at.row]))


def drains_of_set(snapshot: Snapshot, number: int, *, in_effect: bool = False) -> list[DrainName]:
    """The drains of a set (`Block.drain_sets`), in order; of all, or only those in effect."""
    members = snapshot.drain_sets.members(number)
    if in_effect:
        members &= snapshot.excluding
    return sorted(
        name for name, drain in snapshot.names.records.drains.items() if drain.id in members
    )


def _used(block: Block) -> Mask:
    """The providers of a block of which anything is used."""
    used: Mask = np.zeros(block.provider_ids.shape, dtype=np.bool_)
    for class_id, columns in block.columns.items():
        nodes = block.shape.nodes_of_class[class_id]
        used[[*nodes]] |= columns.used > 0
    return used
