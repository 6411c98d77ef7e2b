# SPDX-License-Identifier: Apache-2.0
"""What berth needs from an engine beyond plain SQL; each engine's module implements it.

On every engine a read transaction sees one state of the database, and each statement of a write
transaction sees everything committed by then. Decisions are made in the WHERE of writes, and the
engine locks a row that a transaction has written until the transaction ends (spec/commit-rules.md,
rules 1 and 2). berth does not rely on an isolation level for anything else.

Errors are classified by the engine's code, because servers may translate their messages; the
message decides only where a code has several meanings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, Protocol, TypeVar

from msgspec import Struct
from sqlalchemy import Connection, Engine, Table, UniqueConstraint, exc
from sqlalchemy.engine import URL
from sqlalchemy.sql.dml import Insert

from berth.model.database_errors import WritesRefused
from berth.model.errors import DatabaseUnavailable, UnstorableValue
from berth.store.engine.prepared import Runner

if TYPE_CHECKING:
    # At run time it would import the dialects of both.
    from sqlalchemy.dialects import postgresql, sqlite

#: SQLAlchemy's defaults: the connections of a pool, and the overflow beyond it.
_SQLALCHEMY_KEEPS: Final = 5
_SQLALCHEMY_ADDS: Final = 10

#: The writers' clock, which changes with every commit, as one text: drivers take long for rows.
_CLOCK: Final = (
    "SELECT string_agg(concat_ws(' ', id, seq, trimmed_seq), ',' ORDER BY id) FROM berth_writer"
)


class PoolOptions(Struct, frozen=True):
    """How many connections a process keeps, and for how long; None leaves it to SQLAlchemy."""

    size: int | None = None
    max_overflow: int | None = None
    timeout_s: int | None = None
    recycle_s: int | None = None

    @property
    def kept(self) -> int:
        """The number of connections that stay open."""
        return _SQLALCHEMY_KEEPS if self.size is None else self.size

    @property
    def most(self) -> float:
        """The most connections at a time."""
        overflow = _SQLALCHEMY_ADDS if self.max_overflow is None else self.max_overflow
        return self.kept + overflow if self.kept > 0 and overflow >= 0 else math.inf

    def arguments(self) -> dict[str, int]:
        """These options as arguments of `create_engine`."""
        wanted = {
            "pool_size": self.size,
            "max_overflow": self.max_overflow,
            "pool_timeout": self.timeout_s,
            "pool_recycle": self.recycle_s,
        }
        return {name: value for name, value in wanted.items() if value is not None}


class Storage(Struct, frozen=True, kw_only=True):
    """How an engine stores values: what a copy from one engine to another has to know."""

    #: Whether times have fractions of a second.
    keeps_fractions: bool = True
    #: Whether it refuses a text that is longer than its column.
    limits_texts: bool = True
    #: Whether a text may contain NUL.
    takes_nul: bool = True
    #: Whether different names may be equal, by letter case, accents or trailing blanks.
    has_collations: bool = False
    #: Whether texts have the encoding of their database, which the operator chose.
    has_encodings: bool = False
    #: Whether sequences number the rows: a row with a number of its own does not advance them.
    has_sequences: bool = False
    #: How it takes many rows fastest: a statement for each row, `COPY`, or values in the text.
    bulk: Literal["rows", "copy", "text"]


def key_and_values(table: Table) -> tuple[str, list[str]]:
    """The column of a table's only unique constraint, and those that a new row with the same key
    replaces."""
    (constraint,) = [each for each in table.constraints if isinstance(each, UniqueConstraint)]
    (key,) = constraint.columns.keys()
    return key, [each.name for each in table.columns if not each.primary_key and each.name != key]


Upsert = TypeVar("Upsert", "postgresql.Insert", "sqlite.Insert")


def replacing(insert: Upsert, table: Table) -> Upsert:
    """An INSERT into a table that replaces the row with the same key."""
    key, values = key_and_values(table)
    return insert.on_conflict_do_update(
        index_elements=[key], set_={name: insert.excluded[name] for name in values}
    )


class Dialect(Protocol):
    """How to use one database engine. What is written out here holds unless an engine differs."""

    #: Whether the engine runs in this process. If so, a COMMIT that failed cannot take effect
    #: later, and no server can delay an answer.
    is_embedded: ClassVar[bool] = False
    #: Whether a row that only guards another really changes (`expressions.rewritten`).
    rewrites_guards: ClassVar[bool] = False
    #: How it stores values.
    storage: ClassVar[Storage]

    def create_engine(self, url: URL, pool: PoolOptions) -> Engine:
        """An engine whose pooled connections read: each transaction sees one state.

        Raises:
            UnsupportedDatabase: berth cannot work with the database of the URL, or the driver is
                not installed.
        """

    def for_reading(self, connection: Connection) -> Connection:
        """Make a dedicated connection ready for `begin_reading`."""

    def for_writing(self, connection: Connection) -> Connection:
        """Make a dedicated connection ready for `begin_writing`."""

    def begin_reading(self, run: Runner) -> None:
        """Begin a transaction on a dedicated connection: it sees one state of the database."""

    def begin_writing(self, run: Runner) -> None:
        """Begin a transaction on a dedicated connection; each statement sees all commits so far."""

    def wait_briefly(self, run: Runner) -> None:
        """Make the current transaction give up early instead of waiting for a locked row.

        For transactions that lock rows in no fixed order: two may wait for each other, and one must
        give up. Nothing to do where the engine detects that at once, or locks the whole database.
        """
        return

    def ensure_in_place(self, *, writing: bool = False, committed: bool = False) -> None:
        """Check that the open database is still the one at the URL; cheap enough for each request.
        Nothing to do where a server manages its files.

        Args:
            writing: a write is about to follow, on a connection made ready with `for_writing`.
            committed: it has just followed, and no one knows of it yet.

        Raises:
            DatabaseMoved: it is not.
            OutcomeUnknown: it is not, and the commit may be lost.
        """
        return

    def is_transient(self, error: BaseException | None) -> bool:
        """Whether the engine refused because of concurrent transactions, and rolls back the whole
        transaction: if run again, it may succeed. The connection is still usable."""

    def is_away(self, error: BaseException | None) -> bool:
        """Whether the server is unreachable or not ready, but may come back. False for errors that
        waiting cannot fix, such as a wrong password."""

    def insert_missing(self, table: Table) -> Insert:
        """An INSERT that skips rows whose key exists already."""

    def insert_or_replace(self, table: Table) -> Insert:
        """An INSERT that replaces the row with the same key, which is the column of the table's
        only unique constraint."""

    def commit_stamp(self, run: Runner) -> int | str | None:
        """A value that changes when any *other* connection has committed something. Call it outside
        a transaction, on a connection that never writes.

        On a server it is the writers' clock: see `Stamp`. In a cluster it includes all earlier
        commits of any node.
        """
        stamp: int | str | None = run.ask(_CLOCK)
        return stamp

    def stored_time(self, now: datetime) -> datetime:
        """The time, rounded down to the precision of the engine's columns: the microsecond."""
        return now

    def lock_schema(self, connection: Connection) -> None:
        """Take the lock of the database's schema, which ends with the session; wait as long as
        another session has it. Nothing to do where a change of the schema locks everything."""
        return

    def finish_loading(self, connection: Connection, tables: Sequence[Table]) -> None:
        """Prepare tables for use after many rows, with their ids, were loaded into them, if the
        engine needs that."""
        return


