# SPDX-License-Identifier: Apache-2.0
"""Progress of long commands."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from berth.cli.output import say
from berth.model.printable import printable

#: Seconds between two lines of a stage, if stderr is not a terminal.
_LINES_S: Final = 10.0

#: Called with the stage, the work done, and the total.
Report = Callable[[str, int, int], None]


@contextmanager
def reporting(clock: Callable[[], float] = time.monotonic) -> Iterator[Report]:
    """Show progress on stderr: a bar on a terminal, otherwise a line every few seconds.

    Args:
        clock: in seconds.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(clock)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        tasks = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = progress.add_task(printable(stage))
            progress.update(tasks[stage], completed=done, total=total)

        yield show


class _Lines:
    """Prints a line every few seconds, and one when a stage is done."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._printed_at = clock()

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = self._clock()
        if total and done >= total:
            say(f"{stage}: {done}", err=True)
        elif now - self._printed_at >= _LINES_S:
            self._printed_at = now
            say(f"{stage}: {done} of {total}", err=True)
