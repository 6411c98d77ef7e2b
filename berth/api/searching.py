# SPDX-License-Identifier: Apache-2.0
"""Each search of the fleet has a budget, and a place among those that may run at once."""

from __future__ import annotations

import math
from time import monotonic, thread_time
from typing import Final, NoReturn

from berth.api.environ import ARRIVED, CLIENT_GONE, PLACE, WORKED_LONG
from berth.api.errors import overloaded
from berth.api.request import Request, Services
from berth.model.bounds import QUESTION_BYTES_MAX
from berth.model.budget import Budget

#: When a question ends, counted from its arrival, in budgets: so much is left of twice its budget
#: for what comes after the search.
END_FACTOR: Final = 1.5
#: Seconds of work for which most searches need less.
QUICK_S: Final = 0.01
#: Seconds of work after which it is worth some milliseconds to return freed memory.
LONG_S: Final = 0.25


def budget_of(services: Services, request: Request, seconds: float = math.inf) -> Budget:
    """The budget of a question: the operator's, or some seconds of work if these are less.

    It ends, at the latest, some time after the request arrived in its queue.
    """
    seconds = seconds_within(services.search.time_budget_s, seconds)
    arrived: float = request.env.get(ARRIVED) or monotonic()
    return Budget(
        monotonic,
        seconds=seconds,
        processor=thread_time,
        until=arrived + END_FACTOR * seconds if seconds > 0 else math.inf,
        answer_bytes_max=services.search.answer_bytes_max,
        bytes_max=QUESTION_BYTES_MAX,
        gone=request.env.get(CLIENT_GONE),
        asked_at=arrived,
    )


def seconds_within(most: float, seconds: float) -> float:
    """Some seconds, or the operator's budget if that is less; 0 for no bound."""
    if most > 0:
        return seconds if seconds < most else most
    return 0.0 if seconds == math.inf else seconds


def wait_seconds_max(most: float, seconds: float) -> float:
    """Seconds that a question may wait in a queue so that it can still spend its budget."""
    return (END_FACTOR - 1) * (seconds_within(most, seconds) or math.inf)


class Searching:
    """The place of a question among the searches, for a `with` block: it waits for one, as long as
    the budget could still be spent then.

    A search that takes longer than most waits once more, for one of fewer places: so those that
    are answered at once do not wait for those that take seconds.

    PERF bench, flat: every search makes one, so it is its own context manager.

    Raises:
        Refused: 503 if there is no place; in the block too, wherever the budget is looked at.
    """

    __slots__ = ("_before", "_budget", "_is_held", "_is_long", "_is_over", "_request", "_services")

    def __init__(self, services: Services, request: Request, budget: Budget) -> None:
        self._services = services
        self._request = request
        self._budget = budget
        self._is_long = self._is_over = False
        self._before = budget.trees, budget.candidates

    def __enter__(self) -> None:
        budget = self._budget
        self._is_held = self._services.searching.enter(budget.spare_seconds)
        if not self._is_held:
            self._refuse()
        budget.after(QUICK_S, self._go_on)

    def __exit__(self, *exception: object) -> None:
        budget = self._budget
        self._is_over = True
        if self._is_held:
            self._services.searching.leave(is_long=self._is_long)
        if self._is_long and (not self._is_held or budget.has_worked(LONG_S)):
            self._request.env[WORKED_LONG] = True
        self._services.observer.searched(
            trees=budget.trees - self._before[0],
            candidates=budget.candidates - self._before[1],
            ended=budget.ended,
        )

    def _go_on(self) -> None:
        """Wait for one of those that take long."""
        if self._is_long or self._is_over:
            return
        self._is_long = True
        if (admitted := self._request.env.get(PLACE)) is not None:
            # Others may come meanwhile.
            admitted.leave()
        line = self._services.searching
        self._is_held = line.go_on(within=self._budget.spare_seconds())
        if not self._is_held:
            self._refuse()

    def _refuse(self) -> NoReturn:
        # Whoever is refused may be the last, when the memory of the others is free.
        self._request.env[WORKED_LONG] = True
        self._services.observer.search_refused()
        raise overloaded()
