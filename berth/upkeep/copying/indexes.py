# SPDX-License-Identifier: Apache-2.0
"""The target's indexes: dropped before the rows are copied, and created again afterwards.

PERF the consumers' uuids are random: with their index in place, each chunk of a million allocations
writes half of its pages again.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Index, Table, inspect

from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from berth.upkeep.copying.rows import key_columns


def drop_indexes(db: Database, table: Table) -> None:
    """Drop the indexes of a table that only slow down writing."""

    def unit(tx: Tx) -> None:
        present = {index["name"] for index in inspect(tx.connection).get_indexes(table.name)}
        for index in _spare(table):
            if index.name in present:
                index.drop(tx.connection)

    db.write(unit)


def create_indexes(db: Database, table: Table) -> None:
    """Create the indexes that are missing."""

    def unit(tx: Tx) -> None:
        for index in _spare(table):
            index.create(tx.connection, checkfirst=True)

    db.write(unit)


def _spare(table: Table) -> Iterator[Index]:
    """The indexes that the copy does not need: neither the engine for a foreign key, nor the reads
    along the table's key."""
    needed = {
        column.name for column in (*key_columns(table), *table.columns) if column.foreign_keys
    }
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        if next(iter(index.columns)).name not in needed:
            yield index
