# SPDX-License-Identifier: Apache-2.0
"""A service in this process for hosts to report to: berth, and one with the old routes only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from requests.structures import CaseInsensitiveDict

from berth import config
from berth.edge.app import create_app
from berth.index import Index
from berth.store.engine.opening import DatabaseOptions, open_database
from tests.client import NOTHING, Client
from tests.hosts.hosts import Answered, AsPlacement
from tests.hosts.stage import Stage


class InProcess:
    """A transport like keystoneauth's Adapter, without what most of its time goes to."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def request(self, url: str, method: str, **options: Any) -> Answered:
        response = self._client.request(
            method,
            url,
            json=options.get("json", NOTHING),
            headers=options.get("headers"),
            version=options.get("microversion"),
        )
        named = CaseInsensitiveDict(response.headers.pairs)
        return Answered(response.status, response.text, named)


@pytest.fixture(scope="session")
def in_process(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    """A service in this process."""
    folder = tmp_path_factory.mktemp("hosts")
    url = f"sqlite:///{shutil.copy(prepared, folder / 'berth.db')}"
    conf = folder / "placement.conf"
    conf.write_text(f"[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = {url}\n")
    settings = config.read_settings(config.load([str(conf)]))
    db = open_database(url, options=DatabaseOptions(synchronous=False))
    yield InProcess(Client.of(create_app(settings, db, Index(db))))
    db.dispose()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Test with both services, unless a module names one in `SERVICES`."""
    if "stage" in metafunc.fixturenames:
        services = getattr(metafunc.module, "SERVICES", ["berth", "as Placement"])
        metafunc.parametrize("stage", services, indirect=True)


@pytest.fixture
def stage(request: pytest.FixtureRequest, in_process: InProcess) -> Iterator[Stage]:
    """An empty service: berth, or one that has the old routes only."""
    stage = Stage(AsPlacement(in_process) if request.param == "as Placement" else in_process)
    yield stage
    stage.clear()
