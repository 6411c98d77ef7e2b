# SPDX-License-Identifier: Apache-2.0
"""The world of the requests, created once for all tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from berth import config
from berth.edge.app import create_app
from berth.index import Index
from berth.store.engine.opening import DatabaseOptions, open_database
from tests.client import Client
from tests.proof.faults.requests import build
from tests.proof.faults.stage import Play


@pytest.fixture(scope="session")
def play(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Play:
    """The world of `requests.build` as a file to copy, and the settings of its service."""
    folder = tmp_path_factory.mktemp("play")
    path = Path(shutil.copy(prepared, folder / "world.db"))
    placement_conf = folder / "placement.conf"
    placement_conf.write_text(
        f"[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = sqlite:///{path}\n"
    )
    settings = config.read_settings(config.load([str(placement_conf)]))
    database = open_database(f"sqlite:///{path}", options=DatabaseOptions(synchronous=False))
    build(Client.of(create_app(settings, database, Index(database))))
    database.dispose()
    return Play(path, settings)
