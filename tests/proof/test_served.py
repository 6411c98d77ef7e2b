# SPDX-License-Identifier: Apache-2.0
"""Workers of several services answer as the plain model does, and as a process that was just
started.

Each request goes to any worker, so a read that begins after a write was acknowledged shows it,
whoever took the write. One history follows the other on the same services: everything is deleted
and created again under other names, and no cache shows.

    BERTH_PROOF_WORLDS=200 BERTH_SEED=7 python -m pytest tests/proof/test_served.py -s
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from berth import config
from compare.script.step import Step
from tests.client import Headers, Response
from tests.e2e.serving import serving
from tests.effort import SEED
from tests.fresh import opened_at
from tests.proof.model.in_process import always_new
from tests.proof.model.judge import Judge, Send, play_history
from tests.proof.reach import connections_to_all_workers
from tests.proof.test_workers import own_folder
from tests.proof.wire import Connection

if TYPE_CHECKING:
    from tests.proof.bounds import Bounds
    from tests.proof.conftest import Ground

SERVICES: Final = 2

#: Requests of a history, besides those that look at its state after each of them.
STEPS: Final = 60


def test_every_worker_answers_as_the_plain_model_and_a_new_process(
    ground: Ground, bounds: Bounds
) -> None:
    """Two services of two workers each."""
    with ExitStack() as stack:
        reached = [
            connection
            for conf in places(ground)
            for connection in connections_to_all_workers(
                stack.enter_context(
                    serving(own_folder(conf), "--config-file", str(conf), "--workers", "2")
                )
            )
        ]
        database = opened_at(ground.database_url)
        stack.callback(database.dispose)
        fresh = always_new(config.read_settings(config.load([str(ground.conf)])), database)
        judge = Judge(
            [sender(connection) for connection in reached],
            fresh,
            keeps_times=ground.engine not in ("mariadb", "galera"),
        )
        for number in range(bounds.worlds):
            play_history(lambda: judge, f"{SEED}.{number}", STEPS, shrinks=False)
    print(f"{judge.count} answers of {len(reached)} workers")


def sender(connection: Connection) -> Send:
    """Sends requests over a connection."""

    def send(step: Step) -> Response:
        assert step.version is not None
        raw = connection.ask_raw(step.method, step.path, step.body, version=step.version)
        return Response(raw.status, Headers(raw.headers.items()), raw.body)

    return send


def places(ground: Ground) -> list[Path]:
    """A configuration for each service; in a cluster each is at a node of its own."""
    twin = ground.conf.with_stem("placement-twin")
    twin.write_text(ground.conf.read_text())
    return [*ground.confs, twin][:SERVICES]
