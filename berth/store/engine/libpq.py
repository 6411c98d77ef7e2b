# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL's statements sent over libpq itself, below psycopg's cursors.

Each statement is prepared once on each connection; then it is a call of libpq's with its values,
and the same statement with several sets of values is one round trip (pipeline mode). Values and
rows are turned by psycopg's own adapters, its errors are raised, and its transactions stay its own.

PERF bench.databases, claims: a statement takes a third of the processor's time of a cursor's, and
ten in a pipeline a ninth of `executemany`.
"""

from __future__ import annotations

import re
import select
from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from psycopg import Connection, OperationalError, pq
from psycopg.abc import Transformer as Adapters
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq.abc import PGresult

#: What stands for a value in a text, and what for a percent sign.
_MARK: Final = re.compile("%s|%%")

#: Statements that a connection may keep prepared; those with lists have a text for each length.
_PREPARED_MAX: Final = 500

#: Statements in one pipeline: nobody reads their results before all of them have been sent, so
#: those must fit into what lies between us and the server.
_PIPELINE_MAX: Final = 200

_DONE: Final = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK})


class Libpq:
    """What is prepared on one connection, and how to run it."""

    def __init__(self, driver: Connection[Any]) -> None:
        # Its own way of preparing sends DEALLOCATE ALL now and then, which takes ours along.
        driver.prepare_threshold = None
        self._libpq: Final = driver.pgconn
        self._adapters: Final[Adapters] = Transformer.from_context(driver)
        #: Text -> the name under which the server knows it.
        self._names: Final[dict[str, bytes]] = {}

    def fetch(self, text: str, values: Sequence[Any]) -> list[Any]:
        """All rows of a query, as tuples."""
        result = self._run(text, values)
        self._adapters.set_pgresult(result)
        return self._adapters.load_rows(0, result.ntuples, tuple)

    def change(self, text: str, values: Sequence[Any]) -> int:
        """How many rows a statement wrote."""
        return self._run(text, values).command_tuples or 0

    def change_many(self, text: str, values: Sequence[Sequence[Any]]) -> int:
        """How many rows it wrote with each of several sets of values, in few round trips."""
        return sum(self.change_each(text, values))

    def change_each(self, text: str, values: Sequence[Sequence[Any]]) -> list[int]:
        """How many rows it wrote with each of them."""
        return [
            count
            for begin in range(0, len(values), _PIPELINE_MAX)
            for count in self._counts(text, values[begin : begin + _PIPELINE_MAX])
        ]

    def _counts(self, text: str, values: Sequence[Sequence[Any]]) -> list[int]:
        name = self._name_of(text)
        self._libpq.enter_pipeline_mode()
        try:
            for each in values:
                self._libpq.send_query_prepared(name, self._dumped(each))
            self._libpq.pipeline_sync()
            return [result.command_tuples or 0 for result in self._results()]
        finally:
            self._libpq.exit_pipeline_mode()

    def check_transaction(self) -> None:
        """See `prepared.Wire`: an error ends nothing without a word here."""

    def _run(self, text: str, values: Sequence[Any]) -> PGresult:
        return self._done(self._libpq.exec_prepared(self._name_of(text), self._dumped(values)))

    def _done(self, result: PGresult) -> PGresult:
        """The result of a statement that has been run.

        Raises:
            Error: it has not been, or nobody can tell.
        """
        if result.status in _DONE:
            return result
        if self._libpq.status == pq.ConnStatus.BAD:
            raise OperationalError(result.get_error_message())
        raise error_from_result(result)

    def _results(self) -> list[PGresult]:
        """The results of a pipeline, whose end has been sent.

        Raises:
            Error: of the first statement that failed; those after it have not been run.
        """
        results: list[PGresult] = []
        self._wait_until(select.POLLOUT, self._libpq.flush)
        while True:
            # PERF asked for a result that is not there yet, it waits, and no other thread runs.
            self._wait_until(select.POLLIN, self._libpq.is_busy)
            result = self._libpq.get_result()
            if result is not None and result.status == pq.ExecStatus.PIPELINE_SYNC:
                return [self._done(one) for one in results]
            if result is not None:
                results.append(result)
            elif self._libpq.status == pq.ConnStatus.BAD:
                raise OperationalError("the connection was lost")

    def _wait_until(self, event: int, is_needed: Callable[[], int]) -> None:
        """Let other threads run as long as there is something to be waited for."""
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
            if len(self._names) >= _PREPARED_MAX:
                self._forget_all()
            name = b"berth_%d" % len(self._names)
            self._done(self._libpq.prepare(name, _numbered(text).encode()))
            self._names[text] = name
        return name

    def _forget_all(self) -> None:
        """Let the server forget all of it; what is needed again is prepared again."""
        for name in self._names.values():
            self._libpq.exec_(b"DEALLOCATE " + name)
        self._names.clear()


#: What each connection's server has prepared: it ends with the connection.
_OF: Final[WeakKeyDictionary[Connection[Any], Libpq]] = WeakKeyDictionary()


def libpq_of(driver: Connection[Any]) -> Libpq:
    """The one `Libpq` of a connection, which may have been used before."""
    known = _OF.get(driver)
    if known is None:
        known = _OF[driver] = Libpq(driver)
    return known


def _numbered(text: str) -> str:
    """A text with `$1`, `$2` ... for its values, as the server knows them."""
    parts = _MARK.split(text)
    marks = _MARK.findall(text)
    number = 0
    numbered = [parts[0]]
    for mark, part in zip(marks, parts[1:], strict=True):
        number += mark == "%s"
        numbered += [f"${number}" if mark == "%s" else "%", part]
    return "".join(numbered)
