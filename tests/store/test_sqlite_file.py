# SPDX-License-Identifier: Apache-2.0
"""An SQLite file that is deleted or replaced while a process has it open."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from berth.index import Index
from berth.index.totals import totals_of
from berth.model.errors import DatabaseMoved, IndexUnavailable, OutcomeUnknown
from berth.store.engine.database import Database
from berth.store.engine.sqlite_file import LOOK_EACH_S, DatabaseFile
from berth.upkeep import schema
from tests.fresh import opened_at
from tests.store.fleet import add_provider
from tests.store.together import together

pytestmark = pytest.mark.engines("sqlite")


@dataclass
class World:
    """A database file that is written and read, and checked with each request."""

    path: Path
    db: Database
    index: Index

    def is_refused(self, *, reads: bool = True) -> None:
        """Writes are refused, and so are reads unless they are still allowed."""
        with pytest.raises(DatabaseMoved):
            add_provider(self.db, 2)
        if reads:
            with pytest.raises(IndexUnavailable):
                self.index.snapshot()
            with pytest.raises(DatabaseMoved), self.db.read():
                pass


@pytest.fixture
def world(db: Database, fresh_url: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """A file with one provider."""
    monkeypatch.setattr("berth.store.engine.sqlite_file.LOOK_EACH_S", 0.0)
    add_provider(db, 1)
    index = Index(db)
    index.snapshot()
    return World(Path(fresh_url.removeprefix("sqlite:///")), db, index)


def test_nothing_is_acknowledged_that_nobody_would_find(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """`rm berth.db` while the service runs: writes would go into a file without a name. As after
    `mv backup.db berth.db`, another file in its place is not taken for it: the index does not match
    that file. The one that comes back is served again, and nothing is lost."""
    away, copy = (world.path.with_name(name) for name in ("away.db", "copy.db"))
    shutil.copy(world.path, copy)
    world.path.rename(away)
    for _ in range(3):
        world.is_refused()
    assert not world.path.exists(), "no new database is made in its place"
    (line,) = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert line.startswith(f"{world.path} was removed while the database is in use")
    copy.rename(world.path)
    world.is_refused()
    away.replace(world.path)
    add_provider(world.db, 2)
    assert totals_of(world.index.snapshot()).providers == 2
    assert f"{world.path} is back in its place; requests succeed again" in caplog.messages
    again = opened_at(f"sqlite:///{world.path}")
    assert totals_of(Index(again).snapshot()).providers == 2
    again.dispose()


def test_a_new_connection_does_not_open_another_file(world: World) -> None:
    """In the place of the one that is in use."""
    copy = world.path.with_name("copy.db")
    shutil.copy(world.path, copy)
    copy.replace(world.path)
    world.db.dispose()
    world.is_refused()


def test_a_write_ahead_log_that_is_removed_takes_no_more_writes(world: World) -> None:
    """The latest commits are only in the log; open connections can still read it."""
    Path(f"{world.path}-wal").unlink()
    world.is_refused(reads=False)
    assert totals_of(world.index.snapshot()).providers == 1


#: What can happen to the files between two looks at the path, by name.
_LOSSES: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "moved": lambda path: path.rename(f"{path}.away"),
    "replaced": lambda path: Path(shutil.copy(path, f"{path}.copy")).replace(path),
    "without its log": lambda path: Path(f"{path}-wal").unlink(),
}


@pytest.mark.parametrize("loss", _LOSSES.values(), ids=_LOSSES)
@pytest.mark.parametrize(
    "write",
    [
        lambda db: add_provider(db, 2),
        lambda db: db.write_unnoted(lambda tx: tx.connection.execute(text("ANALYZE"))),
    ],
    ids=["write", "unnoted"],
)
def test_a_commit_into_a_lost_file_is_not_acknowledged(
    db: Database,
    fresh_url: str,
    loss: Callable[[Path], object],
    write: Callable[[Database], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether or not a second has passed since the last look: each commit has a look of its own."""
    monkeypatch.setattr("berth.store.engine.sqlite_file.LOOK_EACH_S", 1e9)
    add_provider(db, 1)
    loss(Path(fresh_url.removeprefix("sqlite:///")))
    with pytest.raises(OutcomeUnknown, match="read what is there before you repeat the write"):
        write(db)
    with pytest.raises(DatabaseMoved):
        write(db)


@pytest.mark.parametrize("loss", _LOSSES.values(), ids=_LOSSES)
def test_a_restore_sets_back_the_time_of_the_folder(
    db: Database, fresh_url: str, loss: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has touched the folder for long, so one look at it was enough for each commit."""
    monkeypatch.setattr("berth.store.engine.sqlite_file.LOOK_EACH_S", 1e9)
    monkeypatch.setattr(time, "time", lambda now=time.time: now() + 10)
    path = Path(fresh_url.removeprefix("sqlite:///"))
    for number in range(3):
        add_provider(db, number)
    before = path.parent.stat()
    loss(path)
    os.utime(path.parent, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(OutcomeUnknown):
        add_provider(db, 3)


def test_every_write_of_a_lost_commit_learns_of_it(db: Database, fresh_url: str) -> None:
    """Writes of several threads that shared the commit."""
    add_provider(db, 1)
    with together(db) as share:
        writes = [share(add_provider, db, number) for number in range(2, 6)]
        Path(fresh_url.removeprefix("sqlite:///")).unlink()
    assert [type(write.exception()) for write in writes] == [OutcomeUnknown] * 4


def test_the_path_is_looked_at_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For any number of requests: once for reads and once for writes. The last look decides until
    the next one; a missing log stops only the writers."""
    looks: list[str] = []

    def look(path: str, **options: Any) -> os.stat_result:
        if str(path) == name:
            looks.append(path)
        return stat_of(path, **options)

    now = [0.0]
    file = DatabaseFile(clock=lambda: now[0])
    name, stat_of, log = str(tmp_path / "a.db"), os.stat, tmp_path / "a.db-wal"
    file.connecting(name)
    file.connected()
    log.touch()
    file.writing()
    away = log.rename(tmp_path / "away")
    monkeypatch.setattr("berth.store.engine.sqlite_file.os.stat", look)
    for _ in range(100):
        file.check()
        with pytest.raises(DatabaseMoved):
            file.check(writing=True)
    assert looks == [name, name]
    away.rename(log)
    now[0] += LOOK_EACH_S
    file.check(writing=True)
    Path(name).unlink()
    file.check(writing=True)
    now[0] += LOOK_EACH_S
    for _ in range(100):
        with pytest.raises(DatabaseMoved):
            file.check()


@pytest.mark.parametrize("umask", [0, 0o022, 0o377])
def test_a_new_file_is_for_its_owner_alone(tmp_path: Path, umask: int) -> None:
    """So are the files that SQLite creates beside it, whatever the umask."""
    before = os.umask(umask)
    try:
        db = opened_at(f"sqlite:///{tmp_path / 'new.db'}")
        schema.upgrade(db)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
        db.dispose()
    assert modes == {"new.db": 0o600, "new.db-wal": 0o600, "new.db-shm": 0o600}


def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    """Its owner may have given others access."""
    path = tmp_path / "old.db"
    path.touch(mode=0o640)
    path.chmod(0o640)
    db = opened_at(f"sqlite:///{path}")
    with db.read():
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    db.dispose()
