# SPDX-License-Identifier: Apache-2.0
"""Metrics of several workers: each worker reports for all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from berth.config import METRICS_FOLDER
from tests.client import Client
from tests.contrib.wsgi_servers import configure, gunicorn, wait_until_it_answers
from tests.e2e.serving import Service, environment, run_berth, serving, wait_until
from tests.e2e.test_serve import clients_of_both_workers, listeners
from tests.exposed import scrape

REQUESTS = "berth_requests_total"
TRAITS = {"route": "/traits", "status": "200"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The directory for the metrics folders of a test's services."""
    place = tmp_path / "metrics"
    place.mkdir()
    return place


@pytest.fixture
def service(tmp_path: Path, place: Path) -> Iterator[Service]:
    """A service with two workers."""
    variables = {METRICS_FOLDER: str(place)}
    with serving(tmp_path, "--workers", "2", variables=variables) as service:
        yield service


def process_ids(client: Client) -> set[int]:
    """The processes in the metrics, each with its memory."""
    by_pid = scrape(client).by("pid", "berth_process_resident_memory_bytes")
    return {int(pid) for pid in by_pid}


def has_counted(client: Client, made: int) -> Callable[[], bool]:
    """Whether a worker reports this many requests; a response is reused for a second."""
    return lambda: scrape(client).value(REQUESTS, **TRAITS) == made


def test_any_worker_tells_what_all_have_counted(service: Service, place: Path) -> None:
    """As many requests as were sent. The counts of a worker stay when it is killed, its gauges are
    removed. The folder is removed with the service."""
    clients = clients_of_both_workers(service)
    made = 0
    for client in clients:
        assert client.get("/traits").status == 200
        made += 1
        wait_until(has_counted(client, made), "the worker to tell of all")
    before = service.workers()
    wait_until(lambda: process_ids(clients[0]) == before, "the worker to tell of both")
    has_capacity_once(clients)
    metrics = scrape(clients[0])
    assert len(metrics.series("berth_index_refreshed_timestamp_seconds")) == 2
    room = metrics.value("berth_database_connections_max")

    killed = min(before)
    os.kill(killed, signal.SIGKILL)
    wait_until(
        lambda: killed not in service.workers() and len(service.workers()) == 2,
        "another worker in its place",
    )
    client = Client.at(service.url)
    # It is told of from when it begins to count, and has told everything when it serves.
    wait_until(lambda: listeners(service.port) == 2, "the new worker to serve")
    wait_until(lambda: process_ids(client) == service.workers(), "the workers to be told of")
    metrics = scrape(client)
    assert metrics.value(REQUESTS, **TRAITS) == made
    assert metrics.value("berth_workers") == 2
    levels = metrics.series("berth_index_refreshed_timestamp_seconds")
    assert {int(labels["pid"]) for labels in levels} == service.workers()
    assert metrics.value("berth_database_connections_max") == room

    assert [path.name.startswith("berth-metrics-") for path in place.iterdir()] == [True]
    assert service.terminate() == 0
    assert not list(place.iterdir())


def has_capacity_once(clients: list[Client]) -> None:
    """Check that each worker reports how many more of a flavor fit: not the sum over workers."""
    host = {"uuid": str(uuid.uuid4()), "name": "host"}
    assert clients[0].post("/resource_providers", json=host).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 6}}}
    path = f"/resource_providers/{host['uuid']}/inventories"
    assert clients[0].put(path, json=body).status == 200
    request = {"groups": {"": {"resources": {"VCPU": 2}}}}
    assert clients[0].put("/berth/v1/flavors/small", json={"request": request}).status == 201
    for client in clients:
        wait_until(partial(fits, client, "small", 3), "a worker to report the capacity")


def fits(client: Client, flavor: str, count: int) -> bool:
    """Whether a worker reports, in one series, that so many more of a flavor fit."""
    samples = scrape(client).samples("berth_capacity_count")
    return [(each.labels, each.value) for each in samples] == [({"flavor": flavor}, count)]


def test_under_another_server_processes_share_the_folder_that_is_named(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gunicorn's workers share it, as prometheus-client does; also after one was killed at its
    start and left an empty file."""
    (place / "counter_99999999.db").touch()
    monkeypatch.setenv(METRICS_FOLDER, str(place))
    configure(tmp_path)
    with gunicorn(tmp_path) as running:
        wait_until_it_answers(running)
        wait_until(
            lambda: scrape(running.client()).value("berth_workers") == 2, "both workers to count"
        )
        for _ in range(12):
            assert running.client().get("/traits").status == 200
        for _ in range(4):
            wait_until(has_counted(running.client(), 12), "each worker to tell of all")


def test_a_folder_that_cannot_be_shared_is_told_of_at_start(tmp_path: Path) -> None:
    """In one line, for `berth serve` and for other servers."""
    nowhere = {METRICS_FOLDER: str(tmp_path / "nowhere")}
    refused = run_berth(tmp_path, "serve", "--bind", "127.0.0.1:0", variables=nowhere)
    assert refused.returncode != 0
    assert refused.stderr.startswith("berth: cannot create a directory for metrics in ")
    assert refused.stderr.count("\n") == 1
    configure(tmp_path)
    refused = subprocess.run(
        [sys.executable, "-c", "import berth.wsgi"],
        env=environment(tmp_path, OS_PLACEMENT_CONFIG_DIR=str(tmp_path), **nowhere),
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode != 0
    assert f"{METRICS_FOLDER} is {nowhere[METRICS_FOLDER]}, which is not a" in refused.stderr
