# SPDX-License-Identifier: Apache-2.0
"""Attempts to log in that failed: who has to wait, and what the log is told.

Both are bounded: there are only so many that are remembered, and only so many lines a minute.
Times are monotonic seconds, and come in as arguments.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, NamedTuple

LOG = logging.getLogger(__name__)

#: Failures in a row that cost nothing: people mistype.
FREE: Final = 5

#: Seconds to wait after the next one; each one more doubles them.
WAIT_S_FIRST: Final = 1.0
WAIT_S_MAX: Final = 60.0

#: Seconds after which a failure is forgotten.
FORGET_S: Final = 900.0

#: Callers remembered; of more, those who failed longest ago are forgotten.
CALLERS_MAX: Final = 10_000

LINES_A_MINUTE: Final = 60


class Caller(NamedTuple):
    """Who has failed: a client's address, and the name or the token that it gave."""

    address: str
    name: str


@dataclass(slots=True)
class _Failures:
    count: int
    last: float
    #: Until when further attempts are not looked at.
    until: float


class FailedAttempts:
    """Who has failed lately, and how often."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: In the order of the last failure.
        self._failures: OrderedDict[Caller, _Failures] = OrderedDict()

    def wait_s(self, caller: Caller, *, now: float) -> float:
        """How many seconds a caller has to wait before another attempt is looked at; 0 for none."""
        failures = self._failures.get(caller)
        return max(0.0, failures.until - now) if failures is not None else 0.0

    def record(self, caller: Caller, *, now: float) -> float:
        """Note one failure more; the seconds that the caller now has to wait."""
        with self._lock:
            self._forget_old(now)
            failures = self._failures.setdefault(caller, _Failures(0, now, now))
            self._failures.move_to_end(caller)
            failures.count += 1
            failures.last = now
            wait = _wait_after(failures.count)
            failures.until = now + wait
            if len(self._failures) > CALLERS_MAX:
                self._failures.popitem(last=False)
        return wait

    def forgive(self, caller: Caller) -> None:
        """Forget the failures of a caller who has succeeded."""
        with self._lock:
            self._failures.pop(caller, None)

    def __len__(self) -> int:
        return len(self._failures)

    def _forget_old(self, now: float) -> None:
        while self._failures:
            oldest = next(iter(self._failures.values()))
            if now - oldest.last < FORGET_S:
                return
            self._failures.popitem(last=False)


class FailureLog:
    """Warnings of failed attempts, a bounded number a minute; the next minute says how many more
    there were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._minute_began = float("-inf")
        self._lines = 0
        self._left_out = 0

    def warn(self, message: str, *arguments: object, now: float) -> None:
        """Log one failure, unless there were too many lately."""
        left_out = 0
        with self._lock:
            if now - self._minute_began >= 60:
                left_out, self._left_out = self._left_out, 0
                self._minute_began, self._lines = now, 0
            self._lines += 1
            is_told = self._lines <= LINES_A_MINUTE
            self._left_out += not is_told
        if left_out:
            LOG.warning("%d more failed attempts to log in were not told one by one", left_out)
        if is_told:
            LOG.warning(message, *arguments)


def _wait_after(count: int) -> float:
    beyond = count - FREE - 1
    if beyond < 0:
        return 0.0
    return min(WAIT_S_MAX, WAIT_S_FIRST * 2.0 ** min(beyond, 16))
