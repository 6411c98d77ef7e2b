# SPDX-License-Identifier: Apache-2.0
"""Where a database stands in the two histories of its schema, and whether it can be served.

The original's revision stands in `alembic_version`, berth's own in `berth_alembic_version`
(`migrations/`). Only looks; nothing here changes anything.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import Connection, column, inspect, select, table

from berth.store.engine.database import Database

#: The original's revisions, oldest first.
PLACEMENT_REVISIONS: Final = (
    "b4ed3a175331",
    "611cd6dffd7b",
    "b5c396305c25",
    "422ece571366",
    "a082b8bb98d0",
)
PLACEMENT_HEAD: Final = PLACEMENT_REVISIONS[-1]

#: berth's own.
BERTH_REVISIONS: Final = ("0001", "0002", "0003", "0004", "0005")
BERTH_HEAD: Final = BERTH_REVISIONS[-1]

#: At this one all of berth's tables are there; the last one says that they have been filled.
BERTH_TABLES_MADE: Final = "0004"

PLACEMENT_VERSIONS: Final = "alembic_version"
BERTH_VERSIONS: Final = "berth_alembic_version"

#: In the place of berth's own revision, in a target that `berth db copy` has not finished.
UNFINISHED_COPY: Final = "unfinished-copy"

#: What berth's own tables begin with.
BERTH_PREFIX: Final = "berth_"


class Versions(NamedTuple):
    """The two revisions that a database says it is at; None: it does not say."""

    placement: str | None
    berth: str | None

    def __str__(self) -> str:
        return f"{self.placement} (berth: {self.berth})" if self.berth else str(self.placement)


CURRENT: Final = Versions(PLACEMENT_HEAD, BERTH_HEAD)


def is_empty(db: Database) -> bool:
    """Whether the database has no tables at all."""
    with db.read() as tx:
        return not inspect(tx.connection).get_table_names()


def is_current(db: Database) -> bool:
    """Whether the schema is exactly the one that this release works with."""
    return versions_of(db) == CURRENT


def current_version(db: Database) -> str:
    """The two revisions for people to read, the original's first; `None` without."""
    return str(versions_of(db))


def versions_of(db: Database) -> Versions:
    """The two revisions of a database."""
    with db.read() as tx:
        return read_versions(tx.connection)


def read_versions(connection: Connection) -> Versions:
    """As `versions_of`, in a transaction."""
    return Versions(_version(connection, PLACEMENT_VERSIONS), _version(connection, BERTH_VERSIONS))


def why_not_current(versions: Versions) -> str:
    """What is the matter with a schema that is not this release's, and what to do about it."""
    if versions.berth == UNFINISHED_COPY:
        return "a copy into it was begun and not finished: run the same `berth db copy` again"
    for name, revision, known in (
        (PLACEMENT_VERSIONS, versions.placement, PLACEMENT_REVISIONS),
        (BERTH_VERSIONS, versions.berth, BERTH_REVISIONS),
    ):
        if revision is not None and revision not in known:
            return (
                f"{name} says {revision}, which this release does not know: a newer release made "
                f"the database, so use that one"
            )
    if versions.placement == PLACEMENT_HEAD and versions.berth is not None:
        return (
            f"its schema is at {versions}, because an older release made it or its upgrade was "
            f"broken off: run `berth db upgrade`, which goes on where that stopped"
        )
    return (
        f"its schema is at {versions}, and this release needs {CURRENT}: make a copy of it, then "
        f"run `berth db upgrade`"
    )


def _version(connection: Connection, name: str) -> str | None:
    if not inspect(connection).has_table(name):
        return None
    return connection.scalar(select(column("version_num")).select_from(table(name)))
