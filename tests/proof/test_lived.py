# SPDX-License-Identifier: Apache-2.0
"""A worker that has run for long answers like a new process: caches never show.

BERTH_PROOF_WORLDS=200 BERTH_PROOF_SEED=7 python -m pytest tests/proof/test_lived.py -s
"""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from tests.e2e.serving import Service, serving
from tests.proof.names import World
from tests.proof.newborn import fresh_answers
from tests.proof.questions import differences, drawn, finds_something, told
from tests.proof.reach import connections_to_all_workers

if TYPE_CHECKING:
    from tests.proof.bounds import Bounds
    from tests.proof.conftest import Ground

#: Changes between two rounds of questions.
CHANGES: Final = 20
#: Questions that each worker is asked in the middle of a change, so that it remembers what comes in
#: between.
ASKED_BETWEEN: Final = 5


def test_a_service_that_has_lived_answers_as_one_that_was_just_started(
    ground: Ground, bounds: Bounds
) -> None:
    """Everything is deleted and created again under other names. Then both workers' responses to
    some hundred queries equal, byte for byte, those of a process that has never seen the
    database."""
    print(f"seed {bounds.seed}")
    conf = str(ground.conf)
    with serving(ground.home, "--config-file", conf, "--workers", "2") as service:
        life = Life(ground, service, random.Random(bounds.seed))
        for _ in range(bounds.worlds):
            life.make_anew()
            assert not (wrong := life.differences()), f"seed {bounds.seed}\n{wrong}"
            life.change()
            assert not (wrong := life.differences()), f"seed {bounds.seed}\n{wrong}"
    print(f"{life.answers.total()} answers, {life.answers[True]} with something in them")
    assert life.answers[True] > life.answers.total() / 3


class Life:
    """A service whose world is deleted and created again, and the queries to it."""

    def __init__(self, ground: Ground, service: Service, rng: random.Random) -> None:
        self._ground = ground
        self._rng = rng
        self._workers = connections_to_all_workers(service)
        assert len(self._workers) == 2
        self._world = World(rng, self._workers)
        self._questions = drawn(rng)
        #: Whether there was something in an answer -> of how many that is so.
        self.answers: Counter[bool] = Counter()

    def make_anew(self) -> None:
        """Create the same world with other names."""
        self._world.take_down()
        self._ask_some()
        self._world.make()

    def change(self) -> None:
        """Change some objects."""
        for _ in range(CHANGES):
            self._world.change()
            self._ask_some()

    def differences(self) -> str:
        """The responses of either worker that differ from those of a new process."""
        since, questions = time.time(), self._questions
        lived = [
            [
                told(each, worker.ask_raw("GET", each.path, version=each.version), since)
                for each in questions
            ]
            for worker in self._workers
        ]
        every = {
            *questions,
            *(each.without_limit() for each in questions if each.is_limited),
        }
        asked = sorted(every)
        answers = fresh_answers(self._ground.home, self._ground.conf, asked)
        fresh = {
            each: told(each, answer, since) for each, answer in zip(asked, answers, strict=True)
        }
        self.answers.update(finds_something(fresh[each]) for each in questions)
        return "\n".join(wrong for one in lived for wrong in differences(questions, one, fresh))

    def _ask_some(self) -> None:
        for question in self._rng.sample(self._questions, ASKED_BETWEEN):
            for worker in self._workers:
                worker.ask_raw("GET", question.path, version=question.version)
