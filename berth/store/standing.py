# SPDX-License-Identifier: Apache-2.0
"""A connection that stands ready for one purpose, and never goes back to the pool.

Taking a connection from the pool, resetting and returning it costs more than a small transaction;
and letting SQLAlchemy begin and end that costs a tenth of it. So transactions on such a connection
begin and end at the driver; SQLAlchemy, where somebody asks it something meanwhile, takes itself to
have begun, and is told of the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from sqlalchemy import Connection, Engine, exc

from berth.store.prepared import Runner


class StandingConnection:
    """One connection, for one thread at a time; opened when it is first needed, and after a fault
    anew.

    Args:
        set_up: what a new connection needs for its purpose.
    """

    def __init__(self, engine: Engine, set_up: Callable[[Connection], Connection]) -> None:
        self._engine = engine
        self._set_up = set_up
        self._runner: Runner | None = None
        self._driver: object = None
        self._lock = threading.Lock()
        #: How many connections there have been: what one has said means nothing for the next.
        self.opened = 0

    @contextmanager
    def use(self) -> Iterator[Runner]:
        """What runs statements on the connection, which has no transaction: one that is begun in
        the block and not committed is rolled back at its end."""
        with self._lock:
            run = self._runner
            if run is None:
                connection = self._set_up(self._engine.connect())
                connection.detach()  # not one of the pool's, which may be all in use
                run = self._runner = Runner(connection)
                self._driver = connection.connection.dbapi_connection
                self.opened += 1
            try:
                yield run
                run.rollback()
            except BaseException as error:
                self._recover(run, error)
                raise

    def close(self) -> None:
        """Close it, unless somebody is using it; a later use opens another."""
        if self._lock.acquire(blocking=False):
            try:
                if self._runner is not None:
                    self._runner.connection.close()
                    self._runner = None
            finally:
                self._lock.release()

    def forget(self) -> None:
        """In a forked child: let go of the parent's connection without closing it."""
        self._runner = None
        self._lock = threading.Lock()

    def _recover(self, run: Runner, error: BaseException) -> None:
        """Take everything back; a connection on which something failed is not trusted again."""
        try:
            if not isinstance(error, _FAULTS):
                run.rollback()
                return
        except exc.SQLAlchemyError:
            pass
        self._runner = None
        # Closed below SQLAlchemy, which would try to roll back first: a transaction that is still
        # open ends with its connection.
        driver: Any = self._driver
        with suppress(Exception):
            driver.close()
        run.connection.invalidate()


class CommitFailed(Exception):
    """A COMMIT raised an error, so nobody knows yet whether it took place."""


#: What makes a connection untrustworthy.
_FAULTS: Final = (exc.SQLAlchemyError, CommitFailed)
