# SPDX-License-Identifier: Apache-2.0
"""The processor time of servers, as Linux counts it for each process.

Unlike the time that a client waits, it hardly depends on what else the machine does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from bench.server import RunningServer

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


def processor_s(server: RunningServer) -> float:
    """Seconds that all processes of a server and of its others have used so far.

    Processes that have exited are not counted. The kernel counts in steps of 10 ms.
    """
    return processes_s(each.process_id for each in (server, *server.others))


def processes_s(roots: Iterable[int]) -> float:
    """The same of some processes and all their descendants."""
    ticks = (_ticks(process) for root in roots for process in processes_of(root))
    return sum(ticks) / _TICKS_PER_S


def processes_of(process: int) -> list[int]:
    """A process and all its descendants."""
    return [process, *(each for child in children_of(process) for each in processes_of(child))]


def worker_ids(process: int) -> list[int]:
    """The processes below a server's outermost one that have no children themselves."""
    children = children_of(process)
    return [leaf for child in children for leaf in worker_ids(child)] if children else [process]


def children_of(process: int) -> list[int]:
    """The children of all threads of a process."""
    return [child for task in _tasks(process) for child in _children_of_task(task)]


def _tasks(process: int) -> Iterable[Path]:
    try:
        return list(Path(f"/proc/{process}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []


def _children_of_task(task: Path) -> list[int]:
    try:
        return [int(child) for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []  # the thread has ended meanwhile


def _ticks(process: int) -> int:
    """User and system time of all threads, those that have ended included."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0  # a database ends its processes with their connections
    return int(fields[11]) + int(fields[12])
