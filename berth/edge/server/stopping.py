# SPDX-License-Identifier: Apache-2.0
"""Stopping: an event that the parent's signal handlers set, and the end of the workers when their
parent exits, even if it is killed.

Orphaned workers would go on serving without supervision and keep the address in use, so that the
service could not be started again.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

#: The longest single sleep in seconds. A signal that arrives after Python has checked for signals
#: and before the kernel sleeps wakes nothing; its handler runs after the sleep.
SLEEP_S_MAX: Final = 1.0

#: Seconds between two checks whether the parent is still running. A check is one system call.
_POLL_S: Final = 0.2

#: Seconds that a worker may take to finish its requests: longer than any request takes. A worker
#: that still runs then is waiting for a client that announced a body and does not send it; Granian
#: has no timeout for that, and waits even after the client has disconnected.
STOP_S_MAX: Final = 60.0

#: How many SIGTERMs an orphan gets, and the seconds between them; then it is killed, because a new
#: service needs the address.
_ASKED_TIMES: Final = 3
_ASKED_EACH_S: Final = 5.0


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


def end_with_parent(
    parent: int, is_stopping: Callable[[], bool], stopping: threading.Event
) -> None:
    """In a worker: stop as on SIGTERM, finishing its requests, once its parent has exited.

    Args:
        parent: the process id that the parent itself passed on: it may have exited already.
        is_stopping: whether the parent stops its workers.
        stopping: set once this worker stops, for requests that wait.
    """
    threading.Thread(
        target=_watch, args=(parent, is_stopping, stopping), name="lifeline", daemon=True
    ).start()


def _watch(parent: int, is_stopping: Callable[[], bool], stopping: threading.Event) -> None:
    while os.getppid() == parent:
        if is_stopping():
            stopping.set()
        time.sleep(_POLL_S)
    stopping.set()
    # More than once: a worker that is just about to serve can lose the first signal. And not often:
    # a second signal while Granian waits for requests to finish blocks the interpreter, and with it
    # those requests.
    for _ in range(_ASKED_TIMES):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_ASKED_EACH_S)
    os.kill(os.getpid(), signal.SIGKILL)
