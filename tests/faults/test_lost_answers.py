# SPDX-License-Identifier: Apache-2.0
"""The connection to the database breaks around a COMMIT, again and again: before the server gets
it, before it answers, or before the client gets the answer.

The outcome of the commit can be looked up afterwards, so every client gets it, and none gets 503.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.conftest import Keep
from tests.faults.stage import staged
from tests.servers.proxy import Fault, proxied, sends
from tests.servers.server import Databases

#: In each of them a connection is lost, or two at once: then it may be that of whoever asks what
#: became of the first. After three lost connections a client would be told to come back.
_ROUNDS = 20

#: Seconds between two of them at most.
_PAUSE_S_MAX = 0.2

#: Seconds in which every write that was struck has been done.
_CALM_S = 0.5


@pytest.mark.thorough
@pytest.mark.engines("postgresql", "mariadb")
def test_a_commit_without_an_answer_is_found_out_about(
    databases: Databases, database_url: str, tmp_path: Path, keep: Keep
) -> None:
    """The client gets the true outcome, as if nothing had happened."""
    with (
        proxied(database_url) as proxy,
        staged(tmp_path, database_url, proxy.url(database_url)) as stage,
    ):
        rng = random.Random(stage.seed)
        ways = (proxy.lose_request, proxy.lose_answer, proxy.deliver_late)
        with stage.load(may_be_away=False):
            for _ in range(_ROUNDS):
                # A write is tried three times: what this round strikes twice, the next one may not
                # strike once more.
                faults = rng.choice((1, 1, 2))
                time.sleep(rng.uniform(0, _PAUSE_S_MAX) if faults == 1 else _CALM_S)
                for _ in range(faults):
                    lose: Callable[..., Fault] = rng.choice(ways)
                    lose(sends(b"COMMIT")).wait()
                stage.strike()
                stage.wait_until_back()
                time.sleep(_CALM_S if faults > 1 else 0)
            time.sleep(1)
        keep(stage.seconds_to_recover())
        stage.judge()


@pytest.mark.thorough
@pytest.mark.engines("mariadb")
def test_a_commit_whose_answer_never_comes_is_found_out_about(
    database_url: str, tmp_path: Path, keep: Keep
) -> None:
    """A silent server is given up, and asked over a new connection.

    What waits meanwhile may be more than can be served.
    """
    with (
        proxied(database_url) as proxy,
        staged(tmp_path, database_url, f"{proxy.url(database_url)}?read_timeout=2") as stage,
    ):
        with stage.load():
            for _ in range(3):
                time.sleep(0.5)
                proxy.silence(sends(b"COMMIT")).wait()
                stage.strike()
                stage.wait_until_back()
            time.sleep(1)
        keep(stage.seconds_to_recover())
        stage.judge()
