# SPDX-License-Identifier: Apache-2.0
"""What trees themselves can give: from a block to the rows that are worth a look, and what would do
in them, sharing providers aside.

What the shape alone decides is decided once for a plan (`local_tests`); what is left are a few
comparisons of whole arrays.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from berth.candidates.budget import Budget
from berth.candidates.node_tests import NodeTests
from berth.candidates.plan import Plan, Slot
from berth.index.aggregate_sets import Mask
from berth.index.block import Block, Columns
from berth.index.shape import Shape
from berth.index.snapshot import Location, Sharing, Snapshot
from berth.model.ids import ClassId

if TYPE_CHECKING:
    from berth.candidates.ways import Way

Rows = NDArray[np.int64]

#: ask -> choice -> the rows in which the choice would do; None for all of them.
Masks = Mapping[int, Mapping[int, Mask | None]]

#: Different sets of shared classes for which a plan is kept ready; one more, and all are forgotten.
REACHES_MAX: Final = 16

_ALL_NODES: Final = slice(None)


class Fit(NamedTuple):
    """Whether the node in one line of a class's columns could give an amount."""

    class_id: ClassId
    line: int
    amount: int


class Open(NamedTuple):
    """An ask with several nodes that may do, or that a sharing provider may answer as well.

    Attributes:
        is_needed: whether one of the nodes must do, because nobody else could.
    """

    ask: int
    slot: Slot
    nodes: tuple[int, ...]
    is_needed: bool


