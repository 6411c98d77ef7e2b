# SPDX-License-Identifier: Apache-2.0
"""The database's disk is full: writes are refused until there is space, and reads continue."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from berth.store.engine.dialect import FULL
from tests.e2e.serving import wait_until
from tests.engines import need
from tests.faults.conftest import Keep
from tests.faults.stage import reads, staged, wait_until_refused, writes
from tests.proof.wire import Connection
from tests.servers.server import Server
from tests.servers.small_disk import fill, small_disk, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

#: Enough for an empty database, and to serve from it.
_MIB: Final = {"sqlite": 96, "postgresql": 96, "mariadb": 192}

#: What MariaDB says when a rollback needs a page, finds no room for it, and MariaDB aborts: with
#: tables of less than a megabyte, the more often the slower the machine is.
_ENDS_ITSELF: Final = "(Out of disk space) in rollback"

#: Reads asked of each worker while there is no room.
_READS = 20


@pytest.mark.thorough
@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_writes_wait_for_room_and_reads_go_on(engine: str, tmp_path: Path, keep: Keep) -> None:
    """Nothing is restarted, neither when the disk is full nor when it has space again; but for a
    MariaDB that ends itself, which is started again."""
    with (
        small_disk(_MIB[engine]) as disk,
        database_on(disk, engine) as (url, server),
        staged(tmp_path, url) as stage,
    ):
        with stage.load():
            time.sleep(1)
            ballast = fill(disk)
            wait_until_refused(writes, stage.workers)
            for worker in stage.workers * _READS:
                if not reads(worker):
                    wait_until(lambda: has_ended(server), "the read to be answered")
            for worker in stage.workers:
                wait_until(
                    lambda: health(worker) == FULL or has_ended(server),  # noqa: B023
                    "health to see the disk",
                )
            time.sleep(1)
            ballast.unlink()
            if server is not None and has_ended(server):
                assert _ENDS_ITSELF in server.log.read_text(errors="replace")
                server.kill()
                server.start()
            stage.strike()
            stage.wait_until_back()
            time.sleep(1)
        keep(stage.seconds_to_recover())
        for worker in stage.workers:
            wait_until(lambda: health(worker) is None, "the worker to be ready")  # noqa: B023
        stage.judge()


def has_ended(server: Server | None) -> bool:
    """Whether a database server has ended by itself."""
    return server is not None and not server.is_running()


def health(worker: Connection) -> str | None:
    """Why a worker is not ready; None if it is."""
    answer = worker.ask("GET", "/readyz")
    assert answer.status == (200 if answer.body["status"] == "ok" else 503)
    reason: str | None = answer.body.get("reason")
    return reason


@contextmanager
def database_on(disk: Path, engine: str) -> Iterator[tuple[str, Server | None]]:
    """The URL of a database with its data on a disk, and its server.

    PostgreSQL's log is elsewhere, as in large installations: if it cannot write that, it exits,
    which is another test.
    """
    need(engine)
    if engine == "sqlite":
        yield f"sqlite:///{disk}/berth.db", None
        return
    if engine == "mariadb":
        from tests.servers.mariadb import MariaDB

        with MariaDB(data=disk / "data") as mariadb:
            yield mariadb.create_database(), mariadb
        return
    from tests.servers.postgresql import PostgreSQL

    with PostgreSQL(data=disk / "data", has_log_apart=True) as server:
        yield server.create_database(), server
