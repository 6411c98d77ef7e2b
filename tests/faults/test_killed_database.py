# SPDX-License-Identifier: Apache-2.0
"""The database server is killed under its clients, and comes back."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.engines import need
from tests.faults.conftest import Keep
from tests.faults.stage import reads, staged, wait_until_refused, writes
from tests.servers.server import Server


@pytest.mark.thorough
@pytest.mark.engines("postgresql", "mariadb")
def test_nothing_acknowledged_dies_with_the_database(
    engine: str, tmp_path: Path, keep: Keep
) -> None:
    """Killed and restarted at once; then for so long that every request is answered 503."""
    with durable(engine) as server, staged(tmp_path, server.create_database()) as stage:
        with stage.load():
            time.sleep(1)
            server.kill()
            stage.strike()
            server.start()
            stage.wait_until_back()
            time.sleep(1)
            server.kill()
            stage.strike()
            wait_until_refused(reads, stage.workers)
            wait_until_refused(writes, stage.workers)
            server.start()
            stage.wait_until_back()
            time.sleep(1)
        keep(stage.seconds_to_recover())
        stage.judge()
    assert stage.done.away, "nobody has noticed"


def durable(engine: str) -> Server:
    """A server of the test's own with durable commits."""
    need(engine)
    if engine == "postgresql":
        from tests.servers.postgresql import PostgreSQL

        return PostgreSQL(durable=True)
    from tests.servers.mariadb import MariaDB

    return MariaDB(durable=True)
