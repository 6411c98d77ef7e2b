# SPDX-License-Identifier: Apache-2.0
"""A process that briefly outlives the tests, to stop their servers if they cannot.

It reads one line per thing: `+process ID`, `+mount PATH`, `+directory PATH`, and the same with a
minus when it is gone; `+run NAME` stands for all processes with this name in their environment
(`RUN`). When the tests have ended, killed or not, it kills the remaining processes with their
descendants, and removes the directories.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from tests.servers.family import kill_family

#: The variable with the name of a run, for what its tests start.
RUN: Final = "BERTH_TEST_RUN"

#: How often it looks whether the tests still live: their pipe may be held open by others.
_LOOK_S = 1.0


class Guard:
    """The tests' end of the guard's pipe."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            env={name: value for name, value in os.environ.items() if name != RUN},
            start_new_session=True,
        )

    def watch(self, kind: str, what: int | str | Path) -> None:
        """From now on a `process`, a `run`, a `mount` or a `directory` must not outlive the
        tests."""
        self._say(f"+{kind} {what}")

    def forget(self, kind: str, what: int | str | Path) -> None:
        """It is gone, or belongs to another process."""
        self._say(f"-{kind} {what}")

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()


@cache
def the_guard() -> Guard:
    """The guard of this process, started with the first server."""
    return Guard()


def main() -> None:
    """Read lines until the tests have ended, then clean up."""
    tests = os.getppid()
    watched: set[str] = set()
    rest = b""
    while os.getppid() == tests:
        if not select.select([0], [], [], _LOOK_S)[0]:
            continue
        if not (piece := os.read(0, 65536)):
            break
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            note(watched, line.decode())
    clear_away(watched)


def note(watched: set[str], line: str) -> None:
    """Add a thing to those that are watched, or remove it."""
    (watched.add if line[0] == "+" else watched.discard)(line[1:])


def clear_away(watched: set[str]) -> None:
    """Kill the processes, then unmount, then remove directories: each step needs the one before."""
    for kind in ("process", "run", "mount", "directory"):
        for what in (thing.partition(" ")[2] for thing in watched if thing.startswith(kind)):
            _REMOVE[kind](what)


def _unmount(path: str) -> None:
    subprocess.run(["umount", "--lazy", path], check=False)


def _remove(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)


def _kill(process: str) -> None:
    kill_family(int(process))


def _end(run: str) -> None:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{RUN}={run}".encode() in (process / "environ").read_bytes().split(b"\0"):
                kill_family(int(process.name))


_REMOVE = {"process": _kill, "run": _end, "mount": _unmount, "directory": _remove}


if __name__ == "__main__":
    main()
