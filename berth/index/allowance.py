# SPDX-License-Identifier: Apache-2.0
"""One bound in bytes for all that searches remember about the shapes of one fleet."""

from __future__ import annotations

import threading
from typing import Final, Protocol
from weakref import WeakSet

#: What plans remember about shapes takes about so many bytes at most, in each process.
BYTES_MAX: Final = 64 << 20


class Memory(Protocol):
    """Remembers what can be found out again."""

    def forget(self) -> None:
        """Drop all of it."""


class Allowance:
    """Counts what the memories of one fleet take; when that is too much, all of them are emptied.

    It belongs to a fleet and ends with it. A memory that is gone counts until the next time that
    all are emptied.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._memories: WeakSet[Memory] = WeakSet()
        #: Searches run in several threads, and a set must not change while it is looked through.
        self._lock = threading.Lock()

    def add(self, memory: Memory) -> None:
        """Let a memory be emptied with the others."""
        with self._lock:
            self._memories.add(memory)

    def grow(self, size: int) -> bool:
        """Note that a memory is about to take so many bytes more; all are emptied first where that
        is too much for all together.

        Returns:
            False where even the empty memories have no room for it: it must not be kept.
        """
        if size > self._bytes_max:
            return False
        with self._lock:
            self._bytes += size
            if self._bytes > self._bytes_max:
                for memory in self._memories:
                    memory.forget()
                self._bytes = size
        return True
