# SPDX-License-Identifier: Apache-2.0
"""Many searches for candidates at a time, and simple reads beside them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from berth.api.placement import allocation_candidates
from berth.candidates import find_candidates
from tests.api import configured
from tests.api.worlds import provider
from tests.e2e.serving import PATIENCE, wait_until

SEARCHES = 16
QUERY = "/allocation_candidates?resources=VCPU:1"


def test_reads_of_one_thing_do_not_wait_behind_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of sixteen searches run, and the others wait; a simple read is answered meanwhile."""
    may_end = threading.Semaphore(0)
    begun: list[int] = []

    def find(*arguments: Any, **options: Any) -> object:
        begun.append(1)
        assert may_end.acquire(timeout=PATIENCE)
        return find_candidates(*arguments, **options)

    client = configured.serve(tmp_path)
    host = provider(client, {"VCPU": 8})
    monkeypatch.setattr(allocation_candidates, "find_candidates", find)
    with ThreadPoolExecutor(SEARCHES) as pool:
        asked = [pool.submit(client.get, QUERY) for _ in range(SEARCHES)]
        try:
            wait_until(lambda: len(begun) == 2, "two searches to run")
            for path in (f"/resource_providers/{host}", "/traits", f"/allocations/{host}"):
                assert client.get(path).status == 200
            assert len(begun) == 2
            may_end.release()
            wait_until(lambda: len(begun) == 3, "the next search to run")
        finally:
            may_end.release(SEARCHES)
        assert [each.result().status for each in asked] == [200] * SEARCHES


def test_a_search_that_fails_gives_its_place_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any number of times."""
    client = configured.serve(tmp_path)
    provider(client, {"VCPU": 8})

    def fails(*_: Any, **__: Any) -> bytes:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(allocation_candidates, "find_candidates", fails)
        for _ in range(5):
            assert client.get(QUERY).status == 500
    assert client.get(QUERY).status == 200
