# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the commands that read and change a fleet."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.cli.fleet.access import Access
from berth.cli.fleet.demo_fleet import demo_fleet
from berth.cli.fleet.demo_loading import load
from berth.cli.options import ConfigurationSource
from tests.cli.fleet.ways import BothWays
from tests.cli.in_process import InProcess
from tests.e2e.serving import configured, serving


@pytest.fixture(scope="session")
def demo_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the demo fleet, to be copied."""
    folder = tmp_path_factory.mktemp("demo")
    conf = configured(folder, f"sqlite:///{folder}/berth.db")
    access = Access(None, None, None, ConfigurationSource((str(conf),), (), False))
    with access.client(creates=True) as client:
        load(client, demo_fleet())
    return folder / "berth.db"


@pytest.fixture(scope="module")
def first_database() -> Path | None:
    """The database that a module begins with, both ways; None for an empty one."""
    return None


@pytest.fixture(scope="module")
def ways(
    tmp_path_factory: pytest.TempPathFactory, prepared: Path, first_database: Path | None
) -> Iterator[tuple[str, Path]]:
    """A service with a database, and the configuration of another database."""
    of_service = tmp_path_factory.mktemp("service")
    alone = tmp_path_factory.mktemp("alone")
    conf = configured(alone, f"sqlite:///{alone}/berth.db")
    at_home = of_service / ".local" / "share" / "berth"
    at_home.mkdir(parents=True)
    for folder in (at_home, alone):
        shutil.copy(first_database or prepared, folder)
    # Only the commands under test sweep leases.
    never = {"OS_BERTH__LEASE_SWEEP_SECONDS": "0"}
    with serving(of_service, variables=never) as service:
        yield service.url, conf


@pytest.fixture
def berth(
    ways: tuple[str, Path], in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> BothWays:
    """Runs commands both ways; the databases are those of the module."""
    # No client.yaml of whoever runs the tests.
    monkeypatch.setenv("XDG_CONFIG_HOME", str(ways[1].parent))
    for name in ("BERTH_URL", "OS_TOKEN", "OS_CLOUD", "OS_AUTH_URL", "OS_AUTH_TYPE", "OS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    return BothWays(in_process, *ways)
