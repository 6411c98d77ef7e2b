# SPDX-License-Identifier: Apache-2.0
"""Logs why the database is unavailable: callers only learn that it is."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
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
