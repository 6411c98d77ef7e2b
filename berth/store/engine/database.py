# SPDX-License-Identifier: Apache-2.0
"""A database as berth uses it: consistent reads, and writes that are retried as a whole.

Retries live here and nowhere else: a unit of work that met a lock, a deadlock or another request's
change is run again from its first read, after a random pause, a bounded number of times.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Protocol, TypeVar

from sqlalchemy import Engine, exc

from berth.model.errors import DatabaseUnavailable, LostRace, UnsupportedDatabase
from berth.store.engine import journal
from berth.store.engine.dialect import Dialect, PoolOptions
from berth.store.engine.driver_errors import is_lost, translated
from berth.store.engine.group_commit import GroupCommit, Joint, Write
from berth.store.engine.pool_counts import PoolCounts
from berth.store.engine.prepared import Runner, Statements
from berth.store.engine.shared_transaction import SharedTransaction, Stained
from berth.store.engine.standing import CommitFailed, StandingConnection
from berth.store.engine.transaction import Tx

T = TypeVar("T")

#: Runs of one unit of work that may lose a race, when its caller does not say.
ATTEMPTS: Final = 10

#: For how long the journal is kept: a reader that slept longer reloads everything.
JOURNAL_KEPT: Final = timedelta(hours=1)

#: Each process trims the journal with one commit in so many; an idle database needs no trimming.
_COMMITS_BETWEEN_TRIMS: Final = 1000

#: Runs that the engine may refuse because of others (a lock, a deadlock, a cluster's conflict), and
#: the time after which another is not begun.
_BUSY_ATTEMPTS: Final = 100
_BUSY_S_MAX: Final = 10.0

#: Runs that may lose their connection; what cannot be connected to at all is told at once.
_LOST_ATTEMPTS: Final = 3

#: Runs that may ask for something else to be committed first: each finds what came after the last.
_DETOURS: Final = 10

#: Runs of a group of writes that the engine refuses because of others, before they go apart.
_GROUP_RUNS: Final = 4

#: For how long it is tried to find out what became of a commit.
_OUTCOME_S_MAX: Final = 8.0
_OUTCOME_PAUSE_S: Final = 0.1

#: The longest pause before a unit is run again.
_PAUSE_S_MAX: Final = 0.02

_LOST_RACE: Final = "lost race"
_BUSY: Final = "busy"
_LOST_CONNECTION: Final = "lost connection"


class CommitStamp(NamedTuple):
    """What a connection says of the commits of others; the numbers of two connections have nothing
    to do with each other."""

    connection: int
    number: int


class _CommitFailed(CommitFailed):
    """A COMMIT that would have moved this process's row of the clock to `writer`, noting what it
    touched."""

    def __init__(
        self, writer: journal.Writer, touched: journal.Touched, error: exc.DBAPIError
    ) -> None:
        super().__init__(str(error))
        self.writer = writer
        self.touched = touched
        self.error = error


class _OutcomeUnknown(DatabaseUnavailable):
    """A commit may have taken place or not."""

    def __init__(self) -> None:
        message = (
            "The database failed while it committed, and cannot be asked whether it did: look "
            "before you try again"
        )
        super().__init__(message, public=message)


class CommitFirst(Exception):
    """A unit of work cannot go on before something else has been committed; then it is run again.

    Args:
        what: does that.
    """

    def __init__(self, what: Callable[[Database], object]) -> None:
        super().__init__("something else has to be committed first")
        self.what: Final = what


class Observer(Protocol):
    """Is told what a database is used for, by the thread that uses it."""

    def committed(self, writes: int) -> None:
        """So many writes were in one commit."""

    def retried(self, reason: str | None) -> None:
        """A unit of work, or several in one transaction, are run again: see `Database.retries`."""

    def pool_changed(self, connections: int, in_use: int) -> None:
        """The pool has so many connections now, and so many of them are in use."""

    def found_foreign_write(self) -> None:
        """Another program had written a provider: see `foreign_writes`."""


class Unobserved:
    """Nobody wants to know."""

    def committed(self, writes: int) -> None:
        """Nothing."""

    def retried(self, reason: str | None) -> None:
        """Nothing."""

    def pool_changed(self, connections: int, in_use: int) -> None:
        """Nothing."""

    def found_foreign_write(self) -> None:
        """Nothing."""


def utc_now() -> datetime:
    """The time as the tables hold it: UTC, naive."""
    return datetime.now(UTC).replace(tzinfo=None)


class Database:
    """One database, for all threads of this process. Made by `opening.open_database`."""

    def __init__(
        self,
        engine: Engine,
        dialect: Dialect,
        *,
        pool: PoolOptions,
        clock: Callable[[], datetime],
        rng: random.Random,
        sleep: Callable[[float], None],
        in_list_max: int,
    ) -> None:
        self.engine: Final = engine
        self.dialect: Final = dialect
        self.pool: Final = pool
        #: Runs that were repeated, by reason: "busy", "lost race" or "lost connection".
        self.retries: Final[Counter[str | None]] = Counter()
        self.observer: Observer = Unobserved()
        self._pool_counts = PoolCounts(
            engine, lambda connections, in_use: self.observer.pool_changed(connections, in_use)
        )
        recycle_s = None if dialect.is_embedded else pool.recycle_s
        self._clock = clock
        self._rng = rng
        self._sleep = sleep
        self._in_list_max = in_list_max
        self._statements = Statements(engine.dialect)
        self._writes = GroupCommit(self._settle, mixes_kinds=dialect.is_embedded)
        #: For whoever leads a group commit. Not kept with a connection: those beyond the pool's
        #: size come and go, and each would leave a row of the clock behind.
        self._writer: journal.Writer | None = None
        self._writing = StandingConnection(
            engine, dialect.for_writing, survives=dialect.is_transient, recycle_s=recycle_s
        )
        #: Never writes, or it would not be told of all commits.
        self._watching = StandingConnection(
            engine, dialect.for_reading, survives=dialect.is_transient, recycle_s=recycle_s
        )

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A transaction that sees one state of the database throughout, and changes nothing.

        Raises:
            DatabaseUnavailable: the database cannot be read.
        """
        self.dialect.ensure_in_place()
        with translated(), self.engine.connect() as connection:
            connection.begin()
            yield self._begun(Runner(connection))

    def write(
        self, unit: Callable[[Tx], T], *, attempts: int = ATTEMPTS, joint: Joint | None = None
    ) -> T:
        """Run a unit of work and commit it, or leave nothing of it.

        Units of several threads may share a transaction; each still succeeds or fails on its own,
        and what it finds out is told only when all that it could see has been committed. A unit may
        be run several times, so all that it knows must be read in it. `attempts` bounds the runs
        that end in a lost race; 0 counts as 1. Locks that do not come free, and connections that
        are lost before a COMMIT was sent, have bounds of their own.

        Args:
            joint: does the same for several such units at once; for units that give None.

        Raises:
            LostRace: other requests were faster each time.
            DatabaseUnavailable: the database cannot be written, or was locked each time; or it is
                not known whether it was written (spec/commit-rules.md, rule 7).
        """
        runs_left: Counter[str | None] = Counter(
            {_LOST_RACE: max(attempts, 1), _BUSY: _BUSY_ATTEMPTS, _LOST_CONNECTION: _LOST_ATTEMPTS}
        )
        detours_left = _DETOURS
        deadline = time.monotonic() + _BUSY_S_MAX
        with translated():
            while True:
                write = Write(unit, joint)
                self._writes.settle(write)
                try:
                    result: T = write.outcome()
                    return result
                except CommitFirst as detour:
                    detours_left -= 1
                    if not detours_left or time.monotonic() > deadline:
                        raise LostRace("a resource provider") from detour
                    detour.what(self)
                except (LostRace, exc.DBAPIError) as error:
                    reason = self._reason_to_retry(error)
                    runs_left[reason] -= 1
                    if runs_left[reason] <= 0 or time.monotonic() > deadline:
                        raise
                    self._count_retry(reason)
                self._pause()

    def write_unnoted(self, unit: Callable[[Tx], T]) -> T:
        """Run a unit of work in a transaction of its own and commit it, with no note of what it
        touched: for a schema that is in the making, and rows of which nobody has an index.

        Raises:
            DatabaseUnavailable: the database cannot be written; what an engine commits by itself
                with each change of a table may have been.
        """
        with translated(), self._begun_to_write() as run:
            result = unit(self._begun(run))
            self.dialect.ensure_in_place(writing=True)
            run.commit()
        return result

    def reach(self) -> bool:
        """Connect once; whether that went well. False where it may later.

        Raises:
            DatabaseUnavailable: it cannot, now or later.
        """
        with translated():
            try:
                with self.engine.connect():
                    return True
            except (TypeError, exc.ProgrammingError) as error:
                said = str(getattr(error, "orig", None) or error).strip()
                raise UnsupportedDatabase(f"the database URL cannot be used: {said}") from error
            except exc.DBAPIError as error:
                if not self.dialect.is_away(error.orig):
                    raise
        return False

    def may_come_back(self, error: BaseException) -> bool:
        """Whether a failure came of a server that is away, so that all that was begun may succeed
        when it is done again; a read or a write that was refused is refused again."""
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, exc.DBAPIError):
            cause = cause.__cause__
        return cause is not None and (is_lost(cause) or self.dialect.is_away(cause.orig))

    def commit_stamp(self) -> CommitStamp | None:
        """A value that differs from an earlier one if anyone has committed in between.

        None on engines that have no such thing: then assume that somebody has. Cost: no query on an
        embedded engine, one round trip to a server.

        Raises:
            DatabaseUnavailable: the database cannot be asked.
        """
        self.dialect.ensure_in_place()
        with translated():
            return self._watching.ask(self._stamp)

    @contextmanager
    def watch(self) -> Iterator[Tx]:
        """As `read`, for one reader at a time that comes often and is soon done: the index.

        Raises:
            DatabaseUnavailable: the database cannot be read.
        """
        self.dialect.ensure_in_place()
        with translated(), self._watching.use(self.dialect.begin_reading) as run:
            yield self._begun(run)

    def dispose(self) -> None:
        """Close all connections. A database that is used again simply opens new ones."""
        self._watching.close()
        self._writing.close()
        self.engine.dispose()

    def forget_connections(self) -> None:
        """In a forked child: let go of the parent's connections without closing them."""
        self._watching.forget()
        self._writing.forget()
        self._writer = None
        self._writes = GroupCommit(self._settle, mixes_kinds=self.dialect.is_embedded)
        self._pool_counts.forget()
        self.engine.dispose(close=False)

    def _stamp(self, run: Runner) -> CommitStamp | None:
        number = self.dialect.commit_stamp(run)
        return None if number is None else CommitStamp(self._watching.opened, number)

    def _settle(self, take: Callable[[], list[Write]]) -> None:
        """Run and commit what waits: together if that goes well, else each on its own, since a
        fault in one of them must not be a fault of all.

        Raises:
            SQLAlchemyError: nothing could be begun, the connection was lost, or the only one
                failed.
        """
        writes: list[Write] = []

        def taken() -> list[Write]:
            if not writes:
                writes.extend(take())
            return writes

        for runs_left in reversed(range(_GROUP_RUNS)):
            try:
                self._commit_together(taken)
            except journal.NoWriter:
                self._writer = self._enrolled()
            except exc.SQLAlchemyError as error:
                if len(writes) < 2 or is_lost(error):
                    raise
                if not runs_left or not self.dialect.is_transient(getattr(error, "orig", None)):
                    break
                self._count_retry(_BUSY)
                self._pause()
            except Stained:
                break
            else:
                return
        for write in writes:
            self._settle_alone(write)

    def _commit_together(self, take: Callable[[], list[Write]]) -> None:
        """Run writes in one transaction, commit it, and tell each what became of it.

        Raises:
            Stained: they cannot share one.
        """
        with self._begun_to_write() as run:
            writes = take()
            shared = SharedTransaction(run, self.dialect, self._begun)
            done = shared.run_alone(writes[0]) if len(writes) == 1 else shared.run_all(writes)
            parts = dict.fromkeys(one.tx for one in done.values() if one.error is None)
            if parts:
                self._commit(run, list(parts))
                self.observer.committed(sum(one.error is None for one in done.values()))
        for write, one in done.items():
            if one.error is None:
                write.succeed(one.result)
            else:
                write.fail(one.error)

    def _settle_alone(self, write: Write) -> None:
        """Run and commit one of several; what becomes of it is its own."""
        try:
            self._settle(lambda: [write])
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for it
            write.fail(error)

    @contextmanager
    def _begun_to_write(self) -> Iterator[Runner]:
        """A standing connection in a transaction that may write; rolled back unless committed.

        Raises:
            _OutcomeUnknown: it may have been committed.
        """
        try:
            with self._writing.use(self.dialect.begin_writing) as run:
                yield run
        except _CommitFailed as failure:
            # Whatever comes of asking, a row of the clock that another may hold is not ours.
            self._writer = None
            if not self._has_committed(failure):
                raise failure.error from failure
            self._writer = failure.writer

    def _commit(self, run: Runner, parts: Sequence[Tx]) -> None:
        """Commit what some units have written, with its note in the journal.

        Raises:
            DBAPIError: it has not been committed.
            NoWriter: it cannot be until this process has a row of the clock.
            _CommitFailed: it may have been committed.
            DatabaseMoved: nobody would find it again.
        """
        self.dialect.ensure_in_place(writing=True)
        touched = journal.Touched.of(parts)
        if not touched:
            run.commit()
            return
        now = self._now()
        writer = journal.record(self._begun(run), self._writer, touched, now)
        if writer.seq % _COMMITS_BETWEEN_TRIMS == 0:
            journal.trim(run.connection, now - JOURNAL_KEPT)
        try:
            run.commit()
        except exc.DBAPIError as error:
            if self.dialect.is_transient(error.orig):
                raise
            raise _CommitFailed(writer, touched, error) from error
        self._writer = writer

    def _has_committed(self, failure: _CommitFailed) -> bool:
        """Whether a commit took place, though it did not say so; if not, it never will.

        Raises:
            _OutcomeUnknown: the database cannot be asked.
        """
        deadline = time.monotonic() + _OUTCOME_S_MAX
        while True:
            try:
                return self._outcome_of(failure)
            except exc.SQLAlchemyError as error:
                if self.dialect.is_embedded or time.monotonic() > deadline:
                    raise _OutcomeUnknown from error
            self._sleep(_OUTCOME_PAUSE_S)

    def _outcome_of(self, failure: _CommitFailed) -> bool:
        """Its note in the journal is a part of the commit, and nobody else can have written that.

        A server may be about to commit still. It holds the row of the clock then; so that row is
        moved on, which waits for the server, or makes the commit one that must fail.
        """
        if not self.dialect.is_embedded:
            with self._writing.use(self.dialect.begin_writing) as run:
                tx = self._begun(run)
                journal.fence(tx, failure.writer, failure.touched, self._now())
                run.commit()
        with self.engine.connect() as connection:
            return journal.has_noted(connection, failure.writer)

    def _enrolled(self) -> journal.Writer:
        """A row of the clock for this process, committed before it is used: whose seq has moved
        then tells what has been committed."""
        with self._begun_to_write() as run:
            writer = journal.enrol(run.connection, self._now())
            run.commit()
        return writer

    def _begun(self, run: Runner) -> Tx:
        return Tx(
            run,
            self.dialect,
            self._statements,
            now=self._now(),
            in_list_max=self._in_list_max,
        )

    def _now(self) -> datetime:
        return self.dialect.stored_time(self._clock())

    def _reason_to_retry(self, error: LostRace | exc.DBAPIError) -> str | None:
        if isinstance(error, LostRace):
            return _LOST_RACE
        if self.dialect.is_transient(error.orig):
            return _BUSY
        return _LOST_CONNECTION if is_lost(error) else None

    def _count_retry(self, reason: str | None) -> None:
        self.retries[reason] += 1
        self.observer.retried(reason)

    def _pause(self) -> None:
        self._sleep(self._rng.uniform(0, _PAUSE_S_MAX))


def trim_journal(db: Database, older_than: datetime) -> int:
    """Forget what the journal noted before a time; the number of rows that went.

    A reader that had not applied them yet sees it by `trimmed_seq` and reloads everything.
    """
    return db.write(lambda tx: journal.trim(tx.connection, older_than))
