# SPDX-License-Identifier: Apache-2.0
"""The writers' clock and the journal: how every index learns what each commit touched.

Each connection that writes owns a row of `berth_writer` and counts its commits there; the providers
that a commit touched stand in `berth_journal` under that count. Both are part of the commit itself.
Commit order between writers does not matter, and a gap in the numbers means nothing.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, update

from berth.store.tables import berth_journal, berth_writer

#: In the journal: no provider, but the definitions of traits or resource classes were touched.
NAMES: Final = 0

#: A row that has not been written for so long may be taken over by another connection.
_IDLE: Final = timedelta(hours=1)

_INFO_KEY: Final = "berth_writer"


class Writer(NamedTuple):
    """A connection's row of the clock, as its last commit left it."""

    id: int
    seq: int


def record(connection: Connection, touched: Collection[int], now: datetime) -> Writer:
    """Count one commit of this connection, and note what it touches.

    Call it last in the transaction, and `remember` its result once that has been committed.
    """
    writer = _advance(connection, now) or _adopt(connection, now) or _enrol(connection, now)
    connection.execute(
        insert(berth_journal),
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


def remember(connection: Connection, writer: Writer) -> None:
    """Let the pooled connection keep its row: the commit that moved it there has succeeded."""
    connection.info[_INFO_KEY] = writer


def trim(connection: Connection, older_than: datetime) -> int:
    """Forget what was noted before a time; the number of rows that went.

    Whoever has applied less of a writer than its `trimmed_seq` must reload everything. A writer's
    rows go in the order of its count, whatever its clock did.
    """
    journal, writer = berth_journal.c, berth_writer.c
    horizon = (
        select(func.max(journal.seq))
        .where(journal.writer_id == writer.id, journal.created_at < older_than)
        .scalar_subquery()
    )
    connection.execute(
        update(berth_writer).where(horizon > writer.trimmed_seq).values(trimmed_seq=horizon)
    )
    trimmed = select(writer.trimmed_seq).where(writer.id == journal.writer_id).scalar_subquery()
    return connection.execute(delete(berth_journal).where(journal.seq <= trimmed)).rowcount


def _advance(connection: Connection, now: datetime) -> Writer | None:
    known: Writer | None = connection.info.get(_INFO_KEY)
    return None if known is None else _move(connection, known, now)


def _adopt(connection: Connection, now: datetime) -> Writer | None:
    """Take over an idle row, so that the clock does not grow with every process ever started."""
    writer = berth_writer.c
    idle = connection.execute(
        select(writer.id, writer.seq)
        .where(writer.updated_at < now - _IDLE)
        .order_by(writer.id)
        .limit(1)
    ).one_or_none()
    return None if idle is None else _move(connection, Writer(*idle), now)


def _move(connection: Connection, known: Writer, now: datetime) -> Writer | None:
    """Count up by one, unless another connection has taken the row: then it is no longer ours.

    RACE tests/store/test_journal.py: the count that is expected stands in the WHERE, so a row never
    serves two connections, however long one of them slept.
    """
    writer = berth_writer.c
    moved = connection.execute(
        update(berth_writer)
        .where(writer.id == known.id, writer.seq == known.seq)
        .values(seq=known.seq + 1, updated_at=now)
    )
    return Writer(known.id, known.seq + 1) if moved.rowcount == 1 else None


def _enrol(connection: Connection, now: datetime) -> Writer:
    result = connection.execute(insert(berth_writer).values(seq=1, trimmed_seq=0, updated_at=now))
    (number,) = result.inserted_primary_key or (None,)
    assert number is not None, "the table gives ids by itself"
    return Writer(number, 1)
