# SPDX-License-Identifier: Apache-2.0
"""Readiness, for probes and scrapes: whether this process can read the current state of the fleet.

A database can hang for as long as its driver waits. So a separate thread queries it, one at a time;
concurrent callers share the result, and no caller waits longer than `ANSWER_S_MAX`.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from typing import Final

from berth.index import Index
from berth.index.snapshot import Snapshot
from berth.model.errors import DatabaseMoved, Unavailable
from berth.store.engine.database import Database
from berth.store.versions import is_current

LOG = logging.getLogger(__name__)

#: Seconds to wait for the result. Most take milliseconds.
ANSWER_S_MAX: Final = 5.0


class NotReady(Exception):
    """This process cannot serve now; the message is public."""


class Readiness:
    """Checks that the schema is that of this release and that the index can be updated."""

    def __init__(self, db: Database, index: Index, *, answer_s_max: float = ANSWER_S_MAX) -> None:
        self._db = db
        self._index = index
        self._answer_s_max = answer_s_max
        #: Guards the rest.
        self._lock = threading.Lock()
        #: The last check, done or running. Its result: the fleet, or why it cannot be read.
        self._look: Future[Snapshot | str] | None = None

    def snapshot(self) -> Snapshot:
        """The current state of the fleet.

        Raises:
            NotReady: it cannot be read, or not in time.
        """
        with self._lock:
            look = self._look
            if look is None or look.done():
                look = Future()
                threading.Thread(
                    target=self._find_out, args=(look,), name="readiness", daemon=True
                ).start()
                # Only now: if no thread can be started, nothing would ever complete this future.
                self._look = look
        try:
            result = look.result(self._answer_s_max)
        except TimeoutError:
            raise NotReady("the database does not answer in time") from None
        if isinstance(result, str):
            raise NotReady(result)
        return result

    def _find_out(self, look: Future[Snapshot | str]) -> None:
        try:
            if is_current(self._db):
                look.set_result(self._index.snapshot())
            else:
                look.set_result("the schema of the database is not that of this release")
        except Unavailable as error:
            look.set_result(_reason_in(error))
        except Exception:
            LOG.exception("Unexpected error in the readiness check")
            look.set_result("unexpected error; see the log")


def _reason_in(error: Unavailable) -> str:
    """What an unauthenticated caller may learn about a database that cannot be read."""
    if isinstance(error, DatabaseMoved) or isinstance(error.__cause__, DatabaseMoved):
        return "the database's file was removed or replaced"
    return "the database cannot be read"
