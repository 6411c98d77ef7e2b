# SPDX-License-Identifier: Apache-2.0
"""Everything that is particular to PostgreSQL, in one place.

Writes run at READ COMMITTED: each statement sees what is committed by then, and an UPDATE that had
to wait for another transaction judges its WHERE anew on the row as that has left it. Reads run at
REPEATABLE READ, which here is a snapshot. The driver is psycopg 3, whichever a URL names.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

from sqlalchemy import Connection, Engine, Table, create_engine, event
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import URL
from sqlalchemy.sql.dml import Insert

from berth.model.errors import UnsupportedDatabase
from berth.store.engine.dialect import CLOCK_SUM, PoolOptions
from berth.store.engine.prepared import Runner

#: How long another's row is waited for before it is an error. The server looks for deadlocks after
#: a second.
_LOCK_S_MAX: Final = 5

#: For transactions that take rows in no order.
_LOCK_MS_BRIEFLY: Final = 50

#: What libpq is told unless the URL says otherwise: to notice within some ten seconds that the
#: server's machine is gone.
_CONNECTION: Final = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "application_name": "berth",
}

#: What a server says to those whom it will not let in, now or later.
_FOR_GOOD: Final = (
    "authentication failed",
    "no password supplied",
    "does not exist",
    "no pg_hba.conf entry",
    "permission denied",
    "invalid",
)

#: Codes of a server that shuts down, has crashed, is starting, or has too many connections; and the
#: class of those of connections.
_AWAY: Final = frozenset({"57P01", "57P02", "57P03", "53300"})
_AWAY_CLASS: Final = "08"

#: Serialisation failure, deadlock, a lock that was not free in time.
_TRANSIENT: Final = frozenset({"40001", "40P01", "55P03"})


@dataclass(frozen=True, slots=True)
class PostgresqlDialect:
    """How to speak to PostgreSQL: see `berth.store.engine.dialect`."""

    is_embedded: ClassVar[bool] = False

    def create_engine(self, url: URL, pool: PoolOptions) -> Engine:
        """See `Dialect`."""
        if importlib.util.find_spec("psycopg") is None:
            raise UnsupportedDatabase(
                "PostgreSQL needs the driver psycopg, which is not installed: "
                "pip install 'berthd[postgresql]'"
            )
        told = {name: value for name, value in _CONNECTION.items() if name not in url.query}
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args=told,
            paramstyle="format",
            isolation_level="REPEATABLE READ",
            pool_pre_ping=True,
            **pool.arguments(),
        )
        event.listen(engine, "begin", _begin)
        return engine

    def for_reading(self, connection: Connection) -> Connection:
        """See `Dialect`."""
        _begun_by_hand(connection)
        return connection

    def for_writing(self, connection: Connection) -> Connection:
        """See `Dialect`."""
        _begun_by_hand(connection)
        Runner(connection).change(f"SET lock_timeout = '{_LOCK_S_MAX}s'", ())
        return connection

    def begin_reading(self, run: Runner) -> None:
        """See `Dialect`."""
        run.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def begin_writing(self, run: Runner) -> None:
        """See `Dialect`."""
        run.begin("BEGIN ISOLATION LEVEL READ COMMITTED")

    def wait_briefly(self, run: Runner) -> None:
        """See `Dialect`. PERF a deadlock holds both up for the second until it is looked for."""
        run.change(f"SET LOCAL lock_timeout = '{_LOCK_MS_BRIEFLY}ms'", ())

    def ensure_in_place(self, *, writing: bool = False) -> None:
        """A server keeps its files itself."""

    def is_transient(self, error: BaseException | None) -> bool:
        """See `Dialect`."""
        return getattr(error, "sqlstate", None) in _TRANSIENT

    def is_away(self, error: BaseException | None) -> bool:
        """See `Dialect`. The driver has no code for what a server says before it lets one in."""
        if code := getattr(error, "sqlstate", None):
            return code in _AWAY or code.startswith(_AWAY_CLASS)
        said = str(error)
        return not any(words in said for words in _FOR_GOOD)

    def insert_missing(self, table: Table) -> Insert:
        """See `Dialect`."""
        return insert(table).on_conflict_do_nothing()

    def commit_stamp(self, run: Runner) -> int | None:
        """See `Dialect`: the sum of the writers' clock."""
        return int(run.ask(CLOCK_SUM))

    def stored_time(self, now: datetime) -> datetime:
        """To the microsecond."""
        return now


def _begin(connection: Connection) -> None:
    """Begin what SQLAlchemy takes to have begun: the driver does so with the first statement of a
    cursor's, and what `store.engine.libpq` sends is none."""
    driver: Any = connection.connection.dbapi_connection
    if not driver.autocommit:
        Runner(connection).change("BEGIN ISOLATION LEVEL REPEATABLE READ", ())


def _begun_by_hand(connection: Connection) -> None:
    driver: Any = connection.connection.dbapi_connection
    driver.autocommit = True
