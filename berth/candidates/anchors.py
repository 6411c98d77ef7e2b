# SPDX-License-Identifier: Apache-2.0
"""Filtering: from a block of trees to those of its rows that may anchor candidates, with every
slot's options.

An *option* is a provider that could fill a slot: a node of the row's own tree, or a sharing
provider of another tree. Trees of a block that have the same options are searched together, as one
group of `Anchors`.

Cheap and selective tests come first: what the shape alone decides, then one array operation for
each class, then memberships; only rows that passed are split by the sharing providers that serve
them, then, when they also have room enough, by their options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.candidates.plan import Plan, Slot
from berth.index.aggregate_sets import Mask
from berth.index.block import Block
from berth.index.shape import Shape
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ClassId, ProviderId

Rows = NDArray[np.int64]
Amounts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Foreign:
    """A sharing provider, seen from other trees."""

    provider_id: ProviderId
    uuid: str
    location: Location
    aggregate_set: int


@dataclass(frozen=True, slots=True, eq=False)
class Anchors:
    """Some trees of one block that have the same options, with all that the search wants to know of
    them.

    A *choice* is a node of the shape if below the shape's size K, otherwise K + a place in
    `foreign`.

    Attributes:
        slot: the block's slot in the snapshot.
        rows: (N,) the rows of the block that are meant.
        foreign: the sharing providers of other trees that these rows can use; of one tree, parents
            come before their children.
        options: for each slot of the plan the choices that would fill it in every row, as an
            integer with a bit for each; never 0.
    """

    slot: int
    block: Block
    rows: Rows
    foreign: tuple[Foreign, ...]
    options: tuple[int, ...]

    def only(self, position: int) -> Anchors:
        """The group held to one of its rows."""
        assert 0 <= position < len(self.rows)
        rows = self.rows[position : position + 1]
        return Anchors(self.slot, self.block, rows, self.foreign, self.options)

    def provider_id(self, choice: int, row: int) -> ProviderId:
        """The provider that a choice means in a row of the block."""
        if choice < self.block.shape.size:
            return ProviderId(int(self.block.provider_ids[choice, row]))
        return self.foreign[choice - self.block.shape.size].provider_id

    def room(self, node: int, class_id: ClassId) -> Amounts | float:
        """What all groups together may take of a class at a node: per row of the group, or, for a
        group of one row, plainly."""
        if len(self.rows) == 1:
            # PERF bench, wide: arrays of one element take ten times as long as numbers.
            return room_at(self.block, node, int(self.rows[0]), class_id)
        return _room(self.block, node, self.rows, class_id)


class Options(NamedTuple):
    """What could fill a slot: nodes of the rows' own trees, with the rows in which they would do,
    and places in `Anchors.foreign`, which do for all rows alike."""

    local: Mapping[int, Mask]
    foreign: Sequence[int]


class AnchorFinder:
    """Filters blocks for one plan against one snapshot; remembers what is the same for many
    blocks."""

    def __init__(self, snapshot: Snapshot, plan: Plan) -> None:
        self._snapshot = snapshot
        self._plan = plan
        #: shape -> per slot the nodes that classes and traits allow; None if the root is refused.
        self._allowed: dict[Shape, tuple[tuple[int, ...], ...] | None] = {}
        self._foreign: dict[ProviderId, Foreign] = {}
        #: (ask, sharing provider) -> would it do?
        self._serves: dict[tuple[int, ProviderId], bool] = {}
        #: Per slot, whether some sharing provider has the classes that it asks.
        self._shareable = tuple(
            not (slot.unsuffixed and slot.in_tree is not None)
            and bool(snapshot.sharing.by_aggregate)
            and snapshot.sharing.classes.issuperset(class_id for class_id, _ in slot.amounts)
            for slot in plan.slots
        )

    def blocks(self) -> Sequence[int]:
        """The slots of the blocks that are worth a look."""
        pinned = [
            slot.in_tree
            for number, slot in enumerate(self._plan.slots)
            if slot.in_tree is not None and not self._shareable[number]
        ]
        if pinned:
            return [pinned[0].slot]
        return [slot for slot, _ in self._snapshot.occupied()]

    def of_block(self, slot: int) -> Iterator[Anchors]:
        """The groups of rows of a block that may anchor candidates, lazily."""
        block = self._snapshot.block(slot)
        allowed = self._allowed_nodes(block.shape)
        if allowed is None or not all(
            nodes or shareable for nodes, shareable in zip(allowed, self._shareable, strict=True)
        ):
            return
        local = self._local_masks(slot, block, allowed)
        alive = self._rows_worth_a_look(block, local)
        rows = np.flatnonzero(alive)
        if not len(rows):
            return
        for members, serving in self._by_sharing(block, rows):
            yield from self._anchors(slot, block, members, serving, local)

    def _allowed_nodes(self, shape: Shape) -> tuple[tuple[int, ...], ...] | None:
        if shape not in self._allowed:
            self._allowed[shape] = (
                tuple(_nodes_allowed(shape, slot) for slot in self._plan.slots)
                if self._plan.root_traits.passes(shape.kinds[0].traits)
                else None
            )
        return self._allowed[shape]

    def _local_masks(
        self, slot: int, block: Block, allowed: Sequence[Sequence[int]]
    ) -> list[dict[int, Mask]]:
        """Per slot of the plan: node -> the block's rows in which the node would do; nodes that
        never do are left out."""
        fitting: dict[tuple[ClassId, int], Mask] = {}
        answered: dict[int, dict[int, Mask]] = {}
        for wanted, nodes in zip(self._plan.slots, allowed, strict=True):
            if wanted.ask not in answered:
                answered[wanted.ask] = _masks_of_slot(slot, block, wanted, nodes, fitting)
        return [answered[wanted.ask] for wanted in self._plan.slots]

    def _rows_worth_a_look(self, block: Block, local: Sequence[dict[int, Mask]]) -> Mask:
        alive: Mask = np.ones(block.rows, dtype=np.bool_)
        for wanted, masks, shareable in zip(self._plan.slots, local, self._shareable, strict=True):
            if not shareable:
                alive &= _any_of(masks.values(), block.rows)
            if wanted.unsuffixed and wanted.membership.forbidden is not None:
                # A forbidden aggregate on the root shuts out foreign sharing providers too (5.3).
                alive &= ~wanted.membership.forbidden[block.aggregate_sets[0]]
        return alive

    def _by_sharing(self, block: Block, rows: Rows) -> Iterator[tuple[Rows, tuple[Foreign, ...]]]:
        """Split rows by the foreign sharing providers that serve them."""
        if not any(self._shareable):
            yield rows, ()
            return
        sharing, sets = self._snapshot.sharing, self._snapshot.aggregate_sets
        if sharing.trait in block.shape.traits:
            # A tree with sharing providers of its own: they are local to it, and every row has
            # other ones.
            for row in rows.tolist():
                own = set(block.provider_ids[:, row].tolist())
                serving = sharing.serving(int(block.tree_aggregate_sets[row]), sets)
                foreign = tuple(
                    self._known(provider) for provider in serving if provider not in own
                )
                yield np.array([row], dtype=np.int64), foreign
            return
        tree_sets = block.tree_aggregate_sets[rows]
        order = np.argsort(tree_sets, kind="stable")
        starts = np.flatnonzero(np.diff(tree_sets[order], prepend=-1))
        for members in np.split(order, starts[1:]):
            serving = sharing.serving(int(tree_sets[members[0]]), sets)
            yield rows[members], tuple(self._known(provider) for provider in serving)

    def _known(self, provider: ProviderId) -> Foreign:
        foreign = self._foreign.get(provider)
        if foreign is None:
            location = self._snapshot.locate(provider)
            assert location is not None, "a sharing provider stands in the snapshot that names it"
            block = self._snapshot.block(location.slot)
            foreign = self._foreign[provider] = Foreign(
                provider,
                block.uuids[location.node][location.row],
                location,
                int(block.aggregate_sets[location.node, location.row]),
            )
        return foreign

    def _anchors(
        self,
        slot: int,
        block: Block,
        rows: Rows,
        serving: tuple[Foreign, ...],
        local: Sequence[dict[int, Mask]],
    ) -> Iterator[Anchors]:
        whole = len(rows) == block.rows
        foreign = tuple(sorted(serving, key=lambda each: each.location))
        options: dict[int, Options] = {}
        alive: Mask = np.ones(len(rows), dtype=np.bool_)
        for number, (wanted, masks) in enumerate(zip(self._plan.slots, local, strict=True)):
            if wanted.ask in options:
                continue
            here = {node: mask if whole else mask[rows] for node, mask in masks.items()}
            there = [
                place
                for place, provider in enumerate(foreign)
                if self._shareable[number] and self._would_serve(number, provider)
            ]
            if not there:
                alive &= _any_of(here.values(), len(rows))
            options[wanted.ask] = Options(here, there)
        if not alive.any():
            return
        alive &= self._room_for_all(block, rows, foreign, options)
        kept = np.flatnonzero(alive)
        size = block.shape.size
        for members, choices in _by_options(options, kept, size):
            yield Anchors(
                slot,
                block,
                rows[members],
                foreign,
                tuple(choices[wanted.ask] for wanted in self._plan.slots),
            )

    def _room_for_all(
        self, block: Block, rows: Rows, foreign: Sequence[Foreign], options: Mapping[int, Options]
    ) -> Mask:
        """The rows that have room for all groups together, as far as sums tell.

        Without this, each of a thousand full hosts would be searched on its own. What sums do not
        tell, the search finds out.
        """
        plan = self._plan
        alive: Mask = np.ones(len(rows), dtype=np.bool_)

        def total(given: Options, room: Callable[[Block, int, Rows], Amounts]) -> Amounts:
            room_sum: Amounts = np.zeros(len(rows))
            for node, mask in given.local.items():
                room_sum += np.where(mask, room(block, node, rows), 0.0)
            for place in given.foreign:
                at = foreign[place].location
                row = np.array([at.row], dtype=np.int64)
                room_sum += room(self._snapshot.block(at.slot), at.node, row)
            return room_sum

        for numbers in plan.alike:
            slot = plan.slots[numbers[0]]

            def times(block: Block, node: int, rows: Rows, slot: Slot = slot) -> Amounts:
                if plan.isolate:
                    return np.ones(len(rows))
                counts: list[Amounts] = [
                    _room(block, node, rows, class_id) // amount
                    for class_id, amount in slot.amounts
                ]
                least: Amounts = np.minimum.reduce(counts)
                return least

            alive &= total(options[slot.ask], times) >= len(numbers)
        for class_id, amount, asks in plan.totals:
            anywhere = _united([options[ask] for ask in asks])

            def room(block: Block, node: int, rows: Rows, class_id: ClassId = class_id) -> Amounts:
                return _room(block, node, rows, class_id)

            alive &= total(anywhere, room) >= amount
        return alive

    def _would_serve(self, number: int, foreign: Foreign) -> bool:
        wanted = self._plan.slots[number]
        key = (wanted.ask, foreign.provider_id)
        known = self._serves.get(key)
        if known is None:
            block = self._snapshot.block(foreign.location.slot)
            known = self._serves[key] = _serves(block, foreign, wanted)
        return known


def _nodes_allowed(shape: Shape, slot: Slot) -> tuple[int, ...]:
    """The nodes that have a slot's classes and traits."""
    if slot.amounts:
        having = set(shape.nodes_of_class.get(slot.amounts[0][0], ()))
        for class_id, _ in slot.amounts[1:]:
            having.intersection_update(shape.nodes_of_class.get(class_id, ()))
    else:
        having = set(range(shape.size))
    return tuple(node for node in sorted(having) if slot.traits.passes(shape.kinds[node].traits))


