# SPDX-License-Identifier: Apache-2.0
"""Databases for the store's tests on each engine, opened as often as several processes would."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from berth.store.engine.database import Database
from berth.store.traits import create_trait, delete_trait
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


@pytest.fixture(scope="session")
def sound_file(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the undamaged fleet of `damage`, to be copied."""
    path = tmp_path_factory.mktemp("sound") / "berth.db"
    db = opened_at(f"sqlite:///{shutil.copy(prepared, path)}")
    damage.fleet(db)
    db.dispose()
    return path


@pytest.fixture
def sound(engine: str, database_url: str, sound_file: Path) -> Iterator[Database]:
    """The undamaged fleet of `damage`, on each engine."""
    if engine == "sqlite":
        shutil.copy(sound_file, database_url.removeprefix("sqlite:///"))
    db = opened_at(database_url)
    if engine == "sqlite":
        # So that it has a row of the clock, and takes over none that a test makes.
        create_trait(db, "CUSTOM_FIRST")
        delete_trait(db, "CUSTOM_FIRST")
    else:
        schema.upgrade(db)
        # A first write of a process is run twice, and would take an id of a provider with it.
        schema.sync_standard_names(db)
        damage.fleet(db)
    yield db
    db.dispose()
