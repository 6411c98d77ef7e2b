# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: database servers for tests, one of each engine for the whole run.

A server starts when the first test needs it. A test that damages a server, beyond closing its own
connections, starts one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests.engines import leave_out, need

if TYPE_CHECKING:
    from tests.servers.galera import Galera
    from tests.servers.keystone import Keystone
    from tests.servers.mariadb import MariaDB
    from tests.servers.postgresql import PostgreSQL
    from tests.servers.server import Databases


class SQLiteFiles:
    """A directory of SQLite databases, each with the files that SQLite creates beside it."""

    engine = "sqlite"

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def create_database(self, name: str | None = None) -> str:
        """The URL of a new file, with a generated name unless one is given."""
        return f"sqlite:///{self._directory}/{name or uuid4().hex}.db"

    def drop_database(self, url: str) -> None:
        """Remove the file and the files beside it."""
        path = Path(url.removeprefix("sqlite:///"))
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """The run's PostgreSQL."""
    need("postgresql")
    from tests.servers.postgresql import PostgreSQL

    with PostgreSQL() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """The run's MariaDB."""
    need("mariadb")
    from tests.servers.mariadb import MariaDB

    with MariaDB() as server:
        yield server


@pytest.fixture(scope="session")
def galera() -> Iterator[Galera]:
    """The run's cluster of three nodes."""
    need("galera")
    from tests.servers.galera import Galera

    # Nobody takes one of its nodes away: whoever is silent waits for the processor.
    with Galera(suspected_after_s=10) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def keystone() -> Iterator[Keystone]:
    """The run's Keystone. Tests must undo what they change."""
    from tests.servers.keystone import Keystone, NotInstalled, install

    try:
        install()
    except NotInstalled as error:
        leave_out("keystone", str(error))
    with Keystone() as server:
        yield server


@pytest.fixture(scope="session")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> SQLiteFiles:
    """The run's directory of SQLite databases."""
    need("sqlite")
    return SQLiteFiles(tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(scope="session")
def databases(engine: str, request: pytest.FixtureRequest) -> Databases:
    """Creates databases of the test's engine; a test that uses it runs once for each engine."""
    found: Databases = request.getfixturevalue(engine)
    return found


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """The URL of an empty database for the test, on each engine in turn."""
    url = databases.create_database()
    yield url
    databases.drop_database(url)
