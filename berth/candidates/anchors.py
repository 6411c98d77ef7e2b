# SPDX-License-Identifier: Apache-2.0
"""Filtering: from a block of trees to those of its rows that may anchor candidates, with every
slot's options.

An *option* is a provider that could fill a slot: a node of the row's own tree, or a sharing
provider of another tree. A *choice* is its number: a node of the shape if below the shape's size K,
otherwise K + a place among the sharing providers that serve the row.

Cheap and selective tests come first: what the shape alone decides, then one array operation for
each class, then memberships; only rows that passed are split by what the sharing providers that
serve them are like, and, where the search needs it, by their options.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from berth.candidates.budget import Budget
from berth.candidates.foreign import Amounts, Foreign, ForeignProviders, room_at
from berth.candidates.plan import Allowed, Plan, Slot
from berth.index.aggregate_sets import Mask
from berth.index.block import ROWS_MAX, Block, Columns
from berth.index.shape import Shape
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, ProviderId

Rows = NDArray[np.int64]

#: ask -> choice -> the rows in which the choice would do; None for all of them.
Masks = Mapping[int, Mapping[int, Mask | None]]

#: The rows that are looked at first when few candidates are wanted, and how many times as many
#: are looked at each time that they were not enough.
WINDOW_MIN: Final = 256
WINDOW_GROWTH: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Some trees of one block that are served by sharing providers of the same structure.

    Attributes:
        slot: the block's slot in the snapshot.
        rows: (N,) the rows of the block that are meant.
        foreign: the sharing providers of other trees that the first row can use; of one tree,
            parents come before their children. Those of the other rows are like them, place by
            place: they would do for the same slots, and stand in trees of the same shapes.
        served_by: (F, N), at each place and for each row a number of `known`; None if those of
            the first row serve all rows.
        known: what the numbers mean.
    """

    slot: int
    block: Block
    rows: Rows
    foreign: tuple[Foreign, ...]
    served_by: Rows | None
    known: ForeignProviders

    def provider_id(self, choice: int, position: int) -> ProviderId:
        """The provider that a choice means for one of the rows."""
        place = choice - self.block.shape.size
        if place < 0:
            return ProviderId(int(self.block.provider_ids[choice, self.rows[position]]))
        if self.served_by is None:
            return self.foreign[place].provider_id
        return self.known[int(self.served_by[place, position])].provider_id

    def room(self, choice: int, class_id: ClassId) -> Amounts | float:
        """What all groups together may take of a class from a choice: per row, or plainly where it
        is the same for all.

        Source: spec/allocation-candidates.md 5.4.
        """
        place = choice - self.block.shape.size
        if place < 0:
            if len(self.rows) == 1:
                # PERF bench, wide: arrays of one element take ten times as long as numbers.
                return room_at(self.block, choice, int(self.rows[0]), class_id)
            return _room(self.block, choice, self.rows, class_id)
        if self.served_by is None:
            return self.known.room(self.foreign[place], class_id)
        return self.known.rooms(class_id, self.served_by[place])

    def served(self, positions: Rows) -> Rows | None:
        """`served_by` for some of the rows."""
        return None if self.served_by is None else self.served_by[:, positions]


@dataclass(frozen=True, slots=True, eq=False)
class Anchors(Trees):
    """Trees that have the same options.

    Attributes:
        options: for each slot of the plan the choices that would fill it in every row, as an
            integer with a bit for each; never 0.
    """

    options: tuple[int, ...]

    def only(self, position: int) -> Anchors:
        """The group held to one of its rows."""
        assert 0 <= position < len(self.rows)
        foreign = self.foreign
        if self.served_by is not None:
            foreign = tuple(self.known[n] for n in self.served_by[:, position].tolist())
        rows = self.rows[position : position + 1]
        return Anchors(self.slot, self.block, rows, foreign, None, self.known, self.options)


