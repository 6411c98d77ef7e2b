# SPDX-License-Identifier: Apache-2.0
"""The rows of a table as every engine can give and take them, in chunks along a key.

A row is a tuple with a value for each column of the table, in order. Times are texts, so that no
engine's idea of a time, nor Python's, stands between the two: `2026-11-21 18:40:00.000000`,
or without the fraction where one of the two keeps whole seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    DateTime,
    Select,
    String,
    Table,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.types import NullType

from berth.store.engine.database import Database
from berth.store.engine.tables import metadata

T = TypeVar("T")

Row = tuple[Any, ...]
Key = tuple[int, ...]

#: The original's tables, those that are referred to first. berth's own hold nothing that is not
#: made from them.
TABLES: Final[tuple[Table, ...]] = tuple(
    table for table in metadata.sorted_tables if not table.name.startswith("berth_")
)

#: Rows that are read, written and committed at once.
CHUNK_ROWS: Final = 10_000

#: Below every id.
_FIRST: Final = -(2**31)

_LENGTH_WITH_FRACTION: Final = len("2026-11-21 18:40:00.000000")
_LENGTH_WITHOUT: Final = len("2026-11-21 18:40:00")


def key_columns(table: Table) -> list[Column[Any]]:
    """The columns that a table is walked along; unique, and whole numbers.

    PERF of a pair, the provider comes first: a trait may have a hundred thousand providers, through
    which each chunk would have to find its start, but a provider has a few dozen traits.
    """
    columns = list(table.primary_key.columns)
    return sorted(columns, key=lambda column: column.name != "resource_provider_id")


def start_of(table: Table) -> Key:
    """The key before all rows."""
    return (_FIRST,) * len(key_columns(table))


class Reader:
    """Reads one table of one database, from any key on.

    Args:
        whole_seconds: leave the fractions of times away.
    """

    def __init__(self, db: Database, table: Table, *, whole_seconds: bool) -> None:
        self._db = db
        self._query = _chunk_after(table, db.engine.dialect.name, whole_seconds=whole_seconds)
        self._key_width = len(key_columns(table))
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
        """All rows behind a key; the next chunk is read while one is being worked on."""
        return _ahead(self._chunks(self._start if after is None else after, count))

    def _chunks(self, after: Key, count: int) -> Iterator[list[Row]]:
        while rows := self.chunk(after, count):
            yield rows
            if len(rows) < count:
                return
            after = self.key_of(rows[-1])


def _ahead(things: Iterator[T]) -> Iterator[T]:
    """The same things, one of them made ready in another thread meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, things, None)
        while (thing := coming.result()) is not None:
            coming = pool.submit(next, things, None)
            yield thing


def _chunk_after(table: Table, engine: str, *, whole_seconds: bool) -> Select[Any]:
    keys = key_columns(table)
    return (
        select(*(_as_read(column, engine, whole_seconds) for column in table.columns))
        .where(_behind(keys))
        .order_by(*keys)
        .limit(bindparam("count"))
    )


def _behind(keys: list[Column[Any]]) -> ColumnElement[bool]:
    """Whether a row stands behind `after_0, after_1, ...`.

    PERF written so that each engine walks the index from there: MariaDB reads the whole index for
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


def _as_read(column: Column[Any], engine: str, whole_seconds: bool) -> ColumnElement[Any]:
    if not isinstance(column.type, DateTime):
        # As the driver gives it: whole numbers, floating ones and texts need no translation.
        return type_coerce(column, NullType)
    stored = type_coerce(column, String)
    if engine == "postgresql":
        fraction = "" if whole_seconds else ".US"
        return func.to_char(column, f"YYYY-MM-DD HH24:MI:SS{fraction}", type_=String)
    if engine in ("mysql", "mariadb"):
        fraction = "" if whole_seconds else ".%f"
        return func.date_format(column, f"%Y-%m-%d %H:%i:%s{fraction}", type_=String)
    if whole_seconds:
        return func.substr(stored, 1, _LENGTH_WITHOUT, type_=String)
    # What other programs wrote may lack the fraction.
    return case((func.length(stored) == _LENGTH_WITHOUT, stored + ".000000"), else_=stored)
