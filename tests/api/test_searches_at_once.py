# SPDX-License-Identifier: Apache-2.0
"""Many searches for candidates at a time, and simple reads beside them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from berth.api import allocation_candidates
from berth.candidates import LongAnswer, find_candidates
from tests.api import configured
from tests.client import Client
from tests.e2e.serving import PATIENCE, wait_until
from tests.exposed import scrape

SEARCHES = 16
QUERY = "/allocation_candidates?resources=VCPU:1"
HOST = "00000000-0000-0000-0000-000000000001"


class Searches:
    """Replaces `find_candidates`: each search runs until the test ends it."""

    def __init__(self) -> None:
        self.running = self.begun = self.most = 0
        self._lock = threading.Lock()
        self._may_end = threading.Semaphore(0)

    def find(self, *arguments: Any, **options: Any) -> bytes | LongAnswer:
        """Wait until the search may end, then run it."""
        with self._lock:
            self.running += 1
            self.begun += 1
            self.most = max(self.most, self.running)
        assert self._may_end.acquire(timeout=PATIENCE)
        with self._lock:
            self.running -= 1
        return find_candidates(*arguments, **options)

    def has_begun(self, count: int) -> bool:
        """Whether this many searches have begun."""
        return self.begun == count

    def end(self, count: int) -> None:
        """Let this many of them end."""
        self._may_end.release(count)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Iterator[Searches]:
    """Searches that end when the test says so."""
    staged = Searches()
    monkeypatch.setattr(allocation_candidates, "find_candidates", staged.find)
    yield staged
    staged.end(SEARCHES)


def service_with_a_host(folder: Path, settings: str = "") -> Client:
    """A service of one host with eight CPUs."""
    client = configured.serve(folder, settings)
    client.post("/resource_providers", json={"name": "host", "uuid": HOST})
    client.put(
        f"/resource_providers/{HOST}/inventories",
        json={"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}},
    )
    return client


@contextmanager
def at_once(client: Client) -> Iterator[list[int]]:
    """Send sixteen searches; returns their statuses."""
    statuses: list[int] = []
    with ThreadPoolExecutor(SEARCHES) as pool:
        asked = [pool.submit(client.get, QUERY) for _ in range(SEARCHES)]
        yield statuses
        statuses += [future.result().status for future in asked]


def test_reads_of_one_thing_do_not_wait_behind_searches(tmp_path: Path, searches: Searches) -> None:
    """Two of sixteen searches run, and the others wait; a simple read is answered meanwhile."""
    client = service_with_a_host(tmp_path)
    with at_once(client) as statuses:
        wait_until(lambda: searches.begun == 2, "two searches to run")
        for path in (f"/resource_providers/{HOST}", "/traits", f"/allocations/{HOST}"):
            assert client.get(path).status == 200
        assert searches.begun == 2
        for done in range(1, SEARCHES - 1):
            searches.end(1)
            due = done + 2
            wait_until(partial(searches.has_begun, due), "the next search to run")
        searches.end(2)
    assert statuses == [200] * SEARCHES
    assert searches.most == 2


def wait_for_refusals(client: Client) -> None:
    """Until all searches but one are refused."""
    wait_until(
        lambda: (
            scrape(client).value("berth_admission_refused_total", line="searches") == SEARCHES - 1
        ),
        "the others to be refused",
    )


def test_the_operator_says_how_many_search_at_a_time(tmp_path: Path, searches: Searches) -> None:
    """`searches_running_max`; a search that waits too long gets 503, and is counted."""
    client = service_with_a_host(
        tmp_path, "[berth]\nsearches_running_max = 1\nwait_seconds_max = 0.01\n"
    )
    with at_once(client) as statuses:
        wait_for_refusals(client)
        assert client.get("/traits").status == 200
        searches.end(1)
    assert sorted(statuses) == [200] + [503] * (SEARCHES - 1)
    assert searches.most == 1


def test_a_search_is_refused_when_it_could_not_end_in_time(
    tmp_path: Path, searches: Searches
) -> None:
    """It does not wait for five seconds and then begin: nobody waits longer than twice its
    budget. The one that runs has given up by then."""
    client = service_with_a_host(
        tmp_path, "[berth]\nsearches_running_max = 1\ncandidates_time_budget = 0.01\n"
    )
    with at_once(client) as statuses:
        wait_for_refusals(client)
        searches.end(1)
    assert statuses == [503] * SEARCHES
    assert searches.begun == 1


def test_a_search_that_fails_gives_its_place_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any number of times."""
    client = service_with_a_host(tmp_path)

    def fails(*_: Any, **__: Any) -> bytes:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(allocation_candidates, "find_candidates", fails)
        for _ in range(5):
            assert client.get(QUERY).status == 500
    assert client.get(QUERY).status == 200
