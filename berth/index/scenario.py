# SPDX-License-Identifier: Apache-2.0
"""Scenarios: snapshots of a fleet that might be, for questions with assumptions (`what_if`).

A scenario shares all blocks that it does not change with the snapshot that it is made from, and
nothing that it does is seen by anybody else. An overlay is a scenario of one owner, who uses more
and more.

Source: spec/beyond.md 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple
from uuid import UUID, uuid5

import msgspec
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from berth.index.block import ROWS_MAX, Block, Columns, Ints, bytes_of, no_texts, room_of
from berth.index.draining import assuming
from berth.index.maps import PagedMap
from berth.index.records import json_of
from berth.index.sets import Mask
from berth.index.snapshot import Location, Sharing, Snapshot, packed
from berth.index.text_column import TextColumn
from berth.model.budget import Budget
from berth.model.ids import AggregateId, ClassId, ProviderId
from berth.model.named import DrainId

#: From this many changes on, arrays are faster than one change after another.
_MANY: Final = 10


class Overlay:
    """A fleet with other amounts used; all else is shared with the snapshot that it is made from.

    Attributes:
        snapshot: what it is now. Each `use` changes it, unless `fix` came before; so only its
            owner may read it, and must not keep it beyond the next one.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._blocks = list(snapshot.blocks)
        #: The columns that are in arrays of its own.
        self._own: set[tuple[int, ClassId]] = set()
        self._is_fixed = False
        self.snapshot = replace(snapshot, blocks=self._blocks)

    def use(self, change: Mapping[tuple[ProviderId, ClassId], int]) -> None:
        """From now on so much more is used of some providers' classes; less if negative, but never
        less than nothing. Those that are not part of the fleet are passed over.

        Cost: a few microseconds for each; the first change of a class in a block copies two arrays.
        """
        if self._is_fixed:
            self._begin_another()
        changes: dict[tuple[int, ClassId], list[tuple[int, int, int]]] = {}
        located, at = None, None
        for (provider, class_id), amount in change.items():
            if provider != located:
                located, at = provider, self.snapshot.locate(provider)
            if at is None:
                continue
            line = self.snapshot.block(at.block_id).shape.row_of_node.get(class_id, {}).get(at.node)
            if line is not None:
                changes.setdefault((at.block_id, class_id), []).append((line, at.row, amount))
        for (block_id, class_id), of_class in changes.items():
            _use_more(self._writable(block_id, class_id), of_class)

    def fix(self) -> None:
        """Never change the present `snapshot`: the next `use` copies again."""
        self._is_fixed = True

    def _begin_another(self) -> None:
        self._own.clear()
        self._blocks = list(self._blocks)
        self.snapshot = replace(self.snapshot, blocks=self._blocks)
        self._is_fixed = False

    def _writable(self, block_id: int, class_id: ClassId) -> Columns:
        """The columns of a class, in arrays that nobody else has."""
        block = self.snapshot.block(block_id)
        if (block_id, class_id) in self._own:
            return block.columns[class_id]
        self._own.add((block_id, class_id))
        own = block.columns[class_id].with_used(())
        self._blocks[block_id] = replace(
            block, columns={**block.columns, class_id: own}, summaries=no_texts(block.rows)
        )
        return own


def _use_more(columns: Columns, changes: Sequence[tuple[int, int, int]]) -> None:
    """Use so much more, but never less than nothing, in arrays that nobody else has.

    Args:
        changes: (place along M, row, amount), each place once.
    """
    if len(changes) < _MANY:
        for line, row, amount in changes:
            columns.set_used(line, row, max(int(columns.used.item(line, row)) + amount, 0))
        return
    lines, rows, amounts = np.array(changes).T
    places = lines, rows
    used = np.maximum(columns.used[places] + amounts, 0)
    columns.used[places] = used
    columns.room[places] = room_of(columns.capacity[places], used, columns.max_unit[places])


#: Above all ids that a database gives out.
FIRST_ADDED_ID: Final = 1 << 40

#: The changes between two looks at the budget.
_CHANGES_AT_ONCE: Final = 1_000
#: What a copy of a provider takes, about, with what a search keeps of it.
_BYTES_OF_COPY: Final = 1_000

_NAMESPACE: Final = UUID("5cdb2f5e-0b1f-5d3a-9c39-2f6a1f0c7b11")


class AssumedRatio(NamedTuple):
    """Another allocation ratio of one class.

    Attributes:
        member: sets of aggregates, of which a root must have one; None for all hosts.
    """

    class_id: ClassId
    ratio: float
    member: Mask | None = None


class AddedHosts(NamedTuple):
    """Copies of one tree, with nothing used."""

    like: Location
    copies: int


