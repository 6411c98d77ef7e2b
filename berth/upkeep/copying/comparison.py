# SPDX-License-Identifier: Apache-2.0
"""Checks that two databases have the same rows: reads both and compares row by row.

Both are read along the same key, so this needs no checksums, and finds the row that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

from sqlalchemy import Float, Table

from berth.upkeep.copying.rows import Reader, Row, shown

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


@dataclass
class Comparison:
    """The result of comparing a table, if the rows are the same."""

    rows: int = 0
    #: value in the source -> value in the target, for numbers that lose precision.
    rounded: dict[float, float] = field(default_factory=dict)


def compare(
    table: Table,
    source: Reader,
    target: Reader,
    total: int,
    report: Callable[[int, int], None],
    *,
    chunk_rows: int,
) -> Comparison:
    """Read a table from both sides and compare each row.

    Args:
        report: receives the number of rows compared, and the `total`.
        chunk_rows: rows that are compared at once.

    Raises:
        Difference: they are not the same.
    """
    comparison = Comparison()
    report(0, total)
    chunks = (reader.chunks(count=chunk_rows) for reader in (source, target))
    for source_rows, target_rows in zip_longest(*chunks, fillvalue=()):
        if source != target:
            _compare_each(table, source, source_rows, target_rows, comparison)
        comparison.rows += len(source_rows)
        report(comparison.rows, total)
    return comparison


def _compare_each(
    table: Table,
    reader: Reader,
    source_rows: Sequence[Row],
    target_rows: Sequence[Row],
    comparison: Comparison,
) -> None:
    floats = [place for place, column in enumerate(table.columns) if isinstance(column.type, Float)]
    for row, copy in _aligned(reader, source_rows, target_rows):
        if row is None or copy is None:
            raise Difference(table, reader.key_of(row or copy or ()), row, copy)
        if row == copy:
            continue
        like_source = list(copy)
        for place in floats:
            if row[place] != copy[place] and _is_rounded(row[place], copy[place]):
                comparison.rounded[row[place]] = copy[place]
                like_source[place] = row[place]
        if tuple(like_source) != row:
            raise Difference(table, reader.key_of(row), row, copy)


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
