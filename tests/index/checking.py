# SPDX-License-Identifier: Apache-2.0
"""Checks that the live index agrees with itself and with the database: every cross-reference is
derived again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np
from sqlalchemy import func, select

from berth.index.block import Block, Tree
from berth.index.index import Index, loaded
from berth.index.records import InventoryRecord, NodeRecord
from berth.index.sets import NO_DRAINS, Mask, drained_of
from berth.index.shape import NO_PARENT
from berth.index.snapshot import Snapshot
from berth.index.texts import texts_of, tree_template_of
from berth.model.ids import AggregateId, ClassId, ProviderId
from berth.store.engine.tables import allocations
from berth.store.engine.transaction import Tx

K = TypeVar("K")
V = TypeVar("V")


def checked(index: Index) -> list[str]:
    """Derive everything from the database again and describe each difference; an empty list if
    there is none."""
    index.snapshot()
    with index.reading() as (snapshot, tx):
        return check_snapshot(snapshot, loaded(tx).snapshot(), used_amounts(tx))


def used_amounts(tx: Tx) -> dict[tuple[ProviderId, ClassId], int]:
    """(provider, class) -> the sum of all allocations, computed instead of read."""
    allocation = allocations.c
    rows = tx.rows_once(
        select(
            allocation.resource_provider_id, allocation.resource_class_id, func.sum(allocation.used)
        ).group_by(allocation.resource_provider_id, allocation.resource_class_id)
    )
    return {(provider, class_id): int(used) for provider, class_id, used in rows}


def tree_of(block: Block, row: int) -> Tree:
    """A row of a block as records again."""
    ids = block.provider_ids[:, row].tolist()
    return Tree(
        block.shape,
        tuple(_node_of(block, node, row, ids) for node in range(block.shape.size)),
        int(block.tree_aggregate_sets[row]),
    )


def trees_of(snapshot: Snapshot) -> list[object]:
    """Everything that a reader can see of the providers."""
    return [tree_of(block, row) for _, block in snapshot.occupied() for row in range(block.rows)]


def _node_of(block: Block, node: int, row: int, ids: Sequence[ProviderId]) -> NodeRecord:
    parent = block.shape.parents[node]
    node_type = block.shape.node_types[node]
    return NodeRecord(
        provider_id=ids[node],
        uuid=block.uuid(node, row),
        parent_id=None if parent < 0 else ids[parent],
        inventories=tuple(_inventory_of(block, each, node, row) for each in node_type.classes),
        traits=node_type.traits,
        aggregate_set=int(block.aggregate_sets[node, row]),
        name=block.names.item(node, row),
        generation=int(block.generations[node, row]),
        modified=int(block.modified[node, row]),
        drain_set=NO_DRAINS if block.drain_sets is None else int(block.drain_sets[node, row]),
    )


def _inventory_of(block: Block, class_id: ClassId, node: int, row: int) -> InventoryRecord:
    columns = block.columns[class_id]
    at = (block.shape.row_of_node[class_id][node], row)
    return InventoryRecord(
        class_id,
        float(columns.capacity[at]),
        int(columns.used[at]),
        int(columns.min_unit[at]),
        int(columns.max_unit[at]),
        int(columns.step_size[at]),
        int(columns.total[at]),
        int(columns.reserved[at]),
        float(columns.allocation_ratio[at]),
        int(columns.modified[at]),
    )


def check_snapshot(
    live: Snapshot, fresh: Snapshot, used: Mapping[tuple[ProviderId, ClassId], int]
) -> list[str]:
    """Describe each difference of a live snapshot from the database, and from itself.

    Args:
        fresh: a load of the same moment.
        used: (provider, class) -> the sum of the allocations there are; absent means none.
    """
    return list(
        chain(
            _check_cross_references(live),
            check_derived(live),
            _differences("provider", _providers(live), _providers(fresh)),
            _differences(
                "sharing through aggregate", live.sharing.by_aggregate, fresh.sharing.by_aggregate
            ),
            _differences("resource class", live.names.class_ids, fresh.names.class_ids),
            _differences("trait", live.names.trait_ids, fresh.names.trait_ids),
            _differences("aggregate", live.names.records.labels_of, fresh.names.records.labels_of),
            _differences("flavor", live.names.records.flavors, fresh.names.records.flavors),
            _differences("drain", live.names.records.drains, fresh.names.records.drains),
            _differences("label", live.names.labels, fresh.names.labels),
            _check_texts(live, fresh),
            _check_usages(live, used),
        )
    )


def check_derived(snapshot: Snapshot) -> Iterator[str]:
    """Check what follows from something else: rooms, bounds, and the drained providers."""
    excluding = snapshot.drain_sets.having_any(snapshot.excluding)
    for block_id, block in snapshot.occupied():
        drained = drained_of(block.shape.parents, block.drain_sets, excluding)
        if not _are_equal(block.drained, drained):
            yield f"block {block_id}: its drained providers are not {drained}"
        for class_id, columns in block.columns.items():
            where = f"block {block_id}, class {class_id}"
            due = np.maximum(0, np.minimum(columns.capacity - columns.used, columns.max_unit))
            for at in np.argwhere(columns.room != due).tolist():
                yield f"{where}, at {at}: room is not {due[*at]:.0f}"
            if columns.min_unit_max < columns.min_unit.max():
                yield f"{where}: min_unit_max is too small"
            if not columns.stepped and columns.step_size.max() > 1:
                yield f"{where}: stepped is false"


def _are_equal(mask: Mask | None, other: Mask | None) -> bool:
    if mask is None or other is None:
        return mask is other
    return np.array_equal(mask, other)


def _check_cross_references(live: Snapshot) -> Iterator[str]:
    for block_id, block in live.occupied():
        shape = block.shape
        for row in range(block.rows):
            tree = tree_of(block, row)
            members = frozenset().union(
                *(live.aggregate_sets.members(n.aggregate_set) for n in tree.nodes)
            )
            if live.aggregate_sets.members(tree.aggregate_set) != members:
                yield f"tree {tree.nodes[0].uuid}: its aggregates are not those of its providers"
            for node, record in enumerate(tree.nodes):
                if live.locate(record.provider_id) != (block_id, row, node):
                    yield f"provider {record.uuid} is not found at its location"
                if live.locate_uuid(record.uuid) != (block_id, row, node):
                    yield f"provider {record.uuid} is not found by its uuid"
                if live.locate_name(record.name) != (block_id, row, node):
                    yield f"provider {record.uuid} is not found by its name"
                if shape.parents[node] >= node or (node == 0) != (shape.parents[node] == NO_PARENT):
                    yield f"provider {record.uuid} stands before its parent"


def _check_texts(live: Snapshot, fresh: Snapshot) -> Iterator[str]:
    """Check that kept texts and templates equal those that would be made now."""
    names = fresh.names
    for block_id, block in live.occupied():
        rows = np.array([row for row, text in enumerate(block.summaries) if text], dtype=np.int64)
        if not len(rows):
            continue
        due = tree_template_of(block.shape, names.class_names, names.trait_names)
        for row, text in zip(rows.tolist(), texts_of(due, block, rows), strict=True):
            if block.summaries[row] != text:
                kept = block.summaries[row]
                yield f"block {block_id}, row {row}: kept is {kept}, due is {text!r}"
        if live.memory.get_for(block.shape, live.names) not in (None, due):
            yield f"block {block_id}: the template that is kept is not {due.form!r}"


def _providers(snapshot: Snapshot) -> dict[ProviderId, object]:
    providers: dict[ProviderId, object] = {}
    for _, block in snapshot.occupied():
        for row in range(block.rows):
            for record in tree_of(block, row).nodes:
                aggregates: frozenset[AggregateId] = snapshot.aggregate_sets.members(
                    record.aggregate_set
                )
                providers[record.provider_id] = (
                    record._replace(aggregate_set=0, drain_set=0),
                    aggregates,
                    snapshot.drain_sets.members(record.drain_set),
                )
    return providers


def _differences(noun: str, live: Mapping[K, V], fresh: Mapping[K, V]) -> Iterable[str]:
    for key in live.keys() | fresh.keys():
        if live.get(key) != fresh.get(key):
            yield f"{noun} {key}: the index has {live.get(key)}, the database {fresh.get(key)}"


def _check_usages(live: Snapshot, used: Mapping[tuple[ProviderId, ClassId], int]) -> Iterator[str]:
    for _, block in live.occupied():
        for row in range(block.rows):
            for record in tree_of(block, row).nodes:
                for inventory in record.inventories:
                    taken = used.get((record.provider_id, inventory.class_id), 0)
                    if inventory.used != taken:
                        yield (
                            f"provider {record.uuid}: class {inventory.class_id} has "
                            f"{inventory.used} used, its allocations sum to {taken}"
                        )
