# SPDX-License-Identifier: Apache-2.0
"""One server for all wire tests: an application in this process, or the one at `--berth-url`.

Tests share it by using names that nobody else has (`tests.api.worlds`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.client import Client

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


@pytest.fixture(scope="session")
def shared_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WSGIApplication]:
    """An application of the whole session, on a database of its own."""
    raise NotImplementedError


@pytest.fixture(scope="session")
def api(request: pytest.FixtureRequest) -> Client:
    """A client of the shared server."""
    url = request.config.getoption("--berth-url")
    return Client.at(url) if url else Client.of(request.getfixturevalue("shared_app"))