def _masks_of_slot(
    slot: int,
    block: Block,
    wanted: Slot,
    nodes: Sequence[int],
    fitting: dict[tuple[ClassId, int], Mask],
) -> dict[int, Mask]:
    masks: dict[int, Mask] = {}
    if wanted.in_tree is not None and wanted.in_tree.slot != slot:
        return masks
    for class_id, amount in wanted.amounts:
        if nodes and (class_id, amount) not in fitting:
            fitting[class_id, amount] = fits(block, class_id, amount)
    for node in nodes:
        mask = _membership(block, wanted, node)
        for class_id, amount in wanted.amounts:
            fit = fitting[class_id, amount][block.shape.row_of_node[class_id][node]]
            mask = fit if mask is None else mask & fit
        if mask is None:
            mask = np.ones(block.rows, dtype=np.bool_)
        if wanted.in_tree is not None:
            only: Mask = np.zeros(block.rows, dtype=np.bool_)
            only[wanted.in_tree.row] = mask[wanted.in_tree.row]
            mask = only
        if mask.any():
            masks[node] = mask
    return masks


def fits(block: Block, class_id: ClassId, amount: int) -> Mask:
    """Say which providers could give `amount` more of one class.

    Args:
        amount: 1 to 2147483647.

    Returns:
        A mask of shape (M, R): the nodes of the shape that have the class, and the block's rows.

    Source: spec/allocation-candidates.md 5.1.
    """
    columns = block.columns[class_id]
    fit: Mask = columns.used + amount <= columns.capacity
    fit &= columns.min_unit <= amount
    fit &= columns.max_unit >= amount
    if columns.stepped:
        fit &= amount % columns.step_size == 0
    return fit


