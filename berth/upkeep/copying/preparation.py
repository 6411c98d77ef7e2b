# SPDX-License-Identifier: Apache-2.0
"""Checks of the two databases before a copy begins or continues, and before any row is written.

SQLite stores what other engines refuse (dangling references, texts of any length), and MySQL may
treat names as equal that no other engine does (letter case, accents, trailing blanks).
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Final, cast

import numpy as np
from sqlalchemy import (
    Column,
    Connection,
    String,
    Table,
    UniqueConstraint,
    bindparam,
    delete,
    func,
    inspect,
    literal,
    select,
    text,
)

from berth.model.errors import BerthError
from berth.model.standard import STANDARD_CLASSES, STANDARD_TRAITS
from berth.store.engine.database import Database
from berth.store.engine.dialect import Storage
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
from berth.store.versions import BERTH_REVISIONS, PLACEMENT_HEAD, is_current, versions_of
from berth.upkeep import schema
from berth.upkeep.copying import marker
from berth.upkeep.copying.marker import Marker, find_marker
from berth.upkeep.copying.rows import TABLES, pages, shown, tables_in

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
    return None if is_current(target) else marks


def clock_of(db: Database) -> str:
    """A text that changes whenever berth writes to the database."""
    with db.read() as tx:
        if not inspect(tx.connection).has_table(berth_writer.name):
            return "none"
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
    version = versions_of(source)
    if find_marker(source) is not None:
        raise CopyRefused(f"{name_of(source)} is itself an unfinished copy: finish that copy first")
    if version.placement != PLACEMENT_HEAD or version.berth not in (None, *BERTH_REVISIONS):
        raise CopyRefused(
            f"the schema of {name_of(source)} is at {version}, which this release cannot copy: run "
            f"`berth db upgrade` on it first"
        )
    if not force and schema.seconds_since_write(source) is not None:
        raise CopyRefused(
            f"{name_of(source)} was written to within the last minute: stop every program that "
            f"writes to it and wait a minute, or pass --force if you are sure"
        )


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


# --- What the target cannot store ----------------------------------------------------------------


#: More of one kind are not listed.
_LISTED_MAX: Final = 5


def obstacles(source: Database, target: Database, *, chunk_rows: int) -> list[str]:
    """A sentence for each thing in the source that the target cannot store.

    Args:
        chunk_rows: rows that are read at once.

    Cost: reads the source's unique texts once, unless the target is an SQLite file; eight bytes of
    memory for each.
    """
    tables = tables_in(source)
    sentences = list(_dangling_references(source, tables))
    storage = target.dialect.storage
    for column in _unique_texts(tables):
        if storage.limits_texts:
            sentences += _unstorable(source, column, storage, chunk_rows)
        if storage.has_collations:
            sentences += _collisions(source, target, column, chunk_rows)
    return sentences


def _dangling_references(source: Database, tables: Sequence[Table]) -> Iterator[str]:
    for table in tables:
        for key in sorted(table.foreign_keys, key=lambda key: key.parent.name):
            referred = key.column.table.alias("referred")
            query = (
                select(func.count(), func.min(key.parent))
                .select_from(table.outerjoin(referred, referred.c[key.column.name] == key.parent))
                .where(key.parent.is_not(None), referred.c[key.column.name].is_(None))
            )
            with source.read() as tx:
                count, example = tx.connection.execute(query).one()
            if count:
                yield (
                    f"{table.name}: {count} rows refer by {key.parent.name} to "
                    f"{key.column.table.name} that do not exist, such as {example}"
                )


def _unique_texts(tables: Sequence[Table]) -> list[Column[str]]:
    """The text columns with unique values."""
    return [
        cast("Column[str]", column)
        for table in tables
        for constraint in table.constraints
        if isinstance(constraint, UniqueConstraint)
        for column in constraint.columns
        if isinstance(column.type, String)
    ]


def _unstorable(
    source: Database, column: Column[str], storage: Storage, chunk_rows: int
) -> list[str]:
    assert isinstance(column.type, String)
    length = column.type.length or 0

    def is_unstorable(value: str) -> bool:
        return len(value) > length or ("\0" in value and not storage.takes_nul)

    unstorable = filter(is_unstorable, _values(source, column, chunk_rows))
    return [
        f"{column.table.name}: the {column.name} {shown(value)} does not fit into the target: it "
        f"is longer than {length} characters, or contains a NUL"
        for value in islice(unstorable, _LISTED_MAX)
    ]


def _collisions(
    source: Database, target: Database, column: Column[str], chunk_rows: int
) -> list[str]:
    """Pairs of values that are equal under the target's collation."""
    suspects: dict[str, list[str]] = defaultdict(list)
    hashes = _hashes_of_several(_folded(value) for value in _values(source, column, chunk_rows))
    if not hashes:
        return []
    for value in _values(source, column, chunk_rows):
        if hash(folded := _folded(value)) in hashes:
            suspects[folded].append(value)
    are_equal = _equality(target, column)
    pairs = chain.from_iterable(combinations(similar, 2) for similar in suspects.values())
    equal = (pair for pair in pairs if are_equal(*pair))
    return [
        f"{column.table.name}: the target treats the {column.name}s {shown(first)} and "
        f"{shown(second)} as equal: rename one of them in the source"
        for first, second in islice(equal, _LISTED_MAX)
    ]


def _hashes_of_several(values: Iterable[str]) -> frozenset[int]:
    """The hashes that more than one value has."""
    hashes = np.sort(np.fromiter(map(hash, values), np.int64))
    return frozenset(hashes[1:][hashes[1:] == hashes[:-1]].tolist())


def _folded(value: str) -> str:
    """A key that is the same for all values that any collation may treat as equal, and for some
    others."""
    if not value.isascii():
        decomposed = unicodedata.normalize("NFKD", value)
        value = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return value.casefold().rstrip()


def _equality(target: Database, column: Column[str]) -> Callable[[str, str], bool]:
    """A function that compares two values as a column of a MySQL database does."""
    rules = text(
        "SELECT character_set_name, collation_name FROM information_schema.columns"
        " WHERE table_schema = DATABASE() AND table_name = :table AND column_name = :column"
    )
    with target.read() as tx:
        charset, collation = tx.connection.execute(
            rules, {"table": column.table.name, "column": column.name}
        ).one()
    # Both names come from the server.
    question = text(
        f"SELECT CONVERT(:one USING {charset}) COLLATE {collation}"
        f" = CONVERT(:other USING {charset}) COLLATE {collation}"
    )

    def are_equal(name: str, other: str) -> bool:
        with target.read() as tx:
            return bool(tx.connection.scalar(question, {"one": name, "other": other}))

    return are_equal


def _values(db: Database, column: Column[str], chunk_rows: int) -> Iterator[str]:
    """All values of a column, NULLs left out."""
    number = column.table.c.id
    query = (
        select(number, column)
        .where(number > bindparam("after"), column.is_not(None))
        .order_by(number)
        .limit(chunk_rows)
    )
    return (value for rows in pages(db, query) for _, value in rows)
