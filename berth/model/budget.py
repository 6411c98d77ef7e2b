# SPDX-License-Identifier: Apache-2.0
"""What one question may spend: processor time and memory, and until when anyone waits for its
answer.

Some requests have more candidates than could ever be listed (16 groups over 64 devices), and for
some the first candidate takes longer to find than any client waits (packing amounts into bins). So
every loop under a question whose length depends on the request or the fleet spends its budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final, Literal, TypeVar

from berth.model.errors import SearchGaveUp

T = TypeVar("T")

#: Seconds since some moment, never running backwards.
Clock = Callable[[], float]

#: Whether the client has disconnected.
Gone = Callable[[], bool]

#: Seconds between two checks whether the client has disconnected; most searches end sooner.
CHECK_S: Final = 0.25


class Budget:
    """The limits of one question, checked at every step, and what it has done so far.

    A question is answered by the thread that made its budget: processor time is a thread's.

    Attributes:
        trees: how many trees it has filtered.
        candidates: how many candidates it has rendered.
    """

    def __init__(
        self,
        clock: Clock = lambda: 0.0,
        *,
        seconds: float = 0.0,
        processor: Clock | None = None,
        until: float = math.inf,
        answer_bytes_max: int = 0,
        bytes_max: int = 0,
        gone: Gone | None = None,
        asked_at: float = -math.inf,
    ) -> None:
        """A budget that begins now; 0 stands for no limit, and without `gone` the client stays.

        Args:
            clock: of waiting: no slower than `processor`. Without one there is no limit of time.
            processor: of the seconds that this thread works; None: `clock` too.
            until: the time of `clock` at which it ends, however little has been worked.
            answer_bytes_max: of the candidates in the answer.
            bytes_max: of all that is kept for the answer (`take`).
            asked_at: the time of `clock` at which the client certainly was there.
        """
        self.seconds = seconds
        self.trees = 0
        self.candidates = 0
        #: Why the search ended early; None if it has not.
        self.ended: Literal["time", "size", "memory", "gone"] | None = None
        self._clock = clock
        self._processor = processor
        self._until = until
        self._answer_bytes_max = answer_bytes_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._gone = gone
        #: What to do when this thread has worked until then, by the clock of the processor.
        self._then_at = math.inf
        self._then: Callable[[], None]
        now = clock()
        # PERF bench, flat: the processor's clock takes as long to read as a small search makes ten
        # steps, so it is read once, unless the search takes long.
        worked = now if processor is None else processor()
        self._began = now, worked
        #: When no seconds are left, by the clock of the processor.
        self._end = worked + seconds if seconds > 0 else math.inf
        #: When to check the limits next, by `clock`. A thread cannot work for longer than it waits:
        #: so no more than this clock, the faster to read, is read before.
        next_at = now + seconds if seconds > 0 else math.inf
        if gone is not None and asked_at + CHECK_S < next_at:
            next_at = asked_at + CHECK_S
        self._next = until if until < next_at else next_at

    def after(self, seconds: float, then: Callable[[], None]) -> None:
        """Do something once, in `is_spent`, when this many seconds were worked: it may wait, or
        raise an error. It takes the place of what was to be done before."""
        now, worked = self._began
        self._then_at, self._then = worked + seconds, then
        if now + seconds < self._next:
            self._next = now + seconds

    def part(self, seconds: float) -> Budget:
        """A budget of its own for a part of the answer, until the same end.

        Args:
            seconds: beside those of the whole.
        """
        part = Budget(
            self._clock,
            seconds=seconds,
            processor=self._processor,
            until=self._until,
            answer_bytes_max=self._answer_bytes_max,
            bytes_max=self._bytes_max and max(1, self._bytes_max - self._bytes),
            gone=self._gone,
        )
        if self._then_at < math.inf:
            part._then_at, part._then, part._next = self._then_at, self._then, self._clock()
        return part

    def seconds_left(self) -> float:
        """The seconds of work that are left; without a limit, infinity."""
        return self._end - self._worked(self._clock())

    def has_worked(self, seconds: float) -> bool:
        """Whether this thread has worked so long since the budget began."""
        now, (began, worked) = self._clock(), self._began
        return now - began >= seconds and self._worked(now) - worked >= seconds

    def spare_seconds(self) -> float:
        """For how long this thread may wait: it can spend all its seconds then, or, where others
        kept it from the processor or the database was slow, two thirds of the time are left."""
        left = self._until - self._clock()
        return max(left - self.seconds, left / 3)

    def is_spent(self) -> bool:
        """Whether to stop now; once true, always true."""
        if self.ended is None and (now := self._clock()) >= self._next:
            self._check(now)
        return self.ended is not None

    def check(self) -> None:
        """Go on, for what has no meaning in part.

        Raises:
            SearchGaveUp: the budget is spent.
        """
        if self.is_spent():
            raise SearchGaveUp(self.seconds)

    def within(self, items: Iterable[T]) -> Iterator[T]:
        """Some items, as far as they are made before `check` ends them."""
        with suppress(SearchGaveUp):
            yield from items

    def take(self, size: int) -> bool:
        """Keep some bytes, about; False if these are too many: then the budget is spent."""
        self._bytes += size
        if self.ended is None and 0 < self._bytes_max < self._bytes:
            self.ended = "memory"
        return self.ended is None

    def give_back(self, size: int) -> None:
        """Keep some bytes no longer."""
        self._bytes -= size

    def is_filled_by(self, answer_bytes: int) -> bool:
        """Whether to stop now because the candidates so far take `answer_bytes` bytes."""
        if self.ended is None and 0 < self._answer_bytes_max <= answer_bytes:
            self.ended = "size"
        return self.ended is not None

    def _worked(self, now: float) -> float:
        return now if self._processor is None else self._processor()

    def _check(self, now: float) -> None:
        # PERF bench, flat: this much at most, which is enough to know as long as it is little.
        worked = self._began[1] + now - self._began[0]
        if worked >= self._end or worked >= self._then_at:
            worked = self._worked(now)
            if worked >= self._then_at:
                self._then_at = math.inf
                self._then()
                now = self._clock()
                worked = self._worked(now)
        if worked >= self._end or now >= self._until:
            self.ended = "time"
        elif self._gone is not None and self._gone():
            self.ended = "gone"
        else:
            check_s = math.inf if self._gone is None else CHECK_S
            pause = min(self._end - worked, self._then_at - worked, check_s)
            self._next = min(self._until, now + pause)
