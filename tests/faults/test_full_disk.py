# SPDX-License-Identifier: Apache-2.0
"""The database's disk is full: writes are refused until there is space, and reads continue."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from berth.store.engine.driver_errors import FULL
from tests.e2e.serving import wait_until
from tests.engines import need
from tests.faults.conftest import Keep
from tests.faults.stage import reads, staged, wait_until_refused, writes
from tests.proof.wire import Connection
from tests.servers.small_disk import fill, small_disk, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

#: Enough for an empty database, and to serve from it.
_MIB: Final = {"sqlite": 96, "postgresql": 96, "mariadb": 192}

#: Reads asked of each worker while there is no room.
_READS = 20


@pytest.mark.thorough
@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_writes_wait_for_room_and_reads_go_on(engine: str, tmp_path: Path, keep: Keep) -> None:
    """Nothing is restarted, neither when the disk is full nor when it has space again."""
    with (
        small_disk(_MIB[engine]) as disk,
        database_on(disk, engine) as url,
        staged(tmp_path, url) as stage,
    ):
        with stage.load():
            time.sleep(1)
            ballast = fill(disk)
            wait_until_refused(writes, stage.workers)
            for worker in stage.workers * _READS:
                assert reads(worker), "a read was refused"
            for worker in stage.workers:
                wait_until(lambda: health(worker) == FULL, "health to see the disk")  # noqa: B023
            time.sleep(1)
            ballast.unlink()
            stage.strike()
            stage.wait_until_back()
            time.sleep(1)
        keep(stage.seconds_to_recover())
        for worker in stage.workers:
            wait_until(lambda: health(worker) is None, "the worker to be ready")  # noqa: B023
        stage.judge()


def health(worker: Connection) -> str | None:
    """Why a worker is not ready; None if it is."""
    answer = worker.ask("GET", "/readyz")
    assert answer.status == (200 if answer.body["status"] == "ok" else 503)
    reason: str | None = answer.body.get("reason")
    return reason


@contextmanager
def database_on(disk: Path, engine: str) -> Iterator[str]:
    """The URL of a database with its data on a disk.

    PostgreSQL's log is elsewhere, as in large installations: if it cannot write that, it exits,
    which is another test.
    """
    need(engine)
    if engine == "sqlite":
        yield f"sqlite:///{disk}/berth.db"
        return
    if engine == "mariadb":
        from tests.servers.mariadb import MariaDB

        with MariaDB(data=disk / "data") as mariadb:
            yield mariadb.create_database()
        return
    from tests.servers.postgresql import PostgreSQL

    with PostgreSQL(data=disk / "data", has_log_apart=True) as server:
        yield server.create_database()
