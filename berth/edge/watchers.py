# SPDX-License-Identifier: Apache-2.0
"""Wakes the requests that wait for the fleet to change. Source: spec/beyond.md 6.2.

One thread looks at the database for all of them. What it finds is a step from one revision to the
next, computed and encoded once, however many wait. A request remembers the step that its client
knows, and waits for the one after it; it holds no connection, no place in a queue and no snapshot.

Those who wait are woken one after another: each wakes the next before it goes on. If a thousand
woke at once, they would keep the interpreter's lock from every other request, and spend most of
their time waiting for it. The next look comes when all have been woken: so changes that come faster
than they can be sent are sent together.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from typing import Final, Protocol

from berth.api.errors import overloaded
from berth.api.watchers import Changes, Step
from berth.index import Snapshot
from berth.model.errors import BerthError, RevisionForeign, RevisionGone

#: Seconds between two looks at the database, for the commits of other processes.
LOOK_S: Final = 0.1

#: Seconds between two looks at the database, if this process commits all the time.
PAUSE_S: Final = 0.01

#: Seconds after which a request that waits looks whether it still should.
WAKE_S: Final = 2.0

#: Steps that are kept for requests whose clients read slowly, and the bytes of their changes.
_STEPS_MAX: Final = 200
_BYTES_MAX: Final = 8 * 2**20


class WatchersObserver(Protocol):
    """Receives the number of requests that wait."""

    def watching(self, count: int) -> None:
        """So many do."""


class NullWatchersObserver:
    """Ignores everything."""

    def watching(self, count: int) -> None:
        """Nothing."""


class Watchers:
    """See `berth.api.watchers.Watchers`.

    Args:
        snapshot: returns the present fleet.
        changes: returns what has changed up to a snapshot since a revision; raises RevisionForeign
            or RevisionGone if that cannot be told.
        committed: set after each commit of this process.
        stopping: set when the process stops; then no request waits.
        most: further requests are refused.
    """

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        changes: Callable[[Snapshot, str], Changes],
        committed: Event,
        stopping: Event,
        *,
        most: int,
        observer: WatchersObserver | None = None,
        look_s: float = LOOK_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self._snapshot = snapshot
        self._changes = changes
        self._committed = committed
        self._stopping = stopping
        self._most = most
        self._observer = observer or NullWatchersObserver()
        self._look_s = look_s
        #: Held while the next step is made.
        self._stepping = Lock()
        #: Guards all below; never held for long.
        self._lock = Lock()
        self._places = 0
        self._looking: Thread | None = None
        #: The last steps; none while no request has a place.
        self._steps: deque[Step] = deque()
        #: One lock per request that waits, released when it is its turn to wake.
        self._turns: deque[Lock] = deque()
        #: How many of the first ones wait for a step that is there.
        self._due = 0
        #: Set while that is zero.
        self._all_woken = Event()
        self._all_woken.set()

    @contextmanager
    def place(self) -> Iterator[None]:
        """See `berth.api.watchers.Watchers`."""
        with self._lock:
            if self._places >= self._most:
                raise overloaded()
            self._places += 1
            self._observer.watching(self._places)
        try:
            yield
        finally:
            with self._lock:
                self._places -= 1
                self._observer.watching(self._places)

    def join(self) -> tuple[Step, Snapshot]:
        """See `berth.api.watchers.Watchers`."""
        with self._stepping:
            return self._advance()

    def wait(self, step: Step, until: float, goes_on: Callable[[], bool]) -> Step | None:
        """See `berth.api.watchers.Watchers`."""
        while goes_on() and not self._stopping.is_set():
            left = until - self.clock()
            if step.next is not None or left <= 0:
                return step.next
            self._sleep(step, min(left, WAKE_S))
        return None

    def _sleep(self, step: Step, seconds: float) -> None:
        """Sleep until it is this request's turn to see the step after one."""
        turn = Lock()
        turn.acquire()
        with self._lock:
            if step.next is not None:
                return
            # A child that was forked has no thread.
            if self._looking is None or not self._looking.is_alive():
                self._looking = Thread(target=self._follow, name="berth-watch", daemon=True)
                self._looking.start()
            self._turns.append(turn)
        came = turn.acquire(timeout=seconds)
        with self._lock:
            if came or turn not in self._turns:
                self._wake_next()
                return
            self._due -= self._turns.index(turn) < self._due
            self._turns.remove(turn)

    def _wake_next(self) -> None:
        """Wake the next request for which there is a step. Needs the lock."""
        if self._due:
            self._due -= 1
            self._turns.popleft().release()
        else:
            self._all_woken.set()

    def _wake_all(self) -> None:
        """Begin to wake all that wait now. Needs the lock."""
        self._due = len(self._turns)
        self._all_woken.clear()
        self._wake_next()

    def _advance(self) -> tuple[Step, Snapshot]:
        """Make a step to the present fleet, if it has changed. Needs `_stepping`.

        Raises:
            Unavailable: the database cannot be read.
        """
        snapshot = self._snapshot()
        last = self._steps[-1] if self._steps else None
        if last is not None and last.revision == snapshot.revision:
            return last, snapshot
        changes = None if last is None else self._changed(snapshot, last.revision)
        step = Step(snapshot.revision, changes)
        with self._lock:
            self._steps.append(step)
            self._forget()
            if last is not None:
                last.next = step
                self._wake_all()
        return step, snapshot

    def _changed(self, snapshot: Snapshot, since: str) -> Changes | None:
        try:
            return self._changes(snapshot, since)
        except (RevisionForeign, RevisionGone):
            return None

    def _forget(self) -> None:
        """Forget the first changes beyond the limits, but never the last ones. Needs the lock."""
        size = sum(step.changes.size for step in self._steps if step.changes)
        while len(self._steps) > 1 and (size > _BYTES_MAX or len(self._steps) > _STEPS_MAX):
            step = self._steps.popleft()
            size -= step.changes.size if step.changes else 0
            step.changes = None

    def _follow(self) -> None:
        """Look until no request has a place."""
        while True:
            self._committed.clear()
            # While the database is not available, those who wait go on.
            with suppress(BerthError), self._stepping:
                self._advance()
            with self._lock:
                if self._stopping.is_set():
                    self._wake_all()
                if not self._places:
                    self._looking = None
                    self._steps.clear()
                    return
            time.sleep(PAUSE_S)
            self._committed.wait(self._look_s)
            self._all_woken.wait(WAKE_S)
