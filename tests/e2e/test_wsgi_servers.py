# SPDX-License-Identifier: Apache-2.0
"""`berth.wsgi:application` under another WSGI server: gunicorn."""

from __future__ import annotations

import re
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.client import Client
from tests.e2e.serving import PATIENCE, environment, stop


@contextmanager
def gunicorn(home: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run gunicorn on a free port; the process, and what it said until it listened or ended."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "gunicorn", "--bind", "127.0.0.1:0", "--no-control-socket"),
            *arguments,
            "berth.wsgi:application",
        ],
        env=environment(home, OS_PLACEMENT_CONFIG_DIR=str(home)),
        cwd=home,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process, read_until(process, "Booting worker")
    finally:
        stop(process)


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """What a process says on stderr up to some words, or to its end."""
    assert process.stderr is not None
    said = ""
    deadline = time.monotonic() + PATIENCE
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while words not in said:
            assert selector.select(deadline - time.monotonic()), f"gave up waiting:\n{said}"
            line = process.stderr.readline()
            if not line:
                break
            said += line
    return said


def configure(home: Path, database: Path) -> None:
    """Write the placement.conf of a service without authentication."""
    (home / "placement.conf").write_text(
        f"[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = sqlite:///{database}\n"
    )


def test_gunicorn_serves_the_application(tmp_path: Path) -> None:
    """Two workers on one database, configured by OS_PLACEMENT_CONFIG_DIR."""
    configure(tmp_path, tmp_path / "berth.db")
    with gunicorn(tmp_path, "--workers", "2", "--threads", "2") as (_, said):
        found = re.search(r"Listening at: (http://\S+)", said)
        assert found, said
        clients = [Client.at(found[1]) for _ in range(6)]
        for number, client in enumerate(clients):
            created = client.post("/resource_providers", json={"name": f"cn{number}"})
            assert created.status == 200, created.text
            for other in clients:
                listed = other.get(f"/resource_providers?name=cn{number}").json
                assert len(listed["resource_providers"]) == 1


def test_gunicorn_may_load_the_application_before_it_forks(tmp_path: Path) -> None:
    """As uWSGI does by default: connections of the parent are not used by its children."""
    configure(tmp_path, tmp_path / "berth.db")
    with gunicorn(tmp_path, "--workers", "2", "--preload") as (_, said):
        found = re.search(r"Listening at: (http://\S+)", said)
        assert found, said
        for number in range(6):
            client = Client.at(found[1])
            assert client.post("/resource_providers", json={"name": f"cn{number}"}).status == 200
            listed = Client.at(found[1]).get("/resource_providers").json["resource_providers"]
            assert len(listed) == number + 1


def test_a_wrong_configuration_stops_the_server(tmp_path: Path) -> None:
    """It does not serve errors; the reason is the last thing that it says."""
    configure(tmp_path, tmp_path / "no such folder" / "berth.db")
    with gunicorn(tmp_path) as (process, _):
        said = read_until(process, "there is no folder")
        assert "there is no folder" in said
        process.stderr.close()  # type: ignore[union-attr]
        assert process.wait(PATIENCE) != 0
