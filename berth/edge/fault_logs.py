# SPDX-License-Identifier: Apache-2.0
"""Logs of faults that many requests meet: why the database is unavailable, of which callers only
learn that it is, and the rows that the index leaves out (`berth.index.faulty_rows`)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import Final

from berth.model.errors import Unavailable

LOG = logging.getLogger(__name__)

#: Seconds after which the same reason is logged again.
AGAIN_S: Final = 10.0


class OutageLog:
    """Logs each reason once, not for each of the thousands of requests that fail for it.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._logged_at = float("-inf")
        self._left_out = 0

    def note(self, error: Unavailable, request_id: str | None) -> None:
        """Log why a request was answered 503, unless the same reason was logged just now."""
        reason = str(error.__cause__ if isinstance(error.__cause__, Unavailable) else error)
        with self._lock:
            now = self._clock()
            if reason == self._reason and now - self._logged_at < AGAIN_S:
                self._left_out += 1
                return
            left_out, self._left_out = self._left_out, 0
            self._reason, self._logged_at = reason, now
        more = f"; requests before it that are not logged: {left_out}" if left_out else ""
        LOG.warning("Request %s was answered 503: %s%s", request_id, reason, more)


class FaultyRowLog:
    """Logs each faulty row once; again if it was repaired in between."""

    def __init__(self) -> None:
        self._logged: frozenset[str] = frozenset()

    def note(self, sentences: Collection[str]) -> None:
        """Log those of the faulty rows that there were not before.

        Args:
            sentences: what is wrong, of every faulty row.
        """
        for sentence in sentences:
            if sentence not in self._logged:
                LOG.warning("Faulty row: %s. `berth db check` says more.", sentence)
        self._logged = frozenset(sentences)
