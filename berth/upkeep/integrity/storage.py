# SPDX-License-Identifier: Apache-2.0
"""How an engine stores texts and numbers rows: character sets and collations, sequences, and
columns near their end.

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

from sqlalchemy import BigInteger, func, select, text

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


def make_comparable(db: Database) -> list[str]:
    """Convert the tables that berth could not serve from; return a sentence for each change.

    Cost: it rewrites these tables.
    """
    odd = [fault for fault in odd_texts(db) if not fault.key["are_comparable"]]
    if odd:
        db.write_unnoted(partial(_convert, keys=[fault.key for fault in odd]))
    return [f"{fault.sentence}: converted to utf8mb4" for fault in odd]


def odd_texts(db: Database) -> list[Fault]:
    """Tables that store text in a character set or a collation that it should not have. The key of
    a fault says whether the database compares their texts with those of other tables."""
    with db.read() as tx:
        return list(_odd_texts(tx))


def own_collation(*, is_mariadb: bool) -> str:
    """The collation of berth's tables: letter case, accents and trailing blanks count."""
    return "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"


def _odd_texts(tx: Tx) -> Faults:
    if tx.dialect.storage.has_encodings:
        yield from _odd_encoding(tx)
    if tx.dialect.storage.has_collations:
        yield from _odd_tables(tx)


def _odd_tables(tx: Tx) -> Faults:
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
    for (sentence, kind), of_kind in tables.items():
        names = ", ".join(of_kind)
        yield Fault(
            sentence.format(tables=names, kind=kind),
            f"convert {names} to utf8mb4 with the collation {own}",
            "`berth db check --repair` converts them",
            {"tables": tuple(of_kind), "are_comparable": sentence is _CHARACTERS},
        )


def _odd_encoding(tx: Tx) -> Faults:
    encoding = tx.connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        yield Fault(
            f"the database has the encoding {encoding} instead of UTF8: requests with text that it "
            "cannot store are answered 400",
            None,
            "create a database with ENCODING 'UTF8', and copy everything with `berth db copy`",
            {"tables": (), "are_comparable": True},
        )


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


# --- Sequences -----------------------------------------------------------------------------------
# Tools that load rows with their numbers may leave a sequence of PostgreSQL behind them: pgloader,
# or a restore of data alone. Until it has caught up, it gives new rows the numbers of old ones, and
# every such write fails, or is taken for one that another request has made.


def count_on(db: Database) -> list[str]:
    """Set every sequence that is behind its rows, and return a sentence for each."""
    with db.read() as tx:
        keys = [fault.key for fault in _behind(tx)]
    if keys:
        db.write_unnoted(lambda tx: _renumber(tx, keys))
    return [
        f"the sequence of {key['table']} was behind its rows: {_renumbering(**key)}" for key in keys
    ]


def tables_behind(db: Database) -> list[str]:
    """The tables whose sequences are behind their rows. Cost: two quick queries a table."""
    with db.read() as tx:
        return [fault.key["table"] for fault in _behind(tx)]


def _behind(tx: Tx) -> Faults:
    """The sequences that are behind the rows of their tables."""
    if not tx.dialect.storage.has_sequences:
        return
    for table in metadata.sorted_tables:
        if "id" not in table.c or (sequence := _sequence(tx, table.name)) is None:
            continue
        # First the rows: the sequence counts on meanwhile, whatever this transaction sees.
        newest = tx.connection.scalar(select(func.max(table.c.id))) or 0
        last, is_called = tx.connection.execute(
            text(f"SELECT last_value, is_called FROM {sequence}")
        ).one()
        following = last + is_called
        if following <= newest:
            yield Fault(
                f"the sequence of {table.name} would number a new row {following}, but rows have "
                f"numbers up to {newest}: writes fail, or answer 404 and 409 without cause",
                _renumbering(table.name, newest),
                "",
                {"table": table.name, "newest": newest},
            )


def _renumbering(table: str, newest: int) -> str:
    return f"number new rows of {table} from {newest + 1}"


def _sequence(tx: Tx, table: str) -> str | None:
    """The name of a table's sequence, quoted; None if the table has none."""
    name: str | None = tx.connection.scalar(select(func.pg_get_serial_sequence(table, "id")))
    return name


def _renumber(tx: Tx, keys: Sequence[Key]) -> None:
    """RACE: a sequence never goes back, although others may count on."""
    for key in keys:
        if (sequence := _sequence(tx, key["table"])) is not None:
            last = tx.connection.scalar(text(f"SELECT last_value FROM {sequence}"))
            tx.connection.execute(select(func.setval(sequence, max(last or 0, key["newest"]))))


# --- The ends of numbers -------------------------------------------------------------------------


_NUMBER_MAX: Final = 2**31 - 1

#: From here on, a counter is reported: some ten million steps are left.
_NEAR: Final = _NUMBER_MAX - 10_000_000


def used_up(db: Database) -> list[str]:
    """A sentence for each number of rows that is near its end. Cost: a quick query a table."""
    with db.read() as tx:
        return [f"{fault.sentence}; {fault.advice}" for fault in _near(tx, ("id",))]


def _near(tx: Tx, names: tuple[str, ...]) -> Faults:
    if tx.dialect.is_embedded:
        return
    for table in metadata.sorted_tables:
        for column in (table.c[name] for name in names if name in table.c):
            if isinstance(column.type, BigInteger):
                continue
            newest = tx.connection.scalar(select(func.max(column))) or 0
            if newest > _NEAR:
                yield Fault(
                    f"column {column.name} of {table.name} has counted to {newest} and ends at "
                    f"{_NUMBER_MAX}: then writes are answered 503",
                    None,
                    "make it a BIGINT by hand, and the columns that refer to it too",
                    {},
                )


#: Texts come first, because the other rules compare them; and ends before sequences, because what
#: is repaired adds rows.
RULES: Final = (
    Rule(_odd_texts, _convert),
    Rule(partial(_near, names=("id", "generation"))),
    Rule(_behind, _renumber),
)
