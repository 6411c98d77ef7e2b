# SPDX-License-Identifier: Apache-2.0
"""The writers' clock and the journal: how every index learns what each commit touched.

Each process that writes owns a row of `berth_writer` and counts its commits there. `berth_journal`
lists the providers that each commit touched under that count, whether only their usage changed, and
the UUIDs of those that it deleted.
Both are part of the commit itself.
Commit order between writers does not matter, and a gap in the numbers means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import Update, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from berth.store.engine.prepared import insert_of
from berth.store.engine.project_deltas import ProjectDeltas
from berth.store.engine.project_usages import adding, fold
from berth.store.engine.tables import berth_journal, berth_writer
from berth.store.engine.transaction import Change, NoWriter, Tx, Writer

#: In the journal, instead of a provider: definitions of traits or resource classes, spellings or
#: labels of aggregates, flavors, drains, or the database's identity, changed.
NAMES: Final = 0

#: Another process may take over a row that has not been written for this long.
_IDLE: Final = timedelta(hours=1)

_note = berth_journal.c
_writer = berth_writer.c
_of_writer = _note.writer_id == _writer.id

#: (writer, the last of its counts that can be deleted, or NULL).
#: PERF each walks along the primary key, from the oldest row. Selecting the largest old count
#: instead would read the whole journal, an hour of commits, inside a write.
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
    """Advances a writer's row, if it is at the known count."""
    return (
        update(berth_writer)
        .where(_writer.id == bindparam("of_writer"), _writer.seq == bindparam("known"))
        .values(seq=_writer.seq + by, updated_at=bindparam("now"))
    )


#: PERF built once; building a statement takes longer than running it.
_MOVE: Final = _counting_on(1)
#: Skips the count of a commit that did not take place, but that a reader may have seen.
_FENCE: Final = _counting_on(2)
_IDLE_WRITER: Final = (
    select(_writer.id, _writer.seq)
    .where(_writer.updated_at < bindparam("before"))
    .order_by(_writer.id)
    .limit(1)
)
_NEW_WRITER: Final = insert(berth_writer).values(seq=0, trimmed_seq=0, updated_at=bindparam("now"))
_HAS_NOTED: Final = (
    select(_note.seq)
    .where(_note.writer_id == bindparam("of_writer"), _note.seq == bindparam("seq"))
    .limit(1)
)
_NOTE: Final = insert_of(berth_journal, *berth_journal.c.keys())


class Touched(NamedTuple):
    """Providers that changed, those of which only the usage changed, the changes of what projects
    use, and the UUIDs of the providers that are gone."""

    providers: frozenset[int]
    usage_only: frozenset[int]
    project_usages: ProjectDeltas
    gone: Mapping[int, str]

    @classmethod
    def of(cls, parts: Sequence[Tx]) -> Touched:
        """The union of what the parts of one commit touch."""
        providers: set[int] = set()
        usage_only: set[int] = set()
        gone: dict[int, str] = {}
        for tx in parts:
            providers.update(tx.touched)
            usage_only.update(tx.usage_changed)
            # The first one: a later one with the same id was created in this commit.
            gone = {**tx.gone, **gone}
            if tx.names_touched:
                providers.add(NAMES)
        if len(parts) == 1:
            deltas = parts[0].project_usages
        else:
            deltas = ProjectDeltas().merge(tx.project_usages for tx in parts)
        return cls(frozenset(providers), frozenset(usage_only - providers), deltas, gone)

    def __bool__(self) -> bool:
        return bool(self.providers or self.usage_only)


def record(tx: Tx, previous: Writer, touched: Touched) -> None:
    """Count one commit, note what it touches, and change the counters of projects.

    Call it last in the transaction.

    Raises:
        NoWriter: register the process first.
    """
    try:
        tx.change_all(recording(tx, previous, touched))
    except IntegrityError as error:
        # The process that took over the row has written the same entry.
        raise NoWriter from error


def recording(tx: Tx, previous: Writer, touched: Touched) -> list[Change]:
    """The writes of `record`, to be sent with the last ones of the commit."""
    writer = previous.next
    return [
        Change(_MOVE, [_move_of(previous, tx.now)], _check_moved),
        Change(_NOTE, _notes(writer, touched, tx.now)),
        adding(tx, touched.project_usages, writer.id),
    ]


def _check_moved(counts: Sequence[int]) -> None:
    if sum(counts) != 1:
        raise NoWriter


def _move_of(previous: Writer, now: datetime) -> dict[str, Any]:
    return {"of_writer": previous.id, "known": previous.seq, "now": now}


def _notes(writer: Writer, touched: Touched, now: datetime) -> list[dict[str, Any]]:
    return [
        {
            "writer_id": writer.id,
            "seq": writer.seq,
            "provider_id": provider,
            "usage_only": usage_only,
            "created_at": now,
            "gone_uuid": touched.gone.get(provider),
        }
        for providers, usage_only in ((touched.providers, False), (touched.usage_only, True))
        for provider in sorted(providers)
    ]


def has_noted(tx: Tx, writer: Writer) -> bool:
    """Whether a commit has written its journal entry at a count. Only the commit itself does; a
    process that takes over the clock row does not."""
    return bool(tx.rows(_HAS_NOTED, {"of_writer": writer.id, "seq": writer.seq}))


def fence(tx: Tx, writer: Writer, touched: Touched, now: datetime) -> None:
    """Make sure that a commit that would advance the clock to `writer`, and has not yet taken
    place, never does.

    The commit's transaction locks the clock row, so this waits for it. In a cluster it may run on
    another node; there the second of the two is refused.

    RACE tests/store/test_journal.py: InnoDB shows a commit before it is on disk, so a server that
    crashes in between has shown a commit that is lost. So the count skips that of the commit, and
    its changes are noted again, for an index that has applied it.
    """
    if tx.change(_FENCE, _move_of(Writer(writer.id, writer.seq - 1), now)):
        tx.change(_NOTE, _notes(Writer(writer.id, writer.seq + 1), touched, now))


def register_writer(tx: Tx, now: datetime) -> Writer:
    """A clock row for this process: an idle one if there is one, so that the table does not grow
    with every process ever started, or a new one. Commit it before you use it."""
    return _adopt(tx, now) or Writer(tx.insert(_NEW_WRITER, {"now": now}), 0)


def fold_idle(tx: Tx, now: datetime) -> int:
    """Add up the counters of writers that may be taken over; return how many rows."""
    return fold(tx, now - _IDLE)


def trim(tx: Tx, older_than: datetime) -> int:
    """Delete the entries older than a time; return how many rows were deleted.

    A reader that has applied less of a writer than its `trimmed_seq` must reload everything. A
    writer's rows are deleted in the order of its count, up to the first younger one, even if its
    system clock jumped. Cost: a few rows for each writer plus the deleted ones, for any length of
    the journal.
    """
    past = [
        {"of_writer": writer, "horizon": horizon}
        for writer, horizon in tx.rows(_HORIZONS, {"older_than": older_than})
        if horizon is not None
    ]
    if not past:
        return 0
    tx.change(_MARK, past)
    return tx.change(_FORGET, past)


def _adopt(tx: Tx, now: datetime) -> Writer | None:
    """Take over an idle row by incrementing its count.

    RACE tests/store/test_journal.py: the WHERE contains the expected count, here and in `record`,
    so a row never serves two writers, however long one of them slept.
    """
    for number, seq in tx.rows(_IDLE_WRITER, {"before": now - _IDLE}):
        idle = Writer(number, seq)
        if tx.change(_MOVE, _move_of(idle, now)):
            return Writer(number, seq + 1)
    return None
