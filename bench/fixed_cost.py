# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.fixed_cost`: what a request costs besides its handler, in processor time.

The application answers in its own process, without a server (`bench.in_process`). With `--before`,
the berth of another checkout takes turns with this one, a few hundred requests at a time, so that
other load on the machine affects both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import IO

import click

_ROOT = Path(__file__).resolve().parent.parent
_CHILD = Path(__file__).with_name("in_process.py")
#: Requests of one turn: about 20 ms.
_TURN = 200
_LOG_TAIL = 4000


@click.command()
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Also measure the berth of this checkout, in turns.",
)
@click.option("--turns", default=60, show_default=True, help=f"Turns of {_TURN} requests a case.")
def main(before: Path | None, turns: int) -> None:
    """Print the processor time of a request of each case: the median turn, in microseconds.

    The case `nothing` is an application that does nothing; its time is taken from the others.
    """
    with ExitStack() as stack:
        checkouts = [_ROOT] if before is None else [before, _ROOT]
        children = [stack.enter_context(_child(checkout)) for checkout in checkouts]
        heads = ["now"] if before is None else ["before", "now"]
        click.echo(f"{'microseconds a request':44}" + "".join(f"{head:>10}" for head in heads))
        floor = [0.0] * len(children)
        for case in children[0].cases:
            taken: list[list[float]] = [[] for _ in children]
            for turn in range(-2, turns):
                for number, child in enumerate(children):
                    cost = child.cost(case)
                    if turn >= 0:
                        taken[number].append(cost)
            costs = [median(values) - less for values, less in zip(taken, floor, strict=True)]
            if case == "nothing":
                floor = costs
            columns = "".join(f"{cost:10.1f}" for cost in costs)
            ratio = f"   {costs[-1] / costs[0]:.2f}" if before is not None else ""
            click.echo(f"{case:44}{columns}{ratio}")


class _Child:
    """A process that answers requests itself."""

    def __init__(self, commands: IO[str], answers: IO[str]) -> None:
        self._commands = commands
        self._answers = answers
        #: None if it could not start.
        self.cases = list(filter(None, answers.readline().rstrip("\n").split("\t")))

    def cost(self, case: str) -> float:
        """The processor time of a request of one turn, in microseconds."""
        self._commands.write(f"{case}\t{_TURN}\n")
        self._commands.flush()
        return float(self._answers.readline())


@contextmanager
def _child(checkout: Path) -> Iterator[_Child]:
    """Run a child with the berth of a checkout for the length of the block."""
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            [sys.executable, "-P", str(_CHILD)],
            env={**os.environ, "PYTHONPATH": str(checkout)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None, "both are pipes"
        child = _Child(process.stdin, process.stdout)
        if not child.cases:
            log.seek(0)
            raise click.ClickException(log.read()[-_LOG_TAIL:].decode(errors="replace"))
        yield child


if __name__ == "__main__":
    main()
