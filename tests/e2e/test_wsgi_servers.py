# SPDX-License-Identifier: Apache-2.0
"""`berth.wsgi:application` under another WSGI server: gunicorn."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.client import Client
from tests.e2e.serving import PATIENCE, environment, stop, wait_until


@contextmanager
def gunicorn(home: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run gunicorn on a free port; the process, and the file of its log."""
    log = home / "gunicorn.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", "--bind", "127.0.0.1:0"),
                *arguments,
                "berth.wsgi:application",
            ],
            env=environment(home, OS_PLACEMENT_CONFIG_DIR=str(home)),
            cwd=home,
            stderr=stderr,
            start_new_session=True,
        )
    try:
        yield process, log
    finally:
        stop(process)


def address_in(log: Path) -> str:
    """The URL that gunicorn says it listens at, once it does."""
    wait_until(lambda: "Listening at: " in log.read_text(), f"gunicorn to listen, see {log}")
    found = re.search(r"Listening at: (http://\S+)", log.read_text())
    assert found
    return found[1]


def configure(home: Path, database: Path) -> None:
    """Write the placement.conf of a service without authentication."""
    (home / "placement.conf").write_text(
        f"[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = sqlite:///{database}\n"
    )


def test_gunicorn_serves_the_application(tmp_path: Path) -> None:
    """Two workers on one database, configured by OS_PLACEMENT_CONFIG_DIR."""
    configure(tmp_path, tmp_path / "berth.db")
    with gunicorn(tmp_path, "--workers", "2", "--threads", "2") as (_, log):
        url = address_in(log)
        clients = [Client.at(url) for _ in range(6)]
        for number, client in enumerate(clients):
            created = client.post("/resource_providers", json={"name": f"cn{number}"})
            assert created.status == 200, created.text
            for other in clients:
                listed = other.get(f"/resource_providers?name=cn{number}").json
                assert len(listed["resource_providers"]) == 1


def test_gunicorn_may_load_the_application_before_it_forks(tmp_path: Path) -> None:
    """As uWSGI does by default: connections of the parent are not used by its children."""
    configure(tmp_path, tmp_path / "berth.db")
    with gunicorn(tmp_path, "--workers", "2", "--preload") as (_, log):
        url = address_in(log)
        for number in range(6):
            client = Client.at(url)
            assert client.post("/resource_providers", json={"name": f"cn{number}"}).status == 200
            listed = Client.at(url).get("/resource_providers").json["resource_providers"]
            assert len(listed) == number + 1


def test_a_wrong_configuration_stops_the_server(tmp_path: Path) -> None:
    """It does not serve errors; the reason is the last thing that it says."""
    configure(tmp_path, tmp_path / "no such folder" / "berth.db")
    with gunicorn(tmp_path) as (process, log):
        assert process.wait(PATIENCE) != 0
    assert "there is no folder" in log.read_text()
