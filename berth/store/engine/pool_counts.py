# SPDX-License-Identifier: Apache-2.0
"""Counts the pool's connections: how many are open, and how many of them in use.

Counted from SQLAlchemy's events: the pool's own numbers count empty slots as idle connections.
Dedicated connections have left the pool, and are not counted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, event


class PoolCounts:
    """The connections of one engine's pool.

    Args:
        tell: called with (open, in use) at each change, by the thread that makes the change.
    """

    def __init__(self, engine: Engine, tell: Callable[[int, int], None]) -> None:
        self.open = 0
        self.in_use = 0
        self._tell = tell
        # The garbage collector may return an abandoned connection in the middle of a change.
        self._lock = threading.RLock()
        for name, open_, in_use in (
            ("connect", 1, 0),
            ("checkout", 0, 1),
            ("checkin", 0, -1),
            ("close", -1, 0),
            ("detach", -1, -1),
        ):
            event.listen(engine, name, self._listener(open_, in_use))

    def forget(self) -> None:
        """In a forked child: reset the counts, which are the parent's."""
        self._lock = threading.RLock()
        self.open = self.in_use = 0

    def _listener(self, open_: int, in_use: int) -> Callable[..., None]:
        def change(*_: Any) -> None:
            with self._lock:
                self.open += open_
                self.in_use += in_use
                self._tell(self.open, self.in_use)

        return change
