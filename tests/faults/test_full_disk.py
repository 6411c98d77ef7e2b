# SPDX-License-Identifier: Apache-2.0
"""The disk of the database is full: writes are refused until there is room, and reads go on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engines import need
from tests.faults.conftest import Keep
from tests.faults.stage import reads, staged, wait_until_refused, writes
from tests.servers.small_disk import fill, small_disk, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

#: Enough for an empty database, and to serve from it.
_MIB = 96

#: Reads asked of each worker while there is no room.
_READS = 20


@pytest.mark.engines("sqlite", "postgresql")
def test_writes_wait_for_room_and_reads_go_on(engine: str, tmp_path: Path, keep: Keep) -> None:
    """Nobody restarts anything, neither when the disk is full nor when there is room again."""
    with (
        small_disk(_MIB) as disk,
        database_on(disk, engine) as url,
        staged(tmp_path, url) as stage,
    ):
        with stage.load():
            time.sleep(1)
            ballast = fill(disk)
            wait_until_refused(writes, stage.workers)
            for worker in stage.workers * _READS:
                assert reads(worker), "a read was refused"
            time.sleep(1)
            ballast.unlink()
            stage.strike()
            stage.wait_until_back()
            time.sleep(1)
        keep(stage.seconds_to_recover())
        stage.judge()


@contextmanager
def database_on(disk: Path, engine: str) -> Iterator[str]:
    """The URL of a database whose data are on a disk.

    PostgreSQL's log is elsewhere, as large installations have it: it ends itself when it cannot
    write that, and is then a database that was killed.
    """
    need(engine)
    if engine == "sqlite":
        yield f"sqlite:///{disk}/berth.db"
        return
    from tests.servers.postgresql import PostgreSQL

    with PostgreSQL(data=disk / "data", has_log_apart=True) as server:
        yield server.create_database()
