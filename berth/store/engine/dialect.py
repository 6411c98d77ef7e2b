# SPDX-License-Identifier: Apache-2.0
"""What berth needs from an engine beyond plain SQL; each engine's module implements it.

On every engine a read transaction sees one state of the database, and each statement of a write
transaction sees everything committed by then. Decisions are made in the WHERE of writes, and the
engine locks a row that a transaction has written until the transaction ends (spec/commit-rules.md,
rules 1 and 2). berth does not rely on an isolation level for anything else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, Protocol

from sqlalchemy import Connection, Engine, Table, UniqueConstraint
from sqlalchemy.engine import URL
from sqlalchemy.sql.dml import Insert

from berth.store.engine.prepared import Runner

#: SQLAlchemy's defaults: the connections of a pool, and the overflow beyond it.
_SQLALCHEMY_KEEPS: Final = 5
_SQLALCHEMY_ADDS: Final = 10

#: The sum of the writers' clock, which changes with every commit.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
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


class Dialect(Protocol):
    """How to use one database engine."""

    @property
    def is_embedded(self) -> bool:
        """Whether the engine runs in this process. If so, a COMMIT that failed cannot take effect
        later, and no server can delay an answer."""

    @property
    def storage(self) -> Storage:
        """How it stores values."""

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
        give up.
        """

    def ensure_in_place(self, *, writing: bool = False, committed: bool = False) -> None:
        """Check that the open database is still the one at the URL; cheap enough for each request.

        Args:
            writing: a write is about to follow, on a connection made ready with `for_writing`.
            committed: it has just followed, and no one knows of it yet.

        Raises:
            DatabaseMoved: it is not.
            OutcomeUnknown: it is not, and the commit may be lost.
        """

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

    def commit_stamp(self, run: Runner) -> int | None:
        """A number that changes when any *other* connection has committed something; None if the
        engine has none. Call it outside a transaction, on a connection that never writes."""

    def stored_time(self, now: datetime) -> datetime:
        """The time, rounded down to the precision of the engine's columns."""

    def lock_schema(self, connection: Connection) -> None:
        """Take the lock of the database's schema, which ends with the session; wait as long as
        another session has it."""

    def finish_loading(self, connection: Connection, tables: Sequence[Table]) -> None:
        """Prepare tables for use after many rows, with their ids, were loaded into them."""
