# SPDX-License-Identifier: Apache-2.0
"""Pairs of databases for copies: a source with data, and an empty target."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from berth.store.engine.database import Database
from tests.copying.contents import fill
from tests.fresh import opened_at
from tests.servers.server import Databases

#: From an engine to an empty database, which is removed when the test ends.
New = Callable[[str], Database]


@pytest.fixture
def new(request: pytest.FixtureRequest) -> Iterator[New]:
    made: list[tuple[Databases, str, Database]] = []

    def make(engine: str) -> Database:
        databases: Databases = request.getfixturevalue(engine)
        url = databases.create_database()
        made.append((databases, url, opened_at(url)))
        return made[-1][2]

    yield make
    for databases, url, db in made:
        db.dispose()
        databases.drop_database(url)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with `contents.fill`, to be copied."""
    path = tmp_path_factory.mktemp("filled") / "berth.db"
    db = opened_at(f"sqlite:///{path}")
    fill(db)
    db.dispose()
    return path


@pytest.fixture
def source(filled: Path, tmp_path: Path) -> Iterator[Database]:
    """An SQLite database with `contents.fill`."""
    db = opened_at(f"sqlite:///{shutil.copy(filled, tmp_path / 'source.db')}")
    yield db
    db.dispose()


@pytest.fixture
def target(new: New) -> Database:
    return new("sqlite")
