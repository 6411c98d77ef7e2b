# SPDX-License-Identifier: Apache-2.0
"""A database as berth uses it: consistent reads, and writes that are retried as a whole.

Retries live here and nowhere else: a unit of work that met a lock, a deadlock or another request's
change is run again from its first read, after a random pause, a bounded number of times.
"""

import os
import random
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from sqlalchemy import Connection, Engine, exc
from sqlalchemy.engine import make_url

from berth.model.errors import DatabaseUnavailable, LostRace, UnsupportedDatabase
from berth.store import journal
from berth.store.sqlite import PoolOptions, SqliteDialect

T = TypeVar("T")

#: Runs of one unit of work that may lose a race, when its caller does not say.
ATTEMPTS: Final = 10

#: For how long the journal is kept: a reader that slept longer reloads everything.
JOURNAL_KEPT: Final = timedelta(hours=1)

#: Each process trims the journal with one commit in so many; an idle database needs no trimming.
_COMMITS_BETWEEN_TRIMS: Final = 1000

#: Runs that may fail to get a lock; each has waited for it already (`store/sqlite.py`).
_BUSY_ATTEMPTS: Final = 3

#: The longest pause before a unit is run again.
_PAUSE_S_MAX: Final = 0.02

_LOST_RACE: Final = "lost race"
_BUSY: Final = "busy"


@dataclass(frozen=True, slots=True)
class DatabaseOptions:
    """What an operator may choose about the connection."""

    #: Whether a commit is on disk before it is acknowledged.
    synchronous: bool = True
    pool: PoolOptions = field(default_factory=PoolOptions)


@dataclass(slots=True)
class Tx:
    """A transaction under way, handed to the functions that are a part of it."""

    connection: Connection
    dialect: SqliteDialect
    #: The transaction's own time, naive UTC: one for everything that it writes.
    now: datetime
    #: Ids of the providers of which anything changed: they go to the journal with the commit.
    touched: set[int] = field(default_factory=set)
    #: Whether definitions of traits or resource classes changed.
    names_touched: bool = False


def utc_now() -> datetime:
    """The time as the tables hold it: UTC, naive."""
    return datetime.now(UTC).replace(tzinfo=None)


class Database:
    """One database, for all threads of this process. Made by `open_database`."""

    def __init__(
        self,
        engine: Engine,
        dialect: SqliteDialect,
        *,
        clock: Callable[[], datetime],
        rng: random.Random,
        sleep: Callable[[float], None],
    ) -> None:
        self.engine: Final = engine
        self.dialect: Final = dialect
        #: Runs that were repeated, by reason: "busy" or "lost race".
        self.retries: Final[Counter[str | None]] = Counter()
        self._clock = clock
        self._rng = rng
        self._sleep = sleep
        #: For whoever holds the write gate. Not kept with a connection: those beyond the pool's
        #: size come and go, and each would leave a row of the clock behind.
        self._writer: journal.Writer | None = None
        #: Only ever asked for the commit stamp, by one thread at a time.
        self._watcher: Connection | None = None
        self._watchers = 0
        self._watcher_lock = threading.Lock()

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A transaction that sees one state of the database throughout, and changes nothing.

        Raises:
            DatabaseUnavailable: the database cannot be read.
        """
        with _translated(), self.engine.connect() as connection:
            yield self._begun(connection)

    def write(self, unit: Callable[[Tx], T], *, attempts: int = ATTEMPTS) -> T:
        """Run a unit of work and commit it, or leave nothing of it.

        The unit may be run several times, each time in a new transaction, so all that it knows must
        be read in it. `attempts` bounds the runs that end in a lost race; 0 counts as 1. A lock
        that does not come free has a bound of its own.

        Raises:
            LostRace: other requests were faster each time.
            DatabaseUnavailable: the database cannot be written, or was locked each time.
        """
        runs_left: Counter[str | None] = Counter(
            {_LOST_RACE: max(attempts, 1), _BUSY: _BUSY_ATTEMPTS}
        )
        with _translated():
            while True:
                try:
                    return self._run(unit)
                except (LostRace, exc.OperationalError) as error:
                    reason = self._reason_to_retry(error)
                    runs_left[reason] -= 1
                    if runs_left[reason] <= 0:
                        raise
                    self.retries[reason] += 1
                self._pause()

    def commit_stamp(self) -> tuple[int, int] | None:
        """A value that differs from an earlier one if anyone has committed in between.

        None on engines that have no such thing: then assume that somebody has. Cost: no query.

        Raises:
            DatabaseUnavailable: the database cannot be asked.
        """
        with self._watcher_lock, _translated():
            if self._watcher is None:
                self._watcher = self.engine.connect()
                self._watcher.detach()  # not one of the pool's, which may be all in use
                self._watchers += 1
            stamp = self.dialect.commit_stamp(self._watcher)
            # The numbers of two connections have nothing to do with each other.
            return None if stamp is None else (self._watchers, stamp)

    def dispose(self) -> None:
        """Close all connections. A database that is used again simply opens new ones."""
        with self._watcher_lock:
            if self._watcher is not None:
                self._watcher.close()
                self._watcher = None
        self.engine.dispose()

    def forget_connections(self) -> None:
        """In a forked child: let go of the parent's connections without closing them."""
        self._watcher = None
        self._watcher_lock = threading.Lock()
        self._writer = None
        self.dialect.renew_gate()
        self.engine.dispose(close=False)

    def _run(self, unit: Callable[[Tx], T]) -> T:
        with self.dialect.write_gate, self.engine.connect() as pooled:
            connection = self.dialect.for_writing(pooled)
            tx = self._begun(connection)
            result = unit(tx)
            touched = tx.touched | ({journal.NAMES} if tx.names_touched else set())
            if not touched:
                connection.commit()
                return result
            writer = journal.record(connection, self._writer, touched, tx.now)
            if writer.seq % _COMMITS_BETWEEN_TRIMS == 0:
                journal.trim(connection, tx.now - JOURNAL_KEPT)
            connection.commit()
            self._writer = writer
            return result

    def _begun(self, connection: Connection) -> Tx:
        return Tx(connection, self.dialect, self._clock())

    def _reason_to_retry(self, error: LostRace | exc.OperationalError) -> str | None:
        if isinstance(error, LostRace):
            return _LOST_RACE
        return _BUSY if self.dialect.is_transient(error.orig) else None

    def _pause(self) -> None:
        self._sleep(self._rng.uniform(0, _PAUSE_S_MAX))


