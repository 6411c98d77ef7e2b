# SPDX-License-Identifier: Apache-2.0
"""An event that a signal's handler may set, whatever the thread does that it interrupts."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

#: For how long it is slept at a time: a signal that comes after Python has looked for signals, and
#: before the kernel sleeps, wakes nobody, and its handler waits for the next look.
SLEEP_S_MAX: Final = 1.0


class Wakeup(threading.Event):
    """An event for one thread that waits, and for handlers of signals that wake it.

    RACE tests/cli/test_stopping.py: a handler runs between any two steps of what it interrupts. It
    would wait for ever for the lock of an ordinary event whose `wait` it has interrupted; a
    SimpleQueue has none.

    Args:
        is_due: whether there is something to wake up for, whatever was cleared.
    """

    def __init__(self, is_due: Callable[[], bool]) -> None:
        super().__init__()
        #: Something is put in each time that it is set.
        self._knocks: SimpleQueue[None] = SimpleQueue()
        self._is_due = is_due
        self._is_set = False

    def is_set(self) -> bool:
        """Whether there is something to wake up for."""
        return self._is_set or self._is_due()

    def set(self) -> None:
        """Wake who waits, or will."""
        self._is_set = True
        self._knocks.put(None)

    def clear(self) -> None:
        """Forget that it was set."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, for so many seconds at most; whether it is."""
        ends = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            left = None if ends is None else ends - time.monotonic()
            if left is not None and left <= 0:
                break
            with suppress(Empty):
                self._knocks.get(timeout=SLEEP_S_MAX if left is None else min(left, SLEEP_S_MAX))
        return self.is_set()
