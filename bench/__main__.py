# SPDX-License-Identifier: Apache-2.0
"""`python -m bench`, which `make bench` runs: measure berth, alone or beside the original.

With `--peer` both servers run through the whole measurement, on the same data loaded the same way,
and take turns (berth, original, original, berth) in each case, so that whatever else the machine
does meanwhile falls on both. With `--before` the berth of another checkout takes part: what a
change costs.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from bench.growth import growths
from bench.pages import RESULTS, write_pages
from bench.plan import QUICK_SIZES, SCENARIOS, SIZES, stages
from bench.report import growth_table, line, tables, verdict_table
from bench.results import Result, Run, new_run, read_run, write_run
from bench.run import Settings, load_peers, run_stage
from bench.targets import verdicts

_ROOT = Path(__file__).resolve().parent.parent
_BUILD = _ROOT / "build" / "bench"
_DOCS = _ROOT / "docs" / "performance"
_SECONDS, _QUICK_SECONDS = 1.5, 0.3
_ROUNDS_COUNT = 2


@click.command()
@click.option("--peer", is_flag=True, help="Measure the original too, side by side.")
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Measure the berth of this checkout, which has a .venv of its own, side by side.",
)
@click.option("--quick", is_flag=True, help="A thousand hosts, short rounds: a few minutes.")
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    type=click.Choice(SCENARIOS),
    help="Measure this one only; may be repeated.",
)
@click.option(
    "--hosts",
    "sizes",
    multiple=True,
    type=click.IntRange(min=1000),
    help="Size of a fleet; may be repeated.  [default: 1,000 to 1,000,000; 1,000 with --quick]",
)
@click.option("--rounds", default=_ROUNDS_COUNT, show_default=True, help="Rounds of each case.")
@click.option("--seconds", type=float, help="Length of a round.  [default: 1.5; 0.3 with --quick]")
@click.option("--workers", default=2, show_default=True, help="Worker processes of each server.")
@click.option(
    "--request-seconds-max",
    default=20.0,
    show_default=True,
    help="Give up a case in which one request takes longer.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write JSON, tables and charts into this directory.  [default: docs/performance for a "
    "whole run with --peer, build/bench for any other]",
)
@click.option(
    "--render",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Measure nothing: write the tables and charts of this JSON anew.",
)
def main(
    peer: bool,
    before: Path | None,
    quick: bool,
    scenarios: Sequence[str],
    sizes: Sequence[int],
    rounds: int,
    seconds: float | None,
    workers: int,
    request_seconds_max: float,
    output: Path | None,
    render: Path | None,
) -> None:
    """Measure berth, alone or beside the original; a table, JSON, and charts."""
    # So that the servers are ended too when somebody ends this.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(width=None if Console().is_terminal else 160, highlight=False)
    if render is not None:
        run = read_run(render)
        write_pages(run, output or render.parent)
        _show(run, console)
        return
    is_whole = peer and not (before or quick or scenarios or sizes or seconds)
    directory = output or (_DOCS if is_whole else _BUILD)
    settings = Settings(
        peer=peer,
        before=before,
        seconds=seconds or (_QUICK_SECONDS if quick else _SECONDS),
        rounds_count=rounds,
        workers=workers,
        request_seconds_max=request_seconds_max,
        cache=_BUILD / "loaded",
    )
    run = new_run(
        {
            "workers": workers,
            "seconds a round": settings.seconds,
            "rounds": settings.rounds_count,
            "beside the original": peer,
        }
    )
    wanted = sizes or (QUICK_SIZES if quick else SIZES)
    _measure(run, wanted, scenarios or SCENARIOS, settings, console)
    write_pages(run, directory)
    _show(run, console)
    console.print(f"Written to {directory}")


def _measure(
    run: Run,
    sizes: Sequence[int],
    scenarios: Sequence[str],
    settings: Settings,
    console: Console,
) -> None:
    """Run every stage, adding to the run's results and saying each as it comes."""
    begun_at = time.monotonic()

    def say(text: str) -> None:
        console.print(f"{time.monotonic() - begun_at:6.0f} s  {text}", markup=False, soft_wrap=True)

    planned = stages(sizes, scenarios, workers=settings.workers)
    if settings.peer:
        load_peers(planned, settings, say)
    for stage in planned:
        say(stage.fleet.name)
        try:
            for of_case in run_stage(stage, settings, say):
                run.results.extend(of_case)
                for one in of_case:
                    say(line(one, run.results))
        # A stage that cannot be set up must not lose what the others have measured.
        except Exception as error:  # noqa: BLE001
            say(f"{stage.fleet.name} failed: {error}")
            run.results.append(_failed(stage.fleet.kind, stage.fleet.size, error))
        write_run(run, _BUILD / RESULTS)


def _failed(fleet: str, size: int, error: Exception) -> Result:
    """A result that says that a whole stage could not be measured."""
    text = f"{type(error).__name__}: {error}"
    return Result(
        scenario="stage", fleet=fleet, size=size, case="set up", server="both", error=text
    )


def _show(run: Run, console: Console) -> None:
    """All tables."""
    found = growths(run.results)
    for table in tables(run.results):
        console.print(table)
    if found:
        console.print(growth_table(found))
    console.print(verdict_table(verdicts(run.results, found)))
    for result in run.results:
        if result.error is not None:
            console.print(f"{result.scenario}, {result.name}: {result.error}", markup=False)


if __name__ == "__main__":
    main()
