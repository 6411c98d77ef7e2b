# SPDX-License-Identifier: Apache-2.0
"""A service for one world after another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.api import request as searching
from berth.config import load, read_settings
from tests.candidates.engine import Stand, Standing, copy_of
from tests.worlds import World


@pytest.fixture(autouse=True)
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """No budget of time ends, however busy the machine is."""
    for clock in ("monotonic", "thread_time"):
        monkeypatch.setattr(searching, clock, lambda: 0.0)


@pytest.fixture(scope="session")
def stand(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Replaces the world of a service by another, and gives both."""
    placement_conf = tmp_path_factory.mktemp("standing") / "placement.conf"
    placement_conf.write_text(
        "[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = sqlite:///none\n"
    )
    with copy_of(prepared) as db:
        standing = Standing(db, read_settings(load([str(placement_conf)])))

        def become(fleet: World | str) -> Standing:
            standing.become(fleet)
            return standing

        yield become
