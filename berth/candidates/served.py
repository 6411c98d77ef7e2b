# SPDX-License-Identifier: Apache-2.0
"""The sharing stage: add the sharing providers that serve some trees to the trees' options."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np

from berth.candidates.masks import Masks, Rows, any_of, take_rows
from berth.candidates.shape_tests import SharingScope
from berth.candidates.sharing import SharingProvider, SharingProviders
from berth.candidates.trees import FilteredTrees
from berth.index.aggregate_sets import Mask
from berth.index.block import Block
from berth.index.snapshot import Snapshot
from berth.model.ids import ProviderId


def with_sharing(
    snapshot: Snapshot,
    scope: SharingScope,
    sharing_providers: SharingProviders,
    block_id: int,
    rows: Rows,
    local: Masks,
) -> Iterator[FilteredTrees]:
    """The trees among some rows that have an option for every demand once sharing providers count,
    grouped by the structure of those providers.

    Args:
        local: the options that the trees have themselves.
    """
    block = snapshot.block(block_id)
    combinations, which = _serving(snapshot, block, rows)
    serving = [sharing_providers.useful(providers) for providers in combinations]
    for positions, first, served_by in _by_structure(sharing_providers, serving, which):
        extended = _with_options(block.shape.size, scope, positions, first, local)
        if extended is not None:
            kept, masks = extended
            yield FilteredTrees(
                block_id,
                block,
                rows[positions[kept]],
                first,
                None if served_by is None else served_by[:, kept],
                sharing_providers,
                scope,
                _certain(masks),
            )


def _serving(
    snapshot: Snapshot, block: Block, rows: Rows
) -> tuple[list[tuple[ProviderId, ...]], Rows]:
    """The combinations of sharing providers of other trees that serve some rows, each once; and
    for each row the number of its combination."""
    sharing, sets = snapshot.sharing, snapshot.aggregate_sets
    distinct, which = _numbered(block.tree_aggregate_sets[rows], len(sets))
    serving = [sharing.serving(tree_set, sets) for tree_set in distinct.tolist()]
    if sharing.trait not in block.shape.traits:
        return serving, which
    # A tree's own sharing providers are nodes of it.
    others: dict[tuple[ProviderId, ...], int] = {}
    for position, number in enumerate(which.tolist()):
        own = set(block.provider_ids[:, rows[position]].tolist())
        kept = tuple(provider for provider in serving[number] if provider not in own)
        which[position] = others.setdefault(kept, len(others))
    return list(others), which


def _by_structure(
    sharing_providers: SharingProviders,
    serving: Sequence[tuple[SharingProvider, ...]],
    which: Rows,
) -> Iterator[tuple[Rows, tuple[SharingProvider, ...], Rows | None]]:
    """Split rows by the structure of the sharing providers that serve them: positions of rows, and
    `serving` and `served_by` of `Trees`.

    Args:
        serving: combinations of sharing providers.
        which: for each row the number of its combination.
    """
    by_structure: dict[Hashable, list[int]] = {}
    for number, providers in enumerate(serving):
        by_structure.setdefault(sharing_providers.structure(providers), []).append(number)
    for combinations in by_structure.values():
        if len(by_structure) == 1:
            positions = np.arange(len(which))
        else:
            positions = np.flatnonzero(np.isin(which, combinations))
        first = serving[which[positions[0]]]
        if len(combinations) == 1 or not first:
            yield positions, first, None
            continue
        numbers = np.zeros((len(first), len(serving)), dtype=np.int64)
        for number in combinations:
            numbers[:, number] = [provider.number for provider in serving[number]]
        yield positions, first, numbers[:, which[positions]]


def _with_options(
    size: int,
    scope: SharingScope,
    positions: Rows,
    serving: Sequence[SharingProvider],
    local: Masks,
) -> tuple[Rows, dict[int, dict[int, Mask | None]]] | None:
    """The options of rows that are served alike: which of the positions have some for every
    demand, and their masks; None if there are none."""
    alive: Mask | None = None
    masks = take_rows(positions, local)
    for query_id, shareable in scope.shareable.items():
        if not shareable:
            continue
        choices = [
            choice for choice, provider in enumerate(serving, size) if query_id in provider.serves
        ]
        if not choices:
            if not masks[query_id]:
                return None
            some = any_of(masks[query_id].values())
            if some is not None:
                alive = some if alive is None else alive & some
        masks[query_id] |= dict.fromkeys(choices)
    if alive is None:
        return np.arange(len(positions)), masks
    kept = np.flatnonzero(alive)
    return (kept, take_rows(kept, masks)) if len(kept) else None


def _numbered(values: Rows, values_count: int) -> tuple[Rows, Rows]:
    """The distinct ones of some values, all below `values_count`, ascending; and for each value its
    place among them."""
    # PERF bench, sharing: `np.unique` would sort.
    marked = np.zeros(values_count, dtype=np.bool_)
    marked[values] = True
    distinct = marked.nonzero()[0]
    numbers = np.empty(values_count, dtype=np.int64)
    numbers[distinct] = np.arange(len(distinct))
    return distinct, numbers[values]


def _certain(masks: Mapping[int, Mapping[int, Mask | None]]) -> Masks:
    """The masks; the only choice of a query is known to serve it in all rows that are left."""
    return {
        query_id: dict.fromkeys(choices) if len(choices) == 1 else choices
        for query_id, choices in masks.items()
    }
