# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for changes: each is woken for every step, and none before its turn. That all
end when the service stops: tests/api/berth_v1/test_changes.py."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from berth.api.watchers import Changes
from berth.edge import watchers
from berth.edge.watchers import Watchers
from tests.e2e.serving import PATIENCE, wait_until

WAITING = 16
STEPS = 40


class Fleet:
    """A fleet whose revision is a number, and the requests that wait for it."""

    def __init__(self) -> None:
        self.revision = 0
        self.stopping = Event()
        self.committed = Event()
        self.reads = 0
        #: The revisions from which requests began to wait.
        self.joined: list[str] = []
        self.watchers = Watchers(
            self.snapshot, self.changes, self.committed, self.stopping, most=WAITING, look_s=0.01
        )

    def snapshot(self) -> Any:
        """The present one."""
        self.reads += 1
        return SimpleNamespace(revision=f"{self.revision}")

    def changes(self, snapshot: Any, since: str) -> Changes:
        """One event, with the number of commits."""
        commits = int(snapshot.revision) - int(since)
        return Changes(snapshot.revision, [{"change": "usage", "commits": commits}])

    def commit(self) -> None:
        """Change the fleet."""
        self.revision += 1
        self.committed.set()

    def commit_and_be_read(self) -> None:
        """Change the fleet, and wait until somebody has looked."""
        before = self.reads
        self.commit()
        wait_until(lambda: self.reads > before, "the next look")

    def followed(self, until: int, goes_on: Callable[[], bool] = lambda: True) -> int:
        """Follow from the first revision, and return how many commits were told by `until`."""
        told = 0
        with self.watchers.place():
            step, _ = self.watchers.join()
            self.joined.append(step.revision)
            while int(step.revision) < until:
                later = self.watchers.wait(step, self.watchers.clock() + PATIENCE, goes_on)
                if later is None:
                    break
                step = later
                assert step.changes is not None
                sent = b"".join(step.changes.sent())
                told += sum(map(int, re.findall(rb'"commits":(\d+)', sent)))
        return told


@pytest.mark.parametrize("wake_s", [0.0001, 0.002, watchers.WAKE_S])
def test_none_misses_a_step_and_none_gets_it_twice(
    monkeypatch: pytest.MonkeyPatch, wake_s: float
) -> None:
    """Also if its turn comes at the moment at which it gives up waiting for it."""
    monkeypatch.setattr(watchers, "WAKE_S", wake_s)
    monkeypatch.setattr(watchers, "PAUSE_S", 0.0)
    fleet = Fleet()
    with ThreadPoolExecutor(WAITING) as threads:
        following = [threads.submit(fleet.followed, STEPS) for _ in range(WAITING)]
        wait_until(lambda: len(fleet.joined) == WAITING, "all to wait")
        for _ in range(STEPS):
            fleet.commit_and_be_read()
        assert [each.result(PATIENCE) for each in following] == [STEPS] * WAITING


def test_nobody_looks_when_nobody_waits() -> None:
    """The thread ends with the last request; nothing of the fleet is kept."""
    fleet = Fleet()
    with ThreadPoolExecutor(1) as threads:
        following = threads.submit(fleet.followed, 1)
        wait_until(lambda: len(fleet.watchers._turns) == 1, "it to wait")
        fleet.commit()
        assert following.result(PATIENCE) == 1
    wait_until(lambda: fleet.watchers._looking is None, "the thread to end")
    assert not fleet.watchers._steps
