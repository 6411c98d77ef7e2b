# SPDX-License-Identifier: Apache-2.0
"""Very many rows into the tables of a new database, in the way each engine takes them fastest.

No other program uses the database meanwhile, and a crash means starting again: so everything is one
transaction, and on SQLite not even a durable one. MySQL and MariaDB read files, and commit each.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

from sqlalchemy import Engine, Table, create_engine, inspect, make_url
from sqlalchemy.engine.interfaces import DBAPICursor

Row = Sequence[Any]

#: The driver that is used, whichever a URL names.
_DRIVERS: Final = {
    "sqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
}


class Rows:
    """Inserts rows into the tables of a database."""

    def __init__(self, cursor: DBAPICursor, engine: str, columns: Mapping[str, set[str]]) -> None:
        self._cursor = cursor
        self._engine = engine
        #: By table.
        self._columns = columns

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        """Insert rows that have a value for each column of the table, in order.

        Tables and columns that the database does not have are passed over: berth's own, in the
        original's; and those that an older berth does not know.
        """
        existing = self._columns.get(table.name)
        if existing is None:
            return
        places_known = [n for n, column in enumerate(table.columns) if column.name in existing]
        if len(places_known) < len(table.columns):
            rows = ([row[n] for n in places_known] for row in rows)
        columns = [column.name for column in table.columns if column.name in existing]
        names = ", ".join(columns)
        if self._engine == "postgresql":
            self._copy(f"COPY {table.name} ({names}) FROM STDIN", rows)
        elif self._engine == "mysql":
            self._load(f"INTO TABLE {table.name} ({names})", rows)
        else:
            places = ", ".join("?" for _ in columns)
            self._cursor.executemany(
                f"INSERT INTO {table.name} ({names}) VALUES ({places})", list(rows)
            )

    def _copy(self, statement: str, rows: Iterable[Row]) -> None:
        # Only psycopg's cursors have it.
        with self._cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def _load(self, target: str, rows: Iterable[Row]) -> None:
        """Insert rows whose texts have neither tabs nor backslashes, and commit.

        A cluster takes no transaction of more than 2 GiB.
        """
        with tempfile.NamedTemporaryFile("w", prefix="bench-rows-") as file:
            for row in rows:
                file.write("\t".join("\\N" if v is None else str(v) for v in row) + "\n")
            file.flush()
            self._cursor.execute(f"LOAD DATA LOCAL INFILE '{file.name}' {target}")
        self._cursor.execute("COMMIT")

    def finish(self, table: Table) -> None:
        """Set a table's sequence to continue after the existing rows, and count them for plans.

        PERF bench.scaling: without statistics PostgreSQL took 30 ms of CPU time for a claim among
        10,000 hosts, until its own analysis came by.
        """
        if self._engine == "postgresql" and table.name in self._columns:
            self._cursor.execute(f"ANALYZE {table.name}")
        if self._engine == "postgresql" and "id" in self._columns.get(table.name, ()):
            self._cursor.execute(
                f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), max(id)) "
                f"FROM {table.name} HAVING max(id) IS NOT NULL"
            )


def engine_of(url: str) -> Engine:
    """A SQLAlchemy engine for an operator's URL, without any of berth's settings."""
    parsed = make_url(url)
    name = parsed.get_backend_name()
    options = {"local_infile": True} if name == "mysql" else {}
    return create_engine(parsed.set(drivername=_DRIVERS[name]), connect_args=options)


@contextmanager
def rows_into(engine: Engine) -> Iterator[Rows]:
    """Write to a database within the block, in one transaction."""
    columns = {
        table: {column["name"] for column in table_columns}
        for (_, table), table_columns in inspect(engine).get_multi_columns().items()
    }
    with closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        if engine.name == "sqlite":
            cursor.execute("PRAGMA synchronous = OFF")
            cursor.execute("PRAGMA cache_size = -500000")
        elif engine.name == "mysql":
            cursor.execute("SET SESSION foreign_key_checks = 0, unique_checks = 0")
        yield Rows(cursor, engine.name, columns)
        connection.commit()
