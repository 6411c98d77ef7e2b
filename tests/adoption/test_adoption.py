# SPDX-License-Identifier: Apache-2.0
"""A release of OpenStack Placement creates and fills a database; it is adopted and handed back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth import config, deploy
from berth.cli.exit_codes import ExitCode
from tests.adoption.contents import HOLDERS, HOST, everything, fill, go_on
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


@pytest.mark.thorough
@pytest.mark.engines("mariadb", "postgresql")
def test_so_does_one_of_an_older_release(
    engine: str, database_url: str, databases: Databases, tmp_path: Path
) -> None:
    """From before redundant indexes were dropped, and from before consumers had types."""
    release = {"mariadb": "8.0.0", "postgresql": "2.0.1"}[engine]
    goes_and_comes_back(database_url, databases, tmp_path, release)


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
    _drain_and_lease(tmp_path, database_url)
    assert "no faults found" in berth(tmp_path, database_url, "check")
    release_it = ("db", "release", "--force", "--config-file", on(tmp_path, database_url))
    refused = run_berth(tmp_path, *release_it)
    assert refused.returncode == ExitCode.USAGE
    assert "will use what these exclude: firmware-4.2" in refused.stderr
    assert "1 lease will not be honoured, because OpenStack Placement" in refused.stderr
    assert f"{HOLDERS[1]} of project" in refused.stderr
    berth(tmp_path, database_url, "release", "--yes", "--force")
    if release == NEWEST:
        assert structure(database_url) == made
    original.manage("db", "version")
    with original.serving() as client:
        assert without_names(everything(client)) == without_names(more)
    assert Original(NEWEST, database_url, tmp_path).manage("db", "version") == HEADS[NEWEST]


def _drain_and_lease(folder: Path, url: str) -> None:
    """Drain a host and give a consumer a lease; neither is known to OpenStack Placement."""
    client = Client.of(deploy.load_application(config.load([on(folder, url)])))
    drained = client.put("/berth/v1/drains/firmware-4.2", json={"providers": [HOST]})
    assert drained.status == 201, drained.text
    leased = client.put(f"/berth/v1/leases/{HOLDERS[1]}", json={"seconds": 86_400})
    assert leased.status == 200, leased.text
    assert (
        client.get("/allocation_candidates?resources=MEMORY_MB:64", version="1.36").json[
            "allocation_requests"
        ]
        == []
    )


def _assert_only_added_to(before: dict[str, list[str]], after: dict[str, list[str]]) -> None:
    """Every row still exists; only the standard names of this release and a column are added."""
    for table, some in before.items():
        kept = {row.replace("'consumer_type_id': None, ", "") for row in after[table]}
        assert {row.replace("'consumer_type_id': None, ", "") for row in some} <= kept, table
        if table not in ("traits", "resource_classes"):
            assert len(some) == len(after[table]), table
