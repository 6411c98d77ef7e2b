# SPDX-License-Identifier: Apache-2.0
"""How much one search may cost: time, by a clock that its caller brings, and memory; and whether
anybody still waits for what it finds.

There are requests with more candidates than atoms in the sea (16 groups over 64 devices), and such
whose first candidate takes longer to find than anybody waits (packing amounts into bins).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Literal

#: Seconds since some moment, never running backwards.
Clock = Callable[[], float]

#: Whether nobody waits for the answer any more.
Gone = Callable[[], bool]

#: Seconds between two looks whether the client is still there: nobody looks for most searches.
LOOK_S: Final = 0.25


def no_clock() -> float:
    """The clock of searches that have all the time in the world."""
    return 0.0


class Budget:
    """What one search has left, and what it has done; asked at every step, for no step takes long.

    Attributes:
        trees: how many it has looked at.
        candidates: how many it has given.
    """

    def __init__(
        self,
        clock: Clock = no_clock,
        *,
        seconds: float = 0.0,
        answer_bytes_max: int = 0,
        gone: Gone | None = None,
    ) -> None:
        """A budget that begins now; 0 stands for no bound, and without `gone` the client stays."""
        self.seconds = seconds
        self.trees = 0
        self.candidates = 0
        #: Why the search ended before all was found that was asked for; None if it did not.
        self.ended: Literal["time", "size", "gone"] | None = None
        self._clock = clock
        self._gone = gone
        now = clock()
        self._end = now + seconds if seconds > 0 else math.inf
        #: When there is something to be found out, next.
        self._next = now if gone else self._end
        self._answer_bytes_max = answer_bytes_max

    def is_spent(self) -> bool:
        """Whether to stop now, with what there is; once true, always true."""
        if self.ended is None and (now := self._clock()) >= self._next:
            self._look(now)
        return self.ended is not None

    def _look(self, now: float) -> None:
        if now >= self._end:
            self.ended = "time"
        elif self._gone is not None and self._gone():
            self.ended = "gone"
        else:
            self._next = min(self._end, now + LOOK_S)

    def is_filled_by(self, answer_bytes: int) -> bool:
        """Whether to stop now because the candidates found so far need so much room."""
        if self.ended is None and 0 < self._answer_bytes_max <= answer_bytes:
            self.ended = "size"
        return self.ended is not None
