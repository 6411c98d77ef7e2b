# SPDX-License-Identifier: Apache-2.0
"""How a long command says how far it has come."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

#: Seconds between two lines of a stage, where nobody sees a bar.
_LINES_S: Final = 10.0

#: Is told the stage, how much of it has been done, and how much there is.
Report = Callable[[str, int, int], None]


@contextmanager
def reporting(clock: Callable[[], float] = time.monotonic) -> Iterator[Report]:
    """Shows it on stderr: a bar on a terminal, else a line now and then.

    Args:
        clock: in seconds.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _NowAndThen(clock)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        tasks = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage)
            progress.update(tasks[stage], completed=done, total=total)

        yield show


class _NowAndThen:
    """A line when a stage is done, and every few seconds until then."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._said_at = clock()

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = self._clock()
        if total and done >= total:
            click.echo(f"{stage}: {done}", err=True)
        elif now - self._said_at >= _LINES_S:
            self._said_at = now
            click.echo(f"{stage}: {done} of {total}", err=True)
