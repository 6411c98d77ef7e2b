# SPDX-License-Identifier: Apache-2.0
"""A process that outlives the tests for a moment, to end their servers when they cannot.

It is told what there is and what is no more, a line each: `+process ID`, `+mount PATH`,
`+directory PATH`, and the same with a minus. When the tests are gone, killed or not, it kills the
processes that are left, with all that descend from them, and removes the directories.
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
    """The tests' end of the guard's ear."""

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
        """It is gone, or somebody else's."""
        self._say(f"-{kind} {what}")

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()


@cache
def the_guard() -> Guard:
    """The one guard of this process, started when the first server needs it."""
    return Guard()


def main() -> None:
    """Listen until the tests are gone, then clear away what they left."""
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
    """Add a thing to those that are watched, or take it from them."""
    (watched.add if line[0] == "+" else watched.discard)(line[1:])


def clear_away(watched: set[str]) -> None:
    """End the processes, then take away what they wrote to: each needs those before it gone."""
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
