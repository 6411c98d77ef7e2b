# SPDX-License-Identifier: Apache-2.0
"""The writers' clock and the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Row, Select, bindparam, delete, exists, func, or_, select

from berth.store.engine.tables import berth_journal, berth_writer
from berth.store.engine.transaction import Tx
from berth.upkeep.integrity.fault import Key, left_alone, repairable

_note, _writer = berth_journal.c, berth_writer.c

_IS_COUNTED: Final = exists().where(_writer.id == _note.writer_id, _writer.seq >= _note.seq)


def _beyond() -> Select[Any]:
    """(writer, its seq or None, the last seq in its journal) where the journal is ahead of the
    clock."""
    # PERF the last note of a writer is the end of its part of the primary key.
    notes = (
        select(_note.writer_id, func.max(_note.seq).label("noted"))
        .group_by(_note.writer_id)
        .subquery("notes")
    )
    return (
        select(notes.c.writer_id.label("writer"), _writer.seq, notes.c.noted)
        .outerjoin(berth_writer, _writer.id == notes.c.writer_id)
        .where(or_(_writer.seq.is_(None), _writer.seq < notes.c.noted))
    )


def _words(row: Row[Any]) -> str:
    fault = "which does not exist" if row.seq is None else f"whose last commit is {row.seq}"
    return f"the journal has commit {row.noted} of writer {row.writer}, {fault}"


def _forget(tx: Tx, keys: Sequence[Key]) -> None:
    """RACE: entries that the writer has counted by now are not deleted."""
    tx.connection.execute(
        delete(berth_journal).where(_note.writer_id == bindparam("writer"), ~_IS_COUNTED),
        [{"writer": key["writer"]} for key in keys],
    )


_BAD_COUNTS: Final = left_alone(
    select(_writer.id, _writer.seq, _writer.trimmed_seq).where(
        or_(_writer.id < 0, _writer.seq < 0, _writer.trimmed_seq < 0)
    ),
    lambda row: f"writer {row.id} has made {row.seq} commits and trimmed {row.trimmed_seq}",
    "stop every berth that uses the database, and delete this row of berth_writer by hand",
)

RULES: Final = (
    _BAD_COUNTS,
    repairable(
        _beyond(),
        _words,
        lambda row: f"remove the later journal entries of writer {row.writer}",
        _forget,
    ),
)
