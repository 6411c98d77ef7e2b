# SPDX-License-Identifier: Apache-2.0
"""The rows of a table in a form that every engine can read and write, in chunks along a key.

A row is a tuple with a value for each column of the table, in order. Times are texts, so that
neither an engine nor Python converts them: `2026-11-21 18:40:00.000000`, or without the fraction if
one of the two engines stores whole seconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    DateTime,
    Select,
    Table,
    and_,
    bindparam,
    exc,
    inspect,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.types import NullType

from berth.store.engine.database import Database
from berth.store.engine.expressions import time_text
from berth.store.engine.tables import (
    berth_journal,
    berth_meta,
    berth_project_usages,
    berth_usages,
    berth_writer,
    metadata,
)
from berth.store.engine.transaction import Tx
from berth.store.versions import BERTH_PREFIX

T = TypeVar("T")

Row = tuple[Any, ...]


def shown(value: object) -> str:
    """A value for a message: texts in quotes, with unprintable characters escaped."""
    if value is None:
        return "NULL"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


Key = tuple[int, ...]

#: Tables that are computed from others, or belong to one database alone.
_OF_ONE_DATABASE: Final = {
    *(berth_usages.name, berth_project_usages.name, berth_writer.name, berth_journal.name),
    berth_meta.name,
}

#: The tables of OpenStack Placement, referenced ones first, and those of berth.
TABLES: Final[tuple[Table, ...]] = (
    *(table for table in metadata.sorted_tables if not table.name.startswith(BERTH_PREFIX)),
    *(
        table
        for table in metadata.tables.values()
        if table.name.startswith(BERTH_PREFIX) and table.name not in _OF_ONE_DATABASE
    ),
)

#: Rows that are read, written and committed at once.
CHUNK_ROWS: Final = 10_000

#: Below every id.
_FIRST: Final = -(2**31)


def tables_in(db: Database) -> tuple[Table, ...]:
    """Those of `TABLES` that a database has: OpenStack Placement does not have the last ones."""
    with db.read() as tx:
        present = set(inspect(tx.connection).get_table_names())
    return tuple(table for table in TABLES if table.name in present)


def key_columns(table: Table) -> list[Column[Any]]:
    """The columns along which a table is read: unique integers.

    PERF in a pair, the provider comes first: a trait may have a hundred thousand providers, in
    which each chunk would have to find its start, but a provider has a few dozen traits.
    """
    columns = list(table.primary_key.columns)
    return sorted(columns, key=lambda column: column.name != "resource_provider_id")


def start_of(table: Table) -> Key:
    """The key before all rows."""
    return (_FIRST,) * len(key_columns(table))


def pages(db: Database, query: Select[Any]) -> Iterator[Sequence[Row]]:
    """The rows of a query after the id `after`, a page at a time; their first column is the id."""
    after = -1
    while True:
        with db.read() as tx:
            rows = tx.rows(query, {"after": after})
        if not rows:
            return
        yield rows
        after = rows[-1][0]


class Reader:
    """Reads one table of a database, from any key.

    Args:
        whole_seconds: omit the fractions of times.
    """

    def __init__(self, db: Database, table: Table, *, whole_seconds: bool) -> None:
        self._db = db
        self._query = _chunk_after(table, whole_seconds=whole_seconds)
        self._places = [list(table.columns).index(column) for column in key_columns(table)]
        self._start = start_of(table)

    def key_of(self, row: Row) -> Key:
        """The key of a row."""
        return tuple(row[place] for place in self._places)

    def chunk(self, after: Key, count: int) -> list[Row]:
        """The next rows in the order of their keys."""
        bounds = {f"after_{place}": value for place, value in enumerate(after)}
        with self._db.read() as tx:
            return tx.rows(self._query, {**bounds, "count": count})

    def chunks(self, after: Key | None = None, *, count: int) -> Iterator[list[Row]]:
        """All rows after a key; the next chunk is read while one is processed."""
        return _ahead(self._chunks(self._start if after is None else after, count))

    def _chunks(self, after: Key, count: int) -> Iterator[list[Row]]:
        while rows := self.chunk(after, count):
            yield rows
            if len(rows) < count:
                return
            after = self.key_of(rows[-1])


def _ahead(things: Iterator[T]) -> Iterator[T]:
    """The same items; the next one is prepared in another thread meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, things, None)
        while (thing := coming.result()) is not None:
            coming = pool.submit(next, things, None)
            yield thing


def _chunk_after(table: Table, *, whole_seconds: bool) -> Select[Any]:
    keys = key_columns(table)
    return (
        select(*(_as_read(column, whole_seconds) for column in table.columns))
        .where(_behind(keys))
        .order_by(*keys)
        .limit(bindparam("count"))
    )


