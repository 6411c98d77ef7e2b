# SPDX-License-Identifier: Apache-2.0
"""Runs a copy, from two open databases to a report.

Each chunk of rows is committed together with the mark of how far it reaches, and every step after
the rows can be repeated. So a copy can be interrupted anywhere, and continued.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import Final

from sqlalchemy import Float, Index, Table, bindparam, exc, func, inspect, or_, select, update

from berth.model.errors import UnstorableValue
from berth.store.engine.database import Database
from berth.store.engine.tables import resource_providers
from berth.store.engine.transaction import Tx
from berth.store.usage_counts import Report, fill_usages
from berth.store.usages import fill_project_usages
from berth.upkeep import schema
from berth.upkeep.copying import marker
from berth.upkeep.copying.marker import Marker, NotAlone
from berth.upkeep.copying.preparation import CopyRefused, check_unchanged, name_of, prepared
from berth.upkeep.copying.rows import (
    CHUNK_ROWS,
    TABLES,
    Reader,
    Row,
    insert_rows,
    key_columns,
    pages,
    shown,
    start_of,
    tables_in,
)

#: Errors that are caused by the rows.
_REFUSALS: Final = (exc.IntegrityError, exc.ProgrammingError, UnstorableValue)


@dataclass
class Outcome:
    """The report of a finished copy."""

    #: table -> its number of rows, the same on both sides.
    rows: dict[str, int] = field(default_factory=dict)
    #: Values that the target's engine stores differently.
    notes: list[str] = field(default_factory=list)
    #: Faults of the source, which its copy has too (`schema.check`).
    faults: list[str] = field(default_factory=list)


def copy_database(
    source: Database,
    target: Database,
    *,
    report: Report,
    force: bool = False,
    chunk_rows: int = CHUNK_ROWS,
) -> Outcome:
    """Make an empty target a copy of the source; an interrupted copy continues where it stopped.

    The source is not changed, and no other program may change it meanwhile. Until the copy is
    complete and compared, the target has a schema that no berth serves.

    Args:
        force: copy even if the source was written to a moment ago.
        chunk_rows: rows that are kept in memory and committed at once.

    Raises:
        CopyRefused: the message says why, and what to do.
        Difference: the source was changed meanwhile, or the target stores something differently.
        SchemaError: the target's tables cannot be brought to this release.
        DatabaseUnavailable: one of the two cannot be used.
    """
    marks = prepared(source, target, force=force, chunk_rows=chunk_rows)
    outcome = Outcome()
    try:
        if marks is not None:
            _Copy(source, target, marks, report, chunk_rows).run(outcome)
        target.write(marker.finish)
    except NotAlone as error:
        raise CopyRefused(f"another copy into {name_of(target)} is under way") from error
    return outcome


class _Copy:
    """A copy that is running."""

    def __init__(
        self, source: Database, target: Database, marks: Marker, report: Report, chunk_rows: int
    ) -> None:
        self._source = source
        self._target = target
        self._marks = marks
        self._report = report
        self._chunk_rows = chunk_rows
        #: Times without their fractions, where the target has no place for these.
        self._whole_seconds = not target.dialect.storage.keeps_fractions

    def run(self, outcome: Outcome) -> None:
        """Run all steps between the preparation and the last mark."""
        tables = tables_in(self._source)
        for table in tables:
            self._copy_table(table)
        self._refer_forward()
        self._target.write(lambda tx: tx.dialect.finish_loading(tx.connection, TABLES))
        fill_usages(self._target, self._report)
        fill_project_usages(self._target)
        for table in tables:
            self._compare_table(table, outcome)
        check_unchanged(self._source, self._marks.clock)
        if self._whole_seconds and self._source.dialect.storage.keeps_fractions:
            outcome.notes.append("the target keeps times to the second, without their fractions")
        outcome.faults += schema.check(self._target)

    def _copy_table(self, table: Table) -> None:
        reader = self._reader(self._source, table)
        total, done = _count(self._source, table), _count(self._target, table)
        self._report(f"copying {table.name}", done, total)
        if self._marks.reached(table) == start_of(table):
            drop_indexes(self._target, table)
        for rows in reader.chunks(self._marks.reached(table), count=self._chunk_rows):
            self._write_chunk(table, reader, rows)
            done += len(rows)
            self._report(f"copying {table.name}", done, total)
        create_indexes(self._target, table)

    def _write_chunk(self, table: Table, reader: Reader, rows: Sequence[Row]) -> None:
        reached = reader.key_of(rows[-1])
        ready = _without_forward_references(rows) if table is resource_providers else rows

        def unit(tx: Tx) -> None:
            if self._marks.move(tx, table, reached):
                insert_rows(tx, table, ready)

        try:
            self._target.write(unit)
        except _REFUSALS as error:
            raise CopyRefused(
                f"{name_of(self._target)} does not take the rows of {table.name} between "
                f"{reader.key_of(rows[0])} and {reached}: {getattr(error, 'orig', error)}"
            ) from error
        self._marks.moved(table, reached)

    def _refer_forward(self) -> None:
        """Set the references that could not be written because their targets did not exist yet."""
        provider = resource_providers.c
        query = (
            select(provider.id, provider.root_provider_id, provider.parent_provider_id)
            .where(
                provider.id > bindparam("after"),
                or_(
                    provider.root_provider_id > provider.id,
                    provider.parent_provider_id > provider.id,
                ),
            )
            .order_by(provider.id)
            .limit(self._chunk_rows)
        )
        for rows in pages(self._source, query):
            self._target.write(partial(_write_references, rows=rows))

    def _compare_table(self, table: Table, outcome: Outcome) -> None:
        """Read a table from both sides and compare each row.

        Raises:
            Difference: they are not the same.
        """
        source, target = (self._reader(db, table) for db in (self._source, self._target))
        stage, total = f"comparing {table.name}", _count(self._source, table)
        compared, rounded = 0, dict[float, float]()
        self._report(stage, compared, total)
        chunks = (reader.chunks(count=self._chunk_rows) for reader in (source, target))
        try:
            for rows, copies in zip_longest(*chunks, fillvalue=()):
                if rows != copies:
                    rounded |= _rounded_in(table, source, rows, copies)
                compared += len(rows)
                self._report(stage, compared, total)
        except Difference:
            check_unchanged(self._source, self._marks.clock)
            raise
        outcome.rows[table.name] = compared
        outcome.notes += [
            f"{table.name}: the target keeps {exact} as {kept}, in single precision"
            for exact, kept in sorted(rounded.items())
        ]

    def _reader(self, db: Database, table: Table) -> Reader:
        return Reader(db, table, whole_seconds=self._whole_seconds)


def _count(db: Database, table: Table) -> int:
    with db.read() as tx:
        return tx.connection.scalar(select(func.count()).select_from(table)) or 0


def _without_forward_references(rows: Sequence[Row]) -> list[Row]:
    """Providers without references to providers with a larger id, so that they can be inserted in
    the order of their ids: a provider may be below a younger one."""
    names = list(resource_providers.columns.keys())
    number = names.index("id")
    places = {names.index("root_provider_id"), names.index("parent_provider_id")}
    return [
        tuple(
            None if place in places and value is not None and value > row[number] else value
            for place, value in enumerate(row)
        )
        for row in rows
    ]


_REFER: Final = (
    update(resource_providers)
    .where(resource_providers.c.id == bindparam("provider"))
    .values(root_provider_id=bindparam("root"), parent_provider_id=bindparam("parent"))
)


def _write_references(tx: Tx, rows: Sequence[Row]) -> None:
    names = ("provider", "root", "parent")
    tx.change(_REFER, [dict(zip(names, row, strict=True)) for row in rows])


# --- Comparing the two, row by row ----------------------------------------------------------------
# Both are read along the same key, so this needs no checksums, and finds the row that differs.


#: The relative error of a column of single precision.
_DIGITS: Final = 6


@dataclass(eq=False)
class Difference(Exception):
    """The first row of a table that differs; None on the side that lacks it."""

    table: Table
    key: tuple[int, ...]
    source: Row | None
    target: Row | None

    def __str__(self) -> str:
        if self.target is None:
            difference = "only the source has it"
        elif self.source is None:
            difference = "only the target has it"
        else:
            difference = "; ".join(
                f"{column.name} is {shown(source)} in the source and {shown(target)} in the target"
                for column, source, target in zip(
                    self.table.columns, self.source, self.target, strict=True
                )
                if source != target
            )
        return f"{self.table.name}, row {', '.join(map(str, self.key))}: {difference}"


def _rounded_in(
    table: Table, reader: Reader, source_rows: Sequence[Row], target_rows: Sequence[Row]
) -> dict[float, float]:
    """The numbers that lost precision: each value in the source, with that in the target.

    Raises:
        Difference: the rows differ in anything else.
    """
    rounded = {}
    floats = [place for place, column in enumerate(table.columns) if isinstance(column.type, Float)]
    for row, copy in _aligned(reader, source_rows, target_rows):
        if row is None or copy is None:
            raise Difference(table, reader.key_of(row or copy or ()), row, copy)
        if row == copy:
            continue
        like_source = list(copy)
        for place in floats:
            if row[place] != copy[place] and _is_rounded(row[place], copy[place]):
                rounded[row[place]] = copy[place]
                like_source[place] = row[place]
        if tuple(like_source) != row:
            raise Difference(table, reader.key_of(row), row, copy)
    return rounded


def _aligned(
    reader: Reader, source_rows: Sequence[Row], target_rows: Sequence[Row]
) -> Iterator[tuple[Row | None, Row | None]]:
    """The rows of both sides by key, up to the first key that one of them lacks."""
    for row, copy in zip_longest(source_rows, target_rows):
        if row is None or copy is None:
            yield row, copy
        elif reader.key_of(row) < reader.key_of(copy):
            yield row, None
        elif reader.key_of(row) > reader.key_of(copy):
            yield None, copy
        else:
            yield row, copy


def _is_rounded(exact: float, kept: float) -> bool:
    return float(f"{exact:.{_DIGITS}g}") == float(f"{kept:.{_DIGITS}g}")


# --- The target's indexes: dropped before the rows are copied, and created again afterwards -------
# PERF the consumers' uuids are random: with their index in place, each chunk of a million
# allocations writes half of its pages again.


def drop_indexes(db: Database, table: Table) -> None:
    """Drop the indexes of a table that only slow down writing."""

    def unit(tx: Tx) -> None:
        present = {index["name"] for index in inspect(tx.connection).get_indexes(table.name)}
        for index in _spare(table):
            if index.name in present:
                index.drop(tx.connection)

    db.write(unit)


def create_indexes(db: Database, table: Table) -> None:
    """Create the indexes that are missing."""

    def unit(tx: Tx) -> None:
        for index in _spare(table):
            index.create(tx.connection, checkfirst=True)

    db.write(unit)


def _spare(table: Table) -> Iterator[Index]:
    """The indexes that the copy does not need: neither the engine for a foreign key, nor the reads
    along the table's key."""
    needed = {
        column.name for column in (*key_columns(table), *table.columns) if column.foreign_keys
    }
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        if next(iter(index.columns)).name not in needed:
            yield index