class Scenario(Struct, frozen=True):
    """What is assumed, in the order in which it is applied.

    Attributes:
        nothing_used: nobody uses anything.
        freed: (provider, class) -> an amount that is no longer used.
        ratios: other allocation ratios.
        undrained: drains that are not in effect.
        drained: providers that are drained, with all below them, whatever else is assumed.
        without: trees that are gone, by the location of any of their providers.
        added: trees that come in addition.
    """

    nothing_used: bool = False
    freed: Mapping[tuple[ProviderId, ClassId], int] = field(default_factory=dict)
    ratios: Sequence[AssumedRatio] = ()
    undrained: frozenset[DrainId] = frozenset()
    drained: Sequence[Location] = ()
    without: Sequence[Location] = ()
    added: Sequence[AddedHosts] = ()


def providers_added(snapshot: Snapshot, scenario: Scenario) -> tuple[int, int]:
    """How many providers a scenario adds, and how many of them share."""
    added = sharing = 0
    for like, copies in scenario.added:
        nodes = snapshot.block(like.block_id).shape.node_types
        added += copies * len(nodes)
        sharing += copies * sum(snapshot.sharing.trait in node.traits for node in nodes)
    return added, sharing


def nothing_used(snapshot: Snapshot) -> Snapshot:
    """The fleet as if nobody used anything."""
    return imagine(snapshot, Scenario(nothing_used=True))


def with_usage(
    snapshot: Snapshot,
    change: Mapping[tuple[ProviderId, ClassId], int],
    budget: Budget | None = None,
) -> Snapshot:
    """The fleet as if so much more were used of some providers' classes; less if negative.

    Raises:
        SearchGaveUp: the budget is spent.
    """
    if not any(change.values()):
        return snapshot
    budget = budget or Budget()
    overlay = Overlay(snapshot)
    changes = iter(change.items())
    while some := dict(islice(changes, _CHANGES_AT_ONCE)):
        budget.check()
        overlay.use(some)
    return overlay.snapshot


