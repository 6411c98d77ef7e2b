# SPDX-License-Identifier: Apache-2.0
"""Admission control: limits how many requests run and wait, and rejects the others with 503.

A service that accepts every request answers none in time when it is overloaded. So a limited number
of requests run, a limited number wait for a limited time, and any further request is rejected
before work is done for it.

Reads, writes and candidate searches have separate queues. Reads need CPU time, and more than a few
at a time only slow each other down. Writes mostly wait for the disk, share a commit with concurrent
writes, and may wait seconds for another process's lock, which must not block readers. A search may
use the CPU for seconds, and a simple read must not wait behind it. Few searches run at a time
(`searching`); meanwhile the others may authenticate and update the index, which they share. The
route decides which queue a request belongs to: some searches are POST requests.

`GET /` and the metrics are always answered, because monitoring uses them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.environ import PLACE
from berth.api.errors import overloaded
from berth.api.paths import is_public, is_read, is_search, is_watch
from berth.config import AdmissionSettings
from berth.edge.in_front import refuse
from berth.edge.probes import METRICS

#: Seconds by which a rejection is delayed if the queue is full. Many clients ignore Retry-After and
#: retry at once: 1500 of them left a tenth of the CPU time to the running requests.
REFUSAL_S = 0.5


class Observer(Protocol):
    """Receives the state of a queue."""

    def changed(self, running: int, waiting: int) -> None:
        """These numbers of requests run and wait. Calls do not overlap, and must be short."""

    def refused(self) -> None:
        """A request was rejected."""


class NullObserver:
    """Ignores everything."""

    def changed(self, running: int, waiting: int) -> None:
        """Nothing."""

    def refused(self) -> None:
        """Nothing."""


NULL_OBSERVER: Final = NullObserver()


class Line:
    """A queue for a limited number of running requests, first come, first served.

    A place that becomes free goes to the request that has waited longest.
    """

    def __init__(
        self,
        *,
        running_max: int,
        waiting_max: int,
        wait_seconds_max: float,
        pause: Callable[[float], None],
        observer: Observer = NULL_OBSERVER,
    ) -> None:
        self._running_max = running_max
        self._waiting_max = waiting_max
        self._wait_seconds_max = wait_seconds_max
        self._pause = pause
        self._observer = observer
        #: Guards the attributes below; never held for long.
        self._lock = threading.Lock()
        self._running = 0
        #: One lock per waiting request, released when it is its turn.
        self._turns: deque[threading.Lock] = deque()

    @property
    def running(self) -> int:
        """How many are running."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many are waiting."""
        return len(self._turns)

    def enter(self, *, comes_back: bool = False) -> bool:
        """Wait for a place to run; False if there is none: then do not call `leave`.

        Args:
            comes_back: it has been here before, so it waits even if the queue is full.
        """
        with self._lock:
            if self._running < self._running_max:
                self._running += 1
                self._tell()
                return True
            is_full = not comes_back and len(self._turns) >= self._waiting_max
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
            # If the place was already handed to this thread, nothing else would ever free it.
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
        """Leave the queue; False if the turn came at the last moment: then it has a place."""
        with self._lock:
            try:
                self._turns.remove(turn)
            except ValueError:
                return False
            self._tell()
            return True

    def _tell(self) -> None:
        # PERF bench, flat: each search passes a queue without an observer.
        if self._observer is not NULL_OBSERVER:
            self._observer.changed(self._running, len(self._turns))


class Place:
    """The place of a request that gives it up while it waits for changes.

    Args:
        line: the queue that the request has passed.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._is_held = True

    def leave(self) -> None:
        """Give up the place, if it is held."""
        if self._is_held:
            self._is_held = False
            self._line.leave()

    def enter(self) -> bool:
        """Queue for a place again; False if there is none in time.

        A change wakes all that wait for one, which are no more than `[berth] watchers_max`.
        """
        self._is_held = self._is_held or self._line.enter(comes_back=True)
        return self._is_held


def searching(settings: AdmissionSettings) -> Line:
    """The queue of searches that are ready and need only the CPU."""
    return Line(
        running_max=settings.searches_running_max,
        # No more requests than these can reach it: placements are writes that search.
        waiting_max=settings.reads_running_max + settings.writes_running_max,
        wait_seconds_max=settings.wait_seconds_max,
        pause=time.sleep,
    )


def admit(
    settings: AdmissionSettings,
    *,
    pause: Callable[[float], None] = time.sleep,
    of_reads: Observer = NULL_OBSERVER,
    of_writes: Observer = NULL_OBSERVER,
    of_searches: Observer = NULL_OBSERVER,
) -> Callable[[WSGIApplication], WSGIApplication]:
    """A layer that admits requests as the settings allow, and answers 503 to the rest.

    Args:
        pause: sleeps for the seconds before a rejection.
        of_reads, of_writes, of_searches: the observers of the three queues.
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
            if is_search(environ):
                line, observer = searches, of_searches
            elif is_read(environ["REQUEST_METHOD"], environ["PATH_INFO"]):
                line, observer = reads, of_reads
            else:
                line, observer = writes, of_writes
            if not line.enter():
                observer.refused()
                return refuse(overloaded(), environ, start_response)
            if is_watch(environ):
                place = environ[PLACE] = Place(line)
                leave = place.leave
            else:
                leave = line.leave
            try:
                return application(environ, start_response)
            finally:
                leave()

        return layer

    return wrap
