# SPDX-License-Identifier: Apache-2.0
"""Signals wake an agent, whatever it is doing when they come."""

from __future__ import annotations

import subprocess
import sys

from tests.e2e.serving import PATIENCE

#: A signal comes at every line of Python that a wait runs, those of the standard library too.
SCRIPT = """
import signal, sys
from berth.cli.agent_running import Alarm

alarm = Alarm()
alarm.set()
last = int(sys.argv[1])

def knock(frame, event, argument):
    if event == "line" and not knock.is_ringing:
        knock.is_ringing = True
        signal.raise_signal(last)
        knock.is_ringing = False
    return knock

knock.is_ringing = False
sys.settrace(knock)
try:
    woken = alarm.wait(0.01)
    print(woken.name)
    alarm.pause(0.01)
    print("paused")
except KeyboardInterrupt:
    print("stopped")
sys.settrace(None)
if last == signal.SIGHUP:
    alarm.wait(0)
    print(alarm.wait(0).name)
"""


def ends(number: int) -> list[str]:
    """What an agent says that is woken by a signal all the time."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(number)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return done.stdout.split()


def test_a_signal_at_any_moment_does_not_stall_it() -> None:
    """A handler runs between any two steps of what it interrupts, and must not wait for that; when
    the signals are over, the agent waits again."""
    assert ends(1) == ["TO_RELOAD", "paused", "BY_TIME"]
    assert ends(15) == ["TO_STOP", "stopped"]
