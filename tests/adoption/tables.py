# SPDX-License-Identifier: Apache-2.0
"""The tables of a database: their structure and every row."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Inspector, inspect

from tests.servers.statements import connected


def structure(url: str) -> dict[str, Any]:
    """The structure of OpenStack Placement's tables: columns, keys, indexes."""
    with connected(url) as connection:
        inspector = inspect(connection)
        return {name: _structure_of(inspector, name) for name in _originals(inspector)}


def rows(url: str, *, without: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Every row of OpenStack Placement's tables as text, with the columns' names."""
    with connected(url) as connection:
        inspector = inspect(connection)
        tables = {}
        for name in _originals(inspector):
            result = connection.exec_driver_sql(f"SELECT * FROM {name}")
            tables[name] = sorted(str(dict(sorted(row.items()))) for row in result.mappings())
        return {name: some for name, some in tables.items() if name not in without}


def _originals(inspector: Inspector) -> list[str]:
    return sorted(name for name in inspector.get_table_names() if not name.startswith("berth_"))


def _structure_of(inspector: Inspector, name: str) -> dict[str, Any]:
    return {
        "columns": {
            column["name"]: (str(column["type"]), column["nullable"], str(column["default"]))
            for column in inspector.get_columns(name)
        },
        "primary key": inspector.get_pk_constraint(name)["constrained_columns"],
        "indexes": sorted(
            (str(index["name"]), str(index["column_names"]), bool(index["unique"]))
            for index in inspector.get_indexes(name)
        ),
        "unique": sorted(
            (str(key["name"]), str(key["column_names"]))
            for key in inspector.get_unique_constraints(name)
        ),
        "references": sorted(
            (str(key["name"]), str(key["constrained_columns"]), key["referred_table"])
            for key in inspector.get_foreign_keys(name)
        ),
    }
