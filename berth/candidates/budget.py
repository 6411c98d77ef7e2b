# SPDX-License-Identifier: Apache-2.0
"""The limits of one search: time, by the caller's clock; the size of the answer; and whether the
client is still connected.

Some requests have more candidates than could ever be listed (16 groups over 64 devices), and for
some the first candidate takes longer to find than any client waits (packing amounts into bins).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Literal

#: Seconds since some moment, never running backwards.
Clock = Callable[[], float]

#: Whether the client has disconnected.
Gone = Callable[[], bool]

#: Seconds between two checks whether the client has disconnected; most searches end sooner.
CHECK_S: Final = 0.25


def no_clock() -> float:
    """The clock of searches without a time limit."""
    return 0.0


class Budget:
    """The limits of one search, checked at every step, and what it has done so far.

    Attributes:
        trees: how many trees it has filtered.
        candidates: how many candidates it has rendered.
    """

    def __init__(
        self,
        clock: Clock = no_clock,
        *,
        seconds: float = 0.0,
        answer_bytes_max: int = 0,
        gone: Gone | None = None,
    ) -> None:
        """A budget that begins now; 0 stands for no limit, and without `gone` the client stays."""
        self.seconds = seconds
        self.trees = 0
        self.candidates = 0
        #: Why the search ended early; None if it has not.
        self.ended: Literal["time", "size", "gone"] | None = None
        self._clock = clock
        self._gone = gone
        now = clock()
        self._end = now + seconds if seconds > 0 else math.inf
        #: When to check the time limit and the client next.
        self._next = now if gone else self._end
        self._answer_bytes_max = answer_bytes_max

    def is_spent(self) -> bool:
        """Whether to stop now; once true, always true."""
        if self.ended is None and (now := self._clock()) >= self._next:
            self._check(now)
        return self.ended is not None

    def _check(self, now: float) -> None:
        if now >= self._end:
            self.ended = "time"
        elif self._gone is not None and self._gone():
            self.ended = "gone"
        else:
            self._next = min(self._end, now + CHECK_S)

    def is_filled_by(self, answer_bytes: int) -> bool:
        """Whether to stop now because the candidates so far take `answer_bytes` bytes."""
        if self.ended is None and 0 < self._answer_bytes_max <= answer_bytes:
            self.ended = "size"
        return self.ended is not None
