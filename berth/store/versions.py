# SPDX-License-Identifier: Apache-2.0
"""The revision of a database's schema, and whether this release can serve it.

A database has two: that of OpenStack Placement in `alembic_version`, and that of berth's own tables
in `berth_alembic_version`. This module only reads them; `berth.upkeep` changes the schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from sqlalchemy import Connection, column, inspect, select, table

from berth.store.engine.database import Database
from berth.store.engine.tables import metadata
from berth.store.engine.transaction import Tx

#: The revisions of OpenStack Placement, oldest first.
PLACEMENT_REVISIONS: Final = (
    "b4ed3a175331",
    "611cd6dffd7b",
    "b5c396305c25",
    "422ece571366",
    "a082b8bb98d0",
)
PLACEMENT_HEAD: Final = PLACEMENT_REVISIONS[-1]

#: The revisions of berth's tables, oldest first.
BERTH_REVISIONS: Final = ("0001", "0002")
BERTH_HEAD: Final = BERTH_REVISIONS[-1]

#: Here all tables exist that are filled from others; the next revision records that they have been
#: filled.
BERTH_TABLES_MADE: Final = "0001"

PLACEMENT_VERSIONS: Final = "alembic_version"
BERTH_VERSIONS: Final = "berth_alembic_version"

#: Stands in for berth's revision in a target that `berth db copy` has not finished.
UNFINISHED_COPY: Final = "unfinished-copy"

#: The prefix of berth's own tables.
BERTH_PREFIX: Final = "berth_"


class Versions(NamedTuple):
    """The two revisions of a database; None: it has no such revision."""

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
    """Whether the schema is exactly the one of this release."""
    return versions_of(db) == CURRENT


def write_unserved(db: Database, unit: Callable[[Tx], object]) -> None:
    """Write to a schema that is being created, or to one that may be in use."""
    (db.write if is_current(db) else db.write_unnoted)(unit)


def missing_tables(db: Database) -> list[str]:
    """The tables of this release that the database does not have."""
    with db.read() as tx:
        return sorted(metadata.tables.keys() - inspect(tx.connection).get_table_names())


def current_version(db: Database) -> str:
    """The two revisions as text, that of OpenStack Placement first; `None` if there is none."""
    return str(versions_of(db))


def versions_of(db: Database) -> Versions:
    """The two revisions of a database."""
    with db.read() as tx:
        return read_versions(tx.connection)


def read_versions(connection: Connection) -> Versions:
    """As `versions_of`, in a transaction."""
    return Versions(_version(connection, PLACEMENT_VERSIONS), _version(connection, BERTH_VERSIONS))


def why_not_current(versions: Versions) -> str:
    """Say why a schema is not the one of this release, and what to do."""
    if versions.berth == UNFINISHED_COPY:
        return "a copy into it was not finished: run the same `berth db copy` again"
    for name, revision, revisions in (
        (PLACEMENT_VERSIONS, versions.placement, PLACEMENT_REVISIONS),
        (BERTH_VERSIONS, versions.berth, BERTH_REVISIONS),
    ):
        if revision is not None and revision not in revisions:
            return (
                f"{name} says {revision}, which this release does not know: a newer release "
                f"created the database, so use that one"
            )
    if versions.placement == PLACEMENT_HEAD and versions.berth is not None:
        return (
            f"its schema is at {versions}, because an older release created it or its upgrade "
            f"was interrupted: run `berth db upgrade`, which continues where that stopped"
        )
    return (
        f"its schema is at {versions}, and this release needs {CURRENT}: make a copy of it, then "
        f"run `berth db upgrade`"
    )


def _version(connection: Connection, name: str) -> str | None:
    if not inspect(connection).has_table(name):
        return None
    return connection.scalar(select(column("version_num")).select_from(table(name)))
