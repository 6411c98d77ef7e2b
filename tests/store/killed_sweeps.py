# SPDX-License-Identifier: Apache-2.0
"""Processes that sweep leases and kill themselves meanwhile: `python -m tests.store.killed_sweeps
URL`.

Each line of its input is a time and some numbers. For each number it forks a process, which sweeps
as if it were that time, and kills itself with SIGKILL before its statement or COMMIT of that
number. Its output has a line `released CONSUMER` for each that a commit released, and then a line
`ended STATUS...`: the exit status of each process, negative if a signal ended it.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import datetime
from itertools import count
from typing import Final

import pytest
from sqlalchemy import event

from berth.store import lease_sweep
from berth.store.engine.database import Database
from tests.fresh import opened_at

#: So few that a sweep takes several commits, and several pages of them.
RELEASED_MAX: Final = 3
READ_MAX: Final = 7


def main(url: str) -> None:
    """Sweep and die, until the input ends."""
    for line in sys.stdin:
        now, *numbers = line.split()
        children = [_sweeping(url, datetime.fromisoformat(now), int(each)) for each in numbers]
        ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        _say("ended", *map(str, ended))


def _sweeping(url: str, now: datetime, number: int) -> int:
    """Fork a process that sweeps. It forks nothing that is open, and no thread but this one."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        patched = pytest.MonkeyPatch()
        patched.setattr(lease_sweep, "_RELEASED_MAX", RELEASED_MAX)
        patched.setattr(lease_sweep, "_READ_MAX", READ_MAX)
        patched.setattr(Database, "clock", lambda _: now)
        db = opened_at(url)
        _kill_before(db, number)
        for expired in lease_sweep.sweep(db):
            for each in expired:
                _say("released", each.consumer)
        status = 0
    finally:
        os._exit(status)


def _kill_before(db: Database, number: int) -> None:
    """Kill this process before a database's Nth statement or COMMIT."""
    numbers = count(1)

    def listen(*_: object) -> None:
        if next(numbers) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(db.engine, "before_cursor_execute", listen)
    event.listen(db.engine, "commit", listen)


def _say(*words: str) -> None:
    # In one call, so that lines of several processes stay whole.
    os.write(sys.stdout.fileno(), f"{' '.join(words)}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1])
