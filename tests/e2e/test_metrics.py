# SPDX-License-Identifier: Apache-2.0
"""Metrics of several workers: whichever of them is asked, it tells of all."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.config import METRICS_FOLDER
from tests.client import Client
from tests.e2e.serving import Service, serving, wait_until
from tests.e2e.test_serve import clients_of_both_workers
from tests.exposed import scrape

REQUESTS = "berth_requests_total"
TRAITS = {"route": "/traits", "status": "200"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the services of a test put their folder."""
    place = tmp_path / "metrics"
    place.mkdir()
    return place


@pytest.fixture
def service(tmp_path: Path, place: Path) -> Iterator[Service]:
    """Two workers."""
    variables = {METRICS_FOLDER: str(place)}
    with serving(tmp_path, "--workers", "2", variables=variables) as service:
        yield service


def process_ids(client: Client) -> set[int]:
    """The processes that are told of, each with its memory."""
    told = scrape(client).by("pid", "berth_process_resident_memory_bytes")
    return {int(pid) for pid in told}


def test_any_worker_tells_what_all_have_counted(service: Service, place: Path) -> None:
    """As many requests as were made; what a worker had counted stays when it is killed, and what
    it was then goes. With the service goes the folder."""
    clients = clients_of_both_workers(service)
    made = 0
    for client in clients:
        assert client.get("/traits").status == 200
        made += 1
        assert scrape(client).value(REQUESTS, **TRAITS) == made
    before = service.workers()
    told = scrape(clients[0])
    assert process_ids(clients[0]) == before
    assert len(told.series("berth_index_refreshed_timestamp_seconds")) == 2
    room = told.value("berth_database_connections_max")

    killed = min(before)
    os.kill(killed, signal.SIGKILL)
    wait_until(
        lambda: killed not in service.workers() and len(service.workers()) == 2,
        "another worker in its place",
    )
    client = Client.at(service.url)
    wait_until(lambda: process_ids(client) == service.workers(), "the new worker to be told of")
    told = scrape(client)
    assert told.value(REQUESTS, **TRAITS) == made
    assert told.value("berth_workers") == 2
    levels = told.series("berth_index_refreshed_timestamp_seconds")
    assert {int(labels["pid"]) for labels in levels} == service.workers()
    assert told.value("berth_database_connections_max") == room

    assert [path.name.startswith("berth-metrics-") for path in place.iterdir()] == [True]
    assert service.terminate() == 0
    assert not list(place.iterdir())