@dataclass(frozen=True, slots=True, eq=False)
class Prospects(Trees):
    """Trees each of which has options for every slot, each its own.

    Attributes:
        masks: what would do in which of the rows; no mask is empty.
    """

    masks: Masks

    def alike(self, plan: Plan) -> Iterator[Anchors]:
        """The trees that have room for all groups together as far as sums tell, split by their
        options."""
        kept = np.flatnonzero(self._room_for_all(plan))
        for members, choices in _by_options(self.masks, kept):
            yield Anchors(
                self.slot,
                self.block,
                self.rows[members],
                self.foreign
                if self.served_by is None
                else tuple(self.known[n] for n in self.served_by[:, members[0]].tolist()),
                None if len(members) == 1 else self.served(members),
                self.known,
                tuple(choices[wanted.ask] for wanted in plan.slots),
            )

    def _room_for_all(self, plan: Plan) -> Mask:
        """The trees that have room for all groups together, as far as sums tell.

        Without this, each of a thousand full hosts would be searched on its own. What sums do not
        tell, the search finds out.
        """
        alive: Mask = np.ones(len(self.rows), dtype=np.bool_)

        def total(
            masks: Mapping[int, Mask | None], room: Callable[[int], Amounts | float]
        ) -> Amounts:
            room_sum: Amounts = np.zeros(len(self.rows))
            for choice, mask in masks.items():
                room_sum += room(choice) if mask is None else np.where(mask, room(choice), 0.0)
            return room_sum

        for numbers in plan.alike:
            slot = plan.slots[numbers[0]]

            def times(choice: int, slot: Slot = slot) -> Amounts | float:
                if plan.isolate:
                    return 1.0
                return reduce(
                    np.minimum,
                    [self.room(choice, class_id) // amount for class_id, amount in slot.amounts],
                )

            alive &= total(self.masks[slot.ask], times) >= len(numbers)
        for class_id, amount, asks in plan.totals:

            def room(choice: int, class_id: ClassId = class_id) -> Amounts | float:
                return self.room(choice, class_id)

            alive &= total(_united([self.masks[ask] for ask in asks]), room) >= amount
        return alive


class AnchorFinder:
    """Filters blocks for one plan against one snapshot; remembers what is the same for many
    blocks."""

    def __init__(
        self, snapshot: Snapshot, plan: Plan, budget: Budget, wanted: int | None = None
    ) -> None:
        self._snapshot = snapshot
        self._plan = plan
        self._budget = budget
        self._window = ROWS_MAX if wanted is None else max(WINDOW_MIN, min(4 * wanted, ROWS_MAX))
        self._foreign = ForeignProviders(snapshot, plan)
        #: ask -> whether some sharing provider has the classes.
        self._shareable = {ask: _is_shareable(snapshot, slot) for ask, slot in plan.asks.items()}
        self._sharing = any(self._shareable.values())
        self._allowed = plan.allowed.setdefault(
            tuple(self._shareable.values()) if self._sharing else None, WeakKeyDictionary()
        )
        #: The root of the only tree that can be an anchor, None where any can.
        self._pinned = next(
            (
                slot.in_tree
                for ask, slot in plan.asks.items()
                if slot.in_tree is not None and not self._shareable[ask]
            ),
            None,
        )

    def prospects(self) -> Iterator[Prospects]:
        """The trees that may anchor candidates, lazily, in few parts; ends with the budget.

        The first part is sought among few rows when few candidates are wanted.
        """
        for slot, block in self._blocks():
            allowed = self._allowed_nodes(block.shape)
            if allowed is None:
                continue
            first, end = self._rows_of(block)
            while first < end:
                if self._budget.is_spent():
                    return
                window = slice(first, min(first + self._window, end))
                yield from self._of_window(slot, block, allowed, window)
                first = window.stop
                self._window = min(self._window * WINDOW_GROWTH, ROWS_MAX)

    def _blocks(self) -> Iterator[tuple[int, Block]]:
        """The blocks that are worth a look."""
        if self._pinned is None:
            return self._snapshot.occupied()
        return iter([(self._pinned.slot, self._snapshot.block(self._pinned.slot))])

    def _rows_of(self, block: Block) -> tuple[int, int]:
        """The rows of a block that are worth a look: from one up to another."""
        if self._pinned is None:
            return 0, block.rows
        return self._pinned.row, self._pinned.row + 1

    def _allowed_nodes(self, shape: Shape) -> Allowed:
        """ask -> the nodes that classes and traits allow; None if no tree of the shape will do."""
        if shape not in self._allowed:
            self._allowed[shape] = self._find_allowed_nodes(shape)
        return self._allowed[shape]

    def _find_allowed_nodes(self, shape: Shape) -> Allowed:
        plan = self._plan
        if not plan.root_traits.passes(shape.kinds[0].traits):
            return None
        allowed = {ask: _nodes_allowed(shape, slot) for ask, slot in plan.asks.items()}
        if not all(nodes or self._shareable[ask] for ask, nodes in allowed.items()):
            return None
        unsuffixed = [ask for ask, slot in plan.asks.items() if slot.unsuffixed]
        if not any(self._shareable[ask] for ask in unsuffixed):
            usable = {node for ask in unsuffixed for node in allowed[ask]}
            traits = frozenset().union(*(shape.kinds[node].traits for node in usable))
            if any(wanted.isdisjoint(traits) for wanted in plan.union_traits.required):
                return None
        return allowed

    def _of_window(
        self, slot: int, block: Block, allowed: Mapping[int, Sequence[int]], window: slice
    ) -> Iterator[Prospects]:
        """The prospects among some rows of a block."""
        found = self._local_masks(slot, block, allowed, window)
        if found is None:
            return
        masks, alive = found
        rows = np.flatnonzero(alive)
        if not len(rows):
            return
        if len(rows) < len(alive):
            masks = {
                ask: {node: mask[rows] for node, mask in here.items()}
                for ask, here in masks.items()
            }
        rows += window.start
        if not self._sharing:
            yield Prospects(slot, block, rows, (), None, self._foreign, _certain(masks))
            return
        for members, foreign, served_by in self._by_sharing(block, rows):
            served = self._served(block.shape.size, members, foreign, masks)
            if served is not None:
                kept, options = served
                yield Prospects(
                    slot,
                    block,
                    rows[members[kept]],
                    foreign,
                    None if served_by is None else served_by[:, kept],
                    self._foreign,
                    _certain(options),
                )

    def _local_masks(
        self, slot: int, block: Block, allowed: Mapping[int, Sequence[int]], window: slice
    ) -> tuple[dict[int, dict[int, Mask]], Mask] | None:
        """ask -> node -> the rows of a window in which the node would do, nodes that never do left
        out; and the rows that are worth a look. None if there are none."""
        tests = _Tests(slot, block, window)
        masks: dict[int, dict[int, Mask]] = {}
        alive: Mask | None = None
        for ask, wanted in self._plan.asks.items():
            here = masks[ask] = tests.of_slot(wanted, allowed[ask])
            if self._shareable[ask]:
                continue
            if not here:
                return None
            any_node = _any_of(here.values())
            alive = any_node if alive is None else alive & any_node
        if alive is None:
            alive = np.ones(window.stop - window.start, dtype=np.bool_)
        forbidden = self._plan.forbidden_at_root
        if forbidden is not None:
            alive = alive & ~forbidden[block.aggregate_sets[0, window]]
        return masks, alive

    def _by_sharing(
        self, block: Block, rows: Rows
    ) -> Iterator[tuple[Rows, tuple[Foreign, ...], Rows | None]]:
        """Split rows by the structure of the sharing providers that serve them: positions in
        `rows`, and what `Trees` says of the providers."""
        serving, which = self._serving(block, rows)
        foreign = [self._foreign.useful(providers) for providers in serving]
        kinds: dict[Hashable, list[int]] = {}
        for number, each in enumerate(foreign):
            kinds.setdefault(self._foreign.structure(each), []).append(number)
        for alike in kinds.values():
            if len(kinds) == 1:
                members = np.arange(len(rows))
            else:
                members = np.flatnonzero(np.isin(which, alike))
            first = foreign[which[members[0]]]
            if len(alike) == 1 or not first:
                yield members, first, None
                continue
            numbers = np.zeros((len(first), len(foreign)), dtype=np.int64)
            for number in alike:
                numbers[:, number] = [each.number for each in foreign[number]]
            yield members, first, numbers[:, which[members]]

    def _serving(self, block: Block, rows: Rows) -> tuple[list[tuple[ProviderId, ...]], Rows]:
        """The sharing providers of other trees that serve some rows, each combination once; and
        which of these it is for each row."""
        sharing, sets = self._snapshot.sharing, self._snapshot.aggregate_sets
        distinct, which = np.unique(block.tree_aggregate_sets[rows], return_inverse=True)
        serving = [sharing.serving(tree_set, sets) for tree_set in distinct.tolist()]
        if sharing.trait not in block.shape.traits:
            return serving, which
        # Trees with sharing providers of their own: they are local to them.
        others: dict[tuple[ProviderId, ...], int] = {}
        for position, number in enumerate(which.tolist()):
            own = set(block.provider_ids[:, rows[position]].tolist())
            kept = tuple(provider for provider in serving[number] if provider not in own)
            which[position] = others.setdefault(kept, len(others))
        return list(others), which

    def _served(
        self,
        size: int,
        members: Rows,
        foreign: Sequence[Foreign],
        local: Mapping[int, Mapping[int, Mask]],
    ) -> tuple[Rows, dict[int, dict[int, Mask | None]]] | None:
        """What would do in rows that are served alike: the positions in `members` that have
        something for every slot, and their masks. None if there are none."""
        alive: Mask = np.ones(len(members), dtype=np.bool_)
        masks: dict[int, dict[int, Mask | None]] = {}
        for ask, shareable in self._shareable.items():
            here: dict[int, Mask] = {node: mask[members] for node, mask in local[ask].items()}
            there = [place for place, each in enumerate(foreign, size) if ask in each.serves]
            if shareable and not there:
                if not here:
                    return None
                alive &= _any_of(here.values())
            masks[ask] = {**here, **dict.fromkeys(there)}
        kept = np.flatnonzero(alive)
        if not len(kept):
            return None
        if len(kept) < len(members):
            for each in masks.values():
                for choice, mask in each.items():
                    each[choice] = None if mask is None else mask[kept]
        return kept, masks


class _Tests:
    """What the numbers of some rows of a block say, each asked once."""

    def __init__(self, slot: int, block: Block, window: slice) -> None:
        self._slot = slot
        self._block = block
        self._window = window
        self._whole = window.stop - window.start == block.rows
        self._fitting: dict[tuple[ClassId, int], Mask] = {}
        self._members: dict[tuple[int, int], Mask | None] = {}

    def of_slot(self, wanted: Slot, nodes: Sequence[int]) -> dict[int, Mask]:
        """node -> the rows in which it would do for a slot; nodes that never do are left out."""
        masks: dict[int, Mask] = {}
        if wanted.in_tree is not None and wanted.in_tree.slot != self._slot:
            return masks
        for node in nodes:
            mask = self._membership(wanted, node)
            for class_id, amount in wanted.amounts:
                fit = self._fits(class_id, amount)[self._block.shape.row_of_node[class_id][node]]
                mask = fit if mask is None else mask & fit
            if mask is None:
                mask = np.ones(self._window.stop - self._window.start, dtype=np.bool_)
            if wanted.in_tree is not None:
                mask = self._only(mask, wanted.in_tree.row)
            if mask.any():
                masks[node] = mask
        return masks

    def _fits(self, class_id: ClassId, amount: int) -> Mask:
        fit = self._fitting.get((class_id, amount))
        if fit is None:
            columns = self._block.columns[class_id]
            window = None if self._whole else self._window
            fit = self._fitting[class_id, amount] = fits(columns, amount, window)
        return fit

    def _membership(self, wanted: Slot, node: int) -> Mask | None:
        """The rows in which a node's aggregates will do; None for all."""
        if not wanted.membership.asks:
            return None
        # The slots of the unsuffixed group have one test together.
        key = id(wanted.membership), node
        if key not in self._members:
            self._members[key] = _membership(self._block, wanted, node, self._window)
        return self._members[key]

    def _only(self, mask: Mask, row: int) -> Mask:
        """A mask held to one row of the block."""
        only: Mask = np.zeros_like(mask)
        at = row - self._window.start
        if 0 <= at < len(mask):
            only[at] = mask[at]
        return only


def fits(columns: Columns, amount: int, window: slice | None = None) -> Mask:
    """Say which providers could give `amount` more of one class.

    Args:
        amount: 1 to 2147483647.
        window: the rows of the block that are meant; None for all.

    Returns:
        A mask of shape (M, R): the nodes of the shape that have the class, and the rows.

    Source: spec/allocation-candidates.md 5.1.
    """
    at = (slice(None), window if window is not None else slice(None))
    fit: Mask = columns.used[at] + amount <= columns.capacity[at]
    fit &= columns.min_unit[at] <= amount
    fit &= columns.max_unit[at] >= amount
    if columns.stepped:
        fit &= amount % columns.step_size[at] == 0
    return fit


def _is_shareable(snapshot: Snapshot, slot: Slot) -> bool:
    """Whether some sharing provider has the classes that a slot asks."""
    return (
        not (slot.unsuffixed and slot.in_tree is not None)
        and bool(snapshot.sharing.by_aggregate)
        and snapshot.sharing.classes.issuperset(class_id for class_id, _ in slot.amounts)
    )


def _nodes_allowed(shape: Shape, slot: Slot) -> tuple[int, ...]:
    """The nodes that have a slot's classes and traits."""
    if slot.amounts:
        having = set(shape.nodes_of_class.get(slot.amounts[0][0], ()))
        for class_id, _ in slot.amounts[1:]:
            having.intersection_update(shape.nodes_of_class.get(class_id, ()))
    else:
        having = set(range(shape.size))
    return tuple(node for node in sorted(having) if slot.traits.passes(shape.kinds[node].traits))


def _certain(masks: Mapping[int, Mapping[int, Mask | None]]) -> Masks:
    """Masks in which the only choice that there is for something is known to do in all rows."""
    return {
        ask: dict.fromkeys(choices) if len(choices) == 1 else choices
        for ask, choices in masks.items()
    }


def _united(several: Sequence[Mapping[int, Mask | None]]) -> dict[int, Mask | None]:
    """What at least one of some slots could be filled with."""
    united: dict[int, Mask | None] = {}
    for masks in several:
        for choice, mask in masks.items():
            other = united.get(choice, mask)
            united[choice] = None if mask is None or other is None else mask | other
    return united


def _by_options(masks: Masks, rows: Rows) -> Iterator[tuple[Rows, dict[int, int]]]:
    """Split rows by the options that they have: the rows of each part, and their choices by ask."""
    if not len(rows):
        return
    certain: dict[int, int] = {}
    places: list[tuple[int, int]] = []
    lines: list[Mask] = []
    for ask, choices in masks.items():
        certain[ask] = 0
        for choice, mask in choices.items():
            line = None if mask is None else mask[rows]
            if line is None or line.all():
                certain[ask] |= 1 << choice
            else:
                places.append((ask, 1 << choice))
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
        choices_here = certain.copy()
        for place in np.flatnonzero(table[alike[0]]).tolist():
            ask, bit = places[place]
            choices_here[ask] |= bit
        yield rows[alike], choices_here


def _room(block: Block, node: int, rows: Rows, class_id: ClassId) -> Amounts:
    """`Trees.room` of a node; negative where too much is taken already."""
    columns = block.columns[class_id]
    line = block.shape.row_of_node[class_id][node]
    room: Amounts = np.minimum(
        columns.capacity[line, rows] - columns.used[line, rows], columns.max_unit[line, rows]
    )
    return room


def _any_of(masks: Iterable[Mask]) -> Mask:
    """The union of some masks, at least one."""
    return reduce(np.logical_or, masks)


def _membership(block: Block, wanted: Slot, node: int, window: slice) -> Mask | None:
    """The rows in which a node's aggregates will do; None for all."""
    member, forbidden = wanted.membership.member, wanted.membership.forbidden
    own = block.aggregate_sets[node, window]
    mask: Mask | None = None
    if member is not None:
        mask = member[own]
        if wanted.unsuffixed and node:
            # An aggregate on the root spans the tree, for the unsuffixed group (5.3).
            mask = mask | member[block.aggregate_sets[0, window]]
    if forbidden is not None:
        outside = ~forbidden[own]
        mask = outside if mask is None else mask & outside
    return mask
