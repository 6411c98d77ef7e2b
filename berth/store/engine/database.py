# SPDX-License-Identifier: Apache-2.0
"""A database as berth uses it: consistent reads, and writes that are retried as a whole.

Retries live here and nowhere else: a unit of work that met a lock, a deadlock or another request's
change is run again from its first read, after a random pause, a bounded number of times.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Engine, Executable, exc, select

from berth.model.errors import LostRace, OutcomeUnknown, UnsupportedDatabase
from berth.store.engine import journal
from berth.store.engine.connections import CommitFailed, DedicatedConnection, PoolCounts, Stamp
from berth.store.engine.dialect import Dialect, PoolOptions, Translated, is_lost, unavailable
from berth.store.engine.expressions import server_time
from berth.store.engine.group_commit import (
    Batchable,
    Committing,
    GroupCommit,
    PartlyApplied,
    SharedTransaction,
    Write,
)
from berth.store.engine.placement_sweep import PlacementSweep
from berth.store.engine.prepared import Parameters, Runner, Statements
from berth.store.engine.transaction import Apart, Change, NoWriter, OwnCommits, Tx, Writer
from berth.store.engine.write_record import WriteRecord

T = TypeVar("T")

#: The default number of runs of one unit of work that may lose a race.
ATTEMPTS: Final = 10

#: Each process trims the journal once in this number of commits; an idle database needs no trim.
_COMMITS_BETWEEN_TRIMS: Final = 1000

#: Runs that the engine may refuse because of others (a lock, a deadlock, a cluster's conflict), and
#: the time after which no other run starts.
_BUSY_ATTEMPTS: Final = 100
_BUSY_S_MAX: Final = 10.0

#: Runs that may lose their connection; a failure to connect at all is reported at once.
_LOST_ATTEMPTS: Final = 3

#: Runs that may require another commit first: each may find changes made since the last one.
_DETOURS: Final = 10

#: Runs of a group of writes that the engine refuses because of others, before they run one by one.
_GROUP_RUNS: Final = 4

#: How long berth tries to find out whether a commit took place.
_OUTCOME_S_MAX: Final = 8.0
_OUTCOME_PAUSE_S: Final = 0.1

#: The longest pause before a unit is run again.
_PAUSE_S_MAX: Final = 0.02

_CLOCK: Final = select(server_time())

_LOST_RACE: Final = "lost race"
_BUSY: Final = "busy"
_LOST_CONNECTION: Final = "lost connection"


class _CommitFailed(CommitFailed):
    """A COMMIT failed that would have advanced this process's clock row to `writer` and noted
    `touched`."""

    def __init__(self, writer: Writer, touched: journal.Touched, error: exc.DBAPIError) -> None:
        super().__init__(str(error))
        self.writer = writer
        self.touched = touched
        self.error = error


class CommitFirst(Exception):
    """A unit of work cannot continue until something else is committed; then it runs again.

    Args:
        make_commit: makes that commit.
    """

    def __init__(self, make_commit: Callable[[Database], object]) -> None:
        super().__init__("something else has to be committed first")
        self.make_commit: Final = make_commit


class Observer:
    """Receives events of a database, in the thread that uses it; this one ignores them."""

    def committed(self, writes: int) -> None:
        """One commit contained this number of writes."""

    def retried(self, reason: str | None) -> None:
        """A unit of work, or several in one transaction, will run again: `Database.retries`."""

    def pool_changed(self, connections: int, in_use: int) -> None:
        """The pool now has this number of connections, of which `in_use` are in use."""

    def found_foreign_write(self) -> None:
        """berth found a provider that another program wrote: see `foreign_writes`."""

    def expired(self, consumers: int) -> None:
        """A commit released this many consumers, because their leases had expired."""


def utc_now() -> datetime:
    """The current time as the tables store it: UTC, naive."""
    return datetime.now(UTC).replace(tzinfo=None)


class Database:
    """One database, for all threads of this process. Made by `opening.open_database`."""

    #: What a request writes; None if nobody asks. See `recording`.
    record: WriteRecord | None = None

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
        journal_kept: timedelta,
    ) -> None:
        self.engine: Final = engine
        self.dialect: Final = dialect
        self.pool: Final = pool
        #: Runs that were repeated, by reason: "busy", "lost race" or "lost connection".
        self.retries: Final[Counter[str | None]] = Counter()
        self.observer = Observer()
        #: Set after each commit of this process; whoever waits for it clears it.
        self.has_committed: Final = threading.Event()
        #: Makes the span of a write, by its name; None without tracing.
        self.tracer: Callable[[str], AbstractContextManager[object]] | None = None
        self._pool_counts = PoolCounts(
            engine, lambda connections, in_use: self.observer.pool_changed(connections, in_use)
        )
        dedicated = partial(
            DedicatedConnection,
            engine,
            survives=dialect.is_transient,
            recycle_s=None if dialect.is_embedded else pool.recycle_s,
        )
        self._clock = clock
        self._rng = rng
        self._sleep = sleep
        self._in_list_max = in_list_max
        self._journal_kept = journal_kept
        self._statements = Statements(engine.dialect)
        self._writes = GroupCommit(self._settle, mixes_batches=dialect.is_embedded)
        #: The clock row that the leader of a group commit uses. Not kept per connection: those
        #: beyond the pool's size come and go, and each would leave a clock row behind.
        self._writer: Writer | None = None
        self.own_commits: Final = OwnCommits()
        self._placement_sweep = PlacementSweep()
        self._writing = dedicated(set_up=self._opened(dialect.for_writing))
        #: For single queries, which need no transaction.
        self._asking = dedicated(set_up=dialect.for_reading)
        self._is_asking = threading.Lock()
        #: Never writes, because its commit stamp does not reflect its own commits.
        self._watching = dedicated(set_up=self._opened(dialect.for_reading))

    @property
    def engine_name(self) -> str:
        """The engine, for people: sqlite, postgresql, mysql or mariadb."""
        return self.engine.dialect.name

    def recording(self, record: WriteRecord) -> Database:
        """This database, for a request whose writes are to be recorded."""
        recorded = copy(self)
        recorded.record = record
        return recorded

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A transaction that sees one state of the database throughout, and changes nothing.

        Raises:
            DatabaseUnavailable: the database cannot be read.
        """
        self.dialect.ensure_in_place()
        with Translated(), self.engine.connect() as connection:
            connection.begin()
            yield self._begun(Runner(connection))

    def rows(self, query: Executable, parameters: Parameters) -> list[Any]:
        """The rows of a single query that is built once, in one round trip.

        The query sees one state of the database without a transaction around it. If another thread
        is using the connection for such queries, this one takes a connection of the pool.

        Raises:
            DatabaseUnavailable: the database cannot be read.
        """
        if not self._is_asking.acquire(blocking=False):
            with self.read() as tx:
                return tx.rows(query, parameters)
        try:
            self.dialect.ensure_in_place()
            with Translated():
                prepared = self._statements.prepared(query)
                return self._asking.ask(lambda run: prepared.rows(run, parameters))
        finally:
            self._is_asking.release()

    def write(
        self,
        unit: Callable[[Tx], T],
        *,
        attempts: int = ATTEMPTS,
        batch: Batchable | None = None,
        committing: Committing | None = None,
    ) -> T:
        """Run a unit of work and commit it; if it fails, none of its changes are written.

        Units of several threads may share a transaction. Each still succeeds or fails on its own,
        and its result is returned only after everything that it could see has been committed. A
        unit may run several times, so it must read everything that it depends on. `attempts` limits
        the runs that end in a lost race; 0 counts as 1. Lock timeouts, and connections lost before
        a COMMIT was sent, have limits of their own.

        Args:
            batch: runs several such units at once; only for units that return None.
            committing: told, before each attempt to commit it, the writer and the count of its
                commits that an index has when it has this write. A short call, by any thread.

        Raises:
            LostRace: other requests were faster each time.
            DatabaseUnavailable: the database cannot be written, or was locked each time, or it is
                not known whether the commit took place (spec/commit-rules.md, rule 7).
        """
        if self.tracer is None:
            return self._write(unit, attempts, batch, committing)
        with self.tracer("commit"):
            return self._write(unit, attempts, batch, committing)

    def _write(
        self,
        unit: Callable[[Tx], T],
        attempts: int,
        batch: Batchable | None,
        committing: Committing | None,
    ) -> T:
        runs_left: Counter[str | None] = Counter(
            {_LOST_RACE: max(attempts, 1), _BUSY: _BUSY_ATTEMPTS, _LOST_CONNECTION: _LOST_ATTEMPTS}
        )
        detours_left = _DETOURS
        deadline = time.monotonic() + _BUSY_S_MAX
        with Translated():
            while True:
                write = Write(unit, batch, committing)
                self._writes.settle(write)
                try:
                    result: T = write.outcome()
                    return result
                except CommitFirst as detour:
                    detours_left -= 1
                    if not detours_left or time.monotonic() > deadline:
                        raise LostRace("a resource provider") from detour
                    detour.make_commit(self)
                except (LostRace, exc.DBAPIError) as error:
                    reason = self._reason_to_retry(error)
                    runs_left[reason] -= 1
                    if runs_left[reason] <= 0 or time.monotonic() > deadline:
                        raise
                    self._count_retry(reason)
                self._pause()

    def write_unnoted(self, unit: Callable[[Tx], T]) -> T:
        """Run a unit of work in its own transaction and commit it without a journal entry: for a
        schema that is being created, and for rows that no index has loaded.

        Raises:
            DatabaseUnavailable: the database cannot be written. Changes of tables, which some
                engines commit at once, may remain.
        """
        with Translated(), self._begun_to_write() as run:
            result = unit(self._begun(run))
            self._end(run)
        return result

    def reach(self) -> bool:
        """Connect once, and return whether that worked. False: a later attempt may work.

        Raises:
            DatabaseUnavailable: no later attempt can work either.
        """
        with Translated():
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
        """Whether an error means that the server is away, so that a retry of the whole operation
        may succeed. A read or write that the server refused would be refused again."""
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, exc.DBAPIError):
            cause = cause.__cause__
        return cause is not None and (is_lost(cause) or self.dialect.is_away(cause.orig))

    def clock(self) -> datetime:
        """The time that decides what has expired, with its fraction of a second, whatever the
        columns keep: naive UTC, of the server if there is one.

        Raises:
            DatabaseUnavailable: the database cannot be queried.
        """
        if self.dialect.is_embedded:
            return self._clock()
        now: datetime
        ((now,),) = self.rows(_CLOCK, {})
        return now

    def commit_stamp(self) -> Stamp:
        """A value that differs from an earlier one if anyone has committed in between.

        Cost: no query on an embedded engine, one round trip to a server.

        Raises:
            DatabaseUnavailable: the database cannot be queried.
        """
        self.dialect.ensure_in_place()
        with Translated():
            return self._watching.ask(self._stamp)

    @contextmanager
    def watch(self) -> Iterator[Tx]:
        """As `read`, for one reader at a time with frequent, short transactions: the index.

        Raises:
            DatabaseUnavailable: the database cannot be read.
        """
        self.dialect.ensure_in_place()
        with Translated(), self._watching.use(self.dialect.begin_reading) as run:
            yield self._begun(run)

    def dispose(self) -> None:
        """Close all connections. A later use opens new ones."""
        self._watching.close()
        self._asking.close()
        self._writing.close()
        self.engine.dispose()

    def forget_connections(self) -> None:
        """In a forked child: drop the parent's connections without closing them."""
        self._watching.forget()
        self._asking.forget()
        self._is_asking = threading.Lock()
        self._writing.forget()
        self._writer = None
        self.own_commits.clear()
        self._writes = GroupCommit(self._settle, mixes_batches=self.dialect.is_embedded)
        self._pool_counts.forget()
        self.engine.dispose(close=False)

    def _opened(self, set_up: Callable[[Connection], Connection]) -> Callable[[Any], Connection]:
        """Prepares a connection to what may be another database than before, as after a restore."""

        def opened(connection: Connection) -> Connection:
            self.own_commits.clear()
            return set_up(connection)

        return opened

    def _stamp(self, run: Runner) -> Stamp:
        return Stamp(self._watching.opened, self.dialect.commit_stamp(run))

    def _settle(self, take: Callable[[], list[Write]]) -> None:
        """Run and commit the waiting writes: together if possible, else each on its own, so that
        an error in one does not fail all.

        Raises:
            SQLAlchemyError: no transaction could begin, the connection was lost, or the only write
                failed.
        """
        writes: list[Write] = []

        def taken() -> list[Write]:
            if not writes:
                writes.extend(take())
            return writes

        ending: Callable[[Tx], list[Change]] | None = self._ending
        for runs_left in reversed(range(_GROUP_RUNS)):
            try:
                self._commit_together(taken, ending)
            except NoWriter:
                self._writer = self._registered()
            except Apart:
                ending = None
            except exc.SQLAlchemyError as error:
                if len(writes) < 2 or is_lost(error):
                    raise
                if not runs_left or not self.dialect.is_transient(getattr(error, "orig", None)):
                    break
                self._count_retry(_BUSY)
                self._pause()
            except PartlyApplied:
                break
            else:
                return
        for write in writes:
            self._settle_alone(write)

    def _commit_together(
        self, take: Callable[[], list[Write]], ending: Callable[[Tx], list[Change]] | None
    ) -> None:
        """Run writes in one transaction, commit it, and set the outcome of each.

        Raises:
            PartlyApplied: they cannot share a transaction.
            Apart, NoWriter: see there.
        """
        with self._begun_to_write() as run:
            writes = take()
            shared = SharedTransaction(run, self.dialect, self._begun, ending)
            done = shared.run_alone(writes[0]) if len(writes) == 1 else shared.run_all(writes)
            applied = [write for write, outcome in done.items() if outcome.error is None]
            if applied:
                self._commit(run, list(dict.fromkeys(done[write].tx for write in applied)), applied)
                self.observer.committed(len(applied))
                self.has_committed.set()
        for write, outcome in done.items():
            if outcome.error is None:
                write.succeed(outcome.result)
            else:
                write.fail(outcome.error)

    def _settle_alone(self, write: Write) -> None:
        """Run and commit one of several writes, and set its outcome."""
        try:
            self._settle(lambda: [write])
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for it
            write.fail(error)

    @contextmanager
    def _begun_to_write(self) -> Iterator[Runner]:
        """A dedicated connection in a transaction that may write; rolled back unless committed.

        Raises:
            DatabaseMoved: the file was moved, so a commit would be lost.
            OutcomeUnknown: it may have been committed.
        """
        try:
            with self._writing.use(self.dialect.begin_writing) as run:
                self.dialect.ensure_in_place(writing=True)
                yield run
        except _CommitFailed as failure:
            # Whatever the outcome, another process may own the clock row by now.
            self._writer = None
            if not self._has_committed(failure):
                # Not `from failure`, whose cause is this error: chains of causes end.
                raise failure.error from failure.error.__cause__
            self._writer = failure.writer
            self.dialect.ensure_in_place(committed=True)

    def _commit(self, run: Runner, parts: Sequence[Tx], writes: Sequence[Write]) -> None:
        """Commit some writes, whose units ran in some parts, with their journal entries.

        Raises:
            DBAPIError: the commit did not take place.
            NoWriter: it cannot until this process has a clock row.
            _CommitFailed: it may have taken place.
        """
        touched = journal.Touched.of(parts)
        if not touched:
            self._end(run)
            return
        tx = parts[-1]
        if self._writer is None:
            raise NoWriter
        if tx.noted is None:
            journal.record(tx, self._writer, touched)
        else:
            assert tx.noted == touched, "something was touched after the last write"
        writer = self._writer.next
        for write in writes:
            if write.committing is not None:
                write.committing(*writer)
        if writer.seq % _COMMITS_BETWEEN_TRIMS == 0:
            journal.trim(tx, tx.now - self._journal_kept)
            journal.fold_idle(tx, tx.now)
            self._placement_sweep.run(tx, tx.now - self._journal_kept)
        try:
            self._end(run)
        except exc.DBAPIError as error:
            if self.dialect.is_transient(error.orig):
                raise
            raise _CommitFailed(writer, touched, error) from error
        self._writer = writer
        self.own_commits.add(writer, parts)

    def _end(self, run: Runner) -> None:
        """Commit, and make sure that the commit is where the next process will look for it."""
        run.commit()
        self.dialect.ensure_in_place(committed=True)

    def _has_committed(self, failure: _CommitFailed) -> bool:
        """Whether a COMMIT that failed took place after all; if not, it never will.

        Raises:
            OutcomeUnknown: the database cannot be queried.
        """
        deadline = time.monotonic() + _OUTCOME_S_MAX
        while True:
            try:
                return self._outcome_of(failure)
            except exc.SQLAlchemyError as error:
                if self.dialect.is_embedded or time.monotonic() > deadline:
                    raise OutcomeUnknown from unavailable(error)
            self._sleep(_OUTCOME_PAUSE_S)

    def _outcome_of(self, failure: _CommitFailed) -> bool:
        """Look for the journal entry that is part of the commit and that only it can write.

        The server may still be about to commit. Its transaction then holds the clock row, so this
        advances that row: it waits for the transaction to end, or makes its commit fail.
        """
        if not self.dialect.is_embedded:
            with self._writing.use(self.dialect.begin_writing) as run:
                tx = self._begun(run)
                journal.fence(tx, failure.writer, failure.touched, self._now())
                run.commit()
        with self.engine.connect() as connection:
            connection.begin()
            return journal.has_noted(self._begun(Runner(connection)), failure.writer)

    def _registered(self) -> Writer:
        """A clock row for this process, committed before its first use, so that its seq later shows
        which commits took place."""
        with self._begun_to_write() as run:
            tx = self._begun(run)
            writer = journal.register_writer(tx, tx.now)
            self._end(run)
        return writer

    def _begun(self, run: Runner) -> Tx:
        return Tx(
            run,
            self.dialect,
            self._statements,
            now=self._now(),
            in_list_max=self._in_list_max,
        )

    def _ending(self, tx: Tx) -> list[Change]:
        if self._writer is None:
            return []
        touched = journal.Touched.of([tx])
        if not touched:
            return []
        tx.noted = touched
        return journal.recording(tx, self._writer, touched)

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
