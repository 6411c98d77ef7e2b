# SPDX-License-Identifier: Apache-2.0
"""What keeps rows of one database out of another: looked for before any of them is written.

SQLite keeps what other engines refuse (references to nothing, texts of any length), and MySQL may
hold names to be equal that no other engine does (letter case, accents, trailing blanks).
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations, islice
from typing import Final, cast

import numpy as np
from sqlalchemy import Column, String, UniqueConstraint, bindparam, func, select, text

from berth.store.engine.database import Database
from berth.upkeep.copying.rows import TABLES

#: More of one kind are not listed.
_LISTED_MAX: Final = 5

_MYSQL: Final = ("mysql", "mariadb")


def obstacles(source: Database, target: Database, *, chunk_rows: int) -> list[str]:
    """A sentence for each thing in the source that the target cannot hold.

    Args:
        chunk_rows: rows that are read at once.

    Cost: reads the source's unique texts once, where the target is not an SQLite file; eight bytes
    of memory for each.
    """
    found = list(_dangling_references(source))
    engine = target.engine.dialect.name
    for column in _unique_texts():
        if engine != "sqlite":
            found += _unstorable(source, column, engine, chunk_rows)
        if engine in _MYSQL:
            found += _collisions(source, target, column, chunk_rows)
    return found


def _dangling_references(source: Database) -> Iterator[str]:
    for table in TABLES:
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


def _unique_texts() -> list[Column[str]]:
    """The columns of text that hold no value twice."""
    return [
        cast("Column[str]", column)
        for table in TABLES
        for constraint in table.constraints
        if isinstance(constraint, UniqueConstraint)
        for column in constraint.columns
        if isinstance(column.type, String)
    ]


def _unstorable(source: Database, column: Column[str], engine: str, chunk_rows: int) -> list[str]:
    assert isinstance(column.type, String)
    length = column.type.length or 0

    def is_unstorable(value: str) -> bool:
        return len(value) > length or (engine == "postgresql" and "\0" in value)

    unstorable = filter(is_unstorable, _values(source, column, chunk_rows))
    return [
        f"{column.table.name}: the {column.name} {value!r} does not fit into the target: it is "
        f"longer than {length} characters, or has a NUL in it"
        for value in islice(unstorable, _LISTED_MAX)
    ]


def _collisions(
    source: Database, target: Database, column: Column[str], chunk_rows: int
) -> list[str]:
    """Pairs of values that the target's own rules hold to be the same."""
    suspects: dict[str, list[str]] = defaultdict(list)
    hashes = _hashes_of_several(_folded(value) for value in _values(source, column, chunk_rows))
    if not hashes:
        return []
    for value in _values(source, column, chunk_rows):
        if hash(folded := _folded(value)) in hashes:
            suspects[folded].append(value)
    are_equal = _equality(target, column)
    pairs = chain.from_iterable(combinations(alike, 2) for alike in suspects.values())
    equal = (pair for pair in pairs if are_equal(*pair))
    return [
        f"{column.table.name}: the target holds the {column.name}s {one!r} and {other!r} to be "
        f"the same: rename one of them"
        for one, other in islice(equal, _LISTED_MAX)
    ]


def _hashes_of_several(values: Iterable[str]) -> frozenset[int]:
    """The hashes that more than one value has."""
    hashes = np.sort(np.fromiter(map(hash, values), np.int64))
    return frozenset(hashes[1:][hashes[1:] == hashes[:-1]].tolist())


def _folded(value: str) -> str:
    """The same text for all values that any collation may hold to be equal, and for others too."""
    if not value.isascii():
        decomposed = unicodedata.normalize("NFKD", value)
        value = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return value.casefold().rstrip()


def _equality(target: Database, column: Column[str]) -> Callable[[str, str], bool]:
    """How a column of a MySQL database compares."""
    rules = text(
        "SELECT character_set_name, collation_name FROM information_schema.columns"
        " WHERE table_schema = DATABASE() AND table_name = :table AND column_name = :column"
    )
    with target.read() as tx:
        charset, collation = tx.connection.execute(
            rules, {"table": column.table.name, "column": column.name}
        ).one()
    # The two names are the server's own words.
    question = text(
        f"SELECT CONVERT(:one USING {charset}) COLLATE {collation}"
        f" = CONVERT(:other USING {charset}) COLLATE {collation}"
    )

    def are_equal(one: str, other: str) -> bool:
        with target.read() as tx:
            return bool(tx.connection.scalar(question, {"one": one, "other": other}))

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
