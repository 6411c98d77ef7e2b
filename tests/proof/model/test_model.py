# SPDX-License-Identifier: Apache-2.0
"""Two workers and the plain model agree on every response of every history, and the indexes of both
on the database.

`BERTH_SEED` repeats a run, `BERTH_EFFORT=10` plays ten times as many histories. A failure is
shrunk, and shown as a script of requests that can be sent to any server.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from berth.config import Settings
from tests.effort import SEED, scaled
from tests.fresh import Fresh
from tests.proof.model.in_process import workers_at
from tests.proof.model.judge import play_history
from tests.proof.model.plain_model import PlainModel

#: Requests of a history, besides those that look at its state after each of them.
STEPS = 150

#: With a planted fault nobody reads the shortest history.
IS_PLANTED = "BERTH_PLANTED" in os.environ


@pytest.mark.parametrize("is_tight", [False, True], ids=["usual", "tight"])
def test_two_workers_do_as_the_plain_model_says(
    engine: str, fresh: Fresh, settings: Settings, tmp_path: Path, is_tight: bool
) -> None:
    """Status, error code and body of every request, at the microversions that differ."""
    with workers_at([fresh(tmp_path)] * 2, settings, is_tight=is_tight) as workers:
        for number in range(scaled(6 if engine == "sqlite" else 1)):
            play_history(workers.judge, f"{SEED}.{number}", STEPS, shrinks=not IS_PLANTED)


def test_a_failure_is_told_as_a_script(prepared: Path, settings: Settings, tmp_path: Path) -> None:
    """The model forgets inventories: the failure shows the requests that matter."""

    class Forgetful(PlainModel):
        def replace_inventories(self, *_: object) -> None:
            pass

    with (
        workers_at([f"sqlite:///{shutil.copy(prepared, tmp_path)}"] * 2, settings) as workers,
        pytest.raises(pytest.fail.Exception, match="the model says") as failure,
    ):
        play_history(lambda: workers.judge(Forgetful), "1.1", 60)
    script = [line for line in str(failure.value).splitlines() if line.startswith("api ")]
    assert len(script) == 2
    assert re.match(r"api 1.\d+ POST /resource_providers '{.*}'", script[0])
    assert re.match(r"api 1.\d+ PUT /resource_providers/\S+/inventories '{.*}'", script[1])
