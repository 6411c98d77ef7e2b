# SPDX-License-Identifier: Apache-2.0
"""Counting SQL: performance is held by the number of statements, not by seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event

from berth.store.engine.database import Database


@contextmanager
def counted_statements(db: Database) -> Iterator[list[str]]:
    """The statements that a database is sent meanwhile, `BEGIN` included; one for an executemany.

    The list grows as they are sent, and stays when the block is left.
    """
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    event.listen(db.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(db.engine, "before_cursor_execute", note)
