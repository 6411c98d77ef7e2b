# SPDX-License-Identifier: Apache-2.0
"""A service starts while its database fails, at any step of the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth import config, deploy
from berth.model.errors import DatabaseUnavailable
from tests.e2e.serving import configured
from tests.servers.proxy import proxied, sends


@pytest.mark.engines("postgresql", "mariadb")
@pytest.mark.parametrize(
    "statement",
    [
        b"alembic_version",
        b"FROM resource_providers",
        *(
            pytest.param(each, marks=pytest.mark.thorough)
            for each in (b"FROM traits", b"berth_writer")
        ),
    ],
)
def test_a_start_begins_again_when_its_connection_is_lost(
    database_url: str, tmp_path: Path, statement: bytes
) -> None:
    """Only the first connection used to be retried; a worker that started together with the
    database lost it a moment later, and exited."""
    with proxied(database_url) as proxy:
        conf = configured(tmp_path, proxy.url(database_url))
        conf.write_text(
            conf.read_text() + "sync_on_startup = true\nmax_retries = 3\nretry_interval = 0\n"
        )
        fault = proxy.lose_request(sends(statement))
        application = deploy.load_application(config.load([str(conf)]), recount=False)
        assert fault.happened.is_set()
        assert application is not None


@pytest.mark.engines("postgresql", "mariadb")
def test_a_start_ends_when_the_database_stays_away(database_url: str, tmp_path: Path) -> None:
    """After the configured number of attempts."""
    with proxied(database_url) as proxy:
        conf = configured(tmp_path, proxy.url(database_url))
        conf.write_text(conf.read_text() + "max_retries = 2\nretry_interval = 0\n")
        proxy.refuse()
        with pytest.raises(DatabaseUnavailable, match="cannot be reached"):
            deploy.load_application(config.load([str(conf)]))
