# SPDX-License-Identifier: Apache-2.0
"""What every test can ask for: a fresh database, and berth standing on it.

The parts are imported where they are used, so that a test of one part needs no other.
"""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import hypothesis
import pytest

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from berth.config import Settings
    from berth.index import Index
    from berth.store.engine.database import Database
    from tests.client import Client

pytest_plugins = [
    "tests.interrupted",
    "tests.effort",
    "tests.engines",
    "tests.together",
    "tests.fresh",
    "tests.server_option",
    "tests.coverage_page",
    "tests.golden.files",
]

#: With a planted fault nobody reads the smallest example, and to find it can take minutes.
_PHASES: Final = set(hypothesis.Phase) - (
    {hypothesis.Phase.shrink, hypothesis.Phase.explain}
    if os.environ.get("BERTH_PLANTED")
    else set()
)

# No random test asserts a time; one that fails prints how to see it again.
hypothesis.settings.register_profile("berth", deadline=None, print_blob=True, phases=_PHASES)
hypothesis.settings.load_profile("berth")

#: Where tests take many seconds, or wait in a group for one process, the longest first.
LONG: Final = (
    *("tests/adoption/", "tests/docs/test_how_to.py", "tests/packaging/test_distributions.py"),
    "tests/faults/test_galera.py",
    *("tests/proof/test_killed.py", "tests/proof/test_workers.py", "tests/proof/test_served.py"),
    "tests/proof/test_followed.py",
    *("tests/hosts/test_under_fire.py", "tests/candidates/test_capacity_against_brute_force.py"),
    *("tests/contrib/test_wsgi_servers.py", "tests/e2e/test_real_clients.py", "tests/proof/model/"),
    "tests/copying/test_interrupted.py",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest tests first, so that in the end no process is left alone with one of them."""
    items.sort(key=lambda item: _place(item.nodeid))


def _place(nodeid: str) -> int:
    starts = (number for number, start in enumerate(LONG) if nodeid.startswith(start))
    return next(starts, len(LONG))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exempt modules and tests from garbage collection: they stay, and are a million objects."""
    gc.freeze()


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An SQLite file with the schema and the standard names and nothing else, to be copied: a test
    that writes to it would be in the way of another one."""
    from berth.store.engine.opening import DatabaseOptions, open_database
    from berth.upkeep import schema

    path = tmp_path_factory.mktemp("prepared") / "berth.db"
    db = open_database(f"sqlite:///{path}", options=DatabaseOptions(synchronous=False))
    schema.upgrade(db)
    schema.sync_standard_names(db)
    db.dispose()
    before = path.read_bytes()
    yield path
    assert path.read_bytes() == before, "a test has written to the prepared database"
    assert [*path.parent.iterdir()] == [path], "a test has opened the prepared database"


@pytest.fixture
def database(prepared: Path, tmp_path: Path) -> Iterator[Database]:
    """A database of the test's own, ready to serve, with nothing in it but the standard names."""
    from berth.store.engine.opening import DatabaseOptions, open_database

    path = shutil.copy(prepared, tmp_path / "berth.db")
    db = open_database(f"sqlite:///{path}", options=DatabaseOptions(synchronous=False))
    yield db
    db.dispose()


@pytest.fixture
def index(database: Database) -> Index:
    """The index over the test's database."""
    from berth.index import Index

    return Index(database)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of a service with noauth2, and defaults for the rest."""
    from berth import config

    placement_conf = tmp_path / "placement.conf"
    placement_conf.write_text(
        "[api]\nauth_strategy = noauth2\n"
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/berth.db\n"
    )
    return config.read_settings(config.load([str(placement_conf)]))


@pytest.fixture
def app(settings: Settings, database: Database, index: Index) -> WSGIApplication:
    """The whole application over the test's database and index."""
    from berth.edge.app import create_app

    return create_app(settings, database, index)


@pytest.fixture
def client(app: WSGIApplication) -> Client:
    """A client of the test's application, with the headers of an administrator."""
    from tests.client import Client

    return Client.of(app)
