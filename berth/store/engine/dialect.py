# SPDX-License-Identifier: Apache-2.0
"""What berth asks of an engine beyond plain SQL; each engine's module answers it in one place.

On all of them a read transaction sees one state of the database, and a write transaction sees with
each statement what has been committed by then: decisions stand in the WHERE of writes, and the
engine holds a row that a transaction has written until that ends (spec/commit-rules.md, rules 1
and 2). No engine's isolation level is relied on for anything else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from sqlalchemy import Connection, Engine, Table
from sqlalchemy.engine import URL
from sqlalchemy.sql.dml import Insert

from berth.store.engine.prepared import Runner

#: What SQLAlchemy does where it is not told: the connections of a pool, and those beyond.
_SQLALCHEMY_KEEPS: Final = 5
_SQLALCHEMY_ADDS: Final = 10

#: The sum of the writers' clock: what a server says of commits.
CLOCK_SUM: Final = "SELECT coalesce(sum(seq), 0) FROM berth_writer"


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How many connections a process keeps, and for how long; None leaves it to SQLAlchemy."""

    size: int | None = None
    max_overflow: int | None = None
    timeout_s: int | None = None
    recycle_s: int | None = None

    @property
    def kept(self) -> int:
        """How many connections stay open."""
        return _SQLALCHEMY_KEEPS if self.size is None else self.size

    @property
    def most(self) -> float:
        """How many connections there may be at a time."""
        overflow = _SQLALCHEMY_ADDS if self.max_overflow is None else self.max_overflow
        return self.kept + overflow if self.kept > 0 and overflow >= 0 else math.inf

    def arguments(self) -> dict[str, int]:
        """The arguments of `create_engine` that say so."""
        wanted = {
            "pool_size": self.size,
            "max_overflow": self.max_overflow,
            "pool_timeout": self.timeout_s,
            "pool_recycle": self.recycle_s,
        }
        return {name: value for name, value in wanted.items() if value is not None}


class Dialect(Protocol):
    """How to speak to one engine. A value: two that say the same are the same."""

    def __hash__(self) -> int: ...

    @property
    def is_embedded(self) -> bool:
        """Whether the engine lives in this process: then what has not been committed when a COMMIT
        fails never will be, and nobody else can hold an answer back."""

    def create_engine(self, url: URL, pool: PoolOptions) -> Engine:
        """An engine whose pooled connections read: each transaction sees one state.

        Raises:
            UnsupportedDatabase: the URL names what berth cannot work with, or its driver is not
                installed.
        """

    def for_reading(self, connection: Connection) -> Connection:
        """Make a standing connection ready for `begin_reading`."""

    def for_writing(self, connection: Connection) -> Connection:
        """Make a standing connection ready for `begin_writing`."""

    def begin_reading(self, run: Runner) -> None:
        """Begin a transaction on a standing connection: it sees one state of the database."""

    def begin_writing(self, run: Runner) -> None:
        """Begin a transaction on a standing connection that sees what is committed by then."""

    def wait_briefly(self, run: Runner) -> None:
        """Let the transaction under way give up early where it would wait for another's rows.

        For those that take rows in no order: two such wait for each other, and one must give way.
        """

    def ensure_in_place(self, *, writing: bool = False) -> None:
        """Make sure that what is open is still what the URL names; cheap enough for each request.

        Args:
            writing: a commit is about to follow, on a connection made ready with `for_writing`.

        Raises:
            DatabaseMoved: it is not.
        """

    def is_transient(self, error: BaseException | None) -> bool:
        """Whether the engine refused because of others at work, and has taken back, or will, all of
        the transaction: run again, it may succeed. The connection is as good as before."""

    def is_away(self, error: BaseException | None) -> bool:
        """Whether the server cannot be reached, or not yet be used: it may come back. A password
        that is wrong stays wrong."""

    def insert_missing(self, table: Table) -> Insert:
        """An INSERT that passes over rows whose key is there already."""

    def commit_stamp(self, run: Runner) -> int | None:
        """A number that changes when any *other* connection has committed something; None on an
        engine without. Asked outside of a transaction, on a connection that never writes."""

    def stored_time(self, now: datetime) -> datetime:
        """The time as precisely as the engine's columns keep it, never later than it is."""
