# SPDX-License-Identifier: Apache-2.0
"""Databases for the store's tests: one file, opened as often as processes would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from berth.store.database import Database, DatabaseOptions, open_database

Opener = Callable[[], Database]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """Opens the test's file (that of the fixture `database`, or an empty one) once more."""
    databases: list[Database] = []

    def open_it() -> Database:
        url = f"sqlite:///{tmp_path / 'berth.db'}"
        db = open_database(url, options=DatabaseOptions(synchronous=False))
        databases.append(db)
        return db

    yield open_it
    for db in databases:
        db.dispose()


@pytest.fixture
def db(database: Database) -> Database:
    """A database with its schema and the standard names, and nothing else."""
    return database


@pytest.fixture
def other(database: Database, opened: Opener) -> Database:
    """The same database, as another process has it open."""
    assert database, "made first"
    return opened()