# --- What drivers report -------------------------------------------------------------------------


FULL: Final = "the disk of the database is full"

#: Errors of the driver that are berth's mistake, not the database's.
_MISTAKES: Final = (exc.IntegrityError, exc.ProgrammingError, exc.NotSupportedError)

#: What berth recognises an error by: SQLSTATEs of PostgreSQL, numbers of MySQL, and names of SQLite
#: without their extension.
_Codes = frozenset[object]


#: For errors that their codes tell.
_NEVER: Final = re.compile(r"(?!)")


class _Unstorable(NamedTuple):
    """Errors about a value, and the reason in plain words."""

    codes: _Codes
    reason: str
    hint: str = ""


class _Refusal(NamedTuple):
    """Errors of a database that refuses writes, by code or message; what is wrong, and the cure."""

    codes: _Codes
    message: re.Pattern[str]
    fault: str
    cure: str


_UNSTORABLE: Final = (
    _Unstorable(
        frozenset({1366, 1300, 1267, 1270, 1271, 3854, 3988, "22021", "22P05"}),
        "a text has a character that its tables do not have",
        "Their character set is too small; `berth db check` says how an operator can change it.",
    ),
    _Unstorable(frozenset({1406, "22001"}), "a text is longer than its column"),
)

_REFUSALS: Final = (
    _Refusal(
        frozenset({"SQLITE_FULL", "53100", 1114, 1021}),
        re.compile(r"no space|quota|err(?:or|no:|code:) 28\b", re.IGNORECASE),
        FULL,
        "free some space; then writes work again without a restart",
    ),
    _Refusal(
        frozenset({"SQLITE_READONLY", "25006", 1036, 1290, 1792, 1836}),
        re.compile(r"read.only", re.IGNORECASE),
        "the database is read-only",
        "make it writable, or set [placement_database]connection to the server that takes writes",
    ),
    _Refusal(
        frozenset({"42501", 1142, 1143}),
        re.compile(r"permission denied for"),
        "the user of the database lacks privileges",
        "grant the user of [placement_database]connection all privileges on its tables",
    ),
    _Refusal(
        # The API bounds every number of a client: these are ids and generations.
        frozenset({"22003", "2200H", 1264, 1467, 1690}),
        _NEVER,
        "a counter of the database is used up",
        "`berth db check` names it",
    ),
    _Refusal(
        frozenset({"42P01", 1146, 1932}),
        re.compile("no such table"),
        "a table of the database is missing",
        "restore it from a backup",
    ),
    _Refusal(
        frozenset(
            {
                *("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_CORRUPT"),
                *("SQLITE_NOTADB", "58030", "XX001", "XX002", 3, 1026, 1030, 1034, 1194, 1195),
            }
        ),
        re.compile("permission denied|i/o error", re.IGNORECASE),
        "the files of the database cannot be written",
        "look at their disk, their owner, and the log of the database server",
    ),
)

