# SPDX-License-Identifier: Apache-2.0
"""Everything that is particular to MariaDB, MySQL and a Galera cluster, in one place.

Writes run at READ COMMITTED: each statement sees what is committed by then, and fewer gaps are
locked. Reads run at REPEATABLE READ, which is a snapshot from the first read on. In a Galera
cluster every transaction first waits until this node has applied what any node had committed
(`wsrep_sync_wait`); what two nodes write at once is compared by the rows written, and the second is
refused at its COMMIT (error 1213): so a row that guards a decision must really be changed, and
`expressions.rewritten` sees to that.
"""

from __future__ import annotations

import importlib.util
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

from sqlalchemy import Connection, Engine, Table, create_engine, event, insert
from sqlalchemy.engine import URL
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.sql.dml import Insert

from berth.model.errors import UnsupportedDatabase
from berth.store.engine.dialect import CLOCK_SUM, PoolOptions
from berth.store.engine.prepared import CLUSTERED, Runner

#: How long another's row is waited for before it is an error.
_LOCK_S_MAX: Final = 5

#: How long a server may take to accept a connection.
_CONNECT_S_MAX: Final = 5

#: Deadlock, or refused by the cluster; a lock that was not free in time; changed since it was read.
_TRANSIENT: Final = frozenset({1213, 1205, 1020})

#: Not reached, gone meanwhile, too many connections, shutting down, no part of its cluster,
#: cut off.
_AWAY: Final = frozenset({2002, 2003, 2006, 2013, 1040, 1053, 1047, 1927})

_UNKNOWN_VARIABLE: Final = 1193

#: Driver -> the module that it is.
_DRIVERS: Final = {"pymysql": "pymysql", "mysqldb": "MySQLdb"}

#: Several statements in one packet (see `prepared`), and the count of the rows that a WHERE holds
#: for, changed or not.
_MULTI_STATEMENTS: Final = 1 << 16
_FOUND_ROWS: Final = 1 << 1


@dataclass(frozen=True, slots=True)
class MysqlDialect:
    """How to speak to MySQL and MariaDB: see `berth.store.engine.dialect`.

    Args:
        sql_mode: of each session; empty: the server's. What the tables need is added to it.
        answer_s_max: how long the server may take for one answer before the connection is given
            up; None: as long as it likes.
    """

    sql_mode: str = "TRADITIONAL"
    answer_s_max: int | None = None

    is_embedded: ClassVar[bool] = False

    def create_engine(self, url: URL, pool: PoolOptions) -> Engine:
        """See `Dialect`."""
        told: dict[str, int] = {
            "connect_timeout": _CONNECT_S_MAX,
            "client_flag": _MULTI_STATEMENTS | _FOUND_ROWS,
        }
        if self.answer_s_max is not None:
            told |= {"read_timeout": self.answer_s_max, "write_timeout": self.answer_s_max}
        engine = create_engine(
            # Three-byte characters, which old configurations name, cannot say every name.
            url.set(drivername=f"mysql+{_driver_of(url)}").update_query_dict(
                {"charset": "utf8mb4"}
            ),
            connect_args={name: value for name, value in told.items() if name not in url.query},
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
        Runner(connection).change("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", ())
        return connection

    def begin_reading(self, run: Runner) -> None:
        """See `Dialect`."""
        run.begin("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")

    def begin_writing(self, run: Runner) -> None:
        """See `Dialect`."""
        run.begin("START TRANSACTION")

    def wait_briefly(self, run: Runner) -> None:
        """The engine sees at once when two wait for each other."""

    def ensure_in_place(self, *, writing: bool = False) -> None:
        """A server keeps its files itself."""

    def is_transient(self, error: BaseException | None) -> bool:
        """See `Dialect`."""
        return _code_of(error) in _TRANSIENT

    def is_away(self, error: BaseException | None) -> bool:
        """See `Dialect`."""
        return _code_of(error) in _AWAY

    def insert_missing(self, table: Table) -> Insert:
        """See `Dialect`."""
        return insert(table).prefix_with("IGNORE")

    def commit_stamp(self, run: Runner) -> int | None:
        """See `Dialect`: the sum of the writers' clock, in a cluster with all that was committed
        on any node before."""
        return int(run.ask(CLOCK_SUM))

    def stored_time(self, now: datetime) -> datetime:
        """Whole seconds; the engine would round up half of them."""
        return now.replace(microsecond=0)

    def _set_up(self, connection: Any, record: ConnectionPoolEntry) -> None:
        with closing(connection.cursor()) as cursor:
            mode = "@@sql_mode" if not self.sql_mode else "%s"
            cursor.execute(
                # Resource class 0 is a class, not a request for the next number.
                f"SET SESSION sql_mode = CONCAT_WS(',', {mode}, 'NO_AUTO_VALUE_ON_ZERO'), "
                f"SESSION innodb_lock_wait_timeout = {_LOCK_S_MAX}",
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
    """The engine's number of an error."""
    first = error.args[0] if error is not None and error.args else None
    return first if isinstance(first, int) else None
