# SPDX-License-Identifier: Apache-2.0
"""Databases for the store's tests, on each engine: one, opened as often as processes would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from berth.store.engine.database import Database
from berth.upkeep import schema
from tests.fresh import Fresh, opened_at
from tests.store import damage

Opener = Callable[[], Database]


@pytest.fixture
def fresh_url(fresh: Fresh, tmp_path: Path) -> str:
    """The URL of the test's database: the standard names, and nothing else."""
    return fresh(tmp_path)


@pytest.fixture
def opened(fresh_url: str) -> Iterator[Opener]:
    """Opens the test's database once more."""
    databases: list[Database] = []

    def open_it() -> Database:
        databases.append(opened_at(fresh_url))
        return databases[-1]

    yield open_it
    for db in databases:
        db.dispose()


@pytest.fixture
def db(opened: Opener) -> Database:
    """The test's database, open."""
    return opened()


@pytest.fixture
def database(db: Database) -> Database:
    """The same, by the name that it has in tests of other parts."""
    return db


@pytest.fixture
def other(db: Database, opened: Opener) -> Database:
    """The same database, as another process has it open."""
    assert db, "made first"
    return opened()


@pytest.fixture
def sound(database_url: str) -> Iterator[Database]:
    """The fleet that `damage` knows, on an engine, sound."""
    db = opened_at(database_url)
    schema.upgrade(db)
    # A first write of a process is run twice, and would take an id of a provider with it.
    schema.sync_standard_names(db)
    damage.fleet(db)
    yield db
    db.dispose()
