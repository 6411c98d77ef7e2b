# SPDX-License-Identifier: Apache-2.0
"""Admission control: limits how many requests run and wait, and rejects the others with 503.

A service that accepts every request answers none in time when it is overloaded. So a limited number
of requests run, a limited number wait for a limited time, and any further request is rejected
before work is done for it.

Reads, writes and candidate searches have separate queues. Reads need CPU time, and more than a few
at a time only slow each other down. Writes mostly wait for the disk, share a commit with concurrent
writes, and may wait seconds for another process's lock, which must not block readers. A search may
use the CPU for seconds, and a simple read must not wait behind it. Few searches run at a time
(`Searches`); meanwhile the others may authenticate and update the index, which they share. One that
takes longer than most leaves its place to others, and waits for one of those that take long. The
route decides which queue a request belongs to: some searches are POST requests.

`GET /` and the metrics are always answered, because monitoring uses them.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.environ import ARRIVED, MATCH, PLACE, WORKED_LONG
from berth.api.errors import overloaded
from berth.api.paths import Match
from berth.api.request import wait_seconds_max
from berth.config import AdmissionSettings
from berth.edge.layers import refuse
from berth.edge.request_log import PROBE

#: Seconds by which a rejection is delayed if the queue is full. Many clients ignore Retry-After and
#: retry at once: 1500 of them left a tenth of the CPU time to the running requests.
REFUSAL_S = 0.5

#: About how many searches count as the last ones.
_LAST: Final = 4


class Observer:
    """Receives the state of a queue. This one ignores everything."""

    def changed(self, running: int, waiting: int) -> None:
        """These numbers of requests run and wait. Calls do not overlap, and must be short."""

    def refused(self) -> None:
        """A request was rejected."""


NULL_OBSERVER: Final = Observer()


def _no_less() -> float:
    return math.inf


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
        self.observer = observer
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

    def enter(self, within: Callable[[], float] = _no_less) -> bool:
        """Wait for a place to run; False if there is none: then do not call `leave`.

        PERF bench, flat: each search passes a queue without an observer, which is not told.

        Args:
            within: seconds that it may wait, if that is less than the queue's.
        """
        with self._lock:
            if self._running < self._running_max:
                self._running += 1
                if self.observer is not NULL_OBSERVER:
                    self.observer.changed(self._running, len(self._turns))
                return True
            is_full = len(self._turns) >= self._waiting_max
            if not is_full:
                turn = threading.Lock()
                turn.acquire()
                self._turns.append(turn)
                self.observer.changed(self._running, len(self._turns))
        if is_full:
            self._pause(REFUSAL_S)
            return False
        try:
            came = turn.acquire(timeout=max(0.0, min(within(), self._wait_seconds_max)))
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
            if self.observer is not NULL_OBSERVER:
                self.observer.changed(self._running, len(self._turns))

    def _gives_up(self, turn: threading.Lock) -> bool:
        """Leave the queue; False if the turn came at the last moment: then it has a place."""
        with self._lock:
            try:
                self._turns.remove(turn)
            except ValueError:
                return False
            self.observer.changed(self._running, len(self._turns))
            return True


class Place:
    """The place of a request that gives it up while it waits for changes, or searches for long.

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


class Searches:
    """The queues of searches that are ready and need only the CPU: one for those that begin, and
    one for those that take longer than most.

    Args:
        clock: monotonic seconds.
        of_long: the observer of the second queue.
    """

    def __init__(
        self,
        settings: AdmissionSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        of_long: Observer = NULL_OBSERVER,
    ) -> None:
        self._first, self._long = (
            Line(
                running_max=settings.searches_running_max,
                # No more requests than these can reach it: placements are writes that search.
                waiting_max=settings.reads_running_max + settings.writes_running_max,
                wait_seconds_max=settings.wait_seconds_max,
                pause=time.sleep,
                observer=observer,
            )
            for observer in (NULL_OBSERVER, of_long)
        )
        self._clock = clock
        self._places = settings.searches_running_max
        #: Seconds for which the last long searches kept their places.
        self._usual_s = 0.0
        #: Since when this thread's long search has its place.
        self._own = threading.local()

    def enter(self, within: Callable[[], float]) -> bool:
        """See `SearchLine`."""
        return self._first.enter(within)

    def go_on(self, *, within: float) -> bool:
        """See `SearchLine`. Where the searches before it will take longer, it is False at once."""
        self._first.leave()
        if self._expected_s() > max(within, 0.0) or not self._long.enter(lambda: within):
            return False
        self._own.since = self._clock()
        return True

    def leave(self, *, is_long: bool) -> None:
        """See `SearchLine`."""
        if is_long:
            self._usual_s += (self._clock() - self._own.since - self._usual_s) / _LAST
        (self._long if is_long else self._first).leave()

    def _expected_s(self) -> float:
        """How long one more would wait, if long searches take as long as the last ones."""
        before = self._long.running + self._long.waiting - self._places
        return (before + 0.5) * self._usual_s / self._places if before >= 0 else 0.0


class Admission:
    """Runs requests as the settings allow, and answers 503 to the rest.

    Args:
        pause: sleeps for the seconds before a rejection.
        give_back: returns freed memory; called after each long question.
        of_reads, of_writes, of_searches: the observers of the three queues.
    """

    def __init__(
        self,
        settings: AdmissionSettings,
        *,
        pause: Callable[[float], None] = time.sleep,
        give_back: Callable[[], None] = lambda: None,
        of_reads: Observer = NULL_OBSERVER,
        of_writes: Observer = NULL_OBSERVER,
        of_searches: Observer = NULL_OBSERVER,
    ) -> None:
        self._reads, self._writes, self._searches = (
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
        self._budget_s = settings.candidates_time_budget
        self._give_back = give_back

    def run(
        self,
        application: WSGIApplication,
        environ: WSGIEnvironment,
        start_response: StartResponse,
    ) -> Iterable[bytes]:
        """Call an application with a request, once there is a place for it."""
        match: Match = environ[MATCH]
        if match.route.is_public or PROBE in environ:
            return application(environ, start_response)
        environ[ARRIVED] = time.monotonic()
        within: Callable[[], float] = _no_less
        kind = match.kind
        if kind.search_seconds is not None:
            line = self._searches
            within = partial(wait_seconds_max, self._budget_s, kind.search_seconds)
        else:
            line = self._reads if kind.is_read else self._writes
        if not line.enter(within):
            line.observer.refused()
            return refuse(overloaded(), environ, start_response)
        leave = line.leave
        if kind.search_seconds is not None or kind.is_watch:
            place = environ[PLACE] = Place(line)
            leave = place.leave
        try:
            return application(environ, start_response)
        finally:
            leave()
            if WORKED_LONG in environ:
                self._give_back()
