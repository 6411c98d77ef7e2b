# SPDX-License-Identifier: Apache-2.0
"""Whether the database can be written: from the requests that failed, and from small writes.

A write that succeeds is proof, unless another failed within the last second: a small one may still
find room where larger ones do not. Without proof, a probe rewrites a row, at most every
`PROBE_EACH_S` seconds, and as long after a failure.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Final

from berth.model.database_errors import WritesRefused
from berth.model.errors import Unavailable
from berth.store.engine.database import Database
from berth.store.engine.driver_errors import FULL
from berth.store.identity import rewrite_identity

#: Seconds for which a proof or a failure is believed.
PROBE_EACH_S: Final = 10.0

#: Seconds after a failure in which a write that succeeds proves nothing.
DOUBT_S: Final = 1.0

#: Bytes on the disk of an SQLite database below which it is full: the next commits need more.
ROOM_MIN: Final = 65_536


class Writability:
    """What one process knows.

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