def open_database(
    url: str,
    *,
    options: DatabaseOptions = DatabaseOptions(),
    clock: Callable[[], datetime] = utc_now,
    rng: random.Random | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Database:
    """The database of an SQLAlchemy URL; nothing is read or written yet.

    Args:
        url: `sqlite:///relative/path` or `sqlite:////absolute/path`.
        clock: the time, naive UTC.
        rng, sleep: how the pauses between retries are drawn and spent.

    Raises:
        UnsupportedDatabase: the URL cannot be read, or names something else than an SQLite file.
    """
    try:
        parsed = make_url(url)
    except exc.ArgumentError as error:
        raise UnsupportedDatabase("the database URL cannot be read") from error
    if parsed.get_backend_name() != "sqlite":
        raise UnsupportedDatabase(
            f"this release stands on SQLite only, not on {parsed.get_backend_name()}"
        )
    dialect = SqliteDialect(synchronous=options.synchronous)
    db = Database(
        dialect.create_engine(parsed, options.pool),
        dialect,
        clock=clock,
        rng=rng or random.Random(),
        sleep=sleep,
    )
    _let_go_after_fork(db)
    return db


def trim_journal(db: Database, older_than: datetime) -> int:
    """Forget what the journal noted before a time; the number of rows that went.

    A reader that had not applied them yet sees it by `trimmed_seq` and reloads everything.
    """
    return db.write(lambda tx: journal.trim(tx.connection, older_than))


def _let_go_after_fork(db: Database) -> None:
    """A connection must not serve two processes: servers that fork after loading get new ones.

    SQLite forbids a child even to close what its parent opened, so what nobody is using is closed
    before the fork.
    """
    alive = weakref.ref(db)

    def close() -> None:
        if (parent := alive()) is not None:
            parent.dispose()

    def let_go() -> None:
        if (child := alive()) is not None:
            child.forget_connections()

    os.register_at_fork(before=close, after_in_child=let_go)


@contextmanager
def _translated() -> Iterator[None]:
    """What the driver says about a lost or broken database, as our own error."""
    try:
        yield
    except (exc.OperationalError, exc.TimeoutError) as error:
        raise _unavailable(error) from error
    except exc.DatabaseError as error:
        if isinstance(error, exc.IntegrityError | exc.ProgrammingError | exc.DataError):
            raise
        raise _unavailable(error) from error


def _unavailable(error: exc.SQLAlchemyError) -> DatabaseUnavailable:
    cause = getattr(error, "orig", None) or error
    return DatabaseUnavailable(f"The database cannot be used at the moment: {cause}")
