# SPDX-License-Identifier: Apache-2.0
"""Everything that is particular to SQLite, in one place.

One file, in write-ahead mode: readers see the last commit and never wait, one writer at a time
takes the write lock up front (`BEGIN IMMEDIATE`), so that it can fail to begin but not half-way.
"""

import sqlite3
import threading
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Engine, QueuePool, Table, create_engine, event
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import URL
from sqlalchemy.sql.dml import Insert

from berth.model.errors import DatabaseUnavailable, UnsupportedDatabase

#: Execution option of a connection: how its next transaction begins.
_BEGIN: Final = "berth_begin"

#: How long SQLite itself waits for another process's write lock before it says BUSY.
_BUSY_TIMEOUT_S: Final = 5


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How many connections a process keeps, and for how long; None leaves it to SQLAlchemy."""

    size: int | None = None
    max_overflow: int | None = None
    timeout_s: int | None = None
    recycle_s: int | None = None

    def arguments(self) -> dict[str, int]:
        """The arguments of `create_engine` that say so."""
        wanted = {
            "pool_size": self.size,
            "max_overflow": self.max_overflow,
            "pool_timeout": self.timeout_s,
            "pool_recycle": self.recycle_s,
        }
        return {name: value for name, value in wanted.items() if value is not None}


@dataclass(slots=True)
class SqliteDialect:
    """How to speak to SQLite. One for each `Database`."""

    #: Durable commits: each is on disk before it is acknowledged.
    synchronous: bool = True
    #: Held by the one thread of this process that writes. SQLite's own lock would do, but who waits
    #: for it sleeps and polls, whereas a thread that waits here goes on at once.
    write_gate: threading.Lock = field(default_factory=threading.Lock)

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
        engine = create_engine(
            url,
            poolclass=QueuePool,
            connect_args={"timeout": _BUSY_TIMEOUT_S, "check_same_thread": False},
            **pool.arguments(),
        )
        event.listen(engine, "connect", self._set_up)
        event.listen(engine, "begin", _begin)
        return engine

    def for_writing(self, connection: Connection) -> Connection:
        """Let the connection's transactions take the write lock as they begin."""
        return connection.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})

    def is_transient(self, error: BaseException | None) -> bool:
        """Whether the whole transaction may succeed when it is simply run again."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

    def insert_missing(self, table: Table) -> Insert:
        """An INSERT that passes over rows whose key is there already."""
        return insert(table).on_conflict_do_nothing()

    def commit_stamp(self, connection: Connection) -> int | None:
        """A number that changes when any *other* connection has committed.

        The connection must be one that never writes. It is asked without a transaction, because in
        one the number stands still. On an engine without such a number this would be None.
        """
        driver: Any = connection.connection.dbapi_connection
        try:
            (stamp,) = driver.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error as error:
            raise DatabaseUnavailable(f"The database file cannot be read: {error}") from error
        return int(stamp)

    def renew_gate(self) -> None:
        """In a forked child: a thread that held the gate lives in the parent only."""
        self.write_gate = threading.Lock()

    def _set_up(self, connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # the driver begins no transactions of its own
        for pragma in (
            "journal_mode = WAL",
            f"synchronous = {'FULL' if self.synchronous else 'OFF'}",
            "foreign_keys = ON",
        ):
            connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))
