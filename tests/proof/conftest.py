# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the proofs: databases of an engine, and the effort."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.proof.bounds import Bounds

if TYPE_CHECKING:
    from tests.servers.server import Databases


#: See `Ground`; as long as an orphaned worker may live (berth/edge/server/stopping.py).
LATE_S: Final = 16.0


@dataclass(frozen=True, slots=True)
class Ground:
    """An empty database, and a configuration for each of its addresses."""

    engine: str
    home: Path
    database_url: str
    #: One; in a cluster one for each node.
    confs: tuple[Path, ...]
    #: For how long a write can still come true when its connection has died, in seconds: a server
    #: may have the COMMIT already, and a worker whose parent was killed finishes what it has begun.
    late_s: float

    @property
    def conf(self) -> Path:
        """The first of them."""
        return self.confs[0]


@pytest.fixture
def bounds(engine: str) -> Bounds:
    """Duration and effort."""
    return Bounds.of(engine)


@pytest.fixture
def ground(
    engine: str, databases: Databases, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Ground]:
    """An empty database of each engine."""
    url = databases.create_database()
    urls = request.getfixturevalue("galera").urls(url) if engine == "galera" else [url]
    confs = tuple(_conf(tmp_path / f"placement-{place}.conf", at) for place, at in enumerate(urls))
    yield Ground(engine, tmp_path, url, confs, late_s=LATE_S)
    databases.drop_database(url)


def _conf(path: Path, url: str) -> Path:
    path.write_text(
        "[api]\nauth_strategy = noauth2\n"
        f"[placement_database]\nconnection = {url}\nsync_on_startup = True\n"
    )
    return path
