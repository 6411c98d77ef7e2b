# SPDX-License-Identifier: Apache-2.0
"""The writers' clock and the journal: how every index learns what each commit touched.

Each process that writes owns a row of `berth_writer` and counts its commits there; the providers
that a commit touched stand in `berth_journal` under that count, each with whether anything but its
usage changed. Both are part of the commit itself.
Commit order between writers does not matter, and a gap in the numbers means nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Update,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import berth_journal, berth_writer

if TYPE_CHECKING:
    from berth.store.engine.transaction import Tx

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


def _counting_on(by: int) -> Update:
    """Moves a writer's row, if it stands at the count that is known."""
    return (
        update(berth_writer)
        .where(_writer.id == bindparam("of_writer"), _writer.seq == bindparam("known"))
        .values(
            seq=_writer.seq + by,
            # Not from the column: MySQL would take the one that it has just written.
            kept_seq=bindparam("known", type_=BigInteger) + by,
            updated_at=bindparam("now"),
        )
    )


#: PERF built once; building a statement takes longer than running it.
_MOVE: Final = _counting_on(1)
#: Past the count that somebody may have seen of a commit which is not there.
_FENCE: Final = _counting_on(2)
_NOTE: Final = insert_of(berth_journal, *berth_journal.c.keys())


class Writer(NamedTuple):
    """A row of the clock, as its owner's last commit left it."""

    id: int
    seq: int


class Touched(NamedTuple):
    """Providers of which something changed, and those of which only the usage did."""

    wholly: frozenset[int]
    usage_only: frozenset[int]

    @classmethod
    def of(cls, parts: Iterable[Tx]) -> Touched:
        """What several parts of one commit touch."""
        wholly: set[int] = set()
        reused: set[int] = set()
        for tx in parts:
            wholly.update(tx.touched)
            reused.update(tx.reused)
            if tx.names_touched:
                wholly.add(NAMES)
        return cls(frozenset(wholly), frozenset(reused - wholly))

    def __bool__(self) -> bool:
        return bool(self.wholly or self.usage_only)


class NoWriter(Exception):
    """This process has no row of the clock: not yet, or it slept and another took it over."""


def record(tx: Tx, known: Writer | None, touched: Touched, now: datetime) -> Writer:
    """Count one commit, and note what it touches.

    Call it last in the transaction, and give its result as `known` the next time, once this has
    been committed.

    Raises:
        NoWriter: enrol first.
    """
    if known is None or not _moved(tx, known, now):
        raise NoWriter
    writer = Writer(known.id, known.seq + 1)
    _write_notes(tx, writer, touched, now)
    return writer


def _write_notes(tx: Tx, writer: Writer, touched: Touched, now: datetime) -> None:
    tx.change(
        _NOTE,
        [
            {
                "writer_id": writer.id,
                "seq": writer.seq,
                "provider_id": provider,
                "usage_only": usage_only,
                "created_at": now,
            }
            for providers, usage_only in ((touched.wholly, False), (touched.usage_only, True))
            for provider in sorted(providers)
        ],
    )


def _moved(tx: Tx, known: Writer, now: datetime, how: Update = _MOVE) -> bool:
    return tx.change(how, {"of_writer": known.id, "known": known.seq, "now": now}) == 1


def has_noted(connection: Connection, writer: Writer) -> bool:
    """Whether a commit has left its note at a count: nothing else does, not even who takes the row
    of the clock over."""
    noted = select(_note.seq).where(_note.writer_id == writer.id, _note.seq == writer.seq)
    return connection.scalar(noted.limit(1)) is not None


def fence(tx: Tx, writer: Writer, touched: Touched, now: datetime) -> None:
    """Take its place from a commit that would move the clock to `writer`, if it has not got there:
    from then on it cannot.

    It holds the row while it is under way, so this waits for it; in a cluster it may be under way
    elsewhere, and there the one that comes second is refused.

    RACE tests/store/test_journal.py: InnoDB shows a commit before it is on disk, and a server that
    falls in between has shown what never was. So the count goes beyond that of the commit, and what
    it touched is noted there, for an index that has taken it over.
    """
    if _moved(tx, Writer(writer.id, writer.seq - 1), now, _FENCE):
        _write_notes(tx, Writer(writer.id, writer.seq + 1), touched, now)


def enrol(connection: Connection, now: datetime) -> Writer:
    """A row of the clock for this process: an idle one, so that the clock does not grow with every
    process ever started, or a new one. Commit it before it is used."""
    return _adopt(connection, now) or _inserted(connection, now)


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
    """Take over an idle row, by counting it on.

    RACE tests/store/test_journal.py: the count that is expected stands in the WHERE, here and in
    `record`, so a row never serves two writers, however long one of them slept.
    """
    idle = connection.execute(
        select(_writer.id, _writer.seq)
        .where(_writer.updated_at < now - _IDLE)
        .order_by(_writer.id)
        .limit(1)
    ).one_or_none()
    if idle is None:
        return None
    number, seq = idle
    moved = connection.execute(_MOVE, {"of_writer": number, "known": seq, "now": now})
    return Writer(number, seq + 1) if moved.rowcount == 1 else None


def _inserted(connection: Connection, now: datetime) -> Writer:
    result = connection.execute(
        insert(berth_writer).values(seq=0, trimmed_seq=0, kept_seq=0, updated_at=now)
    )
    (number,) = result.inserted_primary_key or (None,)
    assert number is not None, "the table gives ids by itself"
    return Writer(number, 0)
