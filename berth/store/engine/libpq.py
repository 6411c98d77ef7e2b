# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL's statements sent over libpq itself, below psycopg's cursors.

Each statement is prepared once on each connection. Running it is then one call of libpq, and one
statement with several sets of values costs one round trip (pipeline mode). psycopg's adapters
convert values and rows, errors are psycopg's, and psycopg manages the transactions.

PERF bench.databases, claims: a statement takes a third of the CPU time of a cursor's, and ten in a
pipeline a ninth of `executemany`.
"""

from __future__ import annotations

import re
import select
from collections.abc import Callable, Sequence
from typing import Any, Final

from psycopg import Connection, OperationalError, pq
from psycopg.abc import Transformer as Adapters
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq.abc import PGresult

from berth.store.engine.wire import Packed, Statement, in_batches, is_silent

#: The placeholder of a value, and an escaped percent sign.
_MARK: Final = re.compile("%s|%%")

#: Statements that a connection keeps prepared; those with lists have a text for each length.
_PREPARED_MAX: Final = 500

#: Rows in one INSERT: each number of rows is a statement to be prepared.
_ROWS_MAX: Final = 8

#: Statements in one pipeline: results are read only after all of them have been sent, so they must
#: fit into the buffers between client and server.
_PIPELINE_MAX: Final = 200

_DONE: Final = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK})


class Libpq:
    """Prepares statements on one connection, and runs them."""

    def __init__(self, driver: Connection[Any]) -> None:
        # psycopg's own preparing sometimes sends DEALLOCATE ALL, which would drop these too.
        driver.prepare_threshold = None
        self._libpq: Final = driver.pgconn
        self._adapters: Final[Adapters] = Transformer.from_context(driver)
        self.pending = ""
        #: Text -> the name of the prepared statement.
        self._names: Final[dict[str, bytes]] = {}

    def fetch(self, text: str, values: Sequence[Any]) -> list[Any]:
        """All rows of a query, as tuples."""
        result = self._run(text, values)
        self._adapters.set_pgresult(result)
        return self._adapters.load_rows(0, result.ntuples, tuple)

    def insert(self, text: str, values: Sequence[Any]) -> int:
        """Insert one row with a statement that returns its id; return that."""
        ((number,),) = self.fetch(text, values)
        return int(number)

    @property
    def can_wait(self) -> bool:
        """See `Wire`."""
        return self._libpq.status == pq.ConnStatus.OK and is_silent(self._libpq.socket)

    def change_all(self, batch: Sequence[Packed]) -> list[list[int]]:
        """See `Wire`. The server runs nothing that follows a statement that failed."""
        return in_batches(batch, _ROWS_MAX, _PIPELINE_MAX, self._counts)

    def _counts(self, statements: Sequence[Statement]) -> list[int]:
        if len(statements) == 1:
            return [self._run(*statements[0]).command_tuples or 0]
        return [result.command_tuples or 0 for result in self._run_all(statements)]

    def _run_all(self, statements: Sequence[Statement]) -> list[PGresult]:
        if self.pending:
            statements = [(self.pending, ()), *statements]
        self._make_room(len({text for text, _ in statements}))
        named = [(self._name_of(text), self._dumped(values)) for text, values in statements]
        begin, self.pending = self.pending, ""
        self._libpq.enter_pipeline_mode()
        try:
            for name, values in named:
                self._libpq.send_query_prepared(name, values)
            self._libpq.pipeline_sync()
            return self._results()[bool(begin) :]
        finally:
            self._libpq.exit_pipeline_mode()

    def check_transaction(self) -> None:
        """See `Wire`: PostgreSQL never ends a transaction silently."""

    def _run(self, text: str, values: Sequence[Any]) -> PGresult:
        if self.pending:
            (result,) = self._run_all([(text, values)])
            return result
        return self._done(self._libpq.exec_prepared(self._name_of(text), self._dumped(values)))

    def _done(self, result: PGresult) -> PGresult:
        """The result of a statement that has been run.

        Raises:
            Error: it failed, or its outcome is unknown.
        """
        if result.status in _DONE:
            return result
        if self._libpq.status == pq.ConnStatus.BAD:
            raise OperationalError(result.get_error_message())
        raise error_from_result(result)

    def _results(self) -> list[PGresult]:
        """The results of a pipeline after its sync message was sent.

        Raises:
            Error: the first statement that failed; those after it did not run.
        """
        results: list[PGresult] = []
        self._wait_until(select.POLLOUT, self._libpq.flush)
        while True:
            # PERF without this, libpq would wait for the result, and no other thread could run.
            self._wait_until(select.POLLIN, self._libpq.is_busy)
            result = self._libpq.get_result()
            if result is not None and result.status == pq.ExecStatus.PIPELINE_SYNC:
                return [self._done(result) for result in results]
            if result is not None:
                results.append(result)
            elif self._libpq.status == pq.ConnStatus.BAD:
                raise OperationalError("the connection was lost")

    def _wait_until(self, event: int, is_needed: Callable[[], int]) -> None:
        """Let other threads run until the socket is ready."""
        while is_needed():
            poll = select.poll()
            poll.register(self._libpq.socket, select.POLLIN | event)
            poll.poll()
            self._libpq.consume_input()

    def _dumped(self, values: Sequence[Any]) -> Sequence[Any]:
        return self._adapters.dump_sequence(values, [PyFormat.TEXT] * len(values))

    def _name_of(self, text: str) -> bytes:
        name = self._names.get(text)
        if name is None:
            self._make_room(1)
            name = b"berth_%d" % len(self._names)
            self._done(self._libpq.prepare(name, _numbered(text).encode()))
            self._names[text] = name
        return name

    def _make_room(self, count: int) -> None:
        """Drop all prepared statements if this number of new ones would exceed the limit. Those
        still needed are prepared again."""
        if len(self._names) + count <= _PREPARED_MAX:
            return
        for name in self._names.values():
            self._libpq.exec_(b"DEALLOCATE " + name)
        self._names.clear()


def _numbered(text: str) -> str:
    """A text with the server's placeholders `$1`, `$2` ... for its values."""
    parts = _MARK.split(text)
    marks = _MARK.findall(text)
    number = 0
    numbered = [parts[0]]
    for mark, part in zip(marks, parts[1:], strict=True):
        number += mark == "%s"
        numbered += [f"${number}" if mark == "%s" else "%", part]
    return "".join(numbered)
