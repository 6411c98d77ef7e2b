# SPDX-License-Identifier: Apache-2.0
"""A driver that fails on purpose: `sqlite3` with a saboteur in front.

A *call* is anything at which a user of the driver may see an error: opening a connection, executing
a statement (also `COMMIT` and `SAVEPOINT`, however they are sent), and fetching rows. A saboteur
counts calls from when it is armed, and makes one of them fail in a given way.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any, Final, Self, TypeVar

from sqlalchemy import event

from berth.store.engine.database import Database
from tests.effort import SEED, is_full

T = TypeVar("T")


class Happens(Enum):
    """What happens to the call itself."""

    NOT = "the call is not carried out"
    FULLY = "the call is carried out, and its answer lost"
    UNDOES = "the call is not carried out, and the engine has rolled the transaction back"


class Reach(Enum):
    """What else fails."""

    CALL = "nothing"
    CONNECTION = "every later call on the connection: it is closed"
    DATABASE = "every later call, until the saboteur is disarmed"


class Strikes(Enum):
    """Which calls may fail."""

    ALL = "every call"
    STATEMENTS = "every statement, and opening a connection"
    CONTROL = "statements that begin, end or divide a transaction"

    def admits(self, what: str) -> bool:
        """Whether a call may fail."""
        words = what.split(maxsplit=1)
        return self is Strikes.ALL or (
            words[0] in _CONTROL if self is Strikes.CONTROL else what != FETCH
        )


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to fail."""

    name: str
    strikes: Strikes
    happens: Happens
    reach: Reach
    error: Callable[[], sqlite3.Error]
    #: Whether the very same transaction would get through if it were simply run again.
    transient: bool = False

    def __str__(self) -> str:
        return self.name


def engine_error(kind: type[sqlite3.Error], message: str, code: int) -> Callable[[], sqlite3.Error]:
    """Creates errors as the driver does when the engine returns a code."""

    def make() -> sqlite3.Error:
        error = kind(message)
        error.sqlite_errorcode = code
        return error

    return make


OPEN: Final = "open"
FETCH: Final = "fetch"

_WORDS_MAX: Final = 70

_CONTROL: Final = {"BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"}

_IO_ERROR: Final = engine_error(
    sqlite3.OperationalError, "disk I/O error", sqlite3.SQLITE_IOERR_WRITE
)
_FULL: Final = engine_error(
    sqlite3.OperationalError, "database or disk is full", sqlite3.SQLITE_FULL
)
_BUSY: Final = engine_error(sqlite3.OperationalError, "database is locked", sqlite3.SQLITE_BUSY)
_CLOSED: Final = engine_error(
    sqlite3.ProgrammingError, "Cannot operate on a closed database.", sqlite3.SQLITE_MISUSE
)
_CANNOT_OPEN: Final = engine_error(
    sqlite3.OperationalError, "unable to open database file", sqlite3.SQLITE_CANTOPEN
)
_MISUSE: Final = engine_error(
    sqlite3.InterfaceError, "bad parameter or other API misuse", sqlite3.SQLITE_MISUSE
)

#: Every way to fail. What a statement has done in a transaction is lost with the transaction, so
#: whether it was carried out before its answer was lost matters for some statements only.
FAULTS: Final = [
    Fault("disk error", Strikes.ALL, Happens.NOT, Reach.CALL, _IO_ERROR),
    Fault("disk full, rolled back", Strikes.STATEMENTS, Happens.UNDOES, Reach.CALL, _FULL),
    Fault("locked for a moment", Strikes.STATEMENTS, Happens.NOT, Reach.CALL, _BUSY, True),
    Fault("connection closed", Strikes.STATEMENTS, Happens.NOT, Reach.CONNECTION, _CLOSED),
    Fault("database gone", Strikes.CONTROL, Happens.NOT, Reach.DATABASE, _IO_ERROR),
    Fault("misuse", Strikes.CONTROL, Happens.NOT, Reach.CALL, _MISUSE),
    Fault("answer lost", Strikes.CONTROL, Happens.FULLY, Reach.CALL, _IO_ERROR),
    Fault("answer and connection lost", Strikes.CONTROL, Happens.FULLY, Reach.CONNECTION, _CLOSED),
    Fault("answer and database lost", Strikes.CONTROL, Happens.FULLY, Reach.DATABASE, _IO_ERROR),
]


#: Of so many calls one is made to fail in a usual run; at full effort all of them are.
_EVERY: Final = 4


@dataclass(frozen=True, slots=True)
class Turns:
    """Which calls of a request fail, one after the other: the `first`, and every `step`-th after
    it."""

    first: int
    step: int

    @classmethod
    def of(cls, fault: Fault, request: str, calls: Iterable[str]) -> Turns:
        """Different ones in each run, for faults of statements, of which there may be dozens.

        Args:
            calls: the number of calls of the request without faults.
        """
        count = sum(1 for call in calls if fault.strikes.admits(call))
        step = 1
        if fault.strikes is not Strikes.CONTROL:
            step = 1 if is_full() else max(1, min(count, _EVERY))
        return cls(1 + Random(f"{SEED} {fault} {request}").randrange(step), step)

    def have(self, nth: int) -> bool:
        """Whether the n-th call, from 1, is one of them."""
        return nth % self.step == self.first % self.step


