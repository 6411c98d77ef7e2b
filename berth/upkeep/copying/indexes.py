# SPDX-License-Identifier: Apache-2.0
"""The target's indexes: taken away before the rows come, and made again when all are there.

PERF a million allocations whose consumers' uuids are random: kept up row by row, their index makes
each chunk write half of its pages anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Index, Table, inspect

from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from berth.upkeep.copying.rows import key_columns


def drop_indexes(db: Database, table: Table) -> None:
    """Take away those of a table that only slow the writing down."""

    def unit(tx: Tx) -> None:
        present = {index["name"] for index in inspect(tx.connection).get_indexes(table.name)}
        for index in _spare(table):
            if index.name in present:
                index.drop(tx.connection)

    db.write(unit)


def create_indexes(db: Database, table: Table) -> None:
    """Make those that are not there any more."""

    def unit(tx: Tx) -> None:
        for index in _spare(table):
            index.create(tx.connection, checkfirst=True)

    db.write(unit)


def _spare(table: Table) -> Iterator[Index]:
    """The indexes that nobody needs during the copy: neither the engine, for a reference, nor the
    walk through the table."""
    needed = {
        column.name for column in (*key_columns(table), *table.columns) if column.foreign_keys
    }
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        if next(iter(index.columns)).name not in needed:
            yield index