#: Two columns have collations that cannot be compared, instead of a column and a value.
_TWO_COLUMNS: Final = re.compile(r"IMPLICIT\).*IMPLICIT\)|'UNION'", re.IGNORECASE)


_CURE: Final = (
    "tables of the database have collations that cannot be compared; an operator can convert them "
    "with `berth db check --repair`"
)


class Translated:
    """Turns the driver's errors about a lost or broken database into berth's own.

    PERF bench.fixed_cost: every transaction is in one, so it is its own context manager.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        """Nothing is raised here."""

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, exc.TimeoutError):
            raise unavailable(error) from error
        if not isinstance(error, exc.DBAPIError):
            return
        if (unstorable := _unstorable(error)) is not None:
            raise unstorable from error
        refused = unavailable(error)
        if not isinstance(refused, WritesRefused):
            if isinstance(error, exc.DataError):
                raise UnstorableValue(_first_line(error)) from error
            # Using a closed connection is also a ProgrammingError, but not a mistake of berth's.
            if isinstance(error, _MISTAKES) and not error.connection_invalidated:
                return
        raise refused from error


def unavailable(error: exc.SQLAlchemyError) -> DatabaseUnavailable:
    """An error of the driver as one of berth's, which says what an operator can do."""
    said = _first_line(error)
    message = f"The database cannot be used at the moment: {said}"
    if _TWO_COLUMNS.search(said):
        return DatabaseUnavailable(f"{message}: {_CURE}", public=_CURE)
    codes = _codes_of(error)
    # Messages of these may quote what a client sent.
    is_quoted = isinstance(error, (*_MISTAKES, exc.DataError))
    for refusal in _REFUSALS:
        if codes & refusal.codes or (not is_quoted and refusal.message.search(said)):
            return WritesRefused(said, fault=refusal.fault, cure=refusal.cure)
    return DatabaseUnavailable(message)


def _unstorable(error: exc.DBAPIError) -> UnstorableValue | None:
    said, codes = _first_line(error), _codes_of(error)
    if _TWO_COLUMNS.search(said):
        return None
    for each in _UNSTORABLE:
        if codes & each.codes:
            return UnstorableValue(f"{each.reason} ({said})", each.hint)
    return None


def _codes_of(error: exc.SQLAlchemyError) -> _Codes:
    cause = getattr(error, "orig", None)
    name: str = getattr(cause, "sqlite_errorname", None) or ""
    first = next(iter(getattr(cause, "args", ())), None)
    return frozenset({getattr(cause, "sqlstate", None), first, "_".join(name.split("_")[:2])})


def _first_line(error: exc.SQLAlchemyError) -> str:
    """The engine's message, without its number and the lines that point into a statement."""
    cause = getattr(error, "orig", None) or error
    match cause.args:
        case (int(), str(said)):
            pass
        case _:
            said = str(cause)
    return said.partition("\n")[0]


def is_lost(error: exc.SQLAlchemyError) -> bool:
    """Whether the connection was lost."""
    return isinstance(error, exc.DBAPIError) and error.connection_invalidated
