# SPDX-License-Identifier: Apache-2.0
"""Failures are remembered and logged up to a bound; who has to wait: test_http_basic.py."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import pytest

from berth.edge.auth import file_based as failed_attempts
from berth.edge.auth.file_based import (
    FORGET_S,
    FREE,
    LINES_A_MINUTE,
    NAMES_FREE,
    Caller,
    FailedAttempts,
    FailureLog,
    source_of,
)
from tests.e2e.serving import PATIENCE, wait_until

MALLORY = Caller("192.0.2.66", "alice")
ALICE = Caller("192.0.2.1", "alice")


class Turns:
    """A lock that counts the threads that wait for it or have it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.wanted = 0

    def __enter__(self) -> None:
        self.wanted += 1
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        self.wanted -= 1


def test_a_success_in_the_middle_of_a_failure_does_not_break_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two requests of one caller, one with a wrong password: the success clears the failures."""
    attempts, turns = FailedAttempts(), Turns()
    success = threading.Thread(target=attempts.forgive, args=(ALICE,))

    class Failures(OrderedDict[Caller, Any]):
        def move_to_end(self, key: Caller, last: bool = True) -> None:
            success.start()
            wait_until(lambda: turns.wanted == 2 or not success.is_alive(), "the other request")
            super().move_to_end(key, last)

    monkeypatch.setattr(attempts, "_lock", turns)
    monkeypatch.setattr(attempts, "_failures", Failures())
    assert attempts.record(ALICE, now=0.0) == 0.0
    success.join(PATIENCE)
    assert len(attempts) == 0


def fail(attempts: FailedAttempts, names: int, now: float) -> None:
    """So many names fail at Mallory's address."""
    for number in range(names):
        attempts.record(MALLORY._replace(name=f"n{number}"), now=now)


def test_many_names_at_one_address_are_suspect() -> None:
    """Many failures of one name, as of a program with an old password, count as one, and those of
    long ago, as of an office whose users mistype now and then, as none."""
    attempts = FailedAttempts()
    for _ in range(1000):
        attempts.record(MALLORY, now=0.0)
    fail(attempts, NAMES_FREE - 1, now=0.0)
    assert not attempts.is_suspect(MALLORY.address, now=0.0)
    fail(attempts, NAMES_FREE, now=0.0)
    assert attempts.is_suspect(MALLORY.address, now=FORGET_S - 1)
    assert not attempts.is_suspect(ALICE.address, now=0.0)
    assert not attempts.is_suspect(MALLORY.address, now=FORGET_S)
    attempts.record(MALLORY, now=FORGET_S)
    assert not attempts.is_suspect(MALLORY.address, now=FORGET_S)
    fail(attempts, NAMES_FREE, now=FORGET_S + 1)
    assert attempts.is_suspect(MALLORY.address, now=FORGET_S + 1)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("-", "-", True),
    ],
)
def test_a_network_of_ipv6_is_one_source(one: str, other: str, is_same: bool) -> None:
    """Whoever has one address of the network can use all of them."""
    assert (source_of(one) == source_of(other)) is is_same


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The callers and addresses whose last failure is oldest are forgotten first."""
    monkeypatch.setattr(failed_attempts, "CALLERS_MAX", 10)
    attempts = FailedAttempts()
    for _ in range(FREE + 1):
        attempts.record(MALLORY, now=0.0)
    for number in range(9):
        attempts.record(Caller(f"10.0.0.{number}", "x"), now=0.0)
    assert attempts.wait_s(MALLORY, now=0.0) > 0
    attempts.record(Caller("192.0.2.9", "one more"), now=0.0)
    assert len(attempts) == len(attempts._names) == 10
    assert attempts.wait_s(MALLORY, now=0.0) == 0


def test_the_log_is_told_a_bounded_number_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """The first line of the next minute says how many were left out."""
    log = FailureLog()
    for number in range(LINES_A_MINUTE + 7):
        log.warn("attempt %d", number, now=1000.0)
    assert len(caplog.records) == LINES_A_MINUTE
    log.warn("attempt of the next minute", now=1060.0)
    assert caplog.messages[LINES_A_MINUTE:] == [
        "Failed logins not logged one by one: 7",
        "attempt of the next minute",
    ]