def _behind(keys: list[Column[Any]]) -> ColumnElement[bool]:
    """Whether a row comes after `after_0, after_1, ...`.

    PERF in this form, each engine reads the index from there: MariaDB reads the whole index for
    `(a, b) > (x, y)`, and PostgreSQL for `a > x OR a = x AND b > y`.
    """
    first, *rest = keys
    if not rest:
        return first > bindparam("after_0")
    (second,) = rest
    return and_(
        first >= bindparam("after_0"),
        or_(first > bindparam("after_0"), second > bindparam("after_1")),
    )


def _as_read(column: Column[Any], whole_seconds: bool) -> ColumnElement[Any]:
    if not isinstance(column.type, DateTime):
        # As the driver returns it: integers, floats and texts need no conversion.
        return type_coerce(column, NullType)
    return time_text(column, fraction=not whole_seconds)


# --- Inserting many rows into an empty table, in the fastest way of each engine -------------------

#: Characters of a MySQL statement beyond which no more rows are added to it.
_PACKET_LENGTH: Final = 200_000

_is_plain: Final = re.compile(r"[\w .:/@+-]*", re.ASCII).fullmatch

#: SQLite's default, 2 MiB, is too small for an index of a large table.
_CACHE_KIB: Final = 131_072


def insert_rows(tx: Tx, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows that have a value for each column of the table, in order.

    Raises:
        DBAPIError: the engine refuses them.
    """
    _INSERTS[tx.dialect.storage.bulk](tx, table, rows)


def _insert_each(tx: Tx, table: Table, rows: Sequence[Row]) -> None:
    tx.connection.exec_driver_sql(f"PRAGMA cache_size = -{_CACHE_KIB}")
    places = ", ".join("?" for _ in table.columns)
    text = f"INSERT INTO {table.name} ({_names(table)}) VALUES ({places})"
    tx.connection.exec_driver_sql(text, list(rows))


def _insert_together(tx: Tx, table: Table, rows: Sequence[Row]) -> None:
    """INSERT statements of as many rows as surely fit into a packet.

    PERF the drivers build such statements too, but take four times as long.
    """
    head = f"INSERT INTO {table.name} ({_names(table)}) VALUES "
    for values in _packets(_literals(rows)):
        tx.connection.exec_driver_sql(
            head + ",".join(values), execution_options={"no_parameters": True}
        )


def _literals(rows: Sequence[Row]) -> Iterator[str]:
    """The rows as literals that MySQL parses in any sql_mode."""
    columns = [_column_literals(values) for values in zip(*rows, strict=True)]
    return (f"({','.join(values)})" for values in zip(*columns, strict=True))


def _column_literals(values: Sequence[Any]) -> Iterable[str]:
    """PERF the type of a column is determined once for all rows."""
    kinds = set(map(type, values))
    if kinds == {int}:
        return map(repr, values)
    if kinds == {str} and _is_plain("".join(values)):
        return [f"'{value}'" for value in values]
    return map(_literal, values)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if not isinstance(value, str):
        return repr(value)
    if _is_plain(value):
        return f"'{value}'"
    return f"_utf8mb4 0x{value.encode().hex()}"


def _packets(texts: Iterable[str]) -> Iterator[list[str]]:
    packet: list[str] = []
    length = 0
    for text in texts:
        packet.append(text)
        length += len(text)
        if length > _PACKET_LENGTH:
            yield packet
            packet, length = [], 0
    if packet:
        yield packet


def _copy(tx: Tx, table: Table, rows: Sequence[Row]) -> None:
    """PostgreSQL's COPY, which SQLAlchemy does not support."""
    dialect = tx.connection.dialect
    driver: Any = tx.connection.connection.dbapi_connection
    text = f"COPY {table.name} ({_names(table)}) FROM STDIN"
    try:
        with driver.cursor() as cursor, cursor.copy(text) as copy:
            for row in rows:
                copy.write_row(row)
    except dialect.loaded_dbapi.Error as error:
        raise exc.DBAPIError.instance(
            text,
            None,
            error,
            dialect.loaded_dbapi.Error,
            hide_parameters=True,
            connection_invalidated=dialect.is_disconnect(error, driver, None),
            dialect=dialect,
        ) from error


def _names(table: Table) -> str:
    return ", ".join(column.name for column in table.columns)


_INSERTS: Final[Mapping[str, Callable[[Tx, Table, Sequence[Row]], None]]] = {
    "rows": _insert_each,
    "copy": _copy,
    "text": _insert_together,
}
