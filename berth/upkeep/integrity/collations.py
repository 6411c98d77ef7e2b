# SPDX-License-Identifier: Apache-2.0
"""Character sets and collations of the texts that the tables of OpenStack Placement store.

On MySQL and MariaDB, tables in `utf8mb3` or `latin1` have no place for many characters, and columns
in some pairs of collations cannot be compared. A repair converts such tables to the character set
and collation of berth's own, in which names are equal only if all their bytes are. The encoding of
a PostgreSQL database cannot be changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from sqlalchemy import text

from berth.store.engine.database import Database
from berth.store.engine.tables import metadata
from berth.store.engine.transaction import Tx
from berth.upkeep.integrity.fault import Fault, Faults, Key, Rule

#: Character sets with all characters.
_COMPLETE: Final = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})

#: Tables whose UUIDs of consumers are compared with each other.
_COMPARED: Final = frozenset({("consumers", "uuid"), ("allocations", "consumer_id")})

_COLUMNS: Final = text(
    "SELECT table_name, column_name, character_set_name, collation_name"
    " FROM information_schema.columns"
    " WHERE table_schema = DATABASE() AND character_set_name IS NOT NULL"
    " ORDER BY table_name, column_name"
)

_CHARACTERS: Final = (
    "{tables} store text in {kind}, which does not have every character: requests with one that it "
    "does not have are answered 400"
)
_COMPARISONS: Final = (
    "{tables} store text in the collation {kind}, which cannot be compared with that of other "
    "tables: some requests are answered 503"
)


class _Column(NamedTuple):
    """A column that stores text."""

    table: str
    name: str
    charset: str
    collation: str


class OddTexts(NamedTuple):
    """Tables that store text in a character set or a collation that it should not have.

    Attributes:
        sentence: what is wrong.
        tables: those that a repair can convert.
        are_comparable: whether the database compares their texts with those of other tables.
        cure: what a person can do.
    """

    sentence: str
    tables: tuple[str, ...]
    are_comparable: bool = True
    cure: str = "`berth db check --repair` converts them"


def make_comparable(db: Database) -> list[str]:
    """Convert the tables that berth could not serve from; return a sentence for each change.

    Cost: it rewrites these tables.
    """
    odd = [each for each in odd_texts(db) if not each.are_comparable]
    keys = [{"tables": each.tables} for each in odd]
    if keys:
        db.write_unnoted(partial(_convert, keys=keys))
    return [f"{each.sentence}: converted to utf8mb4" for each in odd]


def odd_texts(db: Database) -> list[OddTexts]:
    """The texts that should be stored in another way."""
    with db.read() as tx:
        return _odd(tx)


def own_collation(*, is_mariadb: bool) -> str:
    """The collation of berth's tables: letter case, accents and trailing blanks count."""
    return "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"


def _faults(tx: Tx) -> Faults:
    own = own_collation(is_mariadb=_is_mariadb(tx))
    for each in _odd(tx):
        if not each.tables:
            yield Fault(each.sentence, None, each.cure, {"tables": ()})
            continue
        action = f"convert {', '.join(each.tables)} to utf8mb4 with the collation {own}"
        yield Fault(each.sentence, action, "", {"tables": each.tables})


def _odd(tx: Tx) -> list[OddTexts]:
    if tx.dialect.storage.has_encodings:
        return _odd_encoding(tx)
    return _odd_tables(tx) if tx.dialect.storage.has_collations else []


def _odd_tables(tx: Tx) -> list[OddTexts]:
    columns = [
        column
        for row in tx.connection.execute(_COLUMNS)
        if (column := _Column(*row)).table in metadata.tables
    ]
    own = own_collation(is_mariadb=_is_mariadb(tx))
    compared = {
        each.collation
        for each in columns
        if each[:2] in _COMPARED and each.charset in _COMPLETE and each.collation != own
    }
    tables: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for each in columns:
        is_compared = each[:2] in _COMPARED and len(compared) > 1
        if each.charset not in _COMPLETE:
            tables[_CHARACTERS, each.charset][each.table] = None
        elif each.collation != own and (is_compared or each.collation.endswith("_bin")):
            tables[_COMPARISONS, each.collation][each.table] = None
    return [
        OddTexts(
            sentence.format(tables=", ".join(names), kind=kind),
            tuple(names),
            are_comparable=sentence is _CHARACTERS,
        )
        for (sentence, kind), names in tables.items()
    ]


def _odd_encoding(tx: Tx) -> list[OddTexts]:
    encoding = tx.connection.scalar(text("SHOW server_encoding"))
    if encoding == "UTF8":
        return []
    sentence = (
        f"the database has the encoding {encoding} instead of UTF8: requests with text that it "
        "cannot store are answered 400"
    )
    cure = "create a database with ENCODING 'UTF8', and copy everything with `berth db copy`"
    return [OddTexts(sentence, (), cure=cure)]


def _convert(tx: Tx, keys: Sequence[Key]) -> None:
    """Rewrites each table; nothing can be written to it meanwhile."""
    own = own_collation(is_mariadb=_is_mariadb(tx))
    for table in dict.fromkeys(table for key in keys for table in key["tables"]):
        # Older row formats have no room for the keys of names.
        tx.connection.execute(
            text(
                f"ALTER TABLE `{table}` CONVERT TO CHARACTER SET utf8mb4 COLLATE {own}, "
                "ROW_FORMAT = DYNAMIC"
            )
        )


def _is_mariadb(tx: Tx) -> bool:
    return bool(getattr(tx.connection.dialect, "is_mariadb", False))


RULES: Final = (Rule(_faults, _convert),)
