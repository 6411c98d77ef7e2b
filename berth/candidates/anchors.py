# SPDX-License-Identifier: Apache-2.0
"""Filtering: from a block of trees to those of its rows that may anchor candidates, with every
slot's options.

An *option* is a provider that could fill a slot: a node of the row's own tree, with the mask of the
rows in which it would do, or a sharing provider of another tree, which does for all rows of the
group alike. Trees of a block that can use the same foreign sharing providers are filtered and
searched together, as one group of `Anchors`.

Cheap and selective tests come first: what the shape alone decides, then one array operation for
each class, then memberships; only rows that passed are split by the sharing providers that serve
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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
class Option:
    """A way to fill a slot.

    Attributes:
        choice: a node of the shape if below the shape's size K; otherwise K + the place in
            `Anchors.foreign`.
        mask: the rows of the group in which it would do; None for all.
    """

    choice: int
    mask: Mask | None


@dataclass(frozen=True, slots=True, eq=False)
class Anchors:
    """Some trees of one block, with all that the search wants to know of them.

    Attributes:
        slot: the block's slot in the snapshot.
        rows: (N,) the rows of the block that are meant; masks and amounts below have this length.
        foreign: the sharing providers of other trees that these rows can use for something.
        options: for each slot of the plan.
        alive: (N,) false where some test already says that nothing can be anchored.
    """

    slot: int
    block: Block
    rows: Rows
    foreign: tuple[Foreign, ...]
    options: tuple[tuple[Option, ...], ...]
    alive: Mask

    def only(self, position: int) -> Anchors:
        """The group held to one of its rows."""
        at = slice(position, position + 1)
        return Anchors(
            self.slot,
            self.block,
            self.rows[at],
            self.foreign,
            tuple(
                tuple(
                    Option(option.choice, None)
                    for option in options
                    if option.mask is None or option.mask[position]
                )
                for options in self.options
            ),
            self.alive[at],
        )

    def provider_id(self, choice: int, row: int) -> ProviderId:
        """The provider that a choice means in a row of the block."""
        if choice < self.block.shape.size:
            return ProviderId(int(self.block.provider_ids[choice, row]))
        return self.foreign[choice - self.block.shape.size].provider_id

    def room(self, node: int, class_id: ClassId) -> tuple[Amounts, Amounts]:
        """(free, max_unit) of a class at a node, per row of the group; free may be negative."""
        columns = self.block.columns[class_id]
        line = self.block.shape.row_of_node[class_id][node]
        free: Amounts = columns.capacity[line, self.rows] - columns.used[line, self.rows]
        return free, columns.max_unit[line, self.rows].astype(np.float64)


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
            anchors = self._anchors(slot, block, members, serving, local)
            if anchors is not None:
                yield anchors

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
    ) -> Anchors | None:
        whole = len(rows) == block.rows
        size = block.shape.size
        options: dict[int, tuple[Option, ...]] = {}
        alive: Mask = np.ones(len(rows), dtype=np.bool_)
        for number, (wanted, masks) in enumerate(zip(self._plan.slots, local, strict=True)):
            if wanted.ask in options:
                continue
            here = [Option(node, mask if whole else mask[rows]) for node, mask in masks.items()]
            foreign = [
                Option(size + place, None)
                for place, provider in enumerate(serving)
                if self._shareable[number] and self._would_serve(number, provider)
            ]
            if not foreign:
                alive &= _any_of((o.mask for o in here if o.mask is not None), len(rows))
            options[wanted.ask] = (*here, *foreign)
        if not alive.any():
            return None
        anchors = Anchors(
            slot,
            block,
            rows,
            serving,
            tuple(options[wanted.ask] for wanted in self._plan.slots),
            alive,
        )
        return anchors if has_room(anchors, self._snapshot, self._plan) else None

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


def has_room(anchors: Anchors, snapshot: Snapshot, plan: Plan) -> bool:
    """Strike out the rows that have no room for all groups that ask the same, and say whether any
    is left.

    Without this, a request for nine devices on a host with eight free ones would try all
    arrangements of eight.
    """
    size = anchors.block.shape.size
    for numbers in plan.alike:
        room = np.zeros(len(anchors.rows), dtype=np.float64)
        for option in anchors.options[numbers[0]]:
            if plan.isolate:
                room += 1.0 if option.mask is None else option.mask
                continue
            times: Amounts = np.full(len(anchors.rows), np.inf)
            for class_id, amount in plan.slots[numbers[0]].amounts:
                least = (
                    np.minimum(*anchors.room(option.choice, class_id))
                    if option.choice < size
                    else min(
                        foreign_room(snapshot, anchors.foreign[option.choice - size], class_id)
                    )
                )
                times = np.minimum(times, least // amount)
            room += times if option.mask is None else np.where(option.mask, times, 0.0)
        np.logical_and(anchors.alive, room >= len(numbers), out=anchors.alive)
    return bool(anchors.alive.any())


def foreign_room(snapshot: Snapshot, foreign: Foreign, class_id: ClassId) -> tuple[float, float]:
    """`Anchors.room` of a sharing provider of another tree: (free, max_unit)."""
    location = foreign.location
    block = snapshot.block(location.slot)
    columns = block.columns[class_id]
    at = block.shape.row_of_node[class_id][location.node], location.row
    return float(columns.capacity[at] - columns.used[at]), float(columns.max_unit[at])


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