def _united(options: Sequence[Options]) -> Options:
    """What at least one of some slots could be filled with."""
    local: dict[int, Mask] = {}
    for each in options:
        for node, mask in each.local.items():
            local[node] = local[node] | mask if node in local else mask
    return Options(local, sorted({place for each in options for place in each.foreign}))


def _by_options(
    options: Mapping[int, Options], rows: Rows, size: int
) -> Iterator[tuple[Rows, dict[int, int]]]:
    """Split rows by the options that they have: the rows of each part, and their choices by ask."""
    if not len(rows):
        return
    certain: dict[int, int] = {}
    places: list[tuple[int, int]] = []
    lines: list[Mask] = []
    for ask, given in options.items():
        certain[ask] = sum(1 << size + place for place in given.foreign)
        for node, mask in given.local.items():
            line = mask[rows]
            if line.all():
                certain[ask] |= 1 << node
            else:
                places.append((ask, 1 << node))
                lines.append(line)
    if not lines:
        yield rows, certain
        return
    table = np.array(lines).T
    packed = np.ascontiguousarray(np.packbits(table, axis=1))
    texts = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0].tolist()
    members: dict[bytes, list[int]] = {}
    for position, text in enumerate(texts):
        members.setdefault(text, []).append(position)
    for alike in members.values():
        choices = certain.copy()
        for place in np.flatnonzero(table[alike[0]]).tolist():
            ask, bit = places[place]
            choices[ask] |= bit
        yield rows[alike], choices