EVERY_CALL: Final = Turns(first=1, step=1)


class Saboteur:
    """Counts calls, and makes the n-th one fail. For all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fault: Fault | None = None
        self._nth = 0
        self._outage = False
        #: The calls since it was armed that it counts.
        self.calls: list[str] = []
        #: The call that was made to fail, in short; None as long as none was.
        self.struck: str | None = None

    def arm(self, nth: int, fault: Fault | None) -> None:
        """Count from now on, and make the `nth` call (from 1) fail; without a fault, only count."""
        with self._lock:
            self._fault, self._nth = fault, nth
            self.calls, self.struck = [], None

    def disarm(self) -> None:
        """Stop failing; broken connections stay broken."""
        with self._lock:
            self._fault, self._outage = None, False

    def call(self, on: SabotagedConnection, what: str, go: Callable[[], T]) -> T:
        """Run a call, or make it fail."""
        fault = self._falls_on(what)
        return go() if fault is None else self._fail(on, fault, go)

    def _falls_on(self, what: str) -> Fault | None:
        """The fault of this call, if it is the chosen one."""
        with self._lock:
            fault = self._fault
            if fault is not None and self._outage:
                raise fault.error()
            if fault is not None and not fault.strikes.admits(what):
                return None
            self.calls.append(what)
            if fault is None or len(self.calls) != self._nth:
                return None
            self.struck = in_short(what)
            self._outage = fault.reach is Reach.DATABASE
            return fault

    def _fail(self, on: SabotagedConnection, fault: Fault, go: Callable[[], T]) -> T:
        if self.struck == OPEN:
            raise _CANNOT_OPEN()
        if fault.happens is Happens.FULLY:
            go()
        if fault.happens is Happens.UNDOES and on.in_transaction:
            on.really("ROLLBACK")
        if fault.reach is Reach.CONNECTION:
            on.really_close()
        raise fault.error()


def in_short(what: str) -> str:
    """The part of a call that identifies it."""
    return " ".join(what.split())[:_WORDS_MAX]


class SabotagedCursor(sqlite3.Cursor):
    """A cursor with calls that may fail. The driver's `Connection.execute` uses it too."""

    connection: SabotagedConnection
    #: Whether a row of the present statement has been asked for: the first may fail, not the rest.
    _fetching = False

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        return self._executed(sql, lambda: super(SabotagedCursor, self).execute(sql, parameters))

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Self:
        return self._executed(
            sql, lambda: super(SabotagedCursor, self).executemany(sql, parameters)
        )

    def fetchone(self) -> Any:
        return self._fetched(super().fetchone)

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        return self._fetched(lambda: super(SabotagedCursor, self).fetchmany(size))

    def fetchall(self) -> list[Any]:
        return self._fetched(super().fetchall)

    def __next__(self) -> Any:
        return self._fetched(super().__next__)

    def _executed(self, sql: str, go: Callable[[], T]) -> T:
        self._fetching = False
        return self.connection.saboteur.call(self.connection, sql, go)

    def _fetched(self, go: Callable[[], T]) -> T:
        if self._fetching:
            return go()
        self._fetching = True
        return self.connection.saboteur.call(self.connection, FETCH, go)


class SabotagedConnection(sqlite3.Connection):
    """A connection with calls that may fail; created by `sabotage`."""

    saboteur: Saboteur

    def cursor(self, factory: Any = SabotagedCursor) -> Any:
        return super().cursor(factory)

    def commit(self) -> None:
        if self.in_transaction:
            self.saboteur.call(self, "COMMIT", super().commit)
        else:
            super().commit()

    def rollback(self) -> None:
        if self.in_transaction:
            self.saboteur.call(self, "ROLLBACK", super().rollback)
        else:
            super().rollback()

    def really(self, statement: str) -> None:
        """Execute a statement without the saboteur."""
        super().cursor(sqlite3.Cursor).execute(statement).close()

    def really_close(self) -> None:
        """Close it: open transactions are rolled back, and later calls fail."""
        super().close()


def sabotage(db: Database) -> Saboteur:
    """Put a saboteur between a database that is still unused and its driver."""
    saboteur = Saboteur()

    class Connection(SabotagedConnection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            saboteur.call(self, OPEN, lambda: None)
            super().__init__(*arguments, **options)
            self.saboteur = saboteur

    def use(_dialect: object, _record: object, _arguments: object, options: dict[str, Any]) -> None:
        options["factory"] = Connection

    event.listen(db.engine, "do_connect", use)
    return saboteur
