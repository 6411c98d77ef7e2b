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

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np

from berth.candidates.budget import Budget
from berth.candidates.foreign import Amounts, Foreign, ForeignProviders, room_at
from berth.candidates.local import (
    LocalTests,
    Masks,
    Rows,
    any_of,
    held_to,
    local_masks,
    local_tests,
    reach_of,
)
from berth.candidates.node_tests import NodeTests
from berth.candidates.plan import Plan, Slot
from berth.index.aggregate_sets import Mask
from berth.index.block import ROWS_MAX, Block
from berth.index.shape import Shape
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, ProviderId

#: What it takes to remember that no tree of a shape will do.
NO_TESTS_BYTES: Final = 200

#: The rows that are looked at first when few candidates are wanted: fewer where sharing providers
#: may serve, for each that is met costs as much as hundreds of rows; and how many times as many are
#: looked at each time that they were not enough.
WINDOW_MIN: Final = 256
SHARED_WINDOW_MIN: Final = 64
WINDOW_GROWTH: Final = 4


# PERF bench, flat: not frozen, for a frozen one of many attributes takes 2 us to make.
@dataclass(slots=True, eq=False)
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


@dataclass(slots=True, eq=False)
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


@dataclass(slots=True, eq=False)
class Prospects(Trees):
    """Trees each of which has options for every slot, each its own.

    Attributes:
        tests: what the trees themselves were asked.
        masks: what would do in which of the rows; no mask is empty.
    """

    tests: LocalTests
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
        self._foreign = ForeignProviders(snapshot, plan, budget)
        self._reach = reach_of(plan, snapshot)
        self._nodes: NodeTests | None = None
        least = SHARED_WINDOW_MIN if self._reach.is_shared else WINDOW_MIN
        self._window = ROWS_MAX if wanted is None else max(least, min(4 * wanted, ROWS_MAX))

    def prospects(self) -> Iterator[Prospects]:
        """The trees that may anchor candidates, lazily, in few parts; ends with the budget.

        The first part is sought among few rows when few candidates are wanted.
        """
        forbidden = self._plan.forbidden_at_root
        for slot, block in self._blocks():
            if self._budget.is_spent():
                return
            tests = self._tests_of(block.shape)
            if tests is None:
                continue
            first, end = self._rows_of(block)
            while first < end:
                window = slice(first, min(first + self._window, end))
                self._budget.trees += window.stop - first
                found = local_masks(tests, forbidden, slot, block, window, self._budget)
                if found is not None:
                    masks, rows = found
                    if self._reach.is_shared:
                        yield from self._served_alike(tests, slot, block, masks, rows)
                    else:
                        yield Prospects(slot, block, rows, (), None, self._foreign, tests, masks)
                first = window.stop
                self._window = min(self._window * WINDOW_GROWTH, ROWS_MAX)
                # The next block asks for itself.
                if first < end and self._budget.is_spent():
                    return

    def _blocks(self) -> Iterator[tuple[int, Block]]:
        """The blocks that are worth a look."""
        pinned = self._reach.pinned
        if pinned is None:
            return self._snapshot.occupied()
        return iter([(pinned.slot, self._snapshot.block(pinned.slot))])

    def _rows_of(self, block: Block) -> tuple[int, int]:
        """The rows of a block that are worth a look: from one up to another."""
        pinned = self._reach.pinned
        return (0, block.rows) if pinned is None else (pinned.row, pinned.row + 1)

    def _tests_of(self, shape: Shape) -> LocalTests | None:
        """What is to be asked of the trees of a shape; None if none of them will do, or if the
        budget ended."""
        known = self._reach.tests
        try:
            return known[shape]
        except KeyError:
            pass
        if self._nodes is None:
            self._nodes = NodeTests(self._plan)
        tests = local_tests(self._plan, shape, self._reach.shareable, self._nodes, self._budget)
        if self._budget.ended is None and self._snapshot.allowance.grow(
            NO_TESTS_BYTES if tests is None else tests.size
        ):
            known[shape] = tests
        return tests

    def _served_alike(
        self, tests: LocalTests, slot: int, block: Block, local: Masks, rows: Rows
    ) -> Iterator[Prospects]:
        """The prospects among some rows, with the sharing providers that serve them."""
        for members, foreign, served_by in self._by_sharing(block, rows):
            served = self._served(block.shape.size, members, foreign, local)
            if served is not None:
                kept, masks = served
                yield Prospects(
                    slot,
                    block,
                    rows[members[kept]],
                    foreign,
                    None if served_by is None else served_by[:, kept],
                    self._foreign,
                    tests,
                    _certain(masks),
                )

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
        distinct, which = _numbered(block.tree_aggregate_sets[rows], len(sets))
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
        local: Masks,
    ) -> tuple[Rows, dict[int, dict[int, Mask | None]]] | None:
        """What would do in rows that are served alike: the positions in `members` that have
        something for every slot, and their masks. None if there are none."""
        alive: Mask | None = None
        masks = held_to(members, local)
        for ask, shareable in self._reach.shareable.items():
            if not shareable:
                continue
            there = [place for place, each in enumerate(foreign, size) if ask in each.serves]
            if not there:
                if not masks[ask]:
                    return None
                some = any_of(masks[ask].values())
                if some is not None:
                    alive = some if alive is None else alive & some
            masks[ask] |= dict.fromkeys(there)
        if alive is None:
            return np.arange(len(members)), masks
        kept = np.flatnonzero(alive)
        return (kept, held_to(kept, masks)) if len(kept) else None


def _numbered(values: Rows, values_count: int) -> tuple[Rows, Rows]:
    """The distinct ones of some values, all below `values_count`, ascending; and which of them each
    one is."""
    # PERF bench, sharing: `np.unique` would sort.
    marked = np.zeros(values_count, dtype=np.bool_)
    marked[values] = True
    distinct = marked.nonzero()[0]
    numbers = np.empty(values_count, dtype=np.int64)
    numbers[distinct] = np.arange(len(distinct))
    return distinct, numbers[values]


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
    """`Trees.room` of a node."""
    line = block.shape.row_of_node[class_id][node]
    room: Amounts = block.columns[class_id].room[line, rows].astype(np.float64)
    return room
