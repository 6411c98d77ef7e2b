# SPDX-License-Identifier: Apache-2.0
"""Counts SQL statements: the tests check performance by counts, not by seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event

from berth.store.engine.database import Database


@contextmanager
def counted_statements(db: Database) -> Iterator[list[str]]:
    """The statements that a database receives in the block, including `BEGIN`; an executemany
    counts once.

    The list grows with each statement, and stays as it is after the block.
    """
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    event.listen(db.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(db.engine, "before_cursor_execute", note)
