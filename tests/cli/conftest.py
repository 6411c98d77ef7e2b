# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the command tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from berth.cli.fleet.access import Access
from berth.cli.fleet.demo_fleet import demo_fleet
from berth.cli.fleet.demo_loading import load
from berth.cli.sources import ConfigurationSource
from tests.cli.in_process import InProcess
from tests.cli.service import Service, listening
from tests.e2e.serving import configured


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> InProcess:
    """Runs `berth` commands in this process."""
    return InProcess(monkeypatch, capsys)


@pytest.fixture
def at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty home, which is the working directory, and an environment that names no service."""
    for name in os.environ:
        if name.startswith(("BERTH_", "OS_", "XDG_")) and name != "BERTH_PLANTED":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """The service of this worker."""
    with listening() as service:
        yield service


@pytest.fixture(scope="session")
def demo_database(tmp_path_factory: pytest.TempPathFactory, prepared: Path) -> Path:
    """A file with the demo fleet, to be copied."""
    folder = tmp_path_factory.mktemp("demo")
    shutil.copy(prepared, folder)
    conf = configured(folder, f"sqlite:///{folder}/berth.db")
    access = Access(None, None, None, ConfigurationSource((str(conf),), (), False))
    with access.client(creates=True) as client:
        load(client, demo_fleet())
    return folder / "berth.db"


@dataclass
class Fleet:
    """A database of the test's own, with or without a service."""

    home: Path
    #: What it begins with: the demo fleet, or nothing.
    first_database: Callable[[bool], Path]
    service: Service
    monkeypatch: pytest.MonkeyPatch

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self.home / "fleet"

    @property
    def database(self) -> str:
        """The URL of its database."""
        return f"sqlite:///{self.folder}/berth.db"

    @property
    def configuration(self) -> Path:
        """A configuration with its database."""
        return configured(self.folder, self.database)

    def begin(self, way: str = "service", *, is_demo: bool = False) -> None:
        """From here on, commands use this fleet: through a service, or on its database."""
        self.folder.mkdir()
        shutil.copy(self.first_database(is_demo), self.folder / "berth.db")
        if way == "service":
            self.service.serve(self.folder)
            self.monkeypatch.setenv("BERTH_URL", self.service.url)
            self.monkeypatch.setenv("OS_TOKEN", "admin")
        else:
            self.monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", self.database)


@pytest.fixture
def fleet(
    at_home: Path,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Fleet:
    """A fleet that a test begins."""

    def first_database(is_demo: bool) -> Path:
        path: Path = request.getfixturevalue("demo_database" if is_demo else "prepared")
        return path

    return Fleet(at_home, first_database, service, monkeypatch)
