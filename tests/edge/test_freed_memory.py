# SPDX-License-Identifier: Apache-2.0
"""Freed memory goes back to the system, but seldom: each return stops all threads."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

from berth.edge.freed_memory import GROWN_MIN, PAUSE_FACTOR, FreedMemory, resident_bytes


class Circle:
    """An object that keeps itself."""

    def __init__(self) -> None:
        self.itself = self


class Process:
    """A process whose memory and time a test sets; each return takes a second."""

    def __init__(self) -> None:
        self.resident = 100 << 20
        self.now = 0.0
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.freed = FreedMemory(
            resident=lambda: self.resident, clock=self._clock, later=lambda *due: self._note(due)
        )

    def _note(self, due: tuple[float, Callable[[], None]]) -> None:
        self.later.append(due)

    def _clock(self) -> float:
        return self.now

    def finish(self, grown: int) -> bool:
        """A long question ends; whether memory was returned."""
        self.resident += grown
        circle = weakref.ref(Circle())
        gc.disable()
        try:
            self.freed.give_back()
        finally:
            gc.enable()
        return circle() is None


def test_what_a_large_question_leaves_is_returned() -> None:
    """Even if its objects keep one another."""
    assert Process().finish(grown=GROWN_MIN)


def test_nothing_is_done_after_a_question_that_left_little() -> None:
    """Most long questions need processor time, and no memory."""
    process = Process()
    assert not process.finish(grown=GROWN_MIN - 1)
    assert not process.finish(grown=0)
    assert process.finish(grown=1)


def test_many_questions_that_end_together_stop_the_threads_once() -> None:
    """What those after the first leave is returned soon afterwards."""
    process = Process()
    process.freed._next_at = 5.0
    assert not process.finish(grown=GROWN_MIN)
    assert not process.finish(grown=GROWN_MIN)
    ((seconds, then),) = process.later
    assert seconds == 5.0
    process.now = 5.0
    circle = weakref.ref(Circle())
    then()
    assert circle() is None
    assert process.later == [(seconds, then)]


def test_a_return_that_took_long_is_not_repeated_soon() -> None:
    """It takes a twentieth of the time at most."""
    process = Process()

    def slow() -> int:
        process.now += 1.0
        return process.resident

    process.freed._resident = slow
    process.resident += GROWN_MIN
    process.freed.give_back()
    process.resident += GROWN_MIN
    process.freed.give_back()
    ((seconds, _),) = process.later
    assert PAUSE_FACTOR - 2 < seconds <= PAUSE_FACTOR


def test_a_process_knows_its_memory() -> None:
    """As the system tells it, where it does."""
    assert resident_bytes() > 1 << 20
