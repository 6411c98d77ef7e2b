# SPDX-License-Identifier: Apache-2.0
"""The service and the plain model agree on every answer of every history.

`BERTH_SEED` repeats a run, `BERTH_EFFORT=10` goes through ten times as many histories. A failure is
shrunk, and told as a script of requests that can be sent to any server.
"""

from __future__ import annotations

import hypothesis
from hypothesis import HealthCheck
from hypothesis.stateful import run_state_machine_as_test

from berth.config import Settings
from berth.store.database import Database
from tests.candidates.seeds import SEED, worlds_to_draw
from tests.proof.model.reading import Reading
from tests.proof.model.server import emptied
from tests.proof.model.writing import Writing

#: Requests that a history makes, besides those that look at its state after each of them.
STEPS = 40


def test_the_service_does_as_the_plain_model_says(database: Database, settings: Settings) -> None:
    """Status, error code and body, request by request, at the microversions that differ."""

    @hypothesis.seed(SEED)
    class Histories(Writing, Reading):
        fresh_server = staticmethod(lambda: emptied(database, settings))

    run_state_machine_as_test(
        Histories,
        settings=hypothesis.settings(
            max_examples=worlds_to_draw(75),
            stateful_step_count=STEPS,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
