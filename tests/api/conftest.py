# SPDX-License-Identifier: Apache-2.0
"""One server for all wire tests: an application in this process, or the one at `--berth-url`.

Tests share it by using names that nobody else has (`tests.api.worlds`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from berth import config, deploy
from tests.client import Client

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

PLACEMENT_CONF = """
[api]
auth_strategy = noauth2

[placement_database]
connection = sqlite:///{database}
sync_on_startup = True
sqlite_synchronous = False

[oslo_policy]
enforce_new_defaults = True
"""


@pytest.fixture(scope="session")
def shared_app(tmp_path_factory: pytest.TempPathFactory) -> WSGIApplication:
    """The application of the whole session, made from a placement.conf as an operator writes it."""
    folder = tmp_path_factory.mktemp("shared")
    placement_conf = folder / "placement.conf"
    placement_conf.write_text(PLACEMENT_CONF.format(database=folder / "placement.db"))
    return deploy.load_application(config.load([str(placement_conf)]))


@pytest.fixture(scope="session")
def api(request: pytest.FixtureRequest) -> Client:
    """A client of the shared server."""
    url = request.config.getoption("--berth-url")
    return Client.at(url) if url else Client.of(request.getfixturevalue("shared_app"))
