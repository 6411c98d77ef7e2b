# SPDX-License-Identifier: Apache-2.0
"""A process and its descendants, from /proc.

A process group is not enough: PostgreSQL's backends and Galera's state transfer scripts have
sessions or groups of their own.
"""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

#: The state of a process that has ended and waits for its parent to ask how.
_ZOMBIE = "Z"


def family_of(root: int) -> list[int]:
    """The process ids of `root` and of its running descendants; `root` is first."""
    children: dict[int, list[int]] = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*"):
        if (seen := _state_and_parent(int(path.name))) is not None:
            children[seen[1]].append(int(path.name))
    family = [root]
    for member in family:
        family += children[member]
    return family


def kill_family(root: int) -> list[int]:
    """Kill `root` and its descendants with SIGKILL; return their ids.

    The root is stopped first, so that it starts no process meanwhile.
    """
    signal_all([root], signal.SIGSTOP)
    family = family_of(root)
    signal_all(family, signal.SIGKILL)
    return family


def signal_all(processes: list[int], number: signal.Signals) -> None:
    """Send each process a signal, and ignore those that have exited."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def is_alive(process: int) -> bool:
    """Whether a process exists and is no zombie."""
    seen = _state_and_parent(process)
    return seen is not None and seen[0] != _ZOMBIE


def _state_and_parent(process: int) -> tuple[str, int] | None:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in parentheses, may hold anything.
    state, parent = stat.rpartition(")")[2].split()[:2]
    return state, int(parent)
