# SPDX-License-Identifier: Apache-2.0
"""Admission: how many requests run at a time, how many wait, and what the others are told.

A service that takes on all that comes answers nobody in time. So requests run up to a bound, wait
in line up to another, for a bounded time, and who would be one too many is told to come back,
before anything was done for it.

Reads, writes and searches for candidates have lines of their own. Reads are work for the processor,
and more than a few at a time only make each other slower; writes mostly wait for the disk, share a
commit with those that wait beside them, and may wait for another process's lock for seconds, which
must not keep readers out. A search may take the processor for seconds, and reads of one thing must
not wait behind it. Few search at a time (`searching`); other searches may meanwhile find out who
calls and bring the index up to date, which they share.

`GET /` and the metrics are always answered: whoever watches over the service asks for them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.in_front import overloaded, refuse
from berth.api.paths import CANDIDATES, METRICS, is_public
from berth.config import AdmissionSettings

_READS = ("GET", "HEAD", "OPTIONS")

#: How long a refusal takes where the line is full. Many clients ask again at once, whatever they
#: are told: fifteen hundred of them left a tenth of the processor's time to those who run.
REFUSAL_S = 0.5


class Observer(Protocol):
    """Is told how a line does."""

    def changed(self, running: int, waiting: int) -> None:
        """So many are running now, and so many waiting. Calls do not overlap, and must be short."""

    def refused(self) -> None:
        """Somebody has been told to come back."""


class Unobserved:
    """Nobody wants to know."""

    def changed(self, running: int, waiting: int) -> None:
        """Nothing."""

    def refused(self) -> None:
        """Nothing."""


NOBODY: Final = Unobserved()


class Line:
    """Who may run, and who is next: first come, first served.

    A place that becomes free is handed to whoever waits longest, so nobody slips in between.
    """

    def __init__(
        self,
        *,
        running_max: int,
        waiting_max: int,
        wait_seconds_max: float,
        pause: Callable[[float], None],
        observer: Observer = NOBODY,
    ) -> None:
        self._running_max = running_max
        self._waiting_max = waiting_max
        self._wait_seconds_max = wait_seconds_max
        self._pause = pause
        self._observer = observer
        #: Guards the rest, and is never held for long.
        self._lock = threading.Lock()
        self._running = 0
        #: For each one waiting a lock that is released when it is its turn.
        self._turns: deque[threading.Lock] = deque()

    @property
    def running(self) -> int:
        """How many are running."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many are waiting."""
        return len(self._turns)

    def enter(self) -> bool:
        """Wait for a place to run in; False when there is none, and `leave` is not to be called."""
        with self._lock:
            if self._running < self._running_max:
                self._running += 1
                self._tell()
                return True
            is_full = len(self._turns) >= self._waiting_max
            if not is_full:
                turn = threading.Lock()
                turn.acquire()
                self._turns.append(turn)
                self._tell()
        if is_full:
            self._pause(REFUSAL_S)
            return False
        try:
            came = turn.acquire(timeout=self._wait_seconds_max)
        except BaseException:
            # Nobody would ever leave a place that is handed to somebody who is gone.
            if not self._gives_up(turn):
                self.leave()
            raise
        return came or not self._gives_up(turn)

    def leave(self) -> None:
        """Give the place to the next in line."""
        with self._lock:
            if self._turns:
                self._turns.popleft().release()
            else:
                self._running -= 1
            self._tell()

    def _gives_up(self, turn: threading.Lock) -> bool:
        """Leave the line; False where its turn came at the last moment, and is its own now."""
        with self._lock:
            try:
                self._turns.remove(turn)
            except ValueError:
                return False
            self._tell()
            return True

    def _tell(self) -> None:
        # PERF bench, flat: each search passes a line that nobody observes.
        if self._observer is not NOBODY:
            self._observer.changed(self._running, len(self._turns))


def searching(settings: AdmissionSettings) -> Line:
    """The line of the searches that have all they need but the processor."""
    return Line(
        running_max=settings.searches_running_max,
        # No more than these are let through to it.
        waiting_max=settings.reads_running_max,
        wait_seconds_max=settings.wait_seconds_max,
        pause=time.sleep,
    )


def admit(
    settings: AdmissionSettings,
    *,
    pause: Callable[[float], None] = time.sleep,
    of_reads: Observer = NOBODY,
    of_writes: Observer = NOBODY,
    of_searches: Observer = NOBODY,
) -> Callable[[WSGIApplication], WSGIApplication]:
    """A layer that lets requests through as the settings allow, and answers 503 to the rest.

    Args:
        pause: spends the seconds before a refusal.
        of_reads, of_writes, of_searches: are told how the three lines do.
    """
    reads, writes, searches = (
        Line(
            running_max=running_max,
            waiting_max=settings.requests_waiting_max,
            wait_seconds_max=settings.wait_seconds_max,
            pause=pause,
            observer=observer,
        )
        for running_max, observer in (
            (settings.reads_running_max, of_reads),
            (settings.writes_running_max, of_writes),
            (settings.reads_running_max, of_searches),
        )
    )

    def wrap(application: WSGIApplication) -> WSGIApplication:
        def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            if is_public(environ) or environ["PATH_INFO"] == METRICS:
                return application(environ, start_response)
            if environ["REQUEST_METHOD"] not in _READS:
                line, observer = writes, of_writes
            elif environ["PATH_INFO"] == CANDIDATES:
                line, observer = searches, of_searches
            else:
                line, observer = reads, of_reads
            if not line.enter():
                observer.refused()
                return refuse(overloaded(), environ, start_response)
            try:
                return application(environ, start_response)
            finally:
                line.leave()

        return layer

    return wrap
