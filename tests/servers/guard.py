# SPDX-License-Identifier: Apache-2.0
"""A process that briefly outlives the tests, to stop their servers if they cannot.

It reads one line per thing: `+process ID`, `+mount PATH`, `+directory PATH`, and the same with a
minus when it is gone. When the tests have ended, killed or not, it kills the remaining processes
with their descendants, and removes the directories.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.servers.family import kill_family

#: How often it looks whether the tests still live: their pipe may be held open by others.
_LOOK_S = 1.0


class Guard:
    """The tests' end of the guard's pipe."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )

    def watch(self, kind: str, what: int | Path) -> None:
        """From now on a `process`, a `mount` or a `directory` must not outlive the tests."""
        self._say(f"+{kind} {what}")

    def forget(self, kind: str, what: int | Path) -> None:
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
    for kind in ("process", "mount", "directory"):
        for what in (thing.partition(" ")[2] for thing in watched if thing.startswith(kind)):
            _REMOVE[kind](what)


def _unmount(path: str) -> None:
    subprocess.run(["umount", "--lazy", path], check=False)


def _remove(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)


def _kill(process: str) -> None:
    kill_family(int(process))


_REMOVE = {"process": _kill, "mount": _unmount, "directory": _remove}


if __name__ == "__main__":
    main()
