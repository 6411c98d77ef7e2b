# SPDX-License-Identifier: Apache-2.0
"""Everything specific to MariaDB, MySQL and Galera clusters.

Writes run at READ COMMITTED: each statement sees everything committed by then, and fewer gaps are
locked. Reads run at REPEATABLE READ, a snapshot from the first read on. In a Galera cluster every
transaction first waits until this node has applied all earlier commits of any node
(`wsrep_sync_wait`). The cluster compares concurrent transactions of two nodes by the rows written,
and refuses the second at its COMMIT (error 1213). So a row that guards a decision must really
change; `expressions.rewritten` makes sure of that.
"""

from __future__ import annotations

import importlib.util
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

from sqlalchemy import Connection, Engine, Table, create_engine, event, func, insert, select
from sqlalchemy.dialects.mysql import insert as mysql_insert
from sqlalchemy.engine import URL
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.sql.dml import Insert

from berth.model.errors import UnsupportedDatabase
from berth.store.engine.dialect import Dialect, PoolOptions, Storage, key_and_values
from berth.store.engine.prepared import CLUSTERED, Runner

#: How long to wait for a locked row before it is an error.
_LOCK_S_MAX: Final = 5

#: The longest text that `group_concat` makes; longer ones are cut.
_TEXT_BYTES_MAX: Final = 64 << 20

#: How long one statement waits for the lock of the schema.
_SCHEMA_LOCK_S: Final = 60

#: How long a server may take to accept a connection.
_CONNECT_S_MAX: Final = 5

#: Deadlock or refused by the cluster; lock wait timeout; row changed since it was read.
_TRANSIENT: Final = frozenset({1213, 1205, 1020})

#: Unreachable, connection lost, too many connections, shutting down, not part of its cluster,
#: connection killed.
_AWAY: Final = frozenset({2002, 2003, 2006, 2013, 1040, 1053, 1047, 1927})

_UNKNOWN_VARIABLE: Final = 1193

#: Driver -> its module.
_DRIVERS: Final = {"pymysql": "pymysql", "mysqldb": "MySQLdb"}

#: Allow several statements in one packet (see `prepared`), and count the rows that match a WHERE,
#: changed or not.
_MULTI_STATEMENTS: Final = 1 << 16
_FOUND_ROWS: Final = 1 << 1


#: See `Dialect.commit_stamp`.
_CLOCK: Final = (
    "SELECT group_concat(concat_ws(' ', id, seq, trimmed_seq) ORDER BY id) FROM berth_writer"
)


