# SPDX-License-Identifier: Apache-2.0
"""Does the live index agree with itself and with the database? Every cross-reference is derived
again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from berth.index.shape import NO_PARENT
from berth.index.snapshot import Snapshot
from berth.model.ids import AggregateId, ClassId, ProviderId

K = TypeVar("K")
V = TypeVar("V")


def faults_of(
    live: Snapshot, fresh: Snapshot, used: Mapping[tuple[ProviderId, ClassId], int]
) -> list[str]:
    """What is wrong with a live snapshot.

    Args:
        fresh: a load of the same moment.
        used: (provider, class) -> the sum of the allocations there are; absent means none.
    """
    return list(
        chain(
            _cross_reference_faults(live),
            _differences("provider", _providers(live), _providers(fresh)),
            _differences(
                "sharing through aggregate", live.sharing.by_aggregate, fresh.sharing.by_aggregate
            ),
            _differences("resource class", live.names.class_ids, fresh.names.class_ids),
            _differences("trait", live.names.trait_ids, fresh.names.trait_ids),
            _usage_faults(live, used),
        )
    )


def _cross_reference_faults(live: Snapshot) -> Iterator[str]:
    for slot, block in live.occupied():
        shape = block.shape
        for row in range(block.rows):
            tree = block.tree(row)
            members = frozenset().union(
                *(live.aggregate_sets.members(n.aggregate_set) for n in tree.nodes)
            )
            if live.aggregate_sets.members(tree.aggregate_set) != members:
                yield f"tree {tree.nodes[0].uuid}: its aggregates are not those of its providers"
            for node, record in enumerate(tree.nodes):
                if live.locate(record.provider_id) != (slot, row, node):
                    yield f"provider {record.uuid} is not found where it stands"
                if live.locate_uuid(record.uuid) != (slot, row, node):
                    yield f"provider {record.uuid} is not found by its uuid"
                if shape.parents[node] >= node or (node == 0) != (shape.parents[node] == NO_PARENT):
                    yield f"provider {record.uuid} stands before its parent"


def _providers(snapshot: Snapshot) -> dict[ProviderId, object]:
    providers: dict[ProviderId, object] = {}
    for _, block in snapshot.occupied():
        for row in range(block.rows):
            for record in block.tree(row).nodes:
                aggregates: frozenset[AggregateId] = snapshot.aggregate_sets.members(
                    record.aggregate_set
                )
                providers[record.provider_id] = record._replace(aggregate_set=0), aggregates
    return providers


def _differences(what: str, live: Mapping[K, V], fresh: Mapping[K, V]) -> Iterable[str]:
    for key in live.keys() | fresh.keys():
        if live.get(key) != fresh.get(key):
            yield f"{what} {key}: the index has {live.get(key)}, the database {fresh.get(key)}"


def _usage_faults(live: Snapshot, used: Mapping[tuple[ProviderId, ClassId], int]) -> Iterator[str]:
    for _, block in live.occupied():
        for row in range(block.rows):
            for record in block.tree(row).nodes:
                for inventory in record.inventories:
                    taken = used.get((record.provider_id, inventory.class_id), 0)
                    if inventory.used != taken:
                        yield (
                            f"provider {record.uuid}: class {inventory.class_id} has "
                            f"{inventory.used} used, its allocations sum to {taken}"
                        )
