# SPDX-License-Identifier: Apache-2.0
"""A release of OpenStack Placement creates and fills a database; it is adopted and handed back, or
still served by a forgotten instance while berth serves it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from uuid import UUID

import pytest

from berth import config, deploy
from berth.cli.failure import ExitCode
from berth.store import foreign_writes
from tests.adoption.contents import (
    HOLDERS,
    HOST,
    LATER,
    OLDEST_LATEST,
    everything,
    fill,
    go_on,
    rows,
    set_inventories,
    structure,
)
from tests.adoption.originals import HEADS, Original
from tests.cli.in_process import InProcess
from tests.cli.test_commands import on
from tests.client import Client
from tests.docs.how_to import OF_THE_ORIGINAL, follow
from tests.exposed import scrape

NEWEST = "16.0.0"

#: Runs a `berth db` command on the database.
Run = Callable[..., CompletedProcess[str]]

of_engines = pytest.mark.engines("sqlite", "postgresql", "mariadb")


@pytest.fixture
def run(
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """A command in this process, which must succeed unless its exit code is told."""
    in_process = InProcess(monkeypatch, capsys)

    def run(*arguments: str, code: int = 0) -> CompletedProcess[str]:
        done = in_process("db", *arguments, "--config-file", on(tmp_path, database_url))
        assert done.returncode == code, done.stderr
        return done

    return run


def berth_on(folder: Path, url: str) -> Client:
    """A client of berth on a database."""
    return Client.of(deploy.load_application(config.load([on(folder, url)])))


def without_names(answers: dict[str, Any]) -> dict[str, Any]:
    """The responses without the lists of standard names, which differ between releases."""
    return {
        path: answer
        for path, answer in answers.items()
        if path not in ("/traits", "/resource_classes")
    }


@of_engines
def test_a_database_goes_to_berth_and_back(run: Run, database_url: str, tmp_path: Path) -> None:
    """Its rows stay, berth answers as OpenStack Placement did, and OpenStack Placement then answers
    from what berth has written."""
    goes_and_comes_back(run, database_url, tmp_path, NEWEST)


@pytest.mark.thorough
@pytest.mark.engines("mariadb", "postgresql")
def test_so_does_one_of_an_older_release(
    engine: str, run: Run, database_url: str, tmp_path: Path
) -> None:
    """From before redundant indexes were dropped, and from before consumers had types."""
    release = {"mariadb": "8.0.0", "postgresql": "2.0.1"}[engine]
    goes_and_comes_back(run, database_url, tmp_path, release)


def goes_and_comes_back(run: Run, database_url: str, tmp_path: Path, release: str) -> None:
    """Adopt a release's database, and hand it back."""
    original = Original(release, database_url, tmp_path)
    original.manage("db", "sync")
    assert HEADS[release] in str(rows(database_url)["alembic_version"])
    with original.serving() as client:
        fill(client)
        answered = without_names(everything(client))
    made, held = structure(database_url), rows(database_url, without=("alembic_version",))

    run("upgrade", "--force")
    assert "no faults found" in run("check").stdout
    _assert_only_added_to(held, rows(database_url))
    if release == NEWEST:
        assert structure(database_url) == made
    assert without_names(everything(berth_on(tmp_path, database_url))) == answered

    client = berth_on(tmp_path, database_url)
    go_on(client)
    more = everything(client)
    _drain_and_lease(berth_on(tmp_path, database_url))
    assert "no faults found" in run("check").stdout
    refused = run("release", "--force", code=ExitCode.USAGE)
    assert "will use what these exclude: firmware-4.2" in refused.stderr
    assert "1 lease will not be honoured, because OpenStack Placement" in refused.stderr
    assert f"{HOLDERS[1]} of project" in refused.stderr
    run("release", "--yes", "--force")
    if release == NEWEST:
        assert structure(database_url) == made
    with original.serving() as client:
        assert without_names(everything(client)) == without_names(more)
    assert HEADS[NEWEST] in str(rows(database_url)["alembic_version"])


def _drain_and_lease(client: Client) -> None:
    """Drain a host and give a consumer a lease; neither is known to OpenStack Placement."""
    drained = client.put("/berth/v1/drains/firmware-4.2", json={"providers": [HOST]})
    assert drained.status == 201, drained.text
    leased = client.put(f"/berth/v1/leases/{HOLDERS[1]}", json={"seconds": 86_400})
    assert leased.status == 200, leased.text
    candidates = "/allocation_candidates?resources=MEMORY_MB:64"
    assert client.get(candidates, version=OLDEST_LATEST).json["allocation_requests"] == []


