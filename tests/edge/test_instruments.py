# SPDX-License-Identifier: Apache-2.0
"""Requests are counted now and added to the metrics a little later."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from berth.edge import instruments
from berth.edge.instrument_maker import Maker
from berth.edge.instruments import RequestInstruments

KEY = ("GET", "/traits", "200", 39)
LABELS = {"method": "GET", "route": "/traits", "status": "200", "microversion": "1.39"}


class Counted:
    """The instruments of requests in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = RequestInstruments(Maker(self.registry), strategy="noauth2")

    @property
    def total(self) -> float | None:
        """How many requests the registry tells of."""
        return self.registry.get_sample_value("berth_requests_total", LABELS)

    @property
    def seconds(self) -> float | None:
        """How many durations it tells of."""
        labels = {"method": "GET", "route": "/traits"}
        return self.registry.get_sample_value("berth_request_seconds_count", labels)


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Instruments whose values other processes report too."""
    monkeypatch.setattr(instruments, "shared_folder", lambda: str(tmp_path))
    return Counted()


def test_threads_lose_no_request() -> None:
    """Counted and flushed by several at a time."""
    counted = Counted()

    def count() -> None:
        for number in range(2000):
            counted.requests.answered(*KEY, 0.001)
            if number % 7 == 0:
                counted.requests.flush()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counted.requests.flush()
    assert (counted.total, counted.seconds) == (8000, 8000)
