# SPDX-License-Identifier: Apache-2.0
"""The rows of a table in a form that every engine can read and write, in chunks along a key.

A row is a tuple with a value for each column of the table, in order. Times are texts, so that
neither an engine nor Python converts them: `2026-11-21 18:40:00.000000`, or without the fraction if
one of the two engines stores whole seconds.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
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
    inspect,
    null,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.types import NullType

from berth.store.engine.database import Database
from berth.store.engine.expressions import time_text
from berth.store.engine.tables import (
    berth_consumer_names,
    berth_drained,
    berth_drains,
    berth_flavors,
    berth_labels,
    berth_leases,
    berth_placements,
    metadata,
)

T = TypeVar("T")

Row = tuple[Any, ...]


def shown(value: object) -> str:
    """A value for a message: texts in quotes, with unprintable characters escaped."""
    if value is None:
        return "NULL"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


Key = tuple[int, ...]

#: The tables of OpenStack Placement, referenced ones first, labels, flavors, placements, names and
#: leases of consumers, and drains. berth's other tables are computed from them, or belong to one
#: database alone.
TABLES: Final[tuple[Table, ...]] = (
    *(table for table in metadata.sorted_tables if not table.name.startswith("berth_")),
    berth_labels,
    berth_flavors,
    berth_placements,
    berth_consumer_names,
    berth_drains,
    berth_drained,
    berth_leases,
)

#: Rows that are read, written and committed at once.
CHUNK_ROWS: Final = 10_000

#: Below every id.
_FIRST: Final = -(2**31)


def tables_in(db: Database) -> tuple[Table, ...]:
    """Those of `TABLES` that a database has: older releases and OpenStack Placement do not
    have the last ones."""
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


class Reader:
    """Reads one table of a database, from any key.

    Args:
        whole_seconds: omit the fractions of times.
    """

    def __init__(self, db: Database, table: Table, *, whole_seconds: bool) -> None:
        self._db = db
        with db.read() as tx:
            present = {column["name"] for column in inspect(tx.connection).get_columns(table.name)}
        self._query = _chunk_after(table, present, whole_seconds=whole_seconds)
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


def _chunk_after(table: Table, present: Collection[str], *, whole_seconds: bool) -> Select[Any]:
    """The query; columns that an older release does not have, and so may be NULL, are NULL."""
    keys = key_columns(table)
    return (
        select(
            *(
                _as_read(column, whole_seconds) if column.name in present else null()
                for column in table.columns
            )
        )
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