def imagine(snapshot: Snapshot, scenario: Scenario, budget: Budget | None = None) -> Snapshot:
    """The fleet as a scenario assumes it. Cost: in proportion to what it changes.

    Raises:
        SearchGaveUp: the budget is spent.
    """
    budget = budget or Budget()
    snapshot = assuming(snapshot, drained=scenario.drained, without=scenario.undrained)
    if scenario.nothing_used:
        blocks: list[Block | None] = []
        for block in snapshot.blocks:
            budget.check()
            blocks.append(None if block is None else _unused(block))
    else:
        freed = {key: -amount for key, amount in scenario.freed.items()}
        blocks = list(with_usage(snapshot, freed, budget).blocks)
    for ratio in scenario.ratios:
        for block_id, each in enumerate(blocks):
            if each is not None and ratio.class_id in each.columns:
                budget.check()
                blocks[block_id] = _with_ratio(each, ratio)
    models = [added.like for added in scenario.added]
    likes = [_block(blocks, at.block_id).part(at.row, at.row + 1) for at in models]
    locations, sharing = snapshot.locations, snapshot.sharing
    if scenario.without or scenario.added:
        locations = locations.fork()
    if scenario.without:
        gone = _remove(blocks, locations, scenario.without, budget)
        sharing = _sharing_without(sharing, gone)
    next_id = FIRST_ADDED_ID
    #: Tree -> how many copies of it there are.
    existing: dict[tuple[int, int], int] = {}
    for added, like in zip(scenario.added, likes, strict=True):
        tree = added.like.block_id, added.like.row
        first = existing.get(tree, 0)
        existing[tree] = first + added.copies
        # The budget is looked at between two blocks: these copies take some 30 ms.
        rows_max = max(1, ROWS_MAX // like.shape.size)
        for begin in range(first, first + added.copies, rows_max):
            count = min(rows_max, first + added.copies - begin)
            copies = _copies(like, count, begin, next_id, budget)
            next_id += count * like.shape.size
            sharing = _sharing_with(snapshot, sharing, copies)
            _locate(locations, len(blocks), copies)
            blocks.append(copies)
    return replace(snapshot, blocks=blocks, locations=locations, sharing=sharing)


def with_more_used(snapshot: Snapshot, more: Mapping[tuple[int, ClassId], Ints]) -> Snapshot:
    """The fleet as if more were used.

    Args:
        more: (block_id, class) -> an amount for each inventory, of the shape of the columns.
    """
    blocks = list(snapshot.blocks)
    for (block_id, class_id), amounts in more.items():
        block = _block(blocks, block_id)
        columns = block.columns[class_id]
        changed = columns.with_values(used=columns.used + amounts)
        blocks[block_id] = replace(
            block,
            columns={**block.columns, class_id: changed},
            summaries=no_texts(block.rows),
        )
    return replace(snapshot, blocks=blocks)


def _unused(block: Block) -> Block:
    columns = {
        class_id: each.with_values(used=np.zeros_like(each.used))
        for class_id, each in block.columns.items()
    }
    return replace(block, columns=columns, summaries=no_texts(block.rows))


def _with_ratio(block: Block, ratio: AssumedRatio) -> Block:
    columns = block.columns[ratio.class_id]
    capacity = np.trunc((columns.total - columns.reserved) * np.float64(ratio.ratio))
    ratios = np.full_like(columns.allocation_ratio, ratio.ratio)
    if ratio.member is not None:
        here = ratio.member[block.aggregate_sets[0]]
        if not here.any():
            return block
        capacity = np.where(here, capacity, columns.capacity)
        ratios = np.where(here, ratios, columns.allocation_ratio)
    changed = columns.with_values(capacity=capacity, allocation_ratio=ratios)
    return replace(
        block,
        columns={**block.columns, ratio.class_id: changed},
        summaries=no_texts(block.rows),
    )


def _remove(
    blocks: list[Block | None],
    locations: PagedMap,
    without: Iterable[Location],
    budget: Budget,
) -> set[ProviderId]:
    """Remove some trees; return their providers."""
    gone_rows: dict[int, set[int]] = {}
    for at in without:
        gone_rows.setdefault(at.block_id, set()).add(at.row)
    gone: set[ProviderId] = set()
    for block_id, rows in gone_rows.items():
        budget.check()
        block = _block(blocks, block_id)
        providers = block.provider_ids[:, sorted(rows)].ravel().tolist()
        gone.update(map(ProviderId, providers))
        for provider in providers:
            locations.remove(provider)
        if len(rows) == block.rows:
            blocks[block_id] = None
            continue
        left, moved = block.without_rows(rows)
        blocks[block_id] = replace(left, summaries=no_texts(left.rows))
        _locate(locations, block_id, left, moved)
    return gone


def _locate(
    locations: PagedMap, block_id: int, block: Block, rows: Sequence[int] | None = None
) -> None:
    """Note where the providers of some rows are; of all rows by default."""
    some: Ints = np.arange(block.rows) if rows is None else np.array(rows, dtype=np.int64)
    if not len(some):
        return
    for node in range(block.shape.size):
        places = packed(block_id, some, np.full_like(some, node))
        locations.set_many(block.provider_ids[node, some], places)


def _block(blocks: Sequence[Block | None], block_id: int) -> Block:
    block = blocks[block_id]
    assert block is not None
    return block


def _copies(like: Block, count: int, begin: int, first_id: int, budget: Budget) -> Block:
    """Copies of the only tree of a block, which no drain names; `begin` copies are elsewhere."""
    size = like.shape.size
    budget.take(size * count * _BYTES_OF_COPY)
    budget.check()
    block = _unused(Block.joined([like] * count))
    numbers = range(begin + 1, begin + count + 1)
    uuids: list[str] = []
    names: list[bytes] = []
    for node in range(size):
        budget.check()
        uuid, name = like.uuid(node, 0), _name(like, node)
        uuids += [str(uuid5(_NAMESPACE, f"{uuid}#{number}")) for number in numbers]
        names += [json_of(f"{name}#{number}") for number in numbers]
    return replace(
        block,
        provider_ids=np.arange(first_id, first_id + size * count).reshape(size, count),
        uuid_bytes=bytes_of(uuids).reshape(size, count, -1),
        names=TextColumn.of(names, count),
        drain_sets=None,
        drained=None,
    )


def _name(block: Block, node: int) -> str:
    name: str | None = msgspec.json.decode(block.names.item(node, 0))
    return name or block.uuid(node, 0)


def _sharing_without(sharing: Sharing, gone: set[ProviderId]) -> Sharing:
    return _sharing(
        sharing,
        {
            aggregate: tuple(provider for provider in providers if provider not in gone)
            for aggregate, providers in sharing.by_aggregate.items()
        },
    )


def _sharing_with(snapshot: Snapshot, sharing: Sharing, copies: Block) -> Sharing:
    """The sharing providers, and those among some copies."""
    by_aggregate = dict(sharing.by_aggregate)
    for node, node_type in enumerate(copies.shape.node_types):
        if sharing.trait in node_type.traits:
            providers = [ProviderId(each) for each in copies.provider_ids[node].tolist()]
            for aggregate in snapshot.aggregate_sets.members(int(copies.aggregate_sets[node, 0])):
                by_aggregate[aggregate] = (*by_aggregate.get(aggregate, ()), *providers)
    return _sharing(sharing, by_aggregate)


def _sharing(
    sharing: Sharing, by_aggregate: Mapping[AggregateId, tuple[ProviderId, ...]]
) -> Sharing:
    return Sharing(by_aggregate, sharing.trait, sharing.classes)
