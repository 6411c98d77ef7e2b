# SPDX-License-Identifier: Apache-2.0
"""A release of OpenStack Placement creates and fills a database; it is adopted and handed back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth import config, deploy
from tests.adoption.contents import everything, fill, go_on
from tests.adoption.originals import HEADS, Original
from tests.adoption.tables import rows, structure
from tests.cli.test_commands import on
from tests.client import Client
from tests.e2e.serving import run_berth
from tests.servers.server import Databases

NEWEST = "16.0.0"

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")


def berth(folder: Path, url: str, *arguments: str) -> str:
    """Run a `berth db` command on a database; return its output."""
    done = run_berth(folder, "db", *arguments, "--config-file", on(folder, url))
    assert done.returncode == 0, done.stderr
    return done.stdout


def answers_of_berth(folder: Path, url: str, *, more: bool) -> dict[str, Any]:
    """berth's responses from a database, after further writes."""
    application = deploy.load_application(config.load([on(folder, url)]))
    client = Client.of(application)
    if more:
        go_on(client)
    return everything(client)


def without_names(answers: dict[str, Any]) -> dict[str, Any]:
    """The responses without the lists of standard names, which differ between releases."""
    return {
        path: answer
        for path, answer in answers.items()
        if path not in ("/traits", "/resource_classes")
    }


def test_a_database_goes_to_berth_and_back(
    database_url: str, databases: Databases, tmp_path: Path
) -> None:
    """Its rows stay, berth answers as OpenStack Placement did, and OpenStack Placement then answers
    from what berth has written."""
    goes_and_comes_back(database_url, databases, tmp_path, NEWEST)


@pytest.mark.engines("mariadb")
def test_so_does_one_of_an_older_release(
    database_url: str, databases: Databases, tmp_path: Path
) -> None:
    """From before redundant indexes were dropped."""
    goes_and_comes_back(database_url, databases, tmp_path, "8.0.0")


@pytest.mark.engines("postgresql")
def test_so_does_one_of_the_oldest_release(
    database_url: str, databases: Databases, tmp_path: Path
) -> None:
    """From before consumers had types."""
    goes_and_comes_back(database_url, databases, tmp_path, "2.0.1")


def goes_and_comes_back(
    database_url: str, databases: Databases, tmp_path: Path, release: str
) -> None:
    """Adopt a release's database, and hand it back."""
    original = Original(release, database_url, tmp_path)
    original.manage("db", "sync")
    assert original.manage("db", "version") == HEADS[release]
    with original.serving() as client:
        fill(client)
        answered = without_names(everything(client))
    made, held = structure(database_url), rows(database_url, without=("alembic_version",))

    berth(tmp_path, database_url, "upgrade", "--force")
    assert "no faults found" in berth(tmp_path, database_url, "check")
    _assert_only_added_to(held, rows(database_url))
    if release == NEWEST:
        assert structure(database_url) == made
    assert without_names(answers_of_berth(tmp_path, database_url, more=False)) == answered

    more = answers_of_berth(tmp_path, database_url, more=True)
    assert "no faults found" in berth(tmp_path, database_url, "check")
    berth(tmp_path, database_url, "release", "--yes", "--force")
    if release == NEWEST:
        assert structure(database_url) == made
    original.manage("db", "version")
    with original.serving() as client:
        assert without_names(everything(client)) == without_names(more)
    assert Original(NEWEST, database_url, tmp_path).manage("db", "version") == HEADS[NEWEST]


def _assert_only_added_to(before: dict[str, list[str]], after: dict[str, list[str]]) -> None:
    """Every row still exists; only the standard names of this release and a column are added."""
    for table, some in before.items():
        kept = {row.replace("'consumer_type_id': None, ", "") for row in after[table]}
        assert {row.replace("'consumer_type_id': None, ", "") for row in some} <= kept, table
        if table not in ("traits", "resource_classes"):
            assert len(some) == len(after[table]), table
