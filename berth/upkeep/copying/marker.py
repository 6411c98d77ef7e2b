# SPDX-License-Identifier: Apache-2.0
"""Marks an unfinished copy in its target: the source, and how far the copy has come.

Until it is finished, the target's schema has a revision that no release knows, so that neither this
release nor an older one serves half a database.
"""

from __future__ import annotations

import json
from typing import Final

from sqlalchemy import Column, MetaData, String, Table, column, inspect, select, table, update

from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from berth.store.versions import BERTH_HEAD, BERTH_VERSIONS, UNFINISHED_COPY
from berth.upkeep.copying.rows import TABLES, Key, start_of

#: How far a copy has come, by table, and what must not have changed when it continues.
berth_copy: Final = Table(
    "berth_copy",
    MetaData(),
    Column("step", String(64), primary_key=True),
    Column("value", String(255), nullable=False),
)

_versions: Final = table(BERTH_VERSIONS, column("version_num"))

_SOURCE: Final = "source"
_CLOCK: Final = "clock"
_RELEASE: Final = "release"


class NotAlone(Exception):
    """Another copy writes to the same target."""


class Marker:
    """The marks in a target, as they were read or last moved."""

    def __init__(self, marks: dict[str, str]) -> None:
        self._marks = marks

    @property
    def source(self) -> str:
        """The source from which the copy was begun."""
        return self._marks[_SOURCE]

    @property
    def clock(self) -> str:
        """The source's writers' clock at the begin of the copy."""
        return self._marks[_CLOCK]

    @property
    def is_of_this_release(self) -> bool:
        """Whether it was begun with the schema that this release has."""
        return self._marks[_RELEASE] == BERTH_HEAD

    def reached(self, of: Table) -> Key:
        """The key of the last row of a table that has been copied."""
        return tuple(json.loads(self._marks[of.name]))

    def move(self, tx: Tx, of: Table, reached: Key) -> bool:
        """Record that a table has been copied up to a key; call `moved` after the commit.

        Returns False if that is recorded already: an earlier run of the transaction was committed,
        although it failed.

        Raises:
            NotAlone: another process has moved it.
        """
        mark = berth_copy.c
        moved = tx.connection.execute(
            update(berth_copy)
            .where(mark.step == of.name, mark.value == self._marks[of.name])
            .values(value=json.dumps(reached))
        )
        if moved.rowcount == 1:
            return True
        stored = tx.connection.scalar(select(mark.value).where(mark.step == of.name))
        if stored != json.dumps(reached):
            raise NotAlone
        return False

    def moved(self, of: Table, reached: Key) -> None:
        """Note that the write of `move` is committed."""
        self._marks[of.name] = json.dumps(reached)


def find_marker(db: Database) -> Marker | None:
    """The marks of a copy that was begun; None if there is none."""
    with db.read() as tx:
        if not inspect(tx.connection).has_table(berth_copy.name):
            return None
        marks = dict(tx.connection.execute(select(berth_copy.c.step, berth_copy.c.value)).all())
    # An engine that commits every change of a table may have stopped before the marks.
    return Marker(marks) if marks else None


def make_table(tx: Tx) -> None:
    """Create the table of the marks if it is missing. In a transaction of its own: MySQL commits
    here, and would commit the rest statement by statement."""
    berth_copy.create(tx.connection, checkfirst=True)


def begin(tx: Tx, source: str, clock: str) -> None:
    """Mark a target with this release's schema and no rows as the target of a copy."""
    marks = {_SOURCE: source, _CLOCK: clock, _RELEASE: BERTH_HEAD}
    marks |= {of.name: json.dumps(start_of(of)) for of in TABLES}
    tx.connection.execute(
        berth_copy.insert(), [{"step": step, "value": value} for step, value in marks.items()]
    )
    tx.connection.execute(update(_versions).values(version_num=UNFINISHED_COPY))


def finish(tx: Tx) -> None:
    """Remove the marks, which makes the target a normal database."""
    tx.connection.execute(update(_versions).values(version_num=BERTH_HEAD))
    berth_copy.drop(tx.connection)
