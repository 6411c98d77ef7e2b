# SPDX-License-Identifier: Apache-2.0
"""Finds rows that the target of a copy cannot store, before any row is written.

SQLite stores what other engines refuse (dangling references, texts of any length), and MySQL may
treat names as equal that no other engine does (letter case, accents, trailing blanks).
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations, islice
from typing import Final, cast

import numpy as np
from sqlalchemy import Column, String, Table, UniqueConstraint, bindparam, func, select, text

from berth.store.engine.database import Database
from berth.store.engine.dialect import Storage
from berth.upkeep.copying.rows import shown, tables_in

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
    after = -1
    while True:
        with db.read() as tx:
            rows = tx.rows(query, {"after": after})
        for _, value in rows:
            yield value
        if len(rows) < chunk_rows:
            return
        after = rows[-1][0]
