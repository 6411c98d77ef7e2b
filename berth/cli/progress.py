# SPDX-License-Identifier: Apache-2.0
"""How a long command says how far it has come."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

#: Is told the stage, how much of it has been done, and how much there is.
Report = Callable[[str, int, int], None]


@contextmanager
def reporting() -> Iterator[Report]:
    """Shows it on stderr: a bar on a terminal, else a line for each stage that is done."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _line_when_done
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


def _line_when_done(stage: str, done: int, total: int) -> None:
    if total and done >= total:
        click.echo(f"{stage}: {done}", err=True)
