# SPDX-License-Identifier: Apache-2.0
"""Times as HTTP spells them, in any locale."""

from __future__ import annotations

import time
from datetime import UTC, datetime

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
_TWO_DIGITS = tuple(f"{number:02}" for number in range(60))


def http_date(moment: datetime) -> str:
    """Format a UTC time for HTTP, in any locale. PERF format specifications take twice as long."""
    return (
        f"{_DAYS[moment.weekday()]}, {_TWO_DIGITS[moment.day]} {_MONTHS[moment.month - 1]} "
        f"{moment.year:04} {_TWO_DIGITS[moment.hour]}:{_TWO_DIGITS[moment.minute]}:"
        f"{_TWO_DIGITS[moment.second]} GMT"
    )


class HttpClock:
    """The current time, formatted once a second. PERF formatting it each time would take
    4 microseconds of a search."""

    def __init__(self) -> None:
        #: The second that was read last, with its text: one value, since threads share the clock.
        self._latest = 0, ""

    def read(self) -> str:
        """The current second."""
        now = int(time.time())
        second, text = self._latest
        if second != now:
            text = http_date(datetime.fromtimestamp(now, tz=UTC))
            self._latest = now, text
        return text
