# SPDX-License-Identifier: Apache-2.0
"""Everything specific to SQLite.

One file, in write-ahead mode: readers see the last commit and never wait. One writer at a time
takes the write lock up front (`BEGIN IMMEDIATE`), so it can fail to begin, but not half-way.
"""

import logging
import sqlite3
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from sqlalchemy import Connection, Engine, QueuePool, Table, create_engine, event
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.engine import URL
from sqlalchemy.exc import OperationalError

from berth.model.errors import UnsupportedDatabase
from berth.store.engine.dialect import Dialect, PoolOptions, Storage, replacing
from berth.store.engine.prepared import Runner
from berth.store.engine.sqlite_file import DatabaseFile

LOG = logging.getLogger(__name__)

#: Execution option of a dedicated connection: SQLAlchemy does not begin its transactions.
_BEGUN_AT_DRIVER: Final = "berth_begun_at_driver"

#: Parameters of a URL's query for Python's SQLite module. Source: SQLAlchemy's pysqlite.
_PARAMETERS: Final = {
    *("cached_statements", "check_same_thread", "detect_types", "isolation_level", "timeout"),
    "uri",
}

#: How long to wait for another process's lock before it is an error.
_BUSY_TIMEOUT_S: Final = 5

#: How long SQLite itself may wait between two attempts to take the write lock.
_POLL_MS: Final = 1


@dataclass(frozen=True, slots=True)
class SqliteDialect(Dialect):
    """How to speak to SQLite: see `berth.store.engine.dialect`."""

    is_embedded: ClassVar[bool] = True
    storage: ClassVar[Storage] = Storage(limits_texts=False, bulk="rows")

    #: Durable commits: each is on disk before it is acknowledged.
    synchronous: bool = True
    #: The file is not changed: it may be in any journal mode, and need not be writable.
    read_only: bool = False
    #: The open file, once there is one.
    file: DatabaseFile = field(default_factory=DatabaseFile, compare=False)

    def create_engine(self, url: URL, pool: PoolOptions) -> Engine:
        """An engine whose connections are set up for several threads and processes.

        Raises:
            UnsupportedDatabase: the URL names a database in memory, which no second connection
                could see.
        """
        if url.database in (None, "", ":memory:") or "mode=memory" in str(url.database):
            raise UnsupportedDatabase(
                "berth needs an SQLite database in a file (sqlite:////absolute/path or "
                "sqlite:///relative/path): one in memory cannot be shared by connections"
            )
        url = _without_unknown(url)
        file_only = {"creator": partial(_connect_read_only, url)} if self.read_only else {}
        engine = create_engine(
            url,
            poolclass=QueuePool,
            connect_args={"timeout": _BUSY_TIMEOUT_S, "check_same_thread": False},
            **pool.arguments(),
            **file_only,
        )
        if not self.read_only:
            event.listen(engine, "do_connect", self._connecting)
        event.listen(engine, "connect", self._set_up)
        event.listen(engine, "begin", _begin)
        return engine

    def for_reading(self, connection: Connection) -> Connection:
        """Make a dedicated connection ready for `begin_reading`."""
        return connection.execution_options(**{_BEGUN_AT_DRIVER: True})

    def for_writing(self, connection: Connection) -> Connection:
        """Make a dedicated connection ready for `begin_writing`."""
        Runner(connection).run(f"PRAGMA busy_timeout = {_POLL_MS}")
        self.file.writing()
        return connection.execution_options(**{_BEGUN_AT_DRIVER: True})

    def begin_reading(self, run: Runner) -> None:
        """Begin a transaction on a dedicated connection: it sees one state of the database."""
        run.begin("BEGIN")

    def begin_writing(self, run: Runner) -> None:
        """Begin a transaction on a dedicated connection: it takes the write lock, and waits for it.

        SQLite's own wait sleeps ever longer, while others take the lock: with two busy processes a
        claim of two milliseconds waited half a second. Polling often costs next to nothing, because
        only one thread of each process polls: the leader of the group commit.

        Raises:
            OperationalError: another connection held the lock until the timeout.
        """
        deadline = time.monotonic() + _BUSY_TIMEOUT_S
        while True:
            try:
                run.begin("BEGIN IMMEDIATE")
            except OperationalError as error:
                if not _is_busy(error.orig) or time.monotonic() > deadline:
                    raise
            else:
                return

    def ensure_in_place(self, *, writing: bool = False, committed: bool = False) -> None:
        """See `Dialect`."""
        if committed:
            self.file.committed()
        else:
            self.file.check(writing=writing)

    def is_transient(self, error: BaseException | None) -> bool:
        """Whether the whole transaction may succeed if it runs again."""
        return _is_busy(error)

    def is_away(self, error: BaseException | None) -> bool:
        """Never: there is no server."""
        return False

    def insert_missing(self, table: Table) -> Insert:
        """See `Dialect`."""
        return insert(table).on_conflict_do_nothing()

    def insert_or_replace(self, table: Table) -> Insert:
        """See `Dialect`."""
        return replacing(insert(table), table)

    def commit_stamp(self, run: Runner) -> int | str | None:
        """See `Dialect`. In a transaction the number would not change. Costs no query."""
        stamp: int | str | None = run.ask("PRAGMA data_version")
        return stamp

    def _connecting(
        self, _dialect: object, _record: object, arguments: list[Any], _options: object
    ) -> None:
        self.file.connecting(arguments[0])

    def _set_up(self, connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # the driver begins no transactions of its own
        if self.read_only:
            connection.execute("PRAGMA query_only = ON").close()
            return
        _write_ahead(connection)
        for pragma in (
            f"synchronous = {'FULL' if self.synchronous else 'OFF'}",
            "foreign_keys = ON",
        ):
            connection.execute(f"PRAGMA {pragma}").close()
        self.file.connected()


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch the file to write-ahead mode, if it is not yet.

    RACE tests/store/test_database.py: of several connections that switch a new file at once, SQLite
    refuses some without waiting, because they hold what the others wait for.
    """
    deadline = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").close()
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(_POLL_MS / 1000)
        else:
            return


def _without_unknown(url: URL) -> URL:
    """A URL without the parameters that SQLite would ignore, with a warning that names them.

    SQLAlchemy's own warning is three lines of Python on the terminal.
    """
    unknown = sorted(set(url.query) - _PARAMETERS)
    if not unknown or "uri" in url.query:
        return url
    LOG.warning("SQLite ignores %s in the URL of the database", ", ".join(unknown))
    return url.difference_update_query(unknown)


def _connect_read_only(url: URL) -> sqlite3.Connection:
    """A connection to an existing file. If SQLite may not create its side files there, the
    directory is read-only, and the file is opened as immutable."""
    file = Path(url.database or "").absolute().as_uri()
    for mode in ("mode=rw", "immutable=1"):
        connection = sqlite3.connect(
            f"{file}?{mode}", uri=True, timeout=_BUSY_TIMEOUT_S, check_same_thread=False
        )
        try:
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").close()
        except sqlite3.OperationalError as error:
            connection.close()
            if _is_busy(error) or mode == "immutable=1":
                raise
        else:
            return connection
    raise AssertionError("the last mode returns or raises")


def _begin(connection: Connection) -> None:
    """Begin the transaction that SQLAlchemy assumes has begun: the driver does not."""
    if not connection.get_execution_options().get(_BEGUN_AT_DRIVER):
        Runner(connection).run("BEGIN")


def _is_busy(error: BaseException | None) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
