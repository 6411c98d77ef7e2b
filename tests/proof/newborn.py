# SPDX-License-Identifier: Apache-2.0
"""The responses of a new process, which has never seen the database before.

It is forked from one that has only imported berth (`tests.e2e.warm`).
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

from berth import config, deploy
from tests.client import Client
from tests.e2e.serving import PATIENCE, environment
from tests.e2e.warm import run_warm
from tests.proof.questions import Question
from tests.proof.wire import Raw


def fresh_answers(home: Path, conf: Path, questions: Sequence[Question]) -> list[Raw]:
    """Send requests to an application in a new process, on the database of a configuration."""
    asked, answered = home / "questions.pickle", home / "answers.pickle"
    asked.write_bytes(pickle.dumps(questions))
    done = run_warm(
        answer_all,
        [str(conf), str(asked), str(answered)],
        folder=home,
        variables=environment(home),
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    answers: list[Raw] = pickle.loads(answered.read_bytes())
    return answers


def answer_all(arguments: Sequence[str]) -> None:
    """In the new process: build the application, and answer everything.

    It does not recount usages, which would repair the faults to be found.
    """
    conf, asked, answered = map(Path, arguments)
    client = Client.of(deploy.load_application(config.load([str(conf)]), recount=False))
    answers = []
    for question in pickle.loads(asked.read_bytes()):
        answer = client.get(question.path, version=question.version)
        headers = {name.lower(): value for name, value in answer.headers.pairs}
        answers.append(Raw(answer.status, headers, answer.body))
    answered.write_bytes(pickle.dumps(answers))
