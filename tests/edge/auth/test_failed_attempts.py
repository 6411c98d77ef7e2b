# SPDX-License-Identifier: Apache-2.0
"""A caller that fails to authenticate has to wait, and fills neither the log nor the memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import pytest

from berth.edge.auth import failed_attempts
from berth.edge.auth.failed_attempts import (
    CALLERS_MAX,
    FORGET_S,
    FREE,
    LINES_A_MINUTE,
    NAMES_FREE,
    WAIT_S_MAX,
    Caller,
    FailedAttempts,
    FailureLog,
    source_of,
)
from tests.e2e.serving import PATIENCE, wait_until

MALLORY = Caller("192.0.2.66", "alice")
ALICE = Caller("192.0.2.1", "alice")


def test_the_wait_grows_and_has_a_bound() -> None:
    """A few failures cost nothing; then the wait doubles."""
    attempts = FailedAttempts()
    waits = [attempts.record(MALLORY, now=0.0) for _ in range(FREE + 40)]
    assert waits[:FREE] == [0.0] * FREE
    assert waits[FREE : FREE + 6] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert set(waits[FREE + 6 :]) == {WAIT_S_MAX}


def test_the_wait_goes_by() -> None:
    """It applies only to this name from this address."""
    attempts = FailedAttempts()
    for _ in range(FREE + 2):
        attempts.record(MALLORY, now=100.0)
    assert attempts.wait_s(MALLORY, now=100.5) == 1.5
    assert attempts.wait_s(MALLORY, now=102.0) == 0.0
    assert attempts.wait_s(ALICE, now=100.5) == 0.0
    assert attempts.wait_s(MALLORY._replace(name="bob"), now=100.5) == 0.0


def test_success_makes_good_again() -> None:
    """The next few failures cost nothing again."""
    attempts = FailedAttempts()
    for _ in range(FREE + 3):
        attempts.record(ALICE, now=0.0)
    attempts.forgive(ALICE)
    assert attempts.record(ALICE, now=0.0) == 0.0


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


def test_many_names_at_one_address_are_suspect() -> None:
    """Many failures of one name, as of a program with an old password, count as one."""
    attempts = FailedAttempts()
    for _ in range(1000):
        attempts.record(MALLORY, now=0.0)
    for number in range(NAMES_FREE):
        assert not attempts.is_suspect(MALLORY.address, now=0.0)
        attempts.record(MALLORY._replace(name=f"n{number}"), now=0.0)
    assert attempts.is_suspect(MALLORY.address, now=FORGET_S - 1)
    assert not attempts.is_suspect(ALICE.address, now=0.0)
    assert not attempts.is_suspect(MALLORY.address, now=FORGET_S)


def test_names_that_failed_long_ago_make_nobody_suspect() -> None:
    """An office whose users mistype now and then is not suspect."""
    attempts = FailedAttempts()
    for number in range(NAMES_FREE):
        attempts.record(MALLORY._replace(name=f"n{number}"), now=0.0)
    attempts.record(MALLORY, now=FORGET_S)
    assert not attempts.is_suspect(MALLORY.address, now=FORGET_S)
    for number in range(NAMES_FREE):
        attempts.record(MALLORY._replace(name=f"n{number}"), now=FORGET_S + 1)
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


def test_addresses_are_remembered_up_to_a_bound() -> None:
    """Beyond the limit, the addresses whose last failure is oldest are forgotten."""
    attempts = FailedAttempts()
    for number in range(CALLERS_MAX + 10):
        attempts.record(Caller(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", "x"), now=0)
    assert len(attempts._names) == CALLERS_MAX


def test_what_is_long_past_is_forgotten() -> None:
    """A quarter of an hour after the last failure."""
    attempts = FailedAttempts()
    for _ in range(FREE + 1):
        attempts.record(MALLORY, now=0.0)
    assert attempts.record(MALLORY, now=FORGET_S - 1) == 2.0
    assert attempts.record(MALLORY, now=2 * FORGET_S) == 0.0


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The callers whose last failure is oldest are forgotten first."""
    monkeypatch.setattr(failed_attempts, "CALLERS_MAX", 10)
    attempts = FailedAttempts()
    for _ in range(FREE + 1):
        attempts.record(MALLORY, now=0.0)
    for number in range(9):
        attempts.record(Caller("192.0.2.9", f"user-{number}"), now=0.0)
    assert attempts.wait_s(MALLORY, now=0.0) > 0
    attempts.record(Caller("192.0.2.9", "one more"), now=0.0)
    assert len(attempts) == 10 < CALLERS_MAX
    assert attempts.wait_s(MALLORY, now=0.0) == 0


def test_the_log_is_told_a_bounded_number_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """The first line of the next minute says how many were left out."""
    log = FailureLog()
    for number in range(LINES_A_MINUTE + 7):
        log.warn("attempt %d", number, now=1000.0)
    assert len(caplog.records) == LINES_A_MINUTE
    log.warn("attempt of the next minute", now=1060.0)
    assert [record.getMessage() for record in caplog.records[LINES_A_MINUTE:]] == [
        "Failed logins not logged one by one: 7",
        "attempt of the next minute",
    ]
