# SPDX-License-Identifier: Apache-2.0
"""Notifications to the service manager: sd_notify(3)."""

from __future__ import annotations

import logging
import socket
import uuid
from pathlib import Path
from queue import Empty

import pytest

from berth.cli.agent_running import Alarm
from berth.cli.service_manager import (
    NOTIFY_SOCKET,
    WATCHDOG_USEC,
    tell_ready,
    tell_starting,
    tell_stopping,
)
from berth.hosts.agent import Woken


@pytest.mark.parametrize("kind", ["file", "abstract"])
def test_a_manager_is_told(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a path, or at a name in the abstract namespace, written with @."""
    name = str(tmp_path / "notify") if kind == "file" else f"@berth-{uuid.uuid4()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name.replace("@", "\0", 1))
        manager.settimeout(10)
        monkeypatch.setenv(NOTIFY_SOCKET, name)
        tell_ready("serves http://127.0.0.1:8778")
        assert manager.recv(4096) == b"READY=1\nSTATUS=serves http://127.0.0.1:8778"
        tell_starting("no answer\nat all", 4.0)
        assert manager.recv(4096) == b"EXTEND_TIMEOUT_USEC=124000000\nSTATUS=no answer at all"
        tell_stopping()
        assert manager.recv(4096).startswith(b"STOPPING=1\n")


class PunctualClock:
    """A clock with an empty queue: waiting advances the time exactly."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        """The current time."""
        return self._now

    def get(self, timeout: float) -> None:
        """Advance the time by the timeout."""
        self._now += timeout
        raise Empty


def test_a_manager_that_watches_is_told_while_an_agent_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice per watchdog interval, without changing the length of the wait."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(10)
        monkeypatch.setenv(NOTIFY_SOCKET, str(tmp_path / "notify"))
        monkeypatch.setenv(WATCHDOG_USEC, "100000")
        clock = PunctualClock()
        monkeypatch.setattr("berth.cli.agent_running.time", clock)
        alarm = Alarm()
        monkeypatch.setattr(alarm, "_knocks", clock)
        assert alarm.wait(0.18) is Woken.BY_TIME
        assert clock.monotonic() == pytest.approx(0.18)
        assert [manager.recv(100) for _ in range(4)] == [b"WATCHDOG=1"] * 4


@pytest.mark.parametrize("told", [None, ""])
def test_nobody_asked(
    told: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Then nothing is sent."""
    monkeypatch.delenv(NOTIFY_SOCKET, raising=False)
    if told is not None:
        monkeypatch.setenv(NOTIFY_SOCKET, told)
    tell_ready("serves")
    assert not caplog.records


def test_a_manager_that_is_gone_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The service continues, and logs why it could not notify the manager."""
    monkeypatch.setenv(NOTIFY_SOCKET, str(tmp_path / "notify"))
    tell_ready("serves")
    (warned,) = caplog.records
    assert warned.levelno == logging.WARNING
    assert "NOTIFY_SOCKET: [Errno 2] No such file" in warned.getMessage()
