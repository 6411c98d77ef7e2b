# SPDX-License-Identifier: Apache-2.0
"""When to restart a worker that has exited, and when to give up.

This module only decides; times are arguments, and the parent of the workers acts on the decision.

A worker that has served is restarted at once, so that a kill costs its own requests only. One that
exits before it serves waits longer each time. While any worker serves, none is given up; the
service exits when none serves and each has failed permanently since it last served.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

#: Seconds before a worker that failed once is restarted; each further failure doubles them.
PAUSE_S_FIRST: Final = 0.5
PAUSE_S_MAX: Final = 30.0

#: A worker that exits sooner is restarted only after the first pause: one that serves and crashes
#: at once must not take the CPU from the others.
LASTING_S: Final = 5.0

#: Starts in a row that may end without a reason (a kill, a crash) before a worker has failed
#: permanently. A reason that the worker itself gives counts at once: it has retried already.
STARTS_MAX: Final = 5


class _Worker(Struct):
    begun: float
    #: None: it is running.
    due: float | None = None
    #: Exits in a row before it served.
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
        """Note that a worker was started."""
        worker = self._workers[number]
        worker.begun, worker.due = now, None

    def ended(self, number: int, *, had_served: bool, for_good: bool, now: float) -> float:
        """Note that a worker exited; return the seconds until its restart.

        Args:
            for_good: the worker reported that it cannot start.
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
        """The workers to start now."""
        return [
            number
            for number, worker in enumerate(self._workers)
            if worker.due is not None and worker.due <= now
        ]

    def pause(self, *, now: float) -> float | None:
        """Seconds until the next worker is due; None if all are running."""
        due = [worker.due for worker in self._workers if worker.due is not None]
        return max(0.0, min(due) - now) if due else None

    def is_hopeless(self, serving: set[int]) -> bool:
        """Whether restarting is useless: no worker serves, and none can.

        Args:
            serving: the workers that serve.
        """
        running = {number for number, worker in enumerate(self._workers) if worker.due is None}
        return not running & serving and all(worker.has_failed_for_good for worker in self._workers)
