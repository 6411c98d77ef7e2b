# SPDX-License-Identifier: Apache-2.0
"""Workers that exit or are killed, and a service that keeps running."""

from __future__ import annotations

import os
import signal
from http.client import HTTPException
from pathlib import Path

import pytest

from berth.cli.failure import ExitCode
from tests.client import Client
from tests.e2e.serving import PATIENCE, Service, configured, serving, wait_until
from tests.e2e.test_serve import listeners
from tests.engines import need


def kill(pid: int) -> None:
    """Kill a process with SIGKILL."""
    os.kill(pid, signal.SIGKILL)


def successor(service: Service, before: set[int]) -> int:
    """The pid of the worker that was started since."""
    wait_until(lambda: len(service.workers() - before) == 1, "another worker")
    return (service.workers() - before).pop()


def answers(service: Service, path: str = "/readyz") -> bool:
    """Whether the service answers a health check."""
    try:
        return Client.at(service.url).get(path).status == 200
    except (OSError, HTTPException):
        return False


def test_a_worker_that_is_killed_again_and_again_does_not_end_the_service(tmp_path: Path) -> None:
    """Nor does the other worker; a kernel that is short of memory kills like that."""
    with serving(tmp_path, "--workers", "2") as service:
        wait_until(lambda: listeners(service.port) == 2, "both workers to serve")
        spared, victim = sorted(service.workers())
        for _ in range(4):
            kill(victim)
            victim = successor(service, {spared, victim})
        assert spared in service.workers()
        wait_until(lambda: answers(service), "an answer")
        log = service.log.read_text()
        assert "exited (signal 9); restarting it in 1 s" in log
        assert service.terminate() == ExitCode.OK


@pytest.mark.thorough
def test_the_only_worker_may_be_killed_twice(tmp_path: Path) -> None:
    """No request is served until its successor runs, and the service does not give up."""
    with serving(tmp_path) as service:
        for _ in range(2):
            (victim,) = service.workers()
            kill(victim)
            successor(service, {victim})
        wait_until(lambda: answers(service), "an answer")


@pytest.mark.parametrize("engine_name", ["postgresql"])
def test_successors_wait_for_a_database_that_restarts(tmp_path: Path, engine_name: str) -> None:
    """If the server is down when workers are killed, their successors wait as at the service's
    start, and the service keeps running."""
    need(engine_name)
    from tests.servers.postgresql import PostgreSQL

    with PostgreSQL() as server:
        conf = configured(tmp_path, server.create_database())
        conf.write_text(
            conf.read_text() + "max_retries = -1\nretry_interval = 1\nsync_on_startup = true\n"
        )
        with serving(tmp_path, "--workers", "2", "--config-file", str(conf)) as service:
            wait_until(lambda: listeners(service.port) == 2, "both workers to serve")
            server.stop()
            refused = Client.at(service.url).get("/resource_providers")
            assert refused.status == 503
            assert str(server.port) not in refused.text
            assert server.host not in refused.text
            for victim in service.workers():
                kill(victim)
            wait_until(
                lambda: service.log.read_text().count("cannot be reached; trying again") >= 2,
                "both successors to wait",
            )
            waiting = service.workers()
            assert not answers(service)
            server.start()
            wait_until(lambda: answers(service), "an answer")
            assert service.workers() == waiting
            assert service.terminate() == ExitCode.OK


def test_a_worker_that_cannot_start_leaves_the_others_alone(tmp_path: Path) -> None:
    """It is restarted after growing pauses, and serves once it can; the service exits only when no
    worker can start."""
    conf = configured(tmp_path, f"sqlite:///{tmp_path / 'berth.db'}")
    good = conf.read_text()
    with serving(tmp_path, "--workers", "2", "--config-file", str(conf)) as service:
        wait_until(lambda: listeners(service.port) == 2, "both workers to serve")
        spared, victim = sorted(service.workers())
        conf.write_text("[placement_database\n")
        kill(victim)
        wait_until(
            lambda: "(exit code 9); restarting it in 1 s" in service.log.read_text(),
            "a worker that cannot start to be tried twice",
        )
        assert answers(service)
        assert spared in service.workers()
        conf.write_text(good)
        wait_until(lambda: len(service.workers() - {spared}) == 1, "the worker to start")
        conf.write_text("[placement_database\n")
        for worker in service.workers():
            kill(worker)
        assert service.process.wait(PATIENCE) == ExitCode.WORKERS
        assert "no worker can start; the log above says why" in service.log.read_text()


def test_a_database_that_is_removed_beneath_a_service_is_missed_at_once(tmp_path: Path) -> None:
    """Writes and reads are refused, probes give the reason, and a new worker creates no empty
    file."""
    database = tmp_path / "berth.db"
    conf = configured(tmp_path, f"sqlite:///{database}")
    with serving(tmp_path, "--workers", "2", "--config-file", str(conf)) as service:
        wait_until(lambda: listeners(service.port) == 2, "both workers to serve")
        client = Client.at(service.url)
        assert client.put("/traits/CUSTOM_BEFORE", version="1.6").status == 201
        away = database.rename(tmp_path / "away.db")
        wait_until(
            lambda: client.put("/traits/CUSTOM_AFTER", version="1.6").status == 503,
            "a write to be refused",
        )
        wait_until(lambda: client.get("/readyz").status == 503, "the probe to know")
        assert client.get("/readyz").json == {
            "status": "unavailable",
            "reason": "the database's file was removed or replaced",
        }
        assert client.get("/resource_providers").status == 503
        before = service.workers()
        kill(min(before))
        wait_until(lambda: "no longer exists" in service.log.read_text(), "its successor")
        assert not database.exists()
        away.rename(database)
        client = Client.at(service.url)
        wait_until(
            lambda: client.put("/traits/CUSTOM_BACK", version="1.6").status == 201,
            "a write to be taken",
        )
