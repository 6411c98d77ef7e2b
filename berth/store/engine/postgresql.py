# SPDX-License-Identifier: Apache-2.0
"""Everything specific to PostgreSQL.

Writes run at READ COMMITTED: each statement sees everything committed by then, and an UPDATE that
waited for another transaction evaluates its WHERE again on the new version of the row. Reads run at
REPEATABLE READ, which is a snapshot here. The driver is always psycopg 3, whatever the URL names.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from sqlalchemy import Connection, Engine, Table, create_engine, event, func, select
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.engine import URL

from berth.model.errors import UnsupportedDatabase
from berth.store.engine.dialect import Dialect, PoolOptions, Storage, replacing
from berth.store.engine.prepared import Runner

#: How long to wait for a row that another transaction has locked. The server looks for deadlocks
#: after a second.
_LOCK_S_MAX: Final = 5

#: The same for transactions that lock rows in no fixed order.
_LOCK_MS_BRIEFLY: Final = 50

#: Settings of libpq unless the URL sets them: detect within about ten seconds that the server's
#: machine is down; and let the server convert texts, which else have the database's encoding.
_CONNECTION: Final = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "application_name": "berth",
    "client_encoding": "utf8",
}

#: The number of the lock of the schema: the letters of "berth".
_SCHEMA_LOCK: Final = int.from_bytes(b"berth", "big")

#: Messages of a server that refuses a login for good.
_FOR_GOOD: Final = (
    "authentication failed",
    "no password supplied",
    "does not exist",
    "no pg_hba.conf entry",
    "permission denied",
    "invalid",
)

#: Codes of a server that shuts down, has crashed, is starting, or has too many connections; and the
#: class of connection errors.
_AWAY: Final = frozenset({"57P01", "57P02", "57P03", "53300"})
_AWAY_CLASS: Final = "08"

#: Serialisation failure, deadlock, lock timeout.
_TRANSIENT: Final = frozenset({"40001", "40P01", "55P03"})


@dataclass(frozen=True, slots=True)
class PostgresqlDialect(Dialect):
    """How to speak to PostgreSQL: see `berth.store.engine.dialect`."""

    storage: ClassVar[Storage] = Storage(
        takes_nul=False, has_sequences=True, has_encodings=True, bulk="copy"
    )

    def create_engine(self, url: URL, pool: PoolOptions) -> Engine:
        """See `Dialect`."""
        if importlib.util.find_spec("psycopg") is None:
            raise UnsupportedDatabase(
                "PostgreSQL needs the driver psycopg, which is not installed: "
                "pip install 'berthd[postgresql]'"
            )
        connect_args = {name: value for name, value in _CONNECTION.items() if name not in url.query}
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args=connect_args,
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
        Runner(connection).run(f"SET lock_timeout = '{_LOCK_S_MAX}s'")
        return connection

    def begin_reading(self, run: Runner) -> None:
        """See `Dialect`."""
        run.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def begin_writing(self, run: Runner) -> None:
        """See `Dialect`."""
        run.begin("BEGIN ISOLATION LEVEL READ COMMITTED")

    def wait_briefly(self, run: Runner) -> None:
        """See `Dialect`. PERF the server detects a deadlock only after a second."""
        run.run(f"SET LOCAL lock_timeout = '{_LOCK_MS_BRIEFLY}ms'")

    def is_transient(self, error: BaseException | None) -> bool:
        """See `Dialect`."""
        return getattr(error, "sqlstate", None) in _TRANSIENT

    def is_away(self, error: BaseException | None) -> bool:
        """See `Dialect`. The driver has no code for an error that the server reports at login."""
        if code := getattr(error, "sqlstate", None):
            return code in _AWAY or code.startswith(_AWAY_CLASS)
        said = str(error)
        return not any(words in said for words in _FOR_GOOD)

    def insert_missing(self, table: Table) -> Insert:
        """See `Dialect`."""
        return insert(table).on_conflict_do_nothing()

    def insert_or_replace(self, table: Table) -> Insert:
        """See `Dialect`."""
        return replacing(insert(table), table)

    def lock_schema(self, connection: Connection) -> None:
        """See `Dialect`."""
        connection.execute(select(func.pg_advisory_lock(_SCHEMA_LOCK)))

    def finish_loading(self, connection: Connection, tables: Sequence[Table]) -> None:
        """Number new rows after those that were loaded, and count rows for the planner."""
        for table in tables:
            if "id" in table.c:
                # NULL, and so without effect, where the table has no sequence or no rows.
                sequence = func.pg_get_serial_sequence(table.name, "id")
                connection.execute(select(func.setval(sequence, func.max(table.c.id))))
        connection.exec_driver_sql("ANALYZE")


def _begin(connection: Connection) -> None:
    """Begin the transaction that SQLAlchemy assumes has begun: the driver begins one only with a
    cursor's first statement, and `store.engine.libpq` uses no cursor."""
    driver: Any = connection.connection.dbapi_connection
    if not driver.autocommit:
        Runner(connection).run("BEGIN ISOLATION LEVEL REPEATABLE READ")


def _begun_by_hand(connection: Connection) -> None:
    driver: Any = connection.connection.dbapi_connection
    driver.autocommit = True
