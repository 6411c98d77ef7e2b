# SPDX-License-Identifier: Apache-2.0
"""What a process knows about whether its database can be written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from berth.edge import readiness as writability
from berth.edge.readiness import (
    DOUBT_S,
    PROBE_EACH_S,
    ROOM_MIN,
    NotReady,
    Readiness,
    Writability,
    fault_in,
)
from berth.index import Index
from berth.model.database_errors import WritesRefused
from berth.model.errors import DatabaseUnavailable, OutcomeUnknown
from berth.store.engine.database import Database
from berth.upkeep import schema
from tests.edge.auth.gate import Clock
from tests.fresh import opened_at
from tests.store.fleet import add_provider

_WORDS = "the disk of the database is full"
_FULL = WritesRefused("database or disk is full", fault=_WORDS, cure="free some")


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    """A database with its tables, on each engine."""
    database = opened_at(database_url)
    schema.upgrade(database)
    yield database
    database.dispose()


@pytest.mark.engines("sqlite")
def test_a_failed_write_counts_until_another_succeeds(db: Database) -> None:
    """A small one that finds room at the same time proves nothing about the large ones. The fault
    ends by itself even where no client writes any more, because the service is not ready."""
    clock = Clock()
    known = Writability(clock=clock)
    known.failed(_FULL)
    known.committed()
    assert known.fault(db) == _WORDS
    clock.now += DOUBT_S
    assert known.fault(db) == _WORDS
    known.committed()
    assert known.fault(db) is None
    known.failed(_FULL)
    clock.now += PROBE_EACH_S
    assert known.fault(db) is None


@pytest.mark.engines("sqlite")
def test_probes_write_seldom(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once in ten seconds, however often health is asked; never while clients write."""
    clock = Clock()
    probes: list[Database] = []
    monkeypatch.setattr(writability, "rewrite_identity", probes.append)
    known = Writability(clock=clock)
    for _ in range(100):
        known.fault(db)
    assert len(probes) == 1
    for _ in range(100):
        clock.now += PROBE_EACH_S / 2
        known.committed()
        known.fault(db)
    assert len(probes) == 1
    clock.now += PROBE_EACH_S
    known.fault(db)
    assert len(probes) == 2


@pytest.mark.engines("sqlite")
@pytest.mark.parametrize(("user", "for_root"), [(0, 1), (1000, 9)])
def test_a_disk_without_room_is_seen_before_a_write_fails(
    db: Database, monkeypatch: pytest.MonkeyPatch, user: int, for_root: int
) -> None:
    """Of an SQLite database, which is on a disk of this machine. What is left for root helps nobody
    else."""
    clock = Clock()
    known = Writability(clock=clock)
    assert known.fault(db) is None
    free = SimpleNamespace(f_bavail=1, f_bfree=for_root, f_frsize=ROOM_MIN - 1)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "statvfs", lambda folder: free)
    assert known.fault(db) == _WORDS
    monkeypatch.undo()
    clock.now += PROBE_EACH_S
    assert known.fault(db) is None


def test_the_cause_is_found_behind_other_errors() -> None:
    """A lock or a lost connection is no such cause."""
    assert fault_in(DatabaseUnavailable("database is locked")) is None
    unknown = OutcomeUnknown()
    unknown.__cause__ = _FULL
    assert fault_in(unknown) == _WORDS


def test_a_table_that_is_missing_is_named(db: Database) -> None:
    """A request that needs it is 503 on every engine, not 500."""
    ready = Readiness(db, Index(db), Writability())
    ready.ensure_ready()
    db.write_unnoted(lambda tx: tx.connection.execute(text("DROP TABLE inventories")))
    with pytest.raises(NotReady, match="tables of the database are missing: inventories"):
        ready.ensure_ready()
    with pytest.raises(DatabaseUnavailable):
        add_provider(db, 1, VCPU=8)


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_a_database_that_becomes_read_only(
    db: Database, engine: str, request: pytest.FixtureRequest
) -> None:
    """Reads go on, so its metrics are there; the probe says that nothing can be written."""
    ready = Readiness(db, Index(db), Writability())
    if engine == "sqlite":
        db.write_unnoted(lambda tx: tx.connection.execute(text("PRAGMA query_only = ON")))
    elif engine == "postgresql":
        name = db.engine.url.database
        _administer(db, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        db.dispose()
    else:
        request.getfixturevalue("mariadb").administer("SET GLOBAL read_only = 1")
    try:
        with pytest.raises(NotReady, match="the database is read-only"):
            ready.ensure_ready()
        assert not isinstance(ready.state().fleet, str)
    finally:
        if engine == "mariadb":
            request.getfixturevalue("mariadb").administer("SET GLOBAL read_only = 0")


def _administer(db: Database, statement: str) -> None:
    engine = create_engine(make_url(db.engine.url), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()
