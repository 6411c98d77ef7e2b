# SPDX-License-Identifier: Apache-2.0
"""Databases for the store's tests on each engine, opened as often as several processes would."""

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
    """The URL of the test's database, which contains only the standard names."""
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
    """The test's database, under the name that fixtures of other folders expect."""
    return db


@pytest.fixture
def other(db: Database, opened: Opener) -> Database:
    """The same database, opened by another process."""
    assert db, "made first"
    return opened()


@pytest.fixture
def sound(database_url: str) -> Iterator[Database]:
    """The undamaged fleet of `damage`, on each engine."""
    db = opened_at(database_url)
    schema.upgrade(db)
    # A first write of a process is run twice, and would take an id of a provider with it.
    schema.sync_standard_names(db)
    damage.fleet(db)
    yield db
    db.dispose()
