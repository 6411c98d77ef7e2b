# SPDX-License-Identifier: Apache-2.0
"""Checks of the two databases before a copy begins or continues."""

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
    berth_project_usages,
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

#: A database that was written to this recently is probably in use.
_QUIET: Final = timedelta(minutes=1)

#: The clock of a database that has none.
_NO_CLOCK: Final = "none"

_START_OVER: Final = "empty the target and start over"


class CopyRefused(BerthError):
    """The two databases cannot be copied as they are."""


def name_of(db: Database) -> str:
    """The URL of a database without the credentials: for messages, and to recognise it later."""
    url = db.engine.url
    if db.dialect.is_embedded:
        return f"sqlite:///{Path(url.database or '').resolve()}"
    return f"{url.get_backend_name()}://{url.host or ''}:{url.port or ''}/{url.database}"


def prepared(source: Database, target: Database, *, force: bool, chunk_rows: int) -> Marker | None:
    """The marker of a target that is ready to be copied into; None if the copy is complete.

    Args:
        force: copy even if the source was written to a moment ago.
        chunk_rows: the number of rows to read at once.

    Raises:
        CopyRefused: the message says why, and what to do.
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
    """A text that changes whenever berth writes to the database."""
    with db.read() as tx:
        if not inspect(tx.connection).has_table(berth_writer.name):
            return _NO_CLOCK
        return str(tx.connection.scalar(select(func.coalesce(func.sum(berth_writer.c.seq), 0))))


def check_unchanged(source: Database, clock: str) -> None:
    """Check that the source has not changed since its clock was read.

    Raises:
        CopyRefused: it has.
    """
    if clock_of(source) != clock:
        raise CopyRefused(
            f"{name_of(source)} has changed since the copy began: stop every program that writes "
            f"to it, {_START_OVER}"
        )


def _check_source(source: Database, *, force: bool) -> None:
    version = schema.versions_of(source)
    if find_marker(source) is not None:
        raise CopyRefused(f"{name_of(source)} is itself an unfinished copy: finish that copy first")
    if version.placement != PLACEMENT_HEAD or version.berth not in (None, *BERTH_REVISIONS):
        raise CopyRefused(
            f"the schema of {name_of(source)} is at {version}, which this release cannot copy: run "
            f"`berth db upgrade` on it first"
        )
    if not force and _was_written_lately(source):
        raise CopyRefused(
            f"{name_of(source)} was written to within the last minute: stop every program that "
            f"writes to it and wait a minute, or pass --force if you are sure"
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
    if problems := obstacles(source, target, chunk_rows=chunk_rows):
        raise CopyRefused(
            f"{name_of(target)} cannot store all values of {name_of(source)}; nothing was copied: "
            + "; ".join(problems)
        )
    clock = clock_of(source)

    def unit(tx: Tx) -> None:
        own = (berth_journal, berth_writer, berth_usages, berth_project_usages)
        for table in (*own, traits, resource_classes):
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
            f"{name_of(target)} contains part of a copy of {marks.source}, not of "
            f"{name_of(source)}: finish that copy, or {_START_OVER}"
        )
    if not marks.is_of_this_release:
        raise CopyRefused(
            f"another release of berth began the copy in {name_of(target)}: finish it with that "
            f"release, or {_START_OVER}"
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
        # An interrupted upgrade may have left a table without some of its columns.
        rows = select(literal(True)).select_from(table)
        if table in standard:
            rows = rows.where(table.c.name.not_in(standard[table]))
        if connection.execute(rows.limit(1)).first() is not None:
            full.append(table.name)
    return full
