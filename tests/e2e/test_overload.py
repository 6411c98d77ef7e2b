# SPDX-License-Identifier: Apache-2.0
"""More clients than the service can serve: the surplus is refused, and nothing else suffers."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.client import Client, Response
from tests.e2e.serving import PATIENCE, Service, serving, wait_until
from tests.e2e.test_serve import database_of, write_locked

WORKERS = 2
CLIENTS = 40

#: Room for two of each kind in a worker, and for four more that wait as long as it takes.
NARROW = {
    "OS_BERTH__READS_RUNNING_MAX": "2",
    "OS_BERTH__WRITES_RUNNING_MAX": "2",
    "OS_BERTH__REQUESTS_WAITING_MAX": "4",
    "OS_BERTH__WAIT_SECONDS_MAX": str(PATIENCE),
}
PLACES = WORKERS * (2 + 4)

#: Threads of a worker at its fullest here: those of reads and writes, those that refuse, and its
#: own.
THREADS_MAX = 2 * (2 + 4) + 64 + 16


@contextmanager
def narrow_service(home: Path) -> Iterator[Service]:
    """A service with low limits."""
    with serving(home, "--workers", str(WORKERS), variables=NARROW) as service:
        yield service


def flood(
    pool: ThreadPoolExecutor, service: Service, ask: Callable[[Client, int], Response]
) -> list[Future[Response]]:
    """Many clients send one request each, at the same time; returns their responses."""
    ready = threading.Barrier(CLIENTS)

    def one(number: int) -> Response:
        ready.wait(PATIENCE)
        return ask(Client.at(service.url), number)

    return [pool.submit(one, number) for number in range(CLIENTS)]


def host_with_room(client: Client) -> str:
    """The uuid of a provider on which all claims fit."""
    provider = str(uuid.uuid4())
    created = client.post("/resource_providers", json={"uuid": provider, "name": "host"})
    assert created.status == 200, created.text
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 10_000}}}
    assert client.put(f"/resource_providers/{provider}/inventories", json=body).status == 200
    return provider


def claim(client: Client, provider: str, consumer: str) -> Response:
    """Claim one VCPU for a new consumer."""
    body = {
        "allocations": {provider: {"resources": {"VCPU": 1}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    return client.put(f"/allocations/{consumer}", json=body)


def used(client: Client, provider: str) -> int:
    """The number of VCPU that are allocated."""
    amount = client.get(f"/resource_providers/{provider}/usages").json["usages"]["VCPU"]
    assert isinstance(amount, int)
    return amount


def threads_of(worker: int) -> int:
    """The number of a process's threads."""
    match = re.search(r"^Threads:\s+(\d+)", Path(f"/proc/{worker}/status").read_text(), re.M)
    assert match
    return int(match[1])


def test_a_flood_of_writers_is_told_to_come_back(tmp_path: Path) -> None:
    """While the database is locked, as many writes wait as are allowed, and the others get 503.

    Readers and the version document are served meanwhile. Once the lock is released, exactly the
    writes that were not refused are done, and the next request is served normally.
    """
    with narrow_service(tmp_path) as service:
        client = Client.at(service.url)
        provider = host_with_room(client)
        consumers = [str(uuid.uuid4()) for _ in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as pool, write_locked(database_of(service)):
            answers = flood(
                pool, service, lambda client, number: claim(client, provider, consumers[number])
            )
            wait_until(
                lambda: sum(answer.done() for answer in answers) >= CLIENTS - PLACES,
                "those who find no room to be told",
            )
            assert client.get("/").status == 200
            query = f"/allocation_candidates?resources=VCPU:1&in_tree={provider}"
            assert len(client.get(query).json["allocation_requests"]) == 1
        assert all(threads_of(worker) <= THREADS_MAX for worker in service.workers())
        served = 0
        for consumer, answer in zip(
            consumers, (future.result() for future in answers), strict=True
        ):
            allocations = client.get(f"/allocations/{consumer}").json["allocations"]
            if answer.status == 204:
                assert allocations
                served += 1
            else:
                assert answer.status == 503 and answer.headers["retry-after"] == "1", answer.text
                assert answer.code == "placement.overloaded"
                assert not allocations
        assert 0 < served <= PLACES
        assert used(client, provider) == served
        assert claim(client, provider, str(uuid.uuid4())).status == 204


@pytest.mark.thorough
def test_a_flood_of_readers_gets_right_answers_or_none(tmp_path: Path) -> None:
    """Each response is complete or an error; afterwards the service works normally at once."""
    with narrow_service(tmp_path) as service:
        client = Client.at(service.url)
        provider = host_with_room(client)
        query = f"/allocation_candidates?resources=VCPU:1&in_tree={provider}"
        due = client.get(query).json
        with ThreadPoolExecutor(CLIENTS) as pool:
            answers = flood(pool, service, lambda client, _: client.get(query))
            statuses = {answer.result(PATIENCE).status for answer in answers}
        assert statuses <= {200, 503}
        assert all(
            future.result().json == due for future in answers if future.result().status == 200
        )
        assert client.get(query).json == due
        assert claim(client, provider, str(uuid.uuid4())).status == 204
