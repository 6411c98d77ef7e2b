# SPDX-License-Identifier: Apache-2.0
"""Counts SQL statements, because performance is checked by counts and not by seconds; and cuts a
process off before one of them."""

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


class _Cut(Exception):
    """The process ends here."""


@contextmanager
def cut_before(
    db: Database, number: int, *, beginning: tuple[str, ...] = ("",)
) -> Iterator[list[str]]:
    """Cut the block off before the statement of this number, from 0, of those that begin so.

    Returns a list that has the statement then, and stays empty if the block comes to its end.
    """
    sent, cut = 0, list[str]()

    def count(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        nonlocal sent
        if statement.lstrip().upper().startswith(beginning):
            sent += 1
            if sent > number:
                cut.append(statement)
                raise _Cut

    event.listen(db.engine, "before_cursor_execute", count)
    try:
        yield cut
    except _Cut:
        pass
    finally:
        event.remove(db.engine, "before_cursor_execute", count)
