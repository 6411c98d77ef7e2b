# SPDX-License-Identifier: Apache-2.0
"""What projects use, as counters that each commit increments.

A counter belongs to a project, a user, a consumer type and a resource class, and each writer of the
clock has its own row of it. So claims for one project never wait for each other, and what a project
uses is the sum over the writers.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import compress
from typing import Final

from sqlalchemy import Integer, bindparam, delete, select, update

from berth.store.engine.prepared import insert_of
from berth.store.engine.project_deltas import ROW_COUNTERS, BlockKey, ProjectDeltas
from berth.store.engine.tables import berth_project_usages, berth_writer
from berth.store.engine.transaction import Change, Tx

#: Instead of a writer: counters of writers that have ended, and those of an upgrade.
FOLDED: Final = 0

#: The most rows to fold in one transaction.
_FOLDED_MAX: Final = 500

_row = berth_project_usages.c
_NAMES: Final = tuple(column.name for column in _row)
#: The columns of a row's counters.
COUNTERS: Final = tuple(_row)[-ROW_COUNTERS:]


_ADDED: Final = tuple(f"added_{place}" for place in range(ROW_COUNTERS))
#: PERF bench.databases, MariaDB: an INSERT that updates on a duplicate key takes twice as long.
_ADD: Final = (
    update(berth_project_usages)
    .where(*(key == bindparam(key.name) for key in berth_project_usages.primary_key))
    .values(
        {column: column + bindparam(name) for column, name in zip(COUNTERS, _ADDED, strict=True)}
    )
)
#: The parameters of `_ADD`, in the order of a row's columns.
_ADDITION: Final = (*_NAMES[:-ROW_COUNTERS], *_ADDED)
_BEGIN: Final = insert_of(berth_project_usages, *_NAMES)
#: PERF from the writers, of which there are few: when all rows are folded, it reads none.
_OF_ENDED_WRITERS: Final = (
    select(*_row)
    .join(berth_writer, berth_writer.c.id == _row.writer_id)
    .where(berth_writer.c.updated_at < bindparam("before"))
    .limit(bindparam("rows_max", type_=Integer))
)
_TAKE: Final = delete(berth_project_usages).where(
    *(column == bindparam(column.name) for column in _row)
)


def row_of(block: BlockKey, writer: int, counters: Sequence[int]) -> dict[str, int]:
    """A row as parameters."""
    return dict(zip(_NAMES, (*block, writer, *counters), strict=True))


def adding(tx: Tx, changes: ProjectDeltas, writer: int) -> Change:
    """The write that changes the counters of a writer; rows that do not change are left out.

    Only the writer itself adds rows. It does so once it knows that there is none to change.
    """
    blocks = [(block, deltas) for block, deltas in changes.blocks.items() if any(deltas)]

    def begin_missing(counts: Sequence[int]) -> None:
        missing = compress(blocks, (not count for count in counts))
        rows = [row_of(block, writer, deltas) for block, deltas in missing]
        tx.change_all([Change(_BEGIN, rows)])

    additions = [_addition_to(block, writer, deltas) for block, deltas in blocks]
    return Change(_ADD, additions, begin_missing)


def _addition_to(block: BlockKey, writer: int, deltas: Sequence[int]) -> dict[str, int]:
    return dict(zip(_ADDITION, (*block, writer, *deltas), strict=True))


def fold(tx: Tx, before: datetime, *, rows_max: int = _FOLDED_MAX) -> int:
    """Add up the rows of writers that have written nothing since `before`; return how many rows
    were folded, at most `rows_max`.

    RACE tests/store/test_project_usages.py: a row is taken only at the values that were read. A
    writer that wakes up has added to it before, or begins a new row afterwards.
    """
    rows = sorted(
        tuple(row) for row in tx.rows(_OF_ENDED_WRITERS, {"before": before, "rows_max": rows_max})
    )
    if not rows:
        return 0
    taken = tx.change_each(_TAKE, [dict(zip(_NAMES, row, strict=True)) for row in rows])
    sums = ProjectDeltas()
    for row, count in zip(rows, taken, strict=True):
        project, user, consumer_type, first_class, _, *counters = row
        for place, used in enumerate(counters):
            sums.add((project, user, consumer_type), first_class + place, used * count)
    nothing = [0] * ROW_COUNTERS
    blocks = sorted(sums.blocks)
    zeros = [row_of(block, FOLDED, nothing) for block in blocks]
    additions = [_addition_to(block, FOLDED, sums.blocks[block]) for block in blocks]
    # Other processes may fold into the same rows.
    begin = tx.insertions_of_missing(berth_project_usages, zeros)
    tx.change_all([*begin, Change(_ADD, additions), Change(_TAKE, zeros)])
    return sum(taken)
