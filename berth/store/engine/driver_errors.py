# SPDX-License-Identifier: Apache-2.0
"""Classifies a driver's errors: berth's mistakes, values that cannot be stored, a database that
refuses writes until an operator acts, and one that is lost.

The engine's code decides, because servers may translate their messages; the message decides only
where a code has several meanings.
"""

import re
from typing import Final, NamedTuple

from sqlalchemy import exc

from berth.model.database_errors import WritesRefused
from berth.model.errors import DatabaseUnavailable, UnstorableValue

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
