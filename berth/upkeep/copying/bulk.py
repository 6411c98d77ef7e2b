# SPDX-License-Identifier: Apache-2.0
"""Inserts many rows into an empty table, in the fastest way of each engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Table, exc

from berth.store.engine.transaction import Tx
from berth.upkeep.copying.rows import Row

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
