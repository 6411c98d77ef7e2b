# SPDX-License-Identifier: Apache-2.0
"""Filtering: from a snapshot to the trees that may anchor candidates, with every demand's options.

`STAGES` names the filters in their order, with the reason for each place: cheap and selective ones
first. All but the last take a mask over rows of a block and return one; a stage that cannot remove
any tree of a shape is skipped for all of them. To count what each stage removes, compare the trees
that are left after `STAGES[:n]` and `STAGES[:n + 1]`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from berth.candidates.conditions import ANYWHERE, Masks, Rows, all_of, any_of, fits, take_rows
from berth.candidates.plan import Plan
from berth.candidates.shape_tests import (
    NEVER,
    NodeTests,
    ShapeTests,
    SharingScope,
    shape_tests,
    sharing_scope_of,
)
from berth.candidates.sharing import SharingProviders
from berth.candidates.trees import FilteredTrees, with_sharing
from berth.index.block import ROWS_MAX, Block
from berth.index.sets import Mask
from berth.index.shape import Shape
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId

#: The rows of the first window when few candidates are wanted: fewer where sharing providers may
#: serve, because each of those costs as much as hundreds of rows; and the factor by which the
#: window grows each time that it was too small.
WINDOW_MIN: Final = 256
SHARED_WINDOW_MIN: Final = 64
WINDOW_GROWTH: Final = 4

_ALL_NODES: Final = slice(None)

#: The lineage of a root.
ROOT: Final = 1

#: A block with its number, and some of its rows, from the first up to the last but one.
Span = tuple[int, Block, int, int]

#: query id -> choice -> rows of a window.
Options = dict[int, dict[int, Mask | None]]


class Window(Struct, eq=False):
    """Some consecutive rows of a block, and the conditions that the stages apply to them.

    Attributes:
        among: those of the rows that count; None for all.
    """

    block_id: int
    block: Block
    rows: slice
    tests: ShapeTests
    plan: Plan
    budget: Budget
    among: Mask | None
    _options: Options | None = None

    @property
    def size(self) -> int:
        """The number of rows."""
        count: int = self.rows.stop - self.rows.start
        return count

    @property
    def options(self) -> Options | None:
        """The options of the unsettled queries, without nodes that serve none of the rows; None if
        the budget ended meanwhile."""
        if self._options is None:
            self._options = _options_in(self)
        return self._options

    def left(self, stages: Iterable[Stage]) -> tuple[Rows, Masks] | None:
        """The rows of the block that pass some stages, and their options; None if there are
        none."""
        # The stages write into the mask.
        alive = None if self.among is None else self.among.copy()
        for stage in stages:
            alive = stage.keep(self, alive)
        start = self.rows.start
        if alive is None:
            rows: Rows = np.arange(start, self.rows.stop)
        else:
            rows = alive.nonzero()[0]
            if not len(rows):
                return None
        tests = self.tests
        if not tests.unsettled:
            masks = tests.settled
        else:
            options = self.options
            if options is None:
                return None
            masks = {**tests.settled, **options}
            if alive is not None and len(rows) < len(alive):
                masks = take_rows(rows, masks)
        if start and alive is not None:
            rows += start
        return rows, masks


def _by_drains(window: Window, alive: Mask | None) -> Mask | None:
    drained = window.block.drained
    if drained is None:
        return alive
    serving = (node for choices in window.tests.settled.values() for node in choices)
    for node in dict.fromkeys((0, *serving)):
        alive = _both(alive, ~drained[node, window.rows])
    return alive


def _by_structure(window: Window, _: Mask | None) -> Mask | None:
    return np.zeros(window.size, dtype=np.bool_)


def _by_amounts(window: Window, alive: Mask | None) -> Mask | None:
    columns, rows = window.block.columns, window.rows
    for class_id, line, amount in window.tests.fits:
        alive = _both(alive, fits(columns[class_id], amount, (line, rows)))
    return alive


def _by_aggregates(window: Window, alive: Mask | None) -> Mask | None:
    for demand, node in window.tests.members:
        alive = _both(alive, demand.members(window.block, node, window.rows))
    return alive


def _by_root_aggregates(window: Window, alive: Mask | None) -> Mask | None:
    plan = window.plan
    own = window.block.aggregate_sets[0, window.rows]
    if plan.forbidden_at_root is not None:
        alive = _both(alive, ~plan.forbidden_at_root[own])
    return _both(alive, plan.root_membership.mask(own))


def _by_named_hosts(window: Window, alive: Mask | None) -> Mask | None:
    plan = window.plan
    if plan.within is not None:
        alive = _both(alive, plan.within.mask(window.block_id, ROOT, window.rows))
    if plan.not_in is not None and plan.not_in.has_any_in(window.block_id):
        alive = _both(alive, ~plan.not_in.mask(window.block_id, ROOT, window.rows))
    return alive


def _both(alive: Mask | None, mask: Mask | None) -> Mask | None:
    if mask is None:
        return alive
    return mask if alive is None else np.logical_and(alive, mask, alive)


def _by_options(window: Window, alive: Mask | None) -> Mask | None:
    if alive is not None and not np.count_nonzero(alive):
        return alive
    options = window.options
    if options is None:
        return alive
    for query_id, _, _, is_needed in window.tests.unsettled:
        if is_needed:
            choices = options[query_id]
            if not choices:
                return np.zeros(window.size, dtype=np.bool_)
            some = any_of(choices.values())
            if some is not None:
                alive = some if alive is None else alive & some
    return alive


class Stage(NamedTuple):
    """One filter.

    Attributes:
        why: the reason for its place.
        applies: whether it can remove any tree of a shape.
        keep: the mask of the rows that are left; None stands for all rows.
    """

    name: str
    why: str
    applies: Callable[[ShapeTests, Plan], bool]
    keep: Callable[[Window, Mask | None], Mask | None]


STRUCTURE: Final = Stage(
    "structure",
    "traits, classes and their nodes: decided once for a shape, for thousands of trees",
    lambda tests, _: tests is NEVER,
    _by_structure,
)
DRAINS: Final = Stage(
    "drains",
    "only for a block with drained providers, of which few or all may be left",
    # It depends on the block, not on the shape: `filter_trees` puts it first.
    lambda _tests, _plan: False,
    _by_drains,
)
#: It also splits the trees by the structure of the providers that serve them, so `filter_trees`
#: calls `with_sharing` for it.
SHARING: Final = Stage(
    "sharing providers",
    "a provider that is met costs as much as hundreds of rows: only for trees that are left",
    lambda _tests, _plan: False,
    lambda _, alive: alive,
)
#: Those that look at the root alone.
AT_ROOTS: Final = (
    Stage(
        "root aggregates",
        "the same for the root, which is seldom asked",
        lambda _, plan: plan.forbidden_at_root is not None or plan.root_membership.has_conditions,
        _by_root_aggregates,
    ),
    Stage(
        "named hosts",
        "a few rows, or all but a few: one mask, however many hosts are named",
        lambda _, plan: plan.within is not None or plan.not_in is not None,
        _by_named_hosts,
    ),
)
STAGES: Final = (
    STRUCTURE,
    DRAINS,
    Stage(
        "amounts",
        "what only one node can give: one comparison of whole arrays for each class",
        lambda tests, _: bool(tests.fits),
        _by_amounts,
    ),
    Stage(
        "aggregates",
        "of those nodes: one look-up of whole arrays, twice as slow as a comparison",
        lambda tests, _: bool(tests.members),
        _by_aggregates,
    ),
    *AT_ROOTS,
    Stage(
        "options",
        "what several nodes can give: as many comparisons as there are nodes",
        lambda tests, _: bool(tests.unsettled),
        _by_options,
    ),
    SHARING,
)


def filter_trees(
    snapshot: Snapshot,
    plan: Plan,
    budget: Budget,
    *,
    wanted: int | None = None,
    among: Mapping[int, Mask] | None = None,
    stages: Sequence[Stage] = STAGES,
    start: int = 0,
) -> Iterator[FilteredTrees]:
    """The trees that may anchor candidates, lazily, in few parts; ends with the budget.

    Args:
        wanted: how many candidates are wanted: of few, the first part is sought among few rows.
        among: the rows of each block that count; None for all of all blocks.
        stages: some of `STAGES`; with others than all, the trees that are left can be counted, but
            not searched.
        start: where among all trees to begin, modulo their number; the others follow in a circle.
    """
    scope = sharing_scope_of(plan, snapshot)
    sharing_providers = SharingProviders(
        snapshot, plan, budget, lambda: _eligible(snapshot, plan, budget)
    )
    is_split = scope.is_shared and SHARING in stages
    kept_tests = snapshot.memory.table(scope)
    nodes: NodeTests | None = None
    least = SHARED_WINDOW_MIN if scope.is_shared else WINDOW_MIN
    size = ROWS_MAX if wanted is None else max(least, min(4 * wanted, ROWS_MAX))
    for block_id, block, first, end in _spans(snapshot, plan, scope, start, among):
        if budget.is_spent():
            return
        some = None if among is None else among[block_id]
        kept: tuple[ShapeTests, tuple[Stage, ...]] | None = kept_tests.get(block.shape.number)
        if kept is None:
            nodes = nodes or NodeTests(plan)
            kept = _kept_tests_of(snapshot, plan, scope, block.shape, nodes, budget)
        tests, applying = kept
        if tests is NEVER and STRUCTURE in stages:
            continue
        if stages is not STAGES:
            applying = tuple(stage for stage in applying if stage in stages)
        if block.drained is not None and DRAINS in stages:
            applying = (DRAINS, *applying)
        while first < end:
            rows = slice(first, min(first + size, end))
            budget.trees += rows.stop - first
            left = Window(
                block_id, block, rows, tests, plan, budget, None if some is None else some[rows]
            ).left(applying)
            if left is not None:
                passing, masks = left
                trees = FilteredTrees(
                    block_id, block, passing, (), None, sharing_providers, scope, masks
                )
                if is_split:
                    yield from with_sharing(snapshot, trees)
                else:
                    yield trees
            first = rows.stop
            size = min(size * WINDOW_GROWTH, ROWS_MAX)
            # The loop over blocks asks the budget itself.
            if first < end and budget.is_spent():
                return


def _eligible(snapshot: Snapshot, plan: Plan, budget: Budget) -> Iterator[tuple[int, Block, Rows]]:
    """The rows of each block that may anchor what sharing providers alone can give."""
    for trees in filter_trees(snapshot, plan, budget, stages=(STRUCTURE, DRAINS, *AT_ROOTS)):
        yield trees.block_id, trees.block, trees.rows


def _spans(
    snapshot: Snapshot,
    plan: Plan,
    scope: SharingScope,
    start: int,
    among: Mapping[int, Mask] | None,
) -> Iterator[Span]:
    """The trees that may be anchors, of some blocks; None for all."""
    root = scope.fixed_root
    if root is not None:
        if among is not None and root.block_id not in among:
            return iter(())
        return iter([(root.block_id, snapshot.block(root.block_id), root.row, root.row + 1)])
    numbers: Iterable[int] | None = None if plan.within is None else plan.within.blocks()
    if among is not None:
        numbers = sorted(among if numbers is None else among.keys() & numbers)
    if numbers is None:
        blocks = snapshot.occupied()
    else:
        blocks = ((each, snapshot.block(each)) for each in numbers)
    spans = ((block_id, block, 0, block.rows) for block_id, block in blocks)
    return _circle([*spans], start) if start else spans


def _circle(spans: Sequence[Span], start: int) -> Iterator[Span]:
    """Some whole blocks from one of their rows on, and then those before it."""
    ends = list(accumulate(block.rows for _, block, _, _ in spans))
    if not ends:
        return
    start %= ends[-1]
    place = bisect_right(ends, start)
    block_id, block, _, end = spans[place]
    row = start - (ends[place] - end)
    yield block_id, block, row, end
    yield from spans[place + 1 :]
    yield from spans[:place]
    if row:
        yield block_id, block, 0, row


def _kept_tests_of(
    snapshot: Snapshot,
    plan: Plan,
    scope: SharingScope,
    shape: Shape,
    nodes: NodeTests,
    budget: Budget,
) -> tuple[ShapeTests, tuple[Stage, ...]]:
    """What a plan asks of the trees of a shape, and the stages that can remove some; kept for the
    next search."""
    tests = shape_tests(plan, shape, scope.shareable, nodes, budget)
    kept = tests, tuple(stage for stage in STAGES if stage.applies(tests, plan))
    if budget.ended is None:
        snapshot.memory.keep_for(shape, scope, kept, tests.size)
    return kept


def _options_in(window: Window) -> Options | None:
    """`Window.options`."""
    block, rows, budget = window.block, window.rows, window.budget
    count = rows.stop - rows.start
    fitting: dict[tuple[ClassId, int], Mask] = {}
    members: dict[tuple[int, int], Mask | None] = {}
    options: Options = {}
    for query_id, demand, nodes, _ in window.tests.unsettled:
        if budget.is_spent():
            return None
        choices: dict[int, Mask | None] = {}
        options[query_id] = choices
        places = None if demand.places is ANYWHERE else demand.places
        if not nodes or (places and not places.has_any_in(window.block_id)):
            continue
        for amount in demand.amounts:
            if amount not in fitting:
                fitting[amount] = fits(block.columns[amount[0]], amount[1], (_ALL_NODES, rows))
        for node in nodes:
            masks: list[Mask | None] = [
                fitting[amount][block.shape.row_of_node[amount[0]][node]]
                for amount in demand.amounts
            ]
            if demand.membership.has_conditions:
                key = id(demand.membership), node
                if key not in members:
                    members[key] = demand.members(block, node, rows)
                masks.append(members[key])
            if block.drained is not None:
                masks.append(~block.drained[node, rows])
            if places:
                masks.append(places.mask(window.block_id, block.shape.lineage[node], rows))
            mask = all_of(masks)
            passing = count if mask is None else np.count_nonzero(mask)
            if passing:
                choices[node] = None if passing == count else mask
    return options
