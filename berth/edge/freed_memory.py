# SPDX-License-Identifier: Apache-2.0
"""Freed memory goes back to the system.

glibc keeps what was freed in the middle of its heaps, one for each few threads. After questions
that took hundreds of MiB on several threads, a worker kept all of it, although nothing was in use.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

#: None with other libraries than glibc.
_TRIM: Final[Any] = getattr(ctypes.CDLL(None), "malloc_trim", None)
_STATM: Final = Path("/proc/self/statm")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")

#: Bytes by which the process must have grown.
GROWN_MIN: Final = 32 << 20
#: A return stops all threads, so the next one comes after this many times as long.
PAUSE_FACTOR: Final = 20


class FreedMemory:
    """Returns the freed memory of one process.

    Args:
        resident: the bytes that the process has.
        clock: monotonic seconds.
        later: does something after a number of seconds, in another thread.
    """

    def __init__(
        self,
        *,
        resident: Callable[[], int] | None = None,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], None] | None = None,
    ) -> None:
        self._resident = resident or resident_bytes
        self._clock = clock
        self._later = later or _later
        self._lock = threading.Lock()
        #: What the process had after the last return.
        self._kept = self._resident()
        self._next_at = clock()
        #: Whether `_later` will call.
        self._is_due = False

    def give_back(self) -> None:
        """Return what is free, if the process has grown: now, or soon after the last time.

        Errors leave circles of references, which keep what a question was working on until the next
        collection; `spare_collections` makes these rare. Cost: a tenth of a second for all threads
        where the caches are full.
        """
        if self._resident() - self._kept < GROWN_MIN or not self._lock.acquire(blocking=False):
            return
        try:
            begun = self._clock()
            if begun >= self._next_at:
                self._return()
                self._next_at = (1 + PAUSE_FACTOR) * self._clock() - PAUSE_FACTOR * begun
            elif not self._is_due:
                self._is_due = True
                self._later(self._next_at - begun, self._give_back_due)
        finally:
            self._lock.release()

    def _give_back_due(self) -> None:
        self._is_due = False
        self.give_back()

    def _return(self) -> None:
        gc.collect()
        if _TRIM is not None:
            _TRIM(0)
        self._kept = self._resident()


def resident_bytes() -> int:
    """The memory of this process that is in use or kept; 0 where the system does not tell."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE
    except OSError:
        return 0


def _later(seconds: float, then: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, then)
    timer.daemon = True
    with suppress(RuntimeError):  # no thread can be started: the next question will do it
        timer.start()
