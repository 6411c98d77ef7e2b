# SPDX-License-Identifier: Apache-2.0
"""The connections of an engine: some are dedicated to one purpose, the others are the pool's.

A dedicated connection never returns to the pool. Taking a connection from the pool, resetting it
and returning it costs more than a small transaction, and letting SQLAlchemy begin and end the
transaction adds a tenth of that. So transactions on such a connection begin and end at the driver.
If SQLAlchemy runs a statement meanwhile, it assumes that it began a transaction itself, which then
ends with the driver's.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import Connection, Engine, event, exc

from berth.store.engine.prepared import Runner

T = TypeVar("T")


class Stamp(NamedTuple):
    """Differs from an earlier one if anyone has committed in between.

    Attributes:
        connection: the connection's number; those of two connections cannot be compared.
        clock: the writers' clock, `id seq trimmed_seq` of each, between commas; None if there is
            none. On an embedded engine a number.
    """

    connection: int
    clock: int | str | None


class _Open(NamedTuple):
    run: Runner
    driver: Any
    opened_at: float


class DedicatedConnection:
    """One connection, for one thread at a time; opened at its first use, and reopened after an
    error.

    Args:
        set_up: prepares a new connection for its purpose.
        survives: whether a connection is still usable after an error of the driver.
        recycle_s: the age at which it is replaced, in seconds; None, or -1: never.
    """

    def __init__(
        self,
        engine: Engine,
        set_up: Callable[[Connection], Connection],
        *,
        survives: Callable[[BaseException | None], bool],
        recycle_s: int | None = None,
    ) -> None:
        self._engine = engine
        self._set_up = set_up
        self._survives = survives
        self._age_s_max = math.inf if recycle_s is None or recycle_s < 0 else recycle_s
        self._open: _Open | None = None
        self._lock = threading.Lock()
        #: The number of connections so far: answers of one mean nothing for the next.
        self.opened = 0

    @contextmanager
    def use(self, begin: Callable[[Runner], object]) -> Iterator[Runner]:
        """A runner of statements in a transaction that `begin` has begun. The end of the block
        rolls the transaction back unless the block has committed it.

        If the connection was lost since its last use, a new one replaces it.
        """
        with self._lock:
            run, _ = self._begun(begin)
            try:
                yield run
                run.rollback()
            except BaseException as error:
                self._recover(run, error)
                raise

    def ask(self, question: Callable[[Runner], T]) -> T:
        """The answer to a question that needs no transaction, on a connection that works."""
        with self._lock:
            return self._begun(question)[1]

    def close(self) -> None:
        """Close the connection, unless it is in use; a later use opens another."""
        if self._lock.acquire(blocking=False):
            try:
                self._drop()
            finally:
                self._lock.release()

    def forget(self) -> None:
        """In a forked child: drop the parent's connection without closing it."""
        self._open = None
        self._lock = threading.Lock()

    def _begun(self, begin: Callable[[Runner], T]) -> tuple[Runner, T]:
        """The connection, and the result of `begin`; retries on a new one if an old one fails."""
        is_old = self._open is not None
        while True:
            run = self._ready()
            try:
                return run, begin(run)
            except BaseException as error:
                self._recover(run, error)
                if not (is_old and getattr(error, "connection_invalidated", False)):
                    raise
            is_old = False

    def _ready(self) -> Runner:
        now = time.monotonic()
        if self._open is not None and now - self._open.opened_at > self._age_s_max:
            self._drop()
        if self._open is None:
            connection = self._set_up(self._engine.connect())
            connection.detach()  # does not count as one of the pool, which may be all in use
            driver = connection.connection.dbapi_connection
            self._open = _Open(Runner(connection), driver, now)
            self.opened += 1
        self._open.run.refresh_listeners()
        return self._open.run

    def _drop(self) -> None:
        if self._open is not None:
            self._open.run.connection.close()
            self._open = None

    def _recover(self, run: Runner, error: BaseException) -> None:
        """Roll back; drop the connection if the error makes it untrustworthy."""
        try:
            if not isinstance(error, _FAULTS) or self._survives(getattr(error, "orig", None)):
                run.rollback()
                return
        except exc.SQLAlchemyError:
            pass
        open_, self._open = self._open, None
        # Closed at the driver, because SQLAlchemy would try to roll back first. A transaction that
        # is still open ends with its connection.
        if open_ is not None:
            with suppress(Exception):
                open_.driver.close()
        run.connection.invalidate()


class CommitFailed(Exception):
    """A COMMIT raised an error: it is not known yet whether it took place."""


#: Errors after which a connection cannot be trusted.
_FAULTS: Final = (exc.SQLAlchemyError, CommitFailed)


# --- The pool -------------------------------------------------------------------------------------
# Counted from SQLAlchemy's events: the pool's own numbers count empty slots as idle connections.
# Dedicated connections have left the pool, and are not counted.


class PoolCounts:
    """The connections of one engine's pool.

    Args:
        tell: called with (open, in use) at each change, by the thread that makes the change.
    """

    def __init__(self, engine: Engine, tell: Callable[[int, int], None]) -> None:
        self.open = 0
        self.in_use = 0
        self._tell = tell
        # The garbage collector may return an abandoned connection in the middle of a change.
        self._lock = threading.RLock()
        for name, open_, in_use in (
            ("connect", 1, 0),
            ("checkout", 0, 1),
            ("checkin", 0, -1),
            ("close", -1, 0),
            ("detach", -1, -1),
        ):
            event.listen(engine, name, self._listener(open_, in_use))

    def forget(self) -> None:
        """In a forked child: reset the counts, which are the parent's."""
        self._lock = threading.RLock()
        self.open = self.in_use = 0

    def _listener(self, open_: int, in_use: int) -> Callable[..., None]:
        def change(*_: Any) -> None:
            with self._lock:
                self.open += open_
                self.in_use += in_use
                self._tell(self.open, self.in_use)

        return change
