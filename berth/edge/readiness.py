# SPDX-License-Identifier: Apache-2.0
"""Readiness, for probes and scrapes: whether this process can read the current state of the fleet,
and write it.

A database can hang for as long as its driver waits. So a separate thread queries it, one at a time;
concurrent callers share the result, and no caller waits longer than `ANSWER_S_MAX`.

Whether the database can be written shows in the requests that failed, and in small writes. A write
that succeeds is proof, unless another failed within the last second: a small one may still find
room where larger ones do not. Without proof, a probe rewrites a row, at most every `PROBE_EACH_S`
seconds, and as long after a failure.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, NamedTuple

from berth.index import Index
from berth.index.snapshot import Snapshot
from berth.model.database_errors import WritesRefused
from berth.model.errors import DatabaseMoved, Unavailable
from berth.store.engine.database import Database
from berth.store.engine.dialect import FULL
from berth.store.identity import rewrite_identity
from berth.store.versions import is_current, missing_tables

LOG = logging.getLogger(__name__)

#: Seconds to wait for the result. Most take milliseconds.
ANSWER_S_MAX: Final = 5.0


#: Seconds for which a proof or a failure is believed.
PROBE_EACH_S: Final = 10.0

#: Seconds after a failure in which a write that succeeds proves nothing.
DOUBT_S: Final = 1.0

#: Bytes on the disk of an SQLite database below which it is full: the next commits need more.
ROOM_MIN: Final = 65_536


class NotReady(Exception):
    """This process cannot serve now; the message is public."""


class State(NamedTuple):
    """What a check found.

    Attributes:
        fleet: the current state of the fleet, or why it cannot be read.
        write_fault: why the database cannot be written; None if it can.
    """

    fleet: Snapshot | str
    write_fault: str | None


class Readiness:
    """Checks that the schema is that of this release, that the index can be updated, and that the
    database can be written."""

    def __init__(
        self,
        db: Database,
        index: Index,
        writability: Writability,
        *,
        answer_s_max: float = ANSWER_S_MAX,
    ) -> None:
        self._db = db
        self._index = index
        self._writability = writability
        self._answer_s_max = answer_s_max
        #: Guards the rest.
        self._lock = threading.Lock()
        #: The last check, done or running.
        self._look: Future[State] | None = None

    def ensure_ready(self) -> None:
        """Check whether this process can serve every request.

        Raises:
            NotReady: it cannot, or the database does not answer in time.
        """
        state = self.state()
        if isinstance(state.fleet, str):
            raise NotReady(state.fleet)
        if state.write_fault is not None:
            raise NotReady(state.write_fault)

    def state(self) -> State:
        """What a check finds now.

        Raises:
            NotReady: the database does not answer in time.
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
            return look.result(self._answer_s_max)
        except TimeoutError:
            raise NotReady("the database does not answer in time") from None

    def _find_out(self, look: Future[State]) -> None:
        try:
            fleet = self._fleet()
            fault = fleet if isinstance(fleet, str) else self._writability.fault(self._db)
            look.set_result(State(fleet, fault))
        except Exception:
            LOG.exception("Unexpected error in the readiness check")
            look.set_result(State("unexpected error; see the log", "unexpected error; see the log"))

    def _fleet(self) -> Snapshot | str:
        """The current state of the fleet, or what an unauthenticated caller may learn about a
        database that cannot be read."""
        try:
            if not is_current(self._db):
                return "the schema of the database is not that of this release"
            if missing := missing_tables(self._db):
                return f"tables of the database are missing: {', '.join(missing)}"
            return self._index.snapshot()
        except Unavailable as error:
            if isinstance(error, DatabaseMoved) or isinstance(error.__cause__, DatabaseMoved):
                return "the database's file was removed or replaced"
            return "the database cannot be read"


class Writability:
    """What one process knows of whether the database can be written.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        #: Guards the rest.
        self._lock = threading.Lock()
        self._fault: str | None = None
        self._known_at = float("-inf")

    def committed(self) -> None:
        """A write was committed."""
        now = self._clock()
        if self._fault is None:
            # Without the lock: a fault that is noted meanwhile is as recent.
            self._known_at = now
        elif now - self._known_at >= DOUBT_S:
            self._know(None)

    def failed(self, error: Unavailable) -> None:
        """A request could not be answered, perhaps because it could not write."""
        if (fault := fault_in(error)) is not None:
            self._know(fault)

    def fault(self, db: Database) -> str | None:
        """Why the database cannot be written; None if it can. The text is public."""
        if is_full(db):
            self._know(FULL)
        with self._lock:
            if self._clock() - self._known_at < PROBE_EACH_S:
                return self._fault
        try:
            rewrite_identity(db)
        except Unavailable as error:
            self.failed(error)
        else:
            self.committed()
        return self._fault

    def _know(self, fault: str | None) -> None:
        with self._lock:
            self._fault, self._known_at = fault, self._clock()


def fault_in(error: Unavailable) -> str | None:
    """The public words for an error that shows that the database cannot be written; None for any
    other error, such as a lock or a lost connection."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, WritesRefused):
            return cause.fault
        cause = cause.__cause__
    return None


def is_full(db: Database) -> bool:
    """Whether an embedded database's disk has no more room. Cost: microseconds."""
    if not db.dialect.is_embedded:
        return False
    try:
        disk = os.statvfs(os.path.dirname(db.engine.url.database or "") or ".")
    except OSError:
        return False  # SQLite was given a URI
    blocks = disk.f_bavail if os.geteuid() else disk.f_bfree
    return blocks * disk.f_frsize < ROOM_MIN
