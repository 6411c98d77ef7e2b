# SPDX-License-Identifier: Apache-2.0
"""The writers' clock and the journal: how every index learns what each commit touched.

Each process that writes owns a row of `berth_writer` and counts its commits there; the providers
that a commit touched stand in `berth_journal` under that count. Both are part of the commit itself.
Commit order between writers does not matter, and a gap in the numbers means nothing.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from berth.store.tables import berth_journal, berth_writer

#: In the journal: no provider, but the definitions of traits or resource classes were touched.
NAMES: Final = 0

#: A row that has not been written for so long may be taken over by another process.
_IDLE: Final = timedelta(hours=1)

_note = berth_journal.c
_writer = berth_writer.c
_of_writer = _note.writer_id == _writer.id

#: (writer, the last of its counts that can be forgotten, or NULL).
#: PERF each is the end of a walk along the primary key, from the oldest row; asking for the
#: largest old count instead reads the whole journal, an hour of commits, inside a write.
_HORIZONS: Final = select(
    _writer.id,
    func.coalesce(
        select(_note.seq - 1)
        .where(_of_writer, _note.created_at >= bindparam("older_than"))
        .order_by(_note.seq)
        .limit(1)
        .scalar_subquery(),
        select(func.max(_note.seq)).where(_of_writer).scalar_subquery(),
    ),
)
_MARK: Final = (
    update(berth_writer)
    .where(_writer.id == bindparam("of_writer"), _writer.trimmed_seq < bindparam("horizon"))
    .values(trimmed_seq=bindparam("horizon"))
)
_FORGET: Final = delete(berth_journal).where(
    _note.writer_id == bindparam("of_writer"), _note.seq <= bindparam("horizon")
)

#: PERF built once; building a statement takes longer than running it.
_MOVE: Final = (
    update(berth_writer)
    .where(_writer.id == bindparam("of_writer"), _writer.seq == bindparam("known"))
    .values(seq=_writer.seq + 1, updated_at=bindparam("now"))
)
_NOTE: Final = insert(berth_journal)


class Writer(NamedTuple):
    """A row of the clock, as its owner's last commit left it."""

    id: int
    seq: int


def record(
    connection: Connection, known: Writer | None, touched: Collection[int], now: datetime
) -> Writer:
    """Count one commit, and note what it touches.

    Call it last in the transaction, and give its result as `known` the next time, once this has
    been committed.
    """
    writer = (
        (known and _move(connection, known, now))
        or _adopt(connection, now)
        or _enrol(connection, now)
    )
    connection.execute(
        _NOTE,
        [
            {
                "writer_id": writer.id,
                "seq": writer.seq,
                "provider_id": provider,
                "created_at": now,
            }
            for provider in sorted(touched)
        ],
    )
    return writer


def trim(connection: Connection, older_than: datetime) -> int:
    """Forget what was noted before a time; the number of rows that went.

    Whoever has applied less of a writer than its `trimmed_seq` must reload everything. A writer's
    rows go in the order of its count, up to the first that is younger, whatever its clock did.
    Cost: a few rows for each writer and those that go, however long the journal is.
    """
    past = [
        {"of_writer": writer, "horizon": horizon}
        for writer, horizon in connection.execute(_HORIZONS, {"older_than": older_than})
        if horizon is not None
    ]
    if not past:
        return 0
    connection.execute(_MARK, past)
    return connection.execute(_FORGET, past).rowcount


def _adopt(connection: Connection, now: datetime) -> Writer | None:
    """Take over an idle row, so that the clock does not grow with every process ever started."""
    idle = connection.execute(
        select(_writer.id, _writer.seq)
        .where(_writer.updated_at < now - _IDLE)
        .order_by(_writer.id)
        .limit(1)
    ).one_or_none()
    return None if idle is None else _move(connection, Writer(*idle), now)


def _move(connection: Connection, known: Writer, now: datetime) -> Writer | None:
    """Count up by one, unless another process has taken the row: then it is no longer ours.

    RACE tests/store/test_journal.py: the count that is expected stands in the WHERE, so a row never
    serves two writers, however long one of them slept.
    """
    moved = connection.execute(_MOVE, {"of_writer": known.id, "known": known.seq, "now": now})
    return Writer(known.id, known.seq + 1) if moved.rowcount == 1 else None


def _enrol(connection: Connection, now: datetime) -> Writer:
    result = connection.execute(insert(berth_writer).values(seq=1, trimmed_seq=0, updated_at=now))
    (number,) = result.inserted_primary_key or (None,)
    assert number is not None, "the table gives ids by itself"
    return Writer(number, 1)
