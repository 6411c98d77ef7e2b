# SPDX-License-Identifier: Apache-2.0
"""What sends statements in the driver's form, and how several INSERTs become one."""

from __future__ import annotations

import re
import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import Any, Final, NamedTuple, Protocol

#: An INSERT up to its row, the row, and what follows it.
_INSERT: Final = re.compile(r"(INSERT .*? VALUES )(\([^()]*\))(.*)", re.DOTALL)


#: Rows in one INSERT of MySQL's: more would exceed the size of a packet.
_ROWS_MAX: Final = 1000

#: Statements in one packet: results are read only after all have been sent, so they must fit into
#: the buffers between client and server.
_STATEMENTS_MAX: Final = 200

#: MySQL's bit of the server's status, and its error number.
_IN_TRANSACTION: Final = 1
_DEADLOCK: Final = 1213

#: A text, and its values.
Statement = tuple[str, Sequence[Any]]


class Packed(NamedTuple):
    """A statement in the driver's form, to be run once with each of several sets of values."""

    text: str
    values: Sequence[Sequence[Any]]


class Wire(Protocol):
    """Sends statements over one of the driver's connections; raises the driver's errors."""

    #: The statement that begins a transaction, to be sent with the next one in a round trip; empty
    #: if there is none.
    pending: str

    @property
    def can_wait(self) -> bool:
        """Whether a statement may wait for the next one: not on a connection that the server has
        closed, because only a transaction that has not begun is begun again on another one."""

    def fetch(self, text: str, values: Sequence[Any]) -> list[Any]:
        """All rows of a query, as tuples."""

    def insert(self, text: str, values: Sequence[Any]) -> int:
        """The id that a statement gave to the one row that it inserted."""

    def change_all(self, batch: Sequence[Packed]) -> list[list[int]]:
        """Run several statements in order, and stop at the first that fails; how many rows each
        wrote with each of its sets of values, or, for an INSERT, with several of them."""

    def check_transaction(self) -> None:
        """Raise the driver's deadlock error if the server has silently rolled back the
        transaction."""


def is_silent(socket: Any) -> bool:
    """Whether a server has sent nothing that nobody asked for, such as the end of a connection.

    Args:
        socket: anything that `select` takes.
    """
    return not select.select([socket], [], [], 0)[0]


def in_batches(
    batch: Sequence[Packed],
    rows_max: int,
    statements_max: int,
    run: Callable[[Sequence[Statement]], Sequence[int]],
) -> list[list[int]]:
    """How many rows each statement wrote: see `Wire.change_all`.

    Args:
        rows_max: the most rows in one INSERT.
        run: runs up to `statements_max` statements, and returns how many rows each wrote.
    """
    parts = [joined_inserts(text, values, rows_max) for text, values in batch]
    statements = list(chain.from_iterable(parts))
    counts: list[int] = []
    for begin in range(0, len(statements), statements_max):
        counts += run(statements[begin : begin + statements_max])
    each = iter(counts)
    return [list(islice(each, len(part))) for part in parts]


def joined_inserts(text: str, values: Sequence[Sequence[Any]], most: int) -> list[Statement]:
    """One statement for each set of values, but for an INSERT, of which engines take several rows
    faster, as few as possible with up to `most` rows each."""
    if len(values) < 2 or (parts := _INSERT.fullmatch(text)) is None:
        return [(text, each) for each in values]
    head, row, tail = parts.groups()
    return [
        (head + ", ".join([row] * len(some)) + tail, list(chain.from_iterable(some)))
        for some in (values[begin : begin + most] for begin in range(0, len(values), most))
    ]


class Cursors:
    """The usual way: one cursor of the driver's after another, one statement at a time."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self.pending = ""

    @property
    def can_wait(self) -> bool:
        """See `Wire`."""
        return False

    def fetch(self, text: str, values: Sequence[Any]) -> list[Any]:
        """See `Wire`."""
        with self._executed(text, values) as cursor:
            return list(cursor.fetchall())

    def insert(self, text: str, values: Sequence[Any]) -> int:
        """See `Wire`."""
        with self._executed(text, values) as cursor:
            return int(cursor.lastrowid)

    def change_all(self, batch: Sequence[Packed]) -> list[list[int]]:
        """See `Wire`."""
        return in_batches(batch, _ROWS_MAX, _STATEMENTS_MAX, self._counts)

    def _counts(self, statements: Sequence[Statement]) -> list[int]:
        with self._cursor() as cursor:
            counts = []
            for text, values in statements:
                cursor.execute(text, values)
                counts.append(int(cursor.rowcount))
            return counts

    @contextmanager
    def _executed(self, text: str, values: Sequence[Any]) -> Iterator[Any]:
        with self._cursor() as cursor:
            cursor.execute(text, values)
            yield cursor

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """A cursor; errors of its end are ignored, because it fails if the connection was closed
        meanwhile, and the error that matters was raised before."""
        cursor = self._driver.cursor()
        try:
            yield cursor
        finally:
            with suppress(Exception):
                cursor.close()

    def check_transaction(self) -> None:
        """See `Wire`: this does not happen here."""


class MysqlCursors(Cursors):
    """The same for MySQL's drivers."""

    def check_transaction(self) -> None:
        """See `Wire`. PyMySQL keeps the status from the server's last answer."""
        if not getattr(self._driver, "server_status", _IN_TRANSACTION) & _IN_TRANSACTION:
            raise self._driver.OperationalError(_DEADLOCK, "the transaction was taken back")


class Packets(MysqlCursors):
    """Several statements in one packet, in order; the drivers would send each by itself and wait
    for its answer.

    RACE bench.databases, Galera, spread: not for a cluster. If another node's commit rolls back the
    transaction in the middle of a packet, the remaining statements run and commit one by one.
    """

    @property
    def can_wait(self) -> bool:
        """See `Wire`. mysqlclient's connection has a `fileno`, PyMySQL's only its socket."""
        return is_silent(getattr(self._driver, "_sock", self._driver))

    @contextmanager
    def _executed(self, text: str, values: Sequence[Any]) -> Iterator[Any]:
        begin, self.pending = self.pending, ""
        with self._cursor() as cursor:
            cursor.execute(f"{begin}; {text}" if begin else text, values)
            if begin:
                cursor.nextset()
            yield cursor

    def _counts(self, statements: Sequence[Statement]) -> list[int]:
        begin, self.pending = self.pending, ""
        if begin:
            statements = [(begin, ()), *statements]
        with self._cursor() as cursor:
            cursor.execute("; ".join(cursor.mogrify(text, each) for text, each in statements))
            counts = [int(cursor.rowcount)]
            while cursor.nextset():
                counts.append(int(cursor.rowcount))
            return counts[bool(begin) :]
