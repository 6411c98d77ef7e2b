# SPDX-License-Identifier: Apache-2.0
"""Whether this process can answer for the fleet as it is now: what probes and scrapes ask.

A database may be silent for as long as its driver waits. So a thread of its own puts the question,
one at a time; those who ask meanwhile share what comes of it, and nobody waits beyond a bound.
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

#: Seconds that an answer is waited for. Most take milliseconds.
ANSWER_S_MAX: Final = 5.0


class NotReady(Exception):
    """This process cannot serve now; the message is for anybody to read."""


class Readiness:
    """Finds out whether the schema is this release's and the index can be brought up to date."""

    def __init__(self, db: Database, index: Index, *, answer_s_max: float = ANSWER_S_MAX) -> None:
        self._db = db
        self._index = index
        self._answer_s_max = answer_s_max
        #: Guards the rest.
        self._lock = threading.Lock()
        #: What the last look found, or will: the fleet, or why it cannot be read.
        self._look: Future[Snapshot | str] | None = None

    def snapshot(self) -> Snapshot:
        """The fleet as it is now.

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
                # Not before: where no thread can be had, nobody would ever end it.
                self._look = look
        try:
            found = look.result(self._answer_s_max)
        except TimeoutError:
            raise NotReady("the database does not answer in time") from None
        if isinstance(found, str):
            raise NotReady(found)
        return found

    def _find_out(self, look: Future[Snapshot | str]) -> None:
        try:
            if is_current(self._db):
                look.set_result(self._index.snapshot())
            else:
                look.set_result("the schema of the database is not that of this release")
        except Unavailable as error:
            look.set_result(_reason_in(error))
        except Exception:
            LOG.exception("Unexpected error while finding out whether this process can serve")
            look.set_result("unexpected error; the log says which")


def _reason_in(error: Unavailable) -> str:
    """What strangers may know of a database that cannot be read."""
    if isinstance(error, DatabaseMoved) or isinstance(error.__cause__, DatabaseMoved):
        return "the database's file was removed or replaced"
    return "the database cannot be read"
