# SPDX-License-Identifier: Apache-2.0
"""Workers that do not stop when they are asked to."""

from __future__ import annotations

import os
import signal
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from berth.cli import lifeline, serve

#: Granian asks each worker once when all have ended.
AFTERWARDS = 1


class Stalled:
    """A worker that waits for a client for ever."""

    idx = 0

    def __init__(self) -> None:
        self.inner = SimpleNamespace(pid=os.getpid())
        self.was_asked = 0
        self.was_killed = False

    def is_alive(self) -> bool:
        """Until it is killed."""
        return not self.was_killed

    def terminate(self) -> None:
        """Asking does not help."""
        self.was_asked += 1

    def kill(self) -> None:
        """The end."""
        self.was_killed = True

    def join(self, timeout: float | None = None) -> None:
        """It takes no time here."""


def test_a_worker_that_never_stops_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that announced a body and sent none kept the service from ever stopping."""
    monkeypatch.setattr(serve, "STOP_S_MAX", 0.01)
    server: Any = object.__new__(serve.Server)
    server.bind_port = 0
    server.wrks = [stalled := Stalled()]
    server.workers_kill_timeout = None
    server._stop_workers()
    assert stalled.was_asked == 1 + AFTERWARDS
    assert stalled.was_killed
    assert server.wrks == []


def test_a_worker_that_did_not_hear_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It still listens, so it has not begun to stop."""
    monkeypatch.setattr(serve, "STOP_S_MAX", 0.1)
    server: Any = object.__new__(serve.Server)
    server.wrks = [stalled := Stalled()]
    server.workers_kill_timeout = None
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server.bind_port = listening.getsockname()[1]
        server._stop_workers()
    assert stalled.was_asked > 1 + AFTERWARDS


def test_without_a_parent_it_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else would, and it keeps the address."""
    sent: list[int] = []
    monkeypatch.setattr(lifeline, "_ASKED_EACH_S", 0.001)
    monkeypatch.setattr(lifeline, "_POLL_S", 0.001)
    monkeypatch.setattr(os, "kill", lambda _process, number: sent.append(number))
    lifeline._watch(parent=-1)
    assert sent[0] == signal.SIGTERM
    assert sent[-1] == signal.SIGKILL
