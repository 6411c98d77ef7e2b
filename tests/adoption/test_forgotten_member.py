# SPDX-License-Identifier: Apache-2.0
"""A member of the original that nobody has stopped serves the database that berth serves."""

from __future__ import annotations

import logging
import subprocess
from pathlib import Path
from uuid import UUID

import pytest

from berth import config, deploy
from berth.cli.exit_codes import ExitCode
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
    """A consumer asks for a part of the host; the status of the answer."""
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
    """Claims go to the two by turns until nobody gets any more: no unit has been given out twice,
    the log names the host, the metric counts, and the upgrade had refused to begin."""
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
    errors = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert errors and all(f"resource provider {HOST} (host)" in one for one in errors)
    assert scrape(berth).value("berth_foreign_writes_total") == len(errors)