def _room(block: Block, node: int, rows: Rows, class_id: ClassId) -> Amounts:
    """What all groups together may take of a class at a node, per row; negative where too much is
    taken already.

    Source: spec/allocation-candidates.md 5.4.
    """
    columns = block.columns[class_id]
    line = block.shape.row_of_node[class_id][node]
    room: Amounts = np.minimum(
        columns.capacity[line, rows] - columns.used[line, rows], columns.max_unit[line, rows]
    )
    return room


def room_at(block: Block, node: int, row: int, class_id: ClassId) -> float:
    """`_room` of one provider."""
    columns = block.columns[class_id]
    at = block.shape.row_of_node[class_id][node], row
    return min(columns.capacity.item(at) - columns.used.item(at), float(columns.max_unit.item(at)))


def foreign_room(snapshot: Snapshot, foreign: Foreign, class_id: ClassId) -> float:
    """`Anchors.room` of a sharing provider of another tree."""
    slot, row, node = foreign.location
    return room_at(snapshot.block(slot), node, row, class_id)


def _any_of(masks: Iterable[Mask], rows: int) -> Mask:
    union: Mask = np.zeros(rows, dtype=np.bool_)
    for mask in masks:
        union |= mask
    return union


def _membership(block: Block, wanted: Slot, node: int) -> Mask | None:
    """The rows in which a node's aggregates will do; None for all."""
    member, forbidden = wanted.membership.member, wanted.membership.forbidden
    own = block.aggregate_sets[node]
    mask: Mask | None = None
    if member is not None:
        mask = member[own]
        if wanted.unsuffixed and node:
            # An aggregate on the root spans the tree, for the unsuffixed group (5.3).
            mask = mask | member[block.aggregate_sets[0]]
    if forbidden is not None:
        outside = ~forbidden[own]
        mask = outside if mask is None else mask & outside
    return mask


def _serves(block: Block, foreign: Foreign, wanted: Slot) -> bool:
    """Whether a sharing provider would do for a slot of other trees."""
    location = foreign.location
    kind = block.shape.kinds[location.node]
    if wanted.in_tree is not None and wanted.in_tree[:2] != location[:2]:
        return False
    return (
        wanted.traits.passes(kind.traits)
        and wanted.membership.passes(foreign.aggregate_set)
        and all(
            class_id in kind.classes and _fits_at(block, location, class_id, amount)
            for class_id, amount in wanted.amounts
        )
    )


def _fits_at(block: Block, location: Location, class_id: ClassId, amount: int) -> bool:
    """`fits` for one provider."""
    columns = block.columns[class_id]
    at = block.shape.row_of_node[class_id][location.node], location.row
    return bool(
        columns.used[at] + amount <= columns.capacity[at]
        and columns.min_unit[at] <= amount <= columns.max_unit[at]
        and amount % int(columns.step_size[at]) == 0
    )