@dataclass(frozen=True, slots=True, eq=False)
class LocalTests:
    """What a plan asks of the trees of one shape.

    Kept with the plan (`Reach.tests`) for as long as the shape lives, and forgotten when that and
    its like take more than the fleet's `Allowance`.

    Attributes:
        settled: the asks that one node alone may answer, as `Masks`.
        fits, members: what is asked of those nodes: amounts, and the slots by whose membership
            tests the nodes go.
        opens: all other asks.
        ways: a cache of `berth.candidates.ways`.
    """

    settled: Masks
    fits: tuple[Fit, ...]
    members: tuple[tuple[Slot, int], ...]
    opens: tuple[Open, ...]
    ways: dict[Hashable, tuple[Way, ...]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        nodes = sum(len(each.nodes) for each in self.opens)
        return (
            600
            + 300 * len(self.settled)
            + 120 * len(self.fits)
            + 200 * len(self.opens)
            + (8 * nodes)
        )


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Reach:
    """Which parts of a plan sharing providers could serve, and what follows from that.

    Attributes:
        shareable: ask -> whether some sharing provider has the classes.
        is_shared: whether there is any such ask.
        pinned: the root of the only tree that can be an anchor, None where any can.
        tests: for each shape that was met, `local_tests`; bounded by the fleet's `Allowance`.
    """

    shareable: Mapping[int, bool]
    is_shared: bool
    pinned: Location | None
    tests: WeakKeyDictionary[Shape, LocalTests | None] = field(default_factory=WeakKeyDictionary)

    def forget(self) -> None:
        """See `berth.index.allowance.Memory`."""
        self.tests.clear()


def reach_of(plan: Plan, snapshot: Snapshot) -> Reach:
    """What sharing providers can do for a plan; kept with it.

    It follows from the classes that they have, and these seldom change.
    """
    sharing = snapshot.sharing
    key = sharing.classes if sharing.by_aggregate else None
    reach = plan.reaches.get(key)
    if reach is None:
        shareable = {ask: _is_shareable(sharing, slot) for ask, slot in plan.asks.items()}
        own = (
            slot.in_tree
            for ask, slot in plan.asks.items()
            if slot.in_tree is not None and not shareable[ask]
        )
        reach = Reach(shareable, any(shareable.values()), next(own, None))
        if len(plan.reaches) >= REACHES_MAX:
            plan.reaches.clear()
        plan.reaches[key] = reach
        snapshot.allowance.add(reach)
    return reach


def local_tests(
    plan: Plan, shape: Shape, shareable: Mapping[int, bool], nodes: NodeTests, budget: Budget
) -> LocalTests | None:
    """What is to be asked of the trees of a shape; None if none of them will do.

    Where the budget ends meanwhile, there is no answer: the caller asks the budget, and keeps none.

    Args:
        shareable: ask -> whether some sharing provider has its classes.
        nodes: what nodes could do for the plan.
    """
    if not plan.root_traits.passes(shape.kinds[0].traits):
        return None
    answers = list(map(nodes.of, shape.kinds))
    able = 0
    for answer in answers:
        able |= answer.asks
    unsuffixed, is_shared = 0, False
    for ask, slot in plan.asks.items():
        if not (able >> ask & 1 or shareable[ask]):
            return None
        if slot.unsuffixed:
            unsuffixed |= 1 << ask
            is_shared |= shareable[ask]
    if nodes.of_union and not is_shared:
        missing = nodes.of_union
        for answer in answers:
            if answer.asks & unsuffixed:
                missing &= ~answer.met
        if missing:
            return None
    settled: dict[int, dict[int, None]] = {}
    amounts: dict[Fit, None] = {}
    members: dict[tuple[int, int], tuple[Slot, int]] = {}
    opens = []
    for ask, slot in plan.asks.items():
        if budget.is_spent():
            return None
        allowed = tuple([node for node, answer in enumerate(answers) if answer.asks >> ask & 1])
        if len(allowed) > 1 or shareable[ask] or slot.in_tree is not None:
            opens.append(Open(ask, slot, allowed, not shareable[ask]))
            continue
        (node,) = allowed
        settled[ask] = {node: None}
        for class_id, amount in slot.amounts:
            amounts[Fit(class_id, shape.row_of_node[class_id][node], amount)] = None
        if slot.membership.asks:
            # The slots of the unsuffixed group have one test together.
            members[id(slot.membership), node] = slot, node
    return LocalTests(settled, tuple(amounts), tuple(members.values()), tuple(opens))


def local_masks(
    tests: LocalTests,
    forbidden_at_root: Mask | None,
    slot: int,
    block: Block,
    window: slice,
    budget: Budget,
) -> tuple[Masks, Rows] | None:
    """What would do in some rows of a block, and which of them are worth a look.

    Args:
        forbidden_at_root: aggregate sets that shut a root out.
        slot: the block's slot in the snapshot.

    Returns:
        The masks, held to the rows that are worth a look, without nodes that never do; and those
        rows, as numbers of the block's rows. None if there are none, or the budget ended.
    """
    alive: Mask | None = None
    for class_id, line, amount in tests.fits:
        mask = fits(block.columns[class_id], amount, (line, window))
        alive = mask if alive is None else np.logical_and(alive, mask, alive)
    for wanted, node in tests.members:
        mask = _membership(block, wanted, node, window)
        alive = mask if alive is None else np.logical_and(alive, mask, alive)
    if forbidden_at_root is not None:
        outside = ~forbidden_at_root[block.aggregate_sets[0, window]]
        alive = outside if alive is None else np.logical_and(alive, outside, alive)
    if not tests.opens:
        masks = tests.settled
    else:
        if alive is not None and not np.count_nonzero(alive):
            return None
        opened = _opened(tests.opens, slot, block, window, budget)
        if opened is None:
            return None
        for each in tests.opens:
            if each.is_needed:
                choices = opened[each.ask]
                if not choices:
                    return None
                some = any_of(choices.values())
                if some is not None:
                    alive = some if alive is None else alive & some
        masks = {**tests.settled, **opened}
    if alive is None:
        return masks, np.arange(window.start, window.stop)
    rows: Rows = alive.nonzero()[0]
    if not len(rows):
        return None
    if tests.opens and len(rows) < len(alive):
        masks = held_to(rows, masks)
    if window.start:
        rows += window.start
    return masks, rows


def fits(columns: Columns, amount: int, at: tuple[int | slice, slice]) -> Mask:
    """Say which providers could give `amount` more of one class.

    Args:
        amount: 1 to 2147483647.
        at: which nodes of the class, and which rows of the block, are meant.

    Source: spec/allocation-candidates.md 5.1.
    """
    # PERF bench, flat: `room` and the two bounds make one comparison of what would be four.
    fit: Mask = columns.room[at] >= amount
    if amount < columns.min_unit_max:
        fit &= columns.min_unit[at] <= amount
    if columns.stepped:
        fit &= amount % columns.step_size[at] == 0
    return fit


def any_of(masks: Iterable[Mask | None]) -> Mask | None:
    """The union of some masks; None if it is all rows."""
    union: Mask | None = None
    for mask in masks:
        if mask is None:
            return None
        union = mask if union is None else union | mask
    return union


def held_to(rows: Rows, masks: Masks) -> dict[int, dict[int, Mask | None]]:
    """The masks of some of the rows."""
    return {
        ask: {choice: None if mask is None else mask[rows] for choice, mask in choices.items()}
        for ask, choices in masks.items()
    }


def _is_shareable(sharing: Sharing, slot: Slot) -> bool:
    """Whether some sharing provider has the classes that a slot asks."""
    return (
        not (slot.unsuffixed and slot.in_tree is not None)
        and bool(sharing.by_aggregate)
        and sharing.classes.issuperset(class_id for class_id, _ in slot.amounts)
    )


def _opened(
    opens: Sequence[Open], slot: int, block: Block, window: slice, budget: Budget
) -> dict[int, dict[int, Mask | None]] | None:
    """What would do in the rows of a window; nodes that never do are left out.

    None if the budget ended meanwhile.
    """
    count = window.stop - window.start
    fitting: dict[tuple[ClassId, int], Mask] = {}
    members: dict[tuple[int, int], Mask] = {}
    opened: dict[int, dict[int, Mask | None]] = {}
    for ask, wanted, nodes, _ in opens:
        if budget.is_spent():
            return None
        here: dict[int, Mask | None] = {}
        opened[ask] = here
        in_tree = wanted.in_tree
        if not nodes or (in_tree is not None and in_tree.slot != slot):
            continue
        for amount in wanted.amounts:
            if amount not in fitting:
                fitting[amount] = fits(block.columns[amount[0]], amount[1], (_ALL_NODES, window))
        for node in nodes:
            mask: Mask | None = None
            for amount in wanted.amounts:
                fit = fitting[amount][block.shape.row_of_node[amount[0]][node]]
                mask = fit if mask is None else mask & fit
            if wanted.membership.asks:
                key = id(wanted.membership), node
                if key not in members:
                    members[key] = _membership(block, wanted, node, window)
                mask = members[key] if mask is None else mask & members[key]
            if in_tree is not None:
                mask = _only(mask, in_tree.row, window)
            does = count if mask is None else np.count_nonzero(mask)
            if does:
                here[node] = None if does == count else mask
    return opened


def _membership(block: Block, wanted: Slot, node: int, window: slice) -> Mask:
    """The rows in which a node's aggregates will do for a slot that asks something of them."""
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
    assert mask is not None, "a membership test asks something"
    return mask


def _only(mask: Mask | None, row: int, window: slice) -> Mask:
    """A mask held to one row of the block."""
    only: Mask = np.zeros(window.stop - window.start, dtype=np.bool_)
    at = row - window.start
    if 0 <= at < len(only):
        only[at] = mask is None or mask[at]
    return only
