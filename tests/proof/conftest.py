# SPDX-License-Identifier: Apache-2.0
"""What the proofs stand on: a database of an engine, and how hard to push."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.engines import engines_tested
from tests.proof.bounds import Bounds


@dataclass(frozen=True, slots=True)
class Ground:
    """An empty database, and a configuration that names it."""

    home: Path
    database_url: str
    conf: Path
    #: For how long a write can still come true when the worker that had it is dead, in seconds:
    #: not at all where the database dies with it; a server may have the COMMIT already.
    late_s: float


@pytest.fixture
def bounds() -> Bounds:
    """How long and how hard."""
    return Bounds()


@pytest.fixture(params=engines_tested())
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    """A database of each engine that is tested."""
    assert request.param == "sqlite", f"nobody knows yet how to make a database of {request.param}"
    url = f"sqlite:///{tmp_path}/berth.db"
    conf = tmp_path / "placement.conf"
    conf.write_text(f"[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = {url}\n")
    return Ground(tmp_path, url, conf, late_s=0.0)
