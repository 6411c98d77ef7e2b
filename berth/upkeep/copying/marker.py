# SPDX-License-Identifier: Apache-2.0
"""What a target remembers of the copy that is under way: from where, and how far it has come.

While it is unfinished, the target's schema has a revision that no release knows, so that nobody
serves half a database: neither this release nor one that knows nothing of copies.
"""

from __future__ import annotations

import json
from typing import Final

from sqlalchemy import Column, MetaData, String, Table, column, inspect, select, table, update

from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from berth.store.versions import BERTH_HEAD, BERTH_VERSIONS, UNFINISHED_COPY
from berth.upkeep.copying.rows import TABLES, Key, start_of

#: How far a copy has come, a row for each table, and what it must find again when it goes on.
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
    """The marks in one target, as they were when it was read or last moved."""

    def __init__(self, marks: dict[str, str]) -> None:
        self._marks = marks

    @property
    def source(self) -> str:
        """The source that the copy was begun from."""
        return self._marks[_SOURCE]

    @property
    def clock(self) -> str:
        """The source's writers' clock when the copy was begun."""
        return self._marks[_CLOCK]

    @property
    def is_of_this_release(self) -> bool:
        """Whether it was begun with the schema that this release has."""
        return self._marks[_RELEASE] == BERTH_HEAD

    def reached(self, of: Table) -> Key:
        """The key of the last row of a table that has been copied."""
        return tuple(json.loads(self._marks[of.name]))

    def move(self, tx: Tx, of: Table, reached: Key) -> bool:
        """Remember that a table has been copied up to a key; call `moved` after the commit.

        False: that is remembered already, because an earlier run of the transaction has been
        committed after all, whatever it answered.

        Raises:
            NotAlone: somebody else has moved it.
        """
        mark = berth_copy.c
        moved = tx.connection.execute(
            update(berth_copy)
            .where(mark.step == of.name, mark.value == self._marks[of.name])
            .values(value=json.dumps(reached))
        )
        if moved.rowcount == 1:
            return True
        found = tx.connection.scalar(select(mark.value).where(mark.step == of.name))
        if found != json.dumps(reached):
            raise NotAlone
        return False

    def moved(self, of: Table, reached: Key) -> None:
        """What `move` has written is committed."""
        self._marks[of.name] = json.dumps(reached)


def find_marker(db: Database) -> Marker | None:
    """The marks of a copy that was begun; None where none was."""
    with db.read() as tx:
        if not inspect(tx.connection).has_table(berth_copy.name):
            return None
        marks = dict(tx.connection.execute(select(berth_copy.c.step, berth_copy.c.value)).all())
    # An engine that commits with each change of a table may have been stopped before the marks.
    return Marker(marks) if marks else None


def make_table(tx: Tx) -> None:
    """Make the table of the marks, if it is not there. A transaction of its own, which MySQL ends
    here: what came after in the same one would be committed statement by statement."""
    berth_copy.create(tx.connection, checkfirst=True)


def begin(tx: Tx, source: str, clock: str) -> None:
    """Mark a target with this release's schema and no rows as a copy that has been begun."""
    marks = {_SOURCE: source, _CLOCK: clock, _RELEASE: BERTH_HEAD}
    marks |= {of.name: json.dumps(start_of(of)) for of in TABLES}
    tx.connection.execute(
        berth_copy.insert(), [{"step": step, "value": value} for step, value in marks.items()]
    )
    tx.connection.execute(update(_versions).values(version_num=UNFINISHED_COPY))


def finish(tx: Tx) -> None:
    """Make a target a database like any other."""
    tx.connection.execute(update(_versions).values(version_num=BERTH_HEAD))
    berth_copy.drop(tx.connection)
