# SPDX-License-Identifier: Apache-2.0
"""A connection that stands ready for one purpose, and never goes back to the pool.

Taking a connection from the pool, resetting and returning it costs more than a small transaction;
and letting SQLAlchemy begin and end that costs a tenth of it. So transactions on such a connection
begin and end at the driver; SQLAlchemy, where somebody asks it something meanwhile, takes itself to
have begun, and is told of the end.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import Connection, Engine, exc

from berth.store.engine.prepared import Runner

T = TypeVar("T")


class _Open(NamedTuple):
    run: Runner
    driver: Any
    opened_at: float


class StandingConnection:
    """One connection, for one thread at a time; opened when it is first needed, and after a fault
    anew.

    Args:
        set_up: what a new connection needs for its purpose.
        survives: whether a connection is as good as before after an error of the driver's.
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
        #: How many connections there have been: what one has said means nothing for the next.
        self.opened = 0

    @contextmanager
    def use(self, begin: Callable[[Runner], object]) -> Iterator[Runner]:
        """What runs statements on the connection once `begin` has begun a transaction; if that is
        not committed in the block, it is rolled back at its end.

        A connection that turns out to have been lost since it was last used is replaced.
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
        """Close it, unless somebody is using it; a later use opens another."""
        if self._lock.acquire(blocking=False):
            try:
                self._drop()
            finally:
                self._lock.release()

    def forget(self) -> None:
        """In a forked child: let go of the parent's connection without closing it."""
        self._open = None
        self._lock = threading.Lock()

    def _begun(self, begin: Callable[[Runner], T]) -> tuple[Runner, T]:
        """The connection, and what came of beginning on it: on a new one where an old one fails."""
        is_old = self._open is not None
        try:
            return self._begun_once(begin)
        except exc.DBAPIError as error:
            if not (is_old and error.connection_invalidated):
                raise
        return self._begun_once(begin)

    def _begun_once(self, begin: Callable[[Runner], T]) -> tuple[Runner, T]:
        run = self._ready()
        try:
            return run, begin(run)
        except BaseException as error:
            self._recover(run, error)
            raise

    def _ready(self) -> Runner:
        now = time.monotonic()
        if self._open is not None and now - self._open.opened_at > self._age_s_max:
            self._drop()
        if self._open is None:
            connection = self._set_up(self._engine.connect())
            connection.detach()  # not one of the pool's, which may be all in use
            driver = connection.connection.dbapi_connection
            self._open = _Open(Runner(connection), driver, now)
            self.opened += 1
        self._open.run.listen_anew()
        return self._open.run

    def _drop(self) -> None:
        if self._open is not None:
            self._open.run.connection.close()
            self._open = None

    def _recover(self, run: Runner, error: BaseException) -> None:
        """Take everything back; a connection on which something failed is not trusted again."""
        try:
            if not isinstance(error, _FAULTS) or self._survives(getattr(error, "orig", None)):
                run.rollback()
                return
        except exc.SQLAlchemyError:
            pass
        open_, self._open = self._open, None
        # Closed below SQLAlchemy, which would try to roll back first: a transaction that is still
        # open ends with its connection.
        if open_ is not None:
            with suppress(Exception):
                open_.driver.close()
        run.connection.invalidate()


class CommitFailed(Exception):
    """A COMMIT raised an error, so nobody knows yet whether it took place."""


#: What makes a connection untrustworthy.
_FAULTS: Final = (exc.SQLAlchemyError, CommitFailed)
