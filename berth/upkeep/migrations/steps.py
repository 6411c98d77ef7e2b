# SPDX-License-Identifier: Apache-2.0
"""The building blocks of the steps: each is skipped if it has been done already.

MySQL and MariaDB commit every change of a table. An interrupted step is run again from its
beginning there, and must skip what it did the first time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

from berth.upkeep.integrity.storage import own_collation


def create_table(name: str, *parts: Any, **options: Any) -> None:
    """Create a table if it is missing."""
    if not sa.inspect(op.get_bind()).has_table(name):
        op.create_table(name, *parts, **_on_mysql(), **options)


def create_index(name: str, table: str, columns: Sequence[str]) -> None:
    """Create an index if the table lacks it."""
    if name not in _indexes(table):
        op.create_index(name, table, columns)


def drop_index(name: str, table: str) -> None:
    """Drop an index, if the table has it."""
    if name in _indexes(table):
        op.drop_index(name, table_name=table)


def has_column(table: str, name: str) -> bool:
    """Whether the table has a column of that name already."""
    return any(column["name"] == name for column in sa.inspect(op.get_bind()).get_columns(table))


def has_foreign_key(table: str, name: str) -> bool:
    """Whether the table has a foreign key of that name already."""
    keys = sa.inspect(op.get_bind()).get_foreign_keys(table)
    return any(key["name"] == name for key in keys)


def _indexes(table: str) -> set[str | None]:
    return {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}


def _on_mysql() -> dict[str, Any]:
    """The options for exact names on MySQL: letter case, accents and trailing blanks count. Other
    engines ignore them."""
    is_mariadb = getattr(op.get_bind().dialect, "is_mariadb", False)
    collation = own_collation(is_mariadb=is_mariadb)
    return {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": collation}
