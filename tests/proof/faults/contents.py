# SPDX-License-Identifier: Apache-2.0
"""All that an SQLite database holds, as a value, read behind berth's back."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

#: What differs between two runs of the same request: how often and when, not what.
_COUNTERS: Final = frozenset({"berth_writer", "berth_journal"})
_TIMES: Final = frozenset({"created_at", "updated_at"})

Row = tuple[tuple[str, Any], ...]
Contents = dict[str, list[Row]]


def contents(path: Path, *, counters: bool = False) -> Contents:
    """Every row of every table, sorted, without times; with the journal and its clock or not."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = {name for (name,) in tables} - (set() if counters else _COUNTERS)
        return {name: sorted(_rows(connection, name), key=repr) for name in sorted(names)}


def difference(found: Contents, due: Contents) -> str:
    """Which rows are too many (+) and which are missing (-), for people to read."""
    lines: list[str] = []
    for table in sorted(found.keys() | due.keys()):
        rows, wanted = Counter(found.get(table, [])), Counter(due.get(table, []))
        lines += [f"+ {table} {dict(row)}" for row in rows - wanted]
        lines += [f"- {table} {dict(row)}" for row in wanted - rows]
    return "\n".join(lines)


def wrong_sums(found: Contents) -> list[str]:
    """Where a sum of usage is not that of the allocations, or stands without an inventory."""
    held: Counter[tuple[int, int]] = Counter()
    for row in map(dict, found["allocations"]):
        held[row["resource_provider_id"], row["resource_class_id"]] += row["used"]
    sums = {_place(row): dict(row)["used"] for row in found["berth_usages"]}
    stocks = {_place(row) for row in found["inventories"]}
    return [
        f"provider {provider}, class {name}: the sum says {sums.get((provider, name))}, "
        f"and {held[provider, name]} are allocated"
        for provider, name in sorted(sums.keys() | stocks | held.keys())
        if sums.get((provider, name)) != held[provider, name] or (provider, name) not in stocks
    ]


def _place(row: Row) -> tuple[int, int]:
    fields = dict(row)
    return fields["resource_provider_id"], fields["resource_class_id"]


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[Row]:
    cursor = connection.execute(f'SELECT * FROM "{table}"')
    names = [column for column, *_ in cursor.description]
    for values in cursor:
        yield tuple(
            (name, value) for name, value in zip(names, values, strict=True) if name not in _TIMES
        )
