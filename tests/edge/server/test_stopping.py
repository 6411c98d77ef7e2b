# SPDX-License-Identifier: Apache-2.0
"""Workers that do not stop when asked to."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from queue import Empty
from types import SimpleNamespace
from typing import Any

import pytest

from berth.edge.server import connections, stopping, workers
from berth.edge.server.stopping import SLEEP_S_MAX, Wakeup
from tests.e2e.serving import PATIENCE

#: Granian asks each worker once when all have ended.
AFTERWARDS = 1


class Stalled:
    """A worker that waits for a client for ever.

    Args:
        hears_at: it stops once it has been asked as often as this; None: never.
    """

    idx = 0

    def __init__(self, hears_at: int | None = None) -> None:
        self._hears_at = hears_at
        self.inner = SimpleNamespace(pid=os.getpid())
        self.was_asked = 0
        self.was_killed = False

    def is_alive(self) -> bool:
        """True until it is killed, or has heard."""
        return not (self.was_killed or self.was_asked == self._hears_at)

    def terminate(self) -> None:
        """Ignore the signal."""
        self.was_asked += 1

    def kill(self) -> None:
        """Exit."""
        self.was_killed = True

    def join(self, timeout: float | None = None) -> None:
        """Return at once."""


@pytest.mark.parametrize("hears_at", [None, 2])
def test_a_worker_that_does_not_stop(monkeypatch: pytest.MonkeyPatch, hears_at: int | None) -> None:
    """It is asked again while it still listens, and has not begun to stop; one that never stops is
    ended: a client that announced a body and never sent it kept the service from stopping."""
    monkeypatch.setattr(workers, "STOP_S_MAX", PATIENCE if hears_at else 0.1)
    server: Any = object.__new__(workers.Server)
    server.wrks = [stalled := Stalled(hears_at)]
    server.workers_kill_timeout = None
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server.bind_port = listening.getsockname()[1] if hears_at else 0
        server._stop_workers()
    assert stalled.was_asked == (hears_at or 1) + AFTERWARDS
    assert stalled.was_killed is (hears_at is None)
    assert server.wrks == []


def test_a_worker_may_end_while_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check whether it still listens failed if it had just exited."""
    monkeypatch.setattr(connections, "_TABLES", ())  # nothing else to read: more looks, more races
    for _ in range(15):
        ending = subprocess.Popen(["sleep", "0.005"])
        reaping = threading.Thread(target=ending.wait)
        reaping.start()
        while reaping.is_alive():
            assert not connections.listens(ending.pid, 1)


#: SIGTERM comes at every line of Python that a wait runs, those of the standard library too.
SIGNALLED = """
import signal, sys
from berth.edge.server.stopping import Wakeup

wakeup = Wakeup(lambda: False)
signal.signal(signal.SIGTERM, lambda *_: wakeup.set())
for line in range(int(sys.argv[1])):
    wakeup.clear()
    lines = iter(range(1000))

    def knock(frame, event, argument):
        if event == "line" and next(lines) == line:
            sys.settrace(None)
            signal.raise_signal(signal.SIGTERM)
        return knock

    sys.settrace(knock)
    wakeup.wait(60)
    sys.settrace(None)
    print(wakeup.is_set())
"""

#: Fewer than a wait runs before it sleeps.
LINES = 6


def test_a_signal_at_any_moment_wakes_who_waits_for_workers() -> None:
    """If a signal interrupted an ordinary event's wait, it would wait for that event's lock for
    ever."""
    command = [sys.executable, "-c", SIGNALLED, str(LINES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.split() == ["True"] * LINES


def test_a_signal_that_the_kernel_did_not_tell_of_is_heard_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A signal just before a thread sleeps does not wake it: its handler waits for the interpreter.
    So the thread must not sleep for ever."""
    slept: list[float | None] = []
    wakeup = Wakeup(lambda: len(slept) == 3)

    class Asleep:
        def get(self, timeout: float | None = None) -> None:
            """Wait without ever being woken."""
            slept.append(timeout)
            raise Empty

    monkeypatch.setattr(wakeup, "_knocks", Asleep())
    assert wakeup.wait()
    assert slept == [SLEEP_S_MAX] * 3


def test_what_there_is_to_do_is_not_forgotten_with_the_event() -> None:
    """Granian checks for work first, and clears its event afterwards."""
    due: list[int] = []
    wakeup = Wakeup(lambda: bool(due))
    assert not wakeup.wait(0.01)
    wakeup.set()
    due.append(1)
    wakeup.clear()
    assert wakeup.wait(PATIENCE)
    due.clear()
    assert not wakeup.wait(0.01)


def test_without_a_parent_it_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else would stop it, and it keeps the address in use."""
    sent: list[int] = []
    monkeypatch.setattr(stopping, "_ASKED_EACH_S", 0.001)
    monkeypatch.setattr(stopping, "_POLL_S", 0.001)
    monkeypatch.setattr(os, "kill", lambda _process, number: sent.append(number))
    is_stopping = threading.Event()
    stopping._watch(-1, lambda: False, is_stopping)
    assert is_stopping.is_set()
    assert sent[0] == signal.SIGTERM
    assert sent[-1] == signal.SIGKILL


def test_who_waits_for_changes_hears_that_the_service_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While its parent still runs, which waits for the requests of its workers."""
    heard: list[bool] = []
    is_stopping = threading.Event()
    parents = iter((7, 1))
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    monkeypatch.setattr(os, "kill", lambda _process, _number: None)
    pause = SimpleNamespace(sleep=lambda _: heard.append(is_stopping.is_set()))
    monkeypatch.setattr(stopping, "time", pause)
    stopping._watch(7, lambda: True, is_stopping)
    assert heard[0]
