# SPDX-License-Identifier: Apache-2.0
"""The world of the requests, created once for all tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from berth import config
from berth.index import Index
from berth.store.engine.opening import DatabaseOptions, open_database
from tests.proof.faults.requests import World
from tests.proof.faults.stage import Play
from tests.proof.model.in_process import worker


@pytest.fixture(scope="session")
def play(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Play:
    """The world of this run as a file to copy, and the settings of its service."""
    folder = tmp_path_factory.mktemp("play")
    path = Path(shutil.copy(prepared, folder / "world.db"))
    placement_conf = folder / "placement.conf"
    placement_conf.write_text(
        f"[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = sqlite:///{path}\n"
    )
    settings = config.read_settings(config.load([str(placement_conf)]))
    database = open_database(f"sqlite:///{path}", options=DatabaseOptions(synchronous=False))
    world, ask = World(), worker(settings, database, Index(database))
    for step in world.made:
        assert ask(step).status < 300, step
    database.dispose()
    return Play(path, settings, world)
