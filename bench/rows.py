# SPDX-License-Identifier: Apache-2.0
"""Very many rows into the tables of a new database, in the way each engine takes them fastest.

Nobody else uses the database meanwhile, and a crash means to begin again: so everything is one
transaction, and on SQLite not even a durable one.
"""

from __future__ import annotations

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
    """Puts rows into the tables of one database."""

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
        known = self._columns.get(table.name)
        if known is None:
            return
        places_known = [n for n, column in enumerate(table.columns) if column.name in known]
        if len(places_known) < len(table.columns):
            rows = ([row[n] for n in places_known] for row in rows)
        columns = [column.name for column in table.columns if column.name in known]
        names = ", ".join(columns)
        if self._engine == "postgresql":
            self._copy(f"COPY {table.name} ({names}) FROM STDIN", rows)
        else:
            place = "?" if self._engine == "sqlite" else "%s"
            places = ", ".join(place for _ in columns)
            self._cursor.executemany(
                f"INSERT INTO {table.name} ({names}) VALUES ({places})", list(rows)
            )

    def _copy(self, statement: str, rows: Iterable[Row]) -> None:
        # Only psycopg's cursors have it.
        with self._cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def finish(self, table: Table) -> None:
        """Let the database number the next row of a table after those that are there."""
        if self._engine == "postgresql" and "id" in self._columns.get(table.name, ()):
            self._cursor.execute(
                f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), max(id)) "
                f"FROM {table.name} HAVING max(id) IS NOT NULL"
            )


def engine_of(url: str) -> Engine:
    """An engine on a database as an operator's URL names it, that nothing of berth has touched."""
    parsed = make_url(url)
    return create_engine(parsed.set(drivername=_DRIVERS[parsed.get_backend_name()]))


@contextmanager
def rows_into(engine: Engine) -> Iterator[Rows]:
    """Write into a database within the block; all of it is there at its end, or nothing is."""
    columns = {
        table: {column["name"] for column in found}
        for (_, table), found in inspect(engine).get_multi_columns().items()
    }
    with closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        if engine.name == "sqlite":
            cursor.execute("PRAGMA synchronous = OFF")
            cursor.execute("PRAGMA cache_size = -500000")
        yield Rows(cursor, engine.name, columns)
        connection.commit()
