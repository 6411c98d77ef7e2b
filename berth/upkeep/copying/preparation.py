# SPDX-License-Identifier: Apache-2.0
"""Before a copy begins or goes on: are the two databases fit for it?"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, delete, func, inspect, literal, select

from berth.model.errors import BerthError
from berth.model.standard import STANDARD_CLASSES, STANDARD_TRAITS
from berth.store.engine.database import Database
from berth.store.engine.tables import (
    berth_journal,
    berth_usages,
    berth_writer,
    metadata,
    resource_classes,
    traits,
)
from berth.store.engine.transaction import Tx
from berth.store.versions import BERTH_REVISIONS, PLACEMENT_HEAD
from berth.upkeep import schema
from berth.upkeep.copying import marker
from berth.upkeep.copying.marker import Marker, find_marker
from berth.upkeep.copying.obstacles import obstacles
from berth.upkeep.copying.rows import TABLES

#: A database that was written so recently is probably being served.
_QUIET: Final = timedelta(minutes=1)

#: The clock of a database that has none.
_NO_CLOCK: Final = "none"

_START_ANEW: Final = "empty the target and begin again"


class CopyRefused(BerthError):
    """The two databases cannot be copied as they are."""


def name_of(db: Database) -> str:
    """Which database it is, without whoever connects to it: for people, and to know it again."""
    url = db.engine.url
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{Path(url.database or '').resolve()}"
    return f"{url.get_backend_name()}://{url.host or ''}:{url.port or ''}/{url.database}"


def prepared(source: Database, target: Database, *, force: bool, chunk_rows: int) -> Marker | None:
    """The marks of a target that is ready to be copied into; None for one that is complete.

    Args:
        force: copy although somebody wrote to the source a moment ago.
        chunk_rows: rows that are read at once.

    Raises:
        CopyRefused: a sentence that says why, and what to do.
        SchemaError: the target's tables cannot be brought to this release.
    """
    if name_of(source) == name_of(target):
        raise CopyRefused(f"source and target are the same database, {name_of(source)}")
    _check_source(source, force=force)
    marks = find_marker(target)
    if marks is None:
        return _begun(source, target, chunk_rows)
    _check_begun(marks, source, target)
    return None if schema.is_current(target) else marks


def clock_of(db: Database) -> str:
    """A text that is another one as soon as a berth has written to the database."""
    with db.read() as tx:
        if not inspect(tx.connection).has_table(berth_writer.name):
            return _NO_CLOCK
        return str(tx.connection.scalar(select(func.coalesce(func.sum(berth_writer.c.seq), 0))))


def check_unchanged(source: Database, clock: str) -> None:
    """Refuse to go on with a source that was written to since its clock was read.

    Raises:
        CopyRefused: it was.
    """
    if clock_of(source) != clock:
        raise CopyRefused(
            f"somebody wrote to {name_of(source)} since the copy was begun: stop all that write to "
            f"it, {_START_ANEW}"
        )


def _check_source(source: Database, *, force: bool) -> None:
    version = schema.versions_of(source)
    if find_marker(source) is not None:
        raise CopyRefused(f"{name_of(source)} is itself a copy that was not finished")
    if version.placement != PLACEMENT_HEAD or version.berth not in (None, *BERTH_REVISIONS):
        raise CopyRefused(
            f"the schema of {name_of(source)} is at {version}, which this release cannot copy: run "
            f"`berth db upgrade` on it first"
        )
    if not force and _was_written_lately(source):
        raise CopyRefused(
            f"somebody wrote to {name_of(source)} within the last minute: stop all that write to "
            f"it, then wait a minute, or say --force if you are sure"
        )


def _was_written_lately(source: Database) -> bool:
    if clock_of(source) == _NO_CLOCK:
        return False
    with source.read() as tx:
        last = tx.connection.scalar(select(func.max(berth_writer.c.updated_at)))
        return last is not None and last > tx.now - _QUIET


def _begun(source: Database, target: Database, chunk_rows: int) -> Marker:
    with target.read() as tx:
        full = _tables_with_data(tx.connection)
    if full:
        raise CopyRefused(
            f"{name_of(target)} is not empty (there are rows in {', '.join(full)}): give the copy "
            f"a database of its own"
        )
    schema.upgrade(target)
    if found := obstacles(source, target, chunk_rows=chunk_rows):
        raise CopyRefused(
            f"{name_of(target)} cannot hold what is in {name_of(source)}; nothing was copied: "
            + "; ".join(found)
        )
    clock = clock_of(source)

    def unit(tx: Tx) -> None:
        for table in (berth_journal, berth_writer, berth_usages, traits, resource_classes):
            tx.connection.execute(delete(table))
        marker.begin(tx, name_of(source), clock)

    target.write(marker.make_table)
    target.write(unit)
    marks = find_marker(target)
    assert marks is not None, "made a moment ago"
    return marks


def _check_begun(marks: Marker, source: Database, target: Database) -> None:
    if marks.source != name_of(source):
        raise CopyRefused(
            f"{name_of(target)} holds a part of a copy of {marks.source}, not of "
            f"{name_of(source)}: finish that one, or {_START_ANEW}"
        )
    if not marks.is_of_this_release:
        raise CopyRefused(
            f"the copy in {name_of(target)} was begun by another release of berth: finish it with "
            f"that, or {_START_ANEW}"
        )
    check_unchanged(source, marks.clock)


def _tables_with_data(connection: Connection) -> list[str]:
    """The tables of a database that have rows, apart from the names that exist everywhere."""
    standard = {resource_classes: STANDARD_CLASSES, traits: STANDARD_TRAITS}
    present = set(inspect(connection).get_table_names())
    full = []
    for table in filter(lambda table: table.name in present, metadata.sorted_tables):
        if table not in TABLES:
            continue
        # An upgrade that was broken off may have left a table without some of its columns.
        rows = select(literal(True)).select_from(table)
        if table in standard:
            rows = rows.where(table.c.name.not_in(standard[table]))
        if connection.execute(rows.limit(1)).first() is not None:
            full.append(table.name)
    return full
