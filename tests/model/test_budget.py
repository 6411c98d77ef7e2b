# SPDX-License-Identifier: Apache-2.0
"""A budget has two clocks: one for the processor, one for whoever waits."""

from __future__ import annotations

import math

import pytest

from berth.model.budget import Budget
from berth.model.errors import SearchGaveUp


class Clocks:
    """Two clocks that a test sets, and how often the processor's was read."""

    def __init__(self) -> None:
        self.waited = self.worked = 0.0
        self.read = 0

    def budget(self, seconds: float, until: float = math.inf) -> Budget:
        """A budget by these clocks."""
        return Budget(lambda: self.waited, seconds=seconds, processor=self._worked, until=until)

    def _worked(self) -> float:
        self.read += 1
        return self.worked


def test_only_work_is_counted_and_no_one_waits_longer_than_until_the_end() -> None:
    """A thread that waits for its turn spends nothing of its seconds. However little has been
    worked, it ends; and what has no meaning in part is an error."""
    clocks = Clocks()
    budget = clocks.budget(5.0)
    clocks.waited, clocks.worked = 9.0, 4.9
    assert not budget.is_spent()
    clocks.waited, clocks.worked = 9.2, 5.0
    assert budget.is_spent()
    assert budget.ended == "time"
    clocks = Clocks()
    budget = clocks.budget(5.0, until=8.0)
    clocks.waited, clocks.worked = 7.9, 0.1
    budget.check()
    clocks.waited = 8.0
    with pytest.raises(SearchGaveUp):
        budget.check()


def test_the_processor_is_read_only_if_its_seconds_could_be_spent() -> None:
    """Its clock is the slower to read: a question that ends early reads it once. What was worked is
    known without a limit too, so that memory is returned after long questions."""
    clocks = Clocks()
    budget = clocks.budget(5.0)
    for tenth in range(1, 50):
        clocks.waited = clocks.worked = tenth / 10
        assert not budget.is_spent()
    assert clocks.read == 1
    clocks = Clocks()
    budget = clocks.budget(0.0)
    clocks.waited = 0.2
    assert not budget.has_worked(0.25)
    assert clocks.read == 1
    clocks.waited, clocks.worked = 3.0, 0.2
    assert not budget.has_worked(0.25)
    clocks.worked = 0.25
    assert budget.has_worked(0.25)


def test_a_question_may_wait_while_all_its_seconds_are_left() -> None:
    """After that, for a third of the time: it may need little of its seconds, and what it waited
    for may have been the database."""
    clocks = Clocks()
    budget = clocks.budget(5.0, until=7.5)
    for waited, spare in ((0.0, 2.5), (4.5, 1.0), (7.5, 0.0)):
        clocks.waited = waited
        assert budget.spare_seconds() == spare
    assert clocks.budget(0.0).spare_seconds() == math.inf


def test_a_part_has_seconds_of_its_own_and_the_same_end() -> None:
    """An explanation in an answer has a second, even if the search before it took its five."""
    clocks = Clocks()
    whole = clocks.budget(5.0, until=8.0)
    clocks.waited = clocks.worked = 5.0
    part = whole.part(1.0)
    assert whole.is_spent() and not part.is_spent()
    clocks.waited = clocks.worked = 6.0
    assert part.is_spent()
    clocks.waited, late = 7.9, whole.part(1.0)
    assert not late.is_spent()
    clocks.waited = 8.0
    assert late.is_spent()


def test_who_works_for_long_does_something_once() -> None:
    """Waiting does not count, and what it does may wait; a part of a question goes on from the
    whole."""
    clocks = Clocks()
    done: list[str] = []
    budget = clocks.budget(5.0)
    budget.after(1.0, lambda: done.append("whole"))
    clocks.waited, clocks.worked = 3.0, 0.9
    assert not budget.is_spent()
    part = budget.part(1.0)
    part.after(0.2, lambda: done.append("part"))
    assert done == []
    clocks.waited, clocks.worked = 3.2, 1.1
    assert not budget.is_spent() and not part.is_spent()
    assert done == ["whole", "part"]
    clocks.waited, clocks.worked = 7.0, 4.9
    assert not budget.is_spent()
    assert done == ["whole", "part"]


def test_what_is_kept_for_an_answer_is_bounded() -> None:
    """What was given back does not count; too much ends the question. A part of what is full has no
    room: nothing left is not the same as no limit."""
    budget = Budget(bytes_max=100)
    assert budget.take(60)
    budget.give_back(50)
    assert budget.take(90)
    assert not budget.part(1.0).take(2)
    assert not budget.take(1)
    assert budget.is_spent()
    assert budget.ended == "memory"
    assert Budget().take(10**12)
