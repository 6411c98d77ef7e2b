# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for the fleet to change. Source: spec/beyond.md 6.2."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Event, Thread
from typing import Final, Protocol

from berth.api.errors import overloaded
from berth.index import Snapshot
from berth.model.errors import Unavailable

#: Seconds between two looks at the database, for the commits of other processes.
LOOK_S: Final = 0.1


#: Seconds between two looks at the database, if this process commits all the time.
PAUSE_S: Final = 0.01

#: Seconds after which it is looked whether a client that waits has disconnected.
GONE_S: Final = 1.0


class WatchersObserver(Protocol):
    """Receives the number of requests that wait."""

    def watching(self, count: int) -> None:
        """So many do."""


class NullWatchersObserver:
    """Ignores everything."""

    def watching(self, count: int) -> None:
        """Nothing."""


class Watchers:
    """The requests of one process that wait for changes.

    One thread looks at the database for all of them, and only while there are some. A request that
    waits holds no connection and no place in a queue.

    Args:
        snapshot: returns the present fleet.
        committed: set after each commit of this process.
        stopping: set when the process stops; then nobody waits.
        most: further requests are refused.
    """

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        committed: Event,
        stopping: Event,
        *,
        most: int,
        observer: WatchersObserver | None = None,
        look_s: float = LOOK_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock: Final = clock
        self._snapshot = snapshot
        self._committed = committed
        self._stopping = stopping
        self._most = most
        self._observer = observer or NullWatchersObserver()
        self._look_s = look_s
        #: Guards all below.
        self._changed = Condition()
        self._places = 0
        self._waiting = 0
        self._newest: Snapshot | None = None
        self._looking: Thread | None = None

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place to wait, for as long as the context lasts.

        Raises:
            Refused: 503, if there is none.
        """
        with self._changed:
            if self._places >= self._most:
                raise overloaded()
            self._places += 1
            self._observer.watching(self._places)
        try:
            yield
        finally:
            with self._changed:
                self._places -= 1
                self._observer.watching(self._places)

    @property
    def are_stopping(self) -> bool:
        """Whether nobody is to wait any longer."""
        return self._stopping.is_set()

    def wait(self, seen: Snapshot, until: float, has_gone: Callable[[], bool]) -> Snapshot:
        """The first snapshot after `seen`; `seen` itself if there is none until a time.

        Args:
            until: by `clock`.
            has_gone: whether the client has disconnected; then it is not waited for.
        """
        with self._changed:
            self._waiting += 1
            self._look()
            try:
                # It may be older: `seen` was taken between two looks.
                while (newest := self._newest) is None or not newest.clock.is_after(seen.clock):
                    left = until - self.clock()
                    if left <= 0 or self._stopping.is_set() or has_gone():
                        return seen
                    self._changed.wait(min(left, GONE_S))
                return newest
            finally:
                self._waiting -= 1

    def _look(self) -> None:
        """Start to look, unless a thread does; a child that was forked has none."""
        if self._looking is None or not self._looking.is_alive():
            self._newest = None
            self._looking = Thread(target=self._follow, name="berth-watch", daemon=True)
            self._looking.start()

    def _follow(self) -> None:
        """Look until nobody waits."""
        while True:
            self._committed.clear()
            newest = self._present() or self._newest
            with self._changed:
                if self._stopping.is_set() or newest is not self._newest:
                    self._newest = newest
                    self._changed.notify_all()
                if not self._waiting:
                    self._looking = None
                    return
            time.sleep(PAUSE_S)
            self._committed.wait(self._look_s)

    def _present(self) -> Snapshot | None:
        """The present fleet, None while the database is not available: those who wait go on."""
        try:
            return self._snapshot()
        except Unavailable:
            return None
