# SPDX-License-Identifier: Apache-2.0
"""Whether two databases hold the same rows: read back from both, and compared one by one.

Both are walked along the same key, so this needs no checksums, and finds the row that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

from sqlalchemy import Float, Table

from berth.upkeep.copying.rows import Reader, Row

#: Of what a column of single precision is read back as.
_DIGITS: Final = 6


@dataclass(eq=False)
class Difference(Exception):
    """The first row of a table that is not the same on both sides; None where there is none."""

    table: Table
    key: tuple[int, ...]
    source: Row | None
    target: Row | None

    def __str__(self) -> str:
        if self.target is None:
            what = "only the source has it"
        elif self.source is None:
            what = "only the target has it"
        else:
            what = "; ".join(
                f"{column.name} is {here!r} in the source and {there!r} in the target"
                for column, here, there in zip(
                    self.table.columns, self.source, self.target, strict=True
                )
                if here != there
            )
        return f"{self.table.name}, row {', '.join(map(str, self.key))}: {what}"


@dataclass
class Comparison:
    """What comparing a table has found, beyond that it is the same."""

    rows: int = 0
    #: value in the source -> what has become of it: numbers that the target keeps less precisely.
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
        report: told how many rows of the `total` have been compared.
        chunk_rows: rows that are compared at once.

    Raises:
        Difference: they are not the same.
    """
    found = Comparison()
    report(0, total)
    chunks = (reader.chunks(count=chunk_rows) for reader in (source, target))
    for here, there in zip_longest(*chunks, fillvalue=()):
        if here != there:
            _compare_each(table, source, here, there, found)
        found.rows += len(here)
        report(found.rows, total)
    return found


def _compare_each(
    table: Table, reader: Reader, here: Sequence[Row], there: Sequence[Row], found: Comparison
) -> None:
    floats = [place for place, column in enumerate(table.columns) if isinstance(column.type, Float)]
    for one, other in _aligned(reader, here, there):
        if one is None or other is None:
            raise Difference(table, reader.key_of(one or other or ()), one, other)
        if one == other:
            continue
        like_source = list(other)
        for place in floats:
            if one[place] != other[place] and _is_rounded(one[place], other[place]):
                found.rounded[one[place]] = other[place]
                like_source[place] = one[place]
        if tuple(like_source) != one:
            raise Difference(table, reader.key_of(one), one, other)


def _aligned(
    reader: Reader, here: Sequence[Row], there: Sequence[Row]
) -> Iterator[tuple[Row | None, Row | None]]:
    """The rows of both sides by key, up to the first key that one of them lacks."""
    for one, other in zip_longest(here, there):
        if one is None or other is None:
            yield one, other
        elif reader.key_of(one) < reader.key_of(other):
            yield one, None
        elif reader.key_of(one) > reader.key_of(other):
            yield None, other
        else:
            yield one, other


def _is_rounded(exact: float, kept: float) -> bool:
    return float(f"{exact:.{_DIGITS}g}") == float(f"{kept:.{_DIGITS}g}")
