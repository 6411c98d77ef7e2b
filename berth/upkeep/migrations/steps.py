# SPDX-License-Identifier: Apache-2.0
"""What the steps are made of: each part is left out where it has been done already.

MySQL and MariaDB commit every change of a table by itself. A step that was cut there at any place
is run again from its beginning, and must pass over what it did the first time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op


def create_table(name: str, *parts: Any, **options: Any) -> None:
    """Create a table, if there is none of that name."""
    if not sa.inspect(op.get_bind()).has_table(name):
        op.create_table(name, *parts, **_on_mysql(), **options)


def create_index(name: str, table: str, columns: Sequence[str]) -> None:
    """Create an index, if the table has none of that name."""
    if name not in _indexes(table):
        op.create_index(name, table, columns)


def drop_index(name: str, table: str) -> None:
    """Drop an index, if the table has it."""
    if name in _indexes(table):
        op.drop_index(name, table_name=table)


def has_column(table: str, name: str) -> bool:
    """Whether the table has a column of that name already."""
    return any(one["name"] == name for one in sa.inspect(op.get_bind()).get_columns(table))


def has_foreign_key(table: str, name: str) -> bool:
    """Whether the table has a foreign key of that name already."""
    keys = sa.inspect(op.get_bind()).get_foreign_keys(table)
    return any(one["name"] == name for one in keys)


def _indexes(table: str) -> set[str | None]:
    return {one["name"] for one in sa.inspect(op.get_bind()).get_indexes(table)}


def _on_mysql() -> dict[str, Any]:
    """The options with which names are exact there: letter case, accents and trailing blanks count.

    Only for new tables: those of the original that are adopted keep what they have.
    """
    dialect: Any = op.get_bind().dialect
    if dialect.name not in ("mysql", "mariadb"):
        return {}
    collation = "utf8mb4_nopad_bin" if dialect.is_mariadb else "utf8mb4_0900_bin"
    options = {"engine": "InnoDB", "charset": "utf8mb4", "collate": collation}
    return {f"{dialect.name}_{option}": value for option, value in options.items()}
