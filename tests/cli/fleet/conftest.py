# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the commands that read and change a fleet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.fleet.ways import BothWays
from tests.cli.in_process import InProcess
from tests.e2e.serving import configured, served


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A service with an empty database, and the configuration of another empty database."""
    of_service = tmp_path_factory.mktemp("service")
    alone = tmp_path_factory.mktemp("alone")
    conf = configured(alone, f"sqlite:///{alone}/berth.db")
    with served(of_service) as url:
        yield url, conf


@pytest.fixture
def berth(
    ways: tuple[str, Path], in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> BothWays:
    """Runs commands both ways; the databases are those of the module."""
    for name in ("BERTH_URL", "OS_TOKEN", "OS_CLOUD", "OS_AUTH_URL", "OS_AUTH_TYPE", "OS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    return BothWays(in_process, *ways)