@dataclass(frozen=True, slots=True)
class MysqlDialect(Dialect):
    """How to speak to MySQL and MariaDB: see `berth.store.engine.dialect`.

    Args:
        sql_mode: the mode of each session; empty: the server's. Modes that the tables need are
            added.
        answer_s_max: how long to wait for one answer before the connection is closed; None: no
            limit.
    """

    sql_mode: str = "TRADITIONAL"
    answer_s_max: int | None = None

    storage: ClassVar[Storage] = Storage(keeps_fractions=False, has_collations=True, bulk="text")
    rewrites_guards: ClassVar[bool] = True

    def create_engine(self, url: URL, pool: PoolOptions) -> Engine:
        """See `Dialect`."""
        connect_args: dict[str, int] = {
            "connect_timeout": _CONNECT_S_MAX,
            "client_flag": _MULTI_STATEMENTS | _FOUND_ROWS,
        }
        if self.answer_s_max is not None:
            connect_args |= {"read_timeout": self.answer_s_max, "write_timeout": self.answer_s_max}
        engine = create_engine(
            # utf8mb3, which old configurations set, cannot store every name.
            url.set(drivername=f"mysql+{_driver_of(url)}").update_query_dict(
                {"charset": "utf8mb4"}
            ),
            connect_args={
                name: value for name, value in connect_args.items() if name not in url.query
            },
            paramstyle="format",
            pool_pre_ping=True,
            **pool.arguments(),
        )
        event.listen(engine, "connect", self._set_up)
        return engine

    def for_reading(self, connection: Connection) -> Connection:
        """See `Dialect`."""
        Runner(connection).begin_by_hand()
        return connection

    def for_writing(self, connection: Connection) -> Connection:
        """See `Dialect`."""
        Runner(connection).begin_by_hand()
        Runner(connection).run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        return connection

    def commit_stamp(self, run: Runner) -> int | str | None:
        """See `Dialect`."""
        stamp: int | str | None = run.ask(_CLOCK)
        return stamp

    def begin_reading(self, run: Runner) -> None:
        """See `Dialect`."""
        run.begin("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")

    def begin_writing(self, run: Runner) -> None:
        """See `Dialect`."""
        run.begin("START TRANSACTION")

    def is_transient(self, error: BaseException | None) -> bool:
        """See `Dialect`."""
        return _code_of(error) in _TRANSIENT

    def is_away(self, error: BaseException | None) -> bool:
        """See `Dialect`."""
        return _code_of(error) in _AWAY

    def insert_missing(self, table: Table) -> Insert:
        """See `Dialect`."""
        return insert(table).prefix_with("IGNORE")

    def insert_or_replace(self, table: Table) -> Insert:
        """See `Dialect`."""
        statement = mysql_insert(table)
        _, values = key_and_values(table)
        return statement.on_duplicate_key_update(
            {name: statement.inserted[name] for name in values}
        )

    def stored_time(self, now: datetime) -> datetime:
        """Rounded down to seconds; the engine would round to the nearest."""
        return now.replace(microsecond=0)

    def lock_schema(self, connection: Connection) -> None:
        """See `Dialect`. The server's databases share the names of locks, and in a Galera cluster
        each node has its own."""
        name = func.left(func.concat("berth ", func.database()), 64)
        while connection.scalar(select(func.get_lock(name, _SCHEMA_LOCK_S))) != 1:
            continue

    def _set_up(self, connection: Any, record: ConnectionPoolEntry) -> None:
        with closing(connection.cursor()) as cursor:
            mode = "@@sql_mode" if not self.sql_mode else "%s"
            cursor.execute(
                # Id 0 is a resource class, not a request for the next number.
                f"SET SESSION sql_mode = CONCAT_WS(',', {mode}, 'NO_AUTO_VALUE_ON_ZERO'), "
                f"SESSION innodb_lock_wait_timeout = {_LOCK_S_MAX}, "
                f"SESSION group_concat_max_len = {_TEXT_BYTES_MAX}",
                (self.sql_mode,) if self.sql_mode else (),
            )
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            try:
                cursor.execute("SET SESSION wsrep_sync_wait = 1")
                cursor.execute("SELECT @@wsrep_on")
                record.info[CLUSTERED] = bool(cursor.fetchone()[0])
            except Exception as error:
                if _code_of(error) != _UNKNOWN_VARIABLE:
                    raise


def _driver_of(url: URL) -> str:
    """The driver to use: PyMySQL where the URL names it, else mysqlclient where that is installed.

    Raises:
        UnsupportedDatabase: none is installed, or the URL names another.
    """
    _, _, named = url.drivername.partition("+")
    wanted = [named] if named else ["mysqldb", "pymysql"]
    for driver in wanted:
        if driver not in _DRIVERS:
            raise UnsupportedDatabase(
                f"berth does not know the driver {driver}: name mysql+pymysql:// in the database "
                f"URL, or mysql+mysqldb://"
            )
        if importlib.util.find_spec(_DRIVERS[driver]) is not None:
            return driver
    raise UnsupportedDatabase(
        "MySQL and MariaDB need a driver, and none is installed: pip install 'berthd[mysql]' "
        "for PyMySQL, which mysql+pymysql:// names"
    )


def _code_of(error: BaseException | None) -> int | None:
    """The engine's error number."""
    first = error.args[0] if error is not None and error.args else None
    return first if isinstance(first, int) else None
