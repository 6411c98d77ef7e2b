# SPDX-License-Identifier: Apache-2.0
"""A server with an empty database of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from berth.config import Settings, load, read_settings
from berth.deploy import load_application
from berth.store.engine.database import Database
from tests.candidates.engine import copy_of
from tests.client import Client

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


@pytest.fixture(scope="module")
def server_app(tmp_path_factory: pytest.TempPathFactory) -> WSGIApplication:
    """The whole application on an empty database, without authentication."""
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


@pytest.fixture(scope="module")
def scratch(prepared: Path) -> Iterator[Database]:
    """A database for one world after another, see `tests.candidates.engine.only`: statements are
    compiled once."""
    with copy_of(prepared) as db:
        yield db


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The settings of a service with noauth2, and defaults for the rest."""
    placement_conf = tmp_path_factory.mktemp("configured") / "placement.conf"
    placement_conf.write_text(
        "[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = sqlite:///none\n"
    )
    return read_settings(load([str(placement_conf)]))
