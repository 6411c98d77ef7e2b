# SPDX-License-Identifier: Apache-2.0
"""A forgotten instance of OpenStack Placement serves the database that berth serves."""

from __future__ import annotations

import logging
import subprocess
from pathlib import Path
from uuid import UUID

import pytest

from berth import config, deploy
from berth.cli.exit_codes import ExitCode
from berth.store import foreign_writes
from tests.adoption.contents import OLDEST_LATEST, set_inventories
from tests.adoption.originals import Original
from tests.cli.test_commands import on
from tests.client import Client
from tests.e2e.serving import run_berth
from tests.exposed import scrape

HOST = str(UUID(int=1))
CAPACITY, EACH = 128, 4

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")


def upgrade(folder: Path, url: str, *options: str) -> subprocess.CompletedProcess[str]:
    """`berth db upgrade`."""
    return run_berth(folder, "db", "upgrade", *options, "--config-file", on(folder, url))


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


def test_a_host_is_given_out_once_however_the_balancer_shares_the_claims(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Claims go to the two services in turn until none succeeds: no unit is allocated twice, the
    log names the host, the metric counts it, and the upgrade had refused to run."""
    original = Original("16.0.0", database_url, tmp_path)
    original.manage("db", "sync")
    with original.serving() as forgotten:
        body = {"uuid": HOST, "name": "host"}
        assert forgotten.post("/resource_providers", json=body, version="1.36").status == 200
        set_inventories(forgotten, HOST, VCPU=CAPACITY)
        refused = upgrade(tmp_path, database_url)
        assert refused.returncode == ExitCode.IN_USE
        assert "another program wrote to the database" in refused.stderr
        assert upgrade(tmp_path, database_url, "--force").returncode == ExitCode.OK
        berth = Client.of(deploy.load_application(config.load([on(tmp_path, database_url)])))

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
    assert scrape(berth).value("berth_foreign_writes_total") == len(errors)


def test_a_client_of_berth_is_not_caught_in_conflicts_with_what_it_cannot_see(
    database_url: str, tmp_path: Path
) -> None:
    """The forgotten service creates a host, changes its traits, and deletes it. A client that reads
    from berth after a refusal sees each of these, so that its next attempt is right."""
    original = Original("16.0.0", database_url, tmp_path)
    original.manage("db", "sync")
    traits = f"/resource_providers/{HOST}/traits"
    with original.serving() as forgotten:
        assert upgrade(tmp_path, database_url).returncode == ExitCode.OK
        berth = Client.of(deploy.load_application(config.load([on(tmp_path, database_url)])))
        assert berth.get("/resource_providers", version=OLDEST_LATEST).json == {
            "resource_providers": []
        }

        created = {"uuid": HOST, "name": "host"}
        assert forgotten.post("/resource_providers", json=created, version="1.36").status == 200
        assert berth.get(f"/resource_providers/{HOST}", version=OLDEST_LATEST).status == 200

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

        assert forgotten.delete(f"/resource_providers/{HOST}", version="1.36").status == 204
        change["resource_provider_generation"] = 2
        assert berth.put(traits, json=change, version=OLDEST_LATEST).status == 404
        assert berth.get(traits, version=OLDEST_LATEST).status == 404
        assert scrape(berth).value("berth_foreign_writes_total") >= 2
