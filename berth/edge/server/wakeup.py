# SPDX-License-Identifier: Apache-2.0
"""An event that a signal handler may set, whatever it interrupts."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

#: The longest single sleep in seconds. A signal that arrives after Python has checked for signals
#: and before the kernel sleeps wakes nothing; its handler runs after the sleep.
SLEEP_S_MAX: Final = 1.0


class Wakeup(threading.Event):
    """An event on which one thread waits, and which signal handlers set.

    RACE tests/edge/server/test_stopping.py: a handler may run between any two steps of the code
    that it interrupts. If it interrupted the `wait` of an ordinary event, it would wait for ever
    for that event's lock; a SimpleQueue has none.

    Args:
        is_due: whether there is work to do, even if the event was cleared.
    """

    def __init__(self, is_due: Callable[[], bool]) -> None:
        super().__init__()
        #: Gets an entry each time the event is set.
        self._knocks: SimpleQueue[None] = SimpleQueue()
        self._is_due = is_due
        self._is_set = False

    def is_set(self) -> bool:
        """Whether the event was set or there is work to do."""
        return self._is_set or self._is_due()

    def set(self) -> None:
        """Wake the thread that waits now or next."""
        self._is_set = True
        self._knocks.put(None)

    def clear(self) -> None:
        """Reset the event."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, for at most `timeout` seconds; return whether it is."""
        ends = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            left = None if ends is None else ends - time.monotonic()
            if left is not None and left <= 0:
                break
            with suppress(Empty):
                self._knocks.get(timeout=SLEEP_S_MAX if left is None else min(left, SLEEP_S_MAX))
        return self.is_set()
