# SPDX-License-Identifier: Apache-2.0
"""Pairs of databases for copies: a source with data, and an empty target."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from berth.store.engine.database import Database
from berth.store.engine.opening import DatabaseOptions, open_database
from tests.copying.contents import fill
from tests.servers.server import Databases

Opener = Callable[[str], Database]


@pytest.fixture
def opened() -> Iterator[Opener]:
    """Opens a database by its URL until the test ends."""
    databases: list[Database] = []

    def open_it(url: str) -> Database:
        db = open_database(url, options=DatabaseOptions(synchronous=False))
        databases.append(db)
        return db

    yield open_it
    for db in databases:
        db.dispose()


@pytest.fixture
def new_url(request: pytest.FixtureRequest) -> Iterator[Callable[[str], str]]:
    """Returns the URL of an empty database of an engine, which is removed when the test ends."""
    made: list[tuple[Databases, str]] = []

    def make(engine: str) -> str:
        databases: Databases = request.getfixturevalue(engine)
        made.append((databases, databases.create_database()))
        return made[-1][1]

    yield make
    for databases, url in made:
        databases.drop_database(url)


@pytest.fixture
def source_url(new_url: Callable[[str], str]) -> str:
    """The URL of an SQLite database with `contents.fill`."""
    url = new_url("sqlite")
    db = open_database(url)
    fill(db)
    db.dispose()
    return url


@pytest.fixture
def source(source_url: str, opened: Opener) -> Database:
    """That database."""
    return opened(source_url)


@pytest.fixture
def target(new_url: Callable[[str], str], opened: Opener) -> Database:
    """An empty SQLite database."""
    return opened(new_url("sqlite"))
