# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for the fleet to change: how they wait, and how they are woken.

One thread looks at the database for all of them. A change that it finds becomes a step from one
revision to the next, which is computed and encoded once, however many requests wait. A request
remembers the step that its client knows, and waits for the next step. While it waits, it holds no
connection, no place in a queue and no snapshot.

Requests are woken one after another: each wakes the next before it goes on. If a thousand woke at
once, they would keep the interpreter's lock from every other request, and spend most of their time
waiting for it. The thread looks again after all have been woken. So changes that come faster than
they can be sent are sent together.
Source: spec/beyond.md 6.2.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from typing import Any, Final

import msgspec

from berth.api.errors import overloaded
from berth.index import Snapshot
from berth.model.errors import BerthError, RevisionForeign, RevisionGone

_encode = msgspec.json.Encoder().encode

#: Bytes that an event takes beside its data.
_EVENT_BYTES: Final = 256

#: Events that are sent in one piece.
_PART: Final = 1000

#: Seconds between two looks at the database, for the commits of other processes.
LOOK_S: Final = 0.1

#: Seconds between two looks at the database, if this process commits all the time.
PAUSE_S: Final = 0.01

#: Seconds after which a waiting request checks whether it should still wait.
WAKE_S: Final = 2.0

#: Steps that are kept for requests whose clients read slowly, and the bytes of their changes.
_STEPS_MAX: Final = 200
_BYTES_MAX: Final = 8 * 2**20


class Changes:
    """What has changed up to a revision, encoded once for all clients.

    Args:
        events: each has its kind in its member `change`.

    Attributes:
        count: the number of events.
        size: about how many bytes of memory they take.
    """

    def __init__(self, revision: str, events: Sequence[Mapping[str, Any]]) -> None:
        self._revision = revision
        self._events = [(event["change"].encode(), _encode(event)) for event in events]
        self.count = len(events)
        self.size = sum(_EVENT_BYTES + len(data) for _, data in self._events)

    def lines(self) -> Iterator[bytes]:
        """As JSON lines, in pieces."""
        return self._pieces(b"%.0s%s\n", self._closing() + b"\n")

    def sent(self) -> Iterator[bytes]:
        """As server-sent events, in pieces."""
        id_ = self._revision.encode()
        end = b"event: revision\nid: %s\ndata: %s\n\n" % (id_, self._closing())
        return self._pieces(b"event: %s\ndata: %s\n\n", end)

    def _pieces(self, form: bytes, end: bytes) -> Iterator[bytes]:
        """The events, each in a form, and the end, which is sent with the last ones."""
        piece = b""
        for begin in range(0, self.count, _PART):
            if begin:
                yield piece
            piece = b"".join(form % event for event in self._events[begin : begin + _PART])
        yield piece + end

    def _closing(self) -> bytes:
        return _encode({"revision": self._revision, "events": self.count})


class Step:
    """A revision, and what has changed since the step before.

    Attributes:
        changes: None if they are not known, because the database was restored, or are kept no
            longer.
        next: the step after this one; None: there is none yet.
    """

    __slots__ = ("changes", "next", "revision")

    def __init__(self, revision: str, changes: Changes | None) -> None:
        self.revision = revision
        self.changes = changes
        self.next: Step | None = None


class Watchers:
    """The requests of one process that wait for changes.

    Args:
        snapshot: returns the present fleet.
        changes: returns what has changed up to a snapshot since a revision; raises RevisionForeign
            or RevisionGone if that is not known.
        committed: set after each commit of this process.
        stopping: set when the process stops; then no request waits.
        most: how many requests may wait; others are refused.
        clock: monotonic seconds.
        watching: called with the number of requests that wait, whenever it changes.
    """

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        changes: Callable[[Snapshot, str], Changes],
        committed: Event,
        stopping: Event,
        *,
        most: int,
        watching: Callable[[int], None] = lambda count: None,
        look_s: float = LOOK_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self._snapshot = snapshot
        self._changes = changes
        self._committed = committed
        self._stopping = stopping
        self._most = most
        self._watching = watching
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
        #: How many requests, from the first, can be woken: their step is there.
        self._due = 0
        #: Set while that is zero.
        self._all_woken = Event()
        self._all_woken.set()

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place to wait, for as long as the context lasts.

        Raises:
            Refused: 503, if there is none.
        """
        with self._lock:
            if self._places >= self._most:
                raise overloaded()
            self._places += 1
            self._watching(self._places)
        try:
            yield
        finally:
            with self._lock:
                self._places -= 1
                self._watching(self._places)

    def join(self) -> tuple[Step, Snapshot]:
        """The present step and its fleet, for a request that has a place.

        Raises:
            Unavailable: the database cannot be read.
        """
        with self._stepping:
            return self._advance()

    def wait(self, step: Step, until: float, goes_on: Callable[[], bool]) -> Step | None:
        """The step after another; None if there is none in time, or if the wait is ended.

        Args:
            until: when to stop waiting, by `clock`.
            goes_on: whether to go on waiting; called every few seconds.
        """
        while goes_on() and not self._stopping.is_set():
            left = until - self.clock()
            if step.next is not None or left <= 0:
                return step.next
            self._sleep(step, min(left, WAKE_S))
        return None

    def _sleep(self, step: Step, seconds: float) -> None:
        """Sleep until it is this request's turn to see the step after another."""
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
