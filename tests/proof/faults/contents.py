# SPDX-License-Identifier: Apache-2.0
"""The contents of an SQLite database as a value, read without berth."""

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
    """Every row of every table, sorted, without times; with or without the journal and its
    clock."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = {name for (name,) in tables} - (set() if counters else _COUNTERS)
        found = {name: sorted(_rows(connection, name), key=repr) for name in sorted(names)}
    if not counters:
        found["berth_project_usages"] = _of_all_writers(found["berth_project_usages"])
    return found


def _of_all_writers(rows: list[Row]) -> list[Row]:
    """The counters of projects, added up: which writer has counted differs between two runs."""
    sums: dict[Row, Counter[str]] = {}
    for row in rows:
        key = tuple(field for field in row if field[0].endswith("_id") and field[0] != "writer_id")
        first = dict(row)["first_class"]
        used = {name: value for name, value in row if name.startswith("used_")}
        sums.setdefault((*key, ("first_class", first)), Counter()).update(used)
    return sorted(
        ((*key, *used.items()) for key, used in sums.items() if any(used.values())), key=repr
    )


def difference(found: Contents, due: Contents) -> str:
    """The rows that were added (+) and removed (-), as text."""
    lines: list[str] = []
    for table in sorted(found.keys() | due.keys()):
        rows, wanted = Counter(found.get(table, [])), Counter(due.get(table, []))
        lines += [f"+ {table} {dict(row)}" for row in rows - wanted]
        lines += [f"- {table} {dict(row)}" for row in wanted - rows]
    return "\n".join(lines)


def wrong_sums(found: Contents) -> list[str]:
    """The usages that differ from the sum of their allocations, or have no inventory."""
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
