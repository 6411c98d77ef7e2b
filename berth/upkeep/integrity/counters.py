# SPDX-License-Identifier: Apache-2.0
"""Counters that end: numbers of rows, and generations, in columns of 32 bits.

SQLite's columns have 64 bits, which last.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, func, select

from berth.store.engine.database import Database
from berth.store.engine.tables import metadata
from berth.store.engine.transaction import Tx
from berth.upkeep.integrity.fault import Fault, Faults, Rule

_MAX: Final = 2**31 - 1

#: From here on, a counter is reported: some ten million steps are left.
_NEAR: Final = _MAX - 10_000_000


def used_up(db: Database) -> list[str]:
    """A sentence for each number of rows that is near its end. Cost: a quick query a table."""
    with db.read() as tx:
        return [f"{fault.sentence}; {fault.advice}" for fault in _near(tx, ("id",))]


def _faults(tx: Tx) -> Faults:
    yield from _near(tx, ("id", "generation"))


def _near(tx: Tx, names: tuple[str, ...]) -> Faults:
    if tx.dialect.is_embedded:
        return
    for table in metadata.sorted_tables:
        for column in (table.c[name] for name in names if name in table.c):
            if isinstance(column.type, BigInteger):
                continue
            newest = tx.connection.scalar(select(func.max(column))) or 0
            if newest > _NEAR:
                yield Fault(
                    f"column {column.name} of {table.name} has counted to {newest} and ends at "
                    f"{_MAX}: then writes are answered 503",
                    None,
                    "make it a BIGINT by hand, and the columns that refer to it too",
                    {},
                )


RULES: Final = (Rule(_faults),)
