# SPDX-License-Identifier: Apache-2.0
"""A server on which nothing else stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from berth.config import load
from berth.deploy import load_application
from tests.client import Client

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


@pytest.fixture(scope="module")
def server_app(tmp_path_factory: pytest.TempPathFactory) -> WSGIApplication:
    """The whole application, on an empty database of its own, believing what clients say."""
    directory = tmp_path_factory.mktemp("server")
    configuration = directory / "placement.conf"
    configuration.write_text(
        "[api]\nauth_strategy = noauth2\n"
        f"[placement_database]\nconnection = sqlite:///{directory}/berth.sqlite\n"
    )
    return load_application(load([str(configuration)]))


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Client:
    """A client of an empty server: in this process, or the one at `--berth-url`."""
    url = request.config.getoption("--berth-url")
    return Client.at(url) if url else Client.of(request.getfixturevalue("server_app"))
