# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL's sequences, which number new rows.

Tools that load rows with their numbers may leave a sequence behind them: pgloader, or a restore of
data alone. Until it has caught up, it gives new rows the numbers of old ones, and every such write
fails, or is taken for one that another request has made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import func, select, text

from berth.store.engine.database import Database
from berth.store.engine.tables import metadata
from berth.store.engine.transaction import Tx
from berth.upkeep.integrity.fault import Fault, Faults, Key, Rule


class _Behind(NamedTuple):
    """A table with a sequence that is behind its rows."""

    table: str
    next: int
    newest: int


def count_on(db: Database) -> list[str]:
    """Set every sequence that is behind its rows, and return a sentence for each."""
    with db.read() as tx:
        behind = _behind(tx)
    if behind:
        db.write_unnoted(lambda tx: _renumber(tx, [each._asdict() for each in behind]))
    return [f"the sequence of {each.table} was behind its rows: {_action(each)}" for each in behind]


def tables_behind(db: Database) -> list[str]:
    """The tables whose sequences are behind their rows. Cost: two quick queries a table."""
    with db.read() as tx:
        return [each.table for each in _behind(tx)]


def _faults(tx: Tx) -> Faults:
    for each in _behind(tx):
        yield Fault(
            f"the sequence of {each.table} would number a new row {each.next}, but rows have "
            f"numbers up to {each.newest}: writes fail, or answer 404 and 409 without cause",
            _action(each),
            "",
            each._asdict(),
        )


def _action(each: _Behind) -> str:
    return f"number new rows of {each.table} from {each.newest + 1}"


def _behind(tx: Tx) -> list[_Behind]:
    if not tx.dialect.storage.has_sequences:
        return []
    behind = []
    for table in metadata.sorted_tables:
        if "id" not in table.c or (sequence := _sequence(tx, table.name)) is None:
            continue
        # First the rows: the sequence counts on meanwhile, whatever this transaction sees.
        newest = tx.connection.scalar(select(func.max(table.c.id))) or 0
        last, is_called = tx.connection.execute(
            text(f"SELECT last_value, is_called FROM {sequence}")
        ).one()
        following = last + is_called
        if following <= newest:
            behind.append(_Behind(table.name, following, newest))
    return behind


def _sequence(tx: Tx, table: str) -> str | None:
    """The name of a table's sequence, quoted; None if the table has none."""
    name: str | None = tx.connection.scalar(select(func.pg_get_serial_sequence(table, "id")))
    return name


def _renumber(tx: Tx, keys: Sequence[Key]) -> None:
    """RACE: a sequence never goes back, although others may count on."""
    for key in keys:
        if (sequence := _sequence(tx, key["table"])) is not None:
            last = tx.connection.scalar(text(f"SELECT last_value FROM {sequence}"))
            tx.connection.execute(select(func.setval(sequence, max(last or 0, key["newest"]))))


RULES: Final = (Rule(_faults, _renumber),)
