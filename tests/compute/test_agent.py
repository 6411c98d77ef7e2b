# SPDX-License-Identifier: Apache-2.0
"""An agent's life: its start, its passes, its pauses (spec/compute-side.md 3)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from berth.compute import BadProviderTree, ReshapeNeeded
from berth.compute.agent import Agent, Woken
from berth.compute.errors import ComputeError, Unreachable
from berth.compute.plan import Plan
from berth.compute.report_client import ReportClient
from tests.compute.hosts import AFTER, BEFORE, node, three_guests, tracker
from tests.compute.stage import Stage, drawn

INTERVAL_S = 60.0


class Told:
    """A tracker whose reports end as they are told to."""

    def __init__(self, *ends: Exception | None) -> None:
        self._ends = [*ends]
        self.startups: list[bool] = []

    def report(self, node: object, *, startup: bool) -> Plan:
        """End as the next one is to."""
        self.startups.append(startup)
        if (end := self._ends.pop(0)) is not None:
            raise end
        return Plan()


class Night:
    """Wakes an agent as it is told to, and notes for how long it wanted to sleep."""

    def __init__(self, *woken: Woken) -> None:
        self._woken = iter([*woken, Woken.TO_STOP])
        self.slept: list[float] = []

    def __call__(self, seconds: float) -> Woken:
        """Sleep, and be woken."""
        self.slept.append(seconds)
        return next(self._woken)


def agent(trackers: Iterator[Any], night: Night) -> Agent:
    """An agent of one node, whose clock stands."""
    return Agent(
        lambda: next(trackers),
        [node()],
        interval_s=INTERVAL_S,
        wait=night,
        clock=lambda: 1.0,
        rng=Random(1),
    )


def test_it_reshapes_at_its_start_and_then_finds_nothing_to_do(stage: Stage) -> None:
    """Over a real service."""
    stage.show(BEFORE)
    client = ReportClient(stage.transport)
    started = agent(iter([tracker(client, three_guests())]), Night(Woken.BY_TIME))
    started.start()
    assert stage.picture() == drawn(AFTER)
    client.service.requests.clear()
    started.run()
    assert set(client.service.requests) == {"GET"}
    assert started.state.passes == 2


def test_a_start_that_fails_ends_it() -> None:
    """The first document: fatal at start-up."""
    failing = agent(iter([Told(BadProviderTree(["total is missing"]))]), Night())
    with pytest.raises(ComputeError, match="total is missing"):
        failing.start()


def test_a_reshape_that_is_needed_later_waits(caplog: pytest.LogCaptureFixture) -> None:
    """It is told once, and shown for as long as it is so."""
    told = Told(None, ReshapeNeeded(), ReshapeNeeded())
    waiting = agent(iter([told]), Night(Woken.BY_TIME, Woken.BY_TIME))
    waiting.start()
    waiting.run()
    assert told.startups == [True, False, False]
    assert waiting.state.nodes["cn1"].needs_reshape
    assert caplog.text.count("needs another shape") == 1


def test_failures_are_told_once_and_slow_it_down(caplog: pytest.LogCaptureFixture) -> None:
    """Each kind once; when it works again, that is told, and the pauses are the usual ones."""
    caplog.set_level(logging.INFO)
    told = Told(None, *[Unreachable("no answer")] * 5, ValueError("a mistake"), None, None)
    night = Night(*[Woken.BY_TIME] * 8)
    failing = agent(iter([told]), night)
    failing.start()
    failing.run()
    for slept, factor in zip(night.slept, [1, 2, 4, 8, 16, 16, 16, 1, 1], strict=True):
        assert slept / INTERVAL_S == pytest.approx(factor, rel=0.1)
    assert caplog.text.count("no answer") == 1
    assert caplog.text.count("cn1 is reported again") == 1
    assert failing.state.nodes["cn1"].error == ""


def test_the_configuration_is_read_again_when_it_is_told_to(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A wrong one leaves the old one in force."""
    first, second = Told(None), Told(None, None)

    def trackers() -> Iterator[object]:
        yield first
        yield second
        raise ComputeError("no such driver")

    reloaded = agent(trackers(), Night(Woken.TO_RELOAD, Woken.TO_RELOAD))
    reloaded.start()
    reloaded.run()
    assert (first.startups, second.startups) == ([True], [False, False])
    assert "left as it was: no such driver" in caplog.text
