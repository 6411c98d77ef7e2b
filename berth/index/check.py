# SPDX-License-Identifier: Apache-2.0
"""Does the live index agree with itself and with the database? Every cross-reference is derived
again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

import numpy as np

from berth.index.shape import NO_PARENT
from berth.index.snapshot import Snapshot
from berth.index.summary_text import filled, tree_template_of
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
            derived_faults(live),
            _differences("provider", _providers(live), _providers(fresh)),
            _differences(
                "sharing through aggregate", live.sharing.by_aggregate, fresh.sharing.by_aggregate
            ),
            _differences("resource class", live.names.class_ids, fresh.names.class_ids),
            _differences("trait", live.names.trait_ids, fresh.names.trait_ids),
            _text_faults(live, fresh),
            _usage_faults(live, used),
        )
    )


def derived_faults(snapshot: Snapshot) -> Iterator[str]:
    """What a block's columns say twice, the second time for the search: rooms, and bounds."""
    for slot, block in snapshot.occupied():
        for class_id, columns in block.columns.items():
            where = f"slot {slot}, class {class_id}"
            due = np.maximum(0, np.minimum(columns.capacity - columns.used, columns.max_unit))
            for at in np.argwhere(columns.room != due).tolist():
                yield f"{where}, at {at}: room is not {due[*at]:.0f}"
            if columns.min_unit_max < columns.min_unit.max():
                yield f"{where}: min_unit_max is too small"
            if not columns.stepped and columns.step_size.max() > 1:
                yield f"{where}: stepped is false"


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


def _text_faults(live: Snapshot, fresh: Snapshot) -> Iterator[str]:
    """Texts that are kept, and are not what would be made of the tree now."""
    names = fresh.names
    for slot, block in live.occupied():
        rows = np.array([row for row, text in enumerate(block.summaries) if text], dtype=np.int64)
        if not len(rows):
            continue
        due = tree_template_of(block.shape, names.class_names, names.trait_names)
        for row, text in zip(rows.tolist(), filled(due, block, rows), strict=True):
            if block.summaries[row] != text:
                yield f"slot {slot}, row {row}: kept is {block.summaries[row]}, due is {text!r}"
        if live.memory.templates.get(block.shape, due) != due:
            yield f"slot {slot}: the template that is kept is not {due.text!r}"


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
