# SPDX-License-Identifier: Apache-2.0
"""No question works on for long without looking whether its budget is spent.

The questions are drawn from the whole grammar, on a fleet in which no two hosts are alike, and
those that work longest between two looks are changed to find worse ones (`bench.costliest`). Work
is counted in calls of functions; the clock runs out after some looks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

import pytest

from bench.costliest import GENES, ROUTES, Grammar, Question, search
from bench.unlike import Service, fill
from berth.api import request as searching
from tests.effort import SEED, repeat_with, scaled

HOSTS = 8
LOOKS = 150

#: Calls between two looks, before the first and after the last, on eight hosts; and one more for
#: each byte of the body, which is read, and of which much comes back.
STEPS_MAX = 100_000
#: Each of up to a hundred requests is planned, to bound what fits at most.
STEPS_OF_CAPACITY_MAX = 600_000


class Watch:
    """Counts the calls of a thread, and those between two looks at its clock.

    The clock advances by one part in `LOOKS` of a budget at each look.
    """

    def __init__(self) -> None:
        self.looks = self.steps = self.longest = self._last = 0
        self._place = self.where = ""

    def look(self) -> float:
        """The time."""
        self.looks += 1
        self.note()
        return self.time()

    def time(self) -> float:
        """The same, without a look."""
        return 5.0 * self.looks / LOOKS

    def note(self) -> None:
        """The work since the last look ends here."""
        before, self._place = self._place, _place()
        if self.steps - self._last > self.longest:
            self.longest = self.steps - self._last
            self.where = f"between {before} and {self._place}"
        self._last = self.steps

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count."""

        def count(_frame: object, event: str, _argument: object) -> None:
            self.steps += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.note()


def _place() -> str:
    """Where a look comes from."""
    frame, names = sys._getframe(3), list[str]()
    while frame.f_back is not None and len(names) < 6:
        names.append(f"{frame.f_code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(names) or "the end"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """A service of a few hosts, none like another."""
    made = Service(tmp_path_factory.mktemp("unlike"))
    fill(made, HOSTS)
    # The first question imports and compiles what all share.
    for route in ROUTES:
        made.ask(*Grammar(HOSTS).question(route, dict.fromkeys(GENES, 0)))
    return made


@pytest.fixture
def ask(service: Service, monkeypatch: pytest.MonkeyPatch) -> Callable[[Question], Watch]:
    """Asks a question, and watches its work."""

    def asking(question: Question) -> Watch:
        watch = Watch()
        monkeypatch.setattr(searching, "monotonic", watch.look)
        monkeypatch.setattr(searching, "thread_time", watch.time)
        with watch.counting():
            answer = service.ask(*question)
        assert answer.status in (200, 201, 400, 409, 503), (question.shown, answer.body)
        return watch

    return asking


@pytest.mark.parametrize("route", ROUTES)
def test_every_question_looks_at_its_budget(ask: Callable[[Question], Watch], route: str) -> None:
    """Between two looks there is a bounded number of steps, and after the last one too, so whatever
    is asked ends soon after its budget."""
    places: dict[str, str] = {}

    def steps(question: Question) -> float:
        watch = ask(question)
        places[question.shown] = watch.where
        return watch.longest - len(question.shown)

    rng = Random(f"{SEED} {route}")
    best = search(route, Grammar(HOSTS), steps, rng, rounds=scaled(12))[0]
    most = STEPS_OF_CAPACITY_MAX if route == "capacity" else STEPS_MAX
    shown = best.question.shown
    assert best.cost <= most, f"{places[shown]}: {shown}; {repeat_with()}"