def _assert_only_added_to(before: dict[str, list[str]], after: dict[str, list[str]]) -> None:
    """Every row still exists; only the standard names of this release and a column are added."""
    for table, some in before.items():
        kept = {row.replace("'consumer_type_id': None, ", "") for row in after[table]}
        assert {row.replace("'consumer_type_id': None, ", "") for row in some} <= kept, table
        if table not in ("traits", "resource_classes"):
            assert len(some) == len(after[table]), table


# --- A forgotten instance -------------------------------------------------------------------------

CAPACITY, EACH = 128, 4


def claim(client: Client, number: int) -> int:
    """A consumer claims a part of the host; returns the status."""
    body = {
        "allocations": {HOST: {"resources": {"VCPU": EACH}}},
        "consumer_generation": None,
        "project_id": "p",
        "user_id": "u",
    }
    path = f"/allocations/{UUID(int=1000 + number)}"
    return client.put(path, json=body, version=OLDEST_LATEST).status


@of_engines
def test_a_forgotten_instance_serves_the_database_that_berth_serves(
    run: Run, database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Claims go to the two services in turn until none succeeds: no unit is allocated twice, the
    log names the host, the metric counts it, and the upgrade had refused to run."""
    original = Original(NEWEST, database_url, tmp_path)
    original.manage("db", "sync")
    with original.serving() as forgotten:
        body = {"uuid": HOST, "name": "host"}
        assert forgotten.post("/resource_providers", json=body, version="1.36").status == 200
        set_inventories(forgotten, HOST, VCPU=CAPACITY)
        refused = run("upgrade", code=ExitCode.IN_USE)
        assert "another program wrote to the database" in refused.stderr
        run("upgrade", "--force")
        berth = berth_on(tmp_path, database_url)

        answers = [claim((berth, forgotten)[turn % 2], turn) for turn in range(40)]
        assert answers.count(204) == CAPACITY // EACH
        assert set(answers[-4:]) == {409}
        usages = f"/resource_providers/{HOST}/usages"
        assert forgotten.get(usages).json["usages"] == {"VCPU": CAPACITY}
        assert berth.get(usages).json["usages"] == {"VCPU": CAPACITY}
        # Threads of other tests may log too.
        errors = [
            record.getMessage()
            for record in caplog.records
            if record.levelno == logging.ERROR and record.name == foreign_writes.__name__
        ]
        assert errors and all(f"resource provider {HOST} (host)" in error for error in errors)
        counted = scrape(berth).value("berth_foreign_writes_total")
        assert counted == len(errors)
        a_client_is_not_caught_in_conflicts_with_what_it_cannot_see(berth, forgotten)
        assert scrape(berth).value("berth_foreign_writes_total") >= counted + 2


def a_client_is_not_caught_in_conflicts_with_what_it_cannot_see(
    berth: Client, forgotten: Client
) -> None:
    """The forgotten service creates a host, changes its traits, and deletes it. A client that reads
    from berth after a refusal sees each of these, so that its next attempt is right."""
    created = {"uuid": LATER, "name": "later"}
    traits = f"/resource_providers/{LATER}/traits"
    assert forgotten.post("/resource_providers", json=created, version="1.36").status == 200
    assert berth.get(f"/resource_providers/{LATER}", version=OLDEST_LATEST).status == 200

    change = {"traits": ["HW_CPU_X86_AVX2"], "resource_provider_generation": 0}
    assert forgotten.put(traits, json=change, version="1.36").status == 200
    change["traits"] = ["HW_CPU_X86_SSE"]
    assert berth.put(traits, json=change, version=OLDEST_LATEST).status == 409
    assert berth.get(traits, version=OLDEST_LATEST).json == {
        "traits": ["HW_CPU_X86_AVX2"],
        "resource_provider_generation": 1,
    }
    change["resource_provider_generation"] = 1
    assert berth.put(traits, json=change, version=OLDEST_LATEST).status == 200

    assert forgotten.delete(f"/resource_providers/{LATER}", version="1.36").status == 204
    change["resource_provider_generation"] = 2
    assert berth.put(traits, json=change, version=OLDEST_LATEST).status == 404
    assert berth.get(traits, version=OLDEST_LATEST).status == 404


def test_the_way_over_and_back_works_as_it_is_printed(tmp_path: Path) -> None:
    """The how-to of the migration: from OpenStack Placement to berth and back, on one database."""
    home = tmp_path / "home"
    home.mkdir()
    newest = Original(NEWEST, f"sqlite:///{home}/placement.db", home)
    follow(OF_THE_ORIGINAL, home, {"ORIGINAL": str(newest.folder)})
