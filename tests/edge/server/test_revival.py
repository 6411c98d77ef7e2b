# SPDX-License-Identifier: Apache-2.0
"""When a worker that has exited is restarted, and when the service gives up."""

from __future__ import annotations

from berth.edge.server.revival import LASTING_S, PAUSE_S_FIRST, PAUSE_S_MAX, STARTS_MAX, Revival


def test_a_worker_that_has_served_comes_back_at_once() -> None:
    """A kill costs only the requests of that worker."""
    revival = Revival(2, now=0)
    assert revival.pause(now=LASTING_S) is None
    assert revival.ended(1, had_served=True, for_good=False, now=LASTING_S) == 0
    assert revival.due(now=LASTING_S) == [1]
    revival.begun(1, now=LASTING_S)
    assert revival.due(now=100) == []


def test_a_worker_that_falls_as_soon_as_it_serves_waits_a_little() -> None:
    """It is always restarted, but never in a tight loop."""
    revival = Revival(1, now=0)
    for moment in range(100):
        pause = revival.ended(0, had_served=True, for_good=False, now=float(moment))
        assert pause == PAUSE_S_FIRST
        assert not revival.is_hopeless(set())
        revival.begun(0, now=moment + pause)


def test_a_worker_that_cannot_start_waits_longer_each_time() -> None:
    """It is retried without limit while another worker serves."""
    revival = Revival(2, now=0)
    pauses = [revival.ended(0, had_served=False, for_good=True, now=0) for _ in range(40)]
    assert pauses[:4] == [PAUSE_S_FIRST * factor for factor in (1, 2, 4, 8)]
    assert pauses[-1] == PAUSE_S_MAX
    assert not revival.is_hopeless({1})
    assert revival.due(now=PAUSE_S_MAX - 0.1) == []
    assert revival.pause(now=0) == PAUSE_S_MAX
    assert revival.due(now=PAUSE_S_MAX) == [0]


def test_the_service_ends_when_every_worker_has_said_why_it_cannot_start() -> None:
    """Even while one of them is being started again: it would fail for the same reason."""
    revival = Revival(2, now=0)
    revival.ended(0, had_served=False, for_good=True, now=1)
    assert not revival.is_hopeless(set()), "the other may start yet"
    revival.begun(0, now=2)
    revival.ended(1, had_served=False, for_good=True, now=3)
    assert not revival.is_hopeless({0}), "the first serves by now"
    assert revival.is_hopeless(set())


def test_a_worker_that_is_killed_before_it_serves_has_some_more_tries() -> None:
    """It has given no reason, so the next start may succeed."""
    revival = Revival(1, now=0)
    for _ in range(STARTS_MAX - 1):
        revival.ended(0, had_served=False, for_good=False, now=0)
        assert not revival.is_hopeless(set())
    revival.ended(0, had_served=False, for_good=False, now=0)
    assert revival.is_hopeless(set())


def test_having_served_forgives_what_was_before() -> None:
    """The pauses start again with the shortest, and the tries are counted from 0; a reason that it
    gave once counts no more."""
    revival = Revival(1, now=0)
    for _ in range(STARTS_MAX - 1):
        revival.ended(0, had_served=False, for_good=False, now=0)
    revival.begun(0, now=10)
    assert revival.ended(0, had_served=True, for_good=False, now=100) == 0
    assert revival.ended(0, had_served=False, for_good=False, now=100) == PAUSE_S_FIRST
    assert not revival.is_hopeless(set())
    assert revival.ended(0, had_served=False, for_good=True, now=200) == PAUSE_S_FIRST * 2
    assert revival.is_hopeless(set())
    revival.begun(0, now=201)
    revival.ended(0, had_served=True, for_good=False, now=300)
    assert not revival.is_hopeless(set())
