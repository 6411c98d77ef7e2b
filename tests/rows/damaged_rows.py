# SPDX-License-Identifier: Apache-2.0
"""Every column of every table with values that the tables can hold and the service would never
write: generated from the schema, so that a new column is damaged too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Boolean, Column, DateTime, Float, Integer, String, Table, Text

from berth.store.engine.tables import metadata

#: No row has this id.
GONE: Final = 987_654

#: Rows of a table: their order, and how many are before them.
_ROWS: Final = {"first": (" ASC", 0), "second": (" ASC", 1), "last": (" DESC", 0)}

#: The second row of these belongs to the same host as the first.
_WITH_SECOND: Final = ("resource_providers", "inventories", "allocations")

_NUMBERS: Final = (0, -1, GONE, 2**31 - 1, 2**40)
_FLOATS: Final = (0.0, -1.0, 1e300, float("inf"), float("-inf"))
_TEXTS: Final = ("", "no uuid", "\N{SNOWMAN}")
_JSON: Final = ("", "no JSON", "null", "[]", "{}", '{"a": 1}')
_TIMES: Final = ("0001-01-01 00:00:00.000000", "9999-12-31 23:59:59.000000")


@dataclass(frozen=True)
class DamagedRow:
    """A value of a column of one row, or a row that is gone.

    Attributes:
        of: which of the table's rows: a key of `_ROWS`.
    """

    table: str
    of: str
    column: str | None
    value: Any = None

    def __str__(self) -> str:
        what = "gone" if self.column is None else f"{self.column}={self.value!r:.20}"
        return f"{self.of} of {self.table}: {what}"

    def statement(self) -> tuple[str, tuple[Any, ...]]:
        """For SQLite, with its parameters."""
        key = "rowid" if metadata.tables[self.table].dialect_options["sqlite"]["with_rowid"] else ""
        table = metadata.tables[self.table]
        columns = key or ", ".join(column.name for column in table.primary_key)
        way, offset = _ROWS[self.of]
        row = (
            f"({columns}) = (SELECT {columns} FROM {self.table} "
            f"ORDER BY {columns.replace(',', way + ',')}{way} LIMIT 1 OFFSET {offset})"
        )
        if self.column is None:
            return f"DELETE FROM {self.table} WHERE {row}", ()
        return f"UPDATE {self.table} SET {self.column} = ? WHERE {row}", (self.value,)


def every_damage() -> Iterator[DamagedRow]:
    """Each value of each column of some rows of each table."""
    for table in metadata.sorted_tables:
        for of in _ROWS if table.name in _WITH_SECOND else ("first", "last"):
            yield DamagedRow(table.name, of, None)
            for column in table.columns:
                for value in _values(table, column):
                    yield DamagedRow(table.name, of, column.name, value)


def _values(table: Table, column: Column[Any]) -> Iterator[Any]:
    if column.nullable:
        yield None
    kind = column.type
    if isinstance(kind, Boolean):
        yield from (0, 1)
    elif isinstance(kind, Float):
        yield from _FLOATS
    elif isinstance(kind, Integer):
        yield from _NUMBERS
        if "id" in column.name:
            yield from (1, 2, 3)
    elif isinstance(kind, Text):
        yield from _JSON
    elif isinstance(kind, String):
        yield from _TEXTS
        yield "x" * (kind.length or 1)
    elif isinstance(kind, DateTime):
        yield from _TIMES
    else:
        raise TypeError(f"{table.name}.{column.name}: how is {kind} damaged?")
