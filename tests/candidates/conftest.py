# SPDX-License-Identifier: Apache-2.0
"""A server for the worlds of these tests: nothing else stands on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.client import Client

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Client:
    """A client of an empty server: in this process, or the one at `--berth-url`."""
    url = request.config.getoption("--berth-url")
    return Client.at(url) if url else Client.of(request.getfixturevalue("server_app"))
