# SPDX-License-Identifier: Apache-2.0
"""When a worker that has ended is started again, and when there is no use in that any more.

Decides only: times come in as arguments, and the parent of the workers does what it is told.

A worker that has served is started again at once, so that a kill costs its own requests only. One
that ends before it serves waits longer each time. As long as another serves, no worker is given up;
the service ends when none serves and each has failed for good since it last served.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Seconds before a worker is started again that has failed once; each failure more doubles them.
PAUSE_S_FIRST: Final = 0.5
PAUSE_S_MAX: Final = 30.0

#: Seconds that a worker has to last, or it is started again after the first pause only: one that
#: serves and falls at once must not take the processor from the others.
LASTING_S: Final = 5.0

#: Starts in a row that may end without a reason given (a kill, a crash) before a worker has failed
#: for good. A reason that the worker gives itself counts at once: it has tried for long enough.
STARTS_MAX: Final = 5


@dataclass(slots=True)
class _Worker:
    begun: float
    #: None: it is running.
    due: float | None = None
    #: Ends before it served, in a row.
    failures: int = 0
    has_failed_for_good: bool = False


class Revival:
    """The workers of a service, by their numbers from 0.

    Args:
        now: monotonic seconds at which all were started.
    """

    def __init__(self, workers: int, *, now: float) -> None:
        self._workers = [_Worker(now) for _ in range(workers)]

    def begun(self, number: int, *, now: float) -> None:
        """A worker has been started."""
        worker = self._workers[number]
        worker.begun, worker.due = now, None

    def ended(self, number: int, *, had_served: bool, for_good: bool, now: float) -> float:
        """A worker has ended by itself; the seconds after which it is due to be started again.

        Args:
            for_good: it has said why it cannot start.
        """
        worker = self._workers[number]
        if had_served:
            worker.failures, worker.has_failed_for_good = 0, False
            pause = 0.0 if now - worker.begun >= LASTING_S else PAUSE_S_FIRST
        else:
            worker.failures += 1
            worker.has_failed_for_good |= for_good or worker.failures >= STARTS_MAX
            pause = min(PAUSE_S_MAX, PAUSE_S_FIRST * 2.0 ** min(worker.failures - 1, 16))
        worker.due = now + pause
        return pause

    def due(self, *, now: float) -> list[int]:
        """The workers that are to be started now."""
        return [
            number
            for number, worker in enumerate(self._workers)
            if worker.due is not None and worker.due <= now
        ]

    def pause(self, *, now: float) -> float | None:
        """Seconds until some worker is due; None where all are running."""
        due = [worker.due for worker in self._workers if worker.due is not None]
        return max(0.0, min(due) - now) if due else None

    def is_hopeless(self, serving: set[int]) -> bool:
        """Whether there is no use in starting workers: none serves, and none can.

        Args:
            serving: the workers that serve.
        """
        running = {number for number, one in enumerate(self._workers) if one.due is None}
        return not running & serving and all(one.has_failed_for_good for one in self._workers)
