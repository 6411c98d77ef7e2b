# SPDX-License-Identifier: Apache-2.0
"""`python -m bench`, which `make bench` runs: measure berth, alone or next to OpenStack Placement.

With `--peer`, both servers run on the same data, loaded the same way, and take turns in each case
(berth, Placement, Placement, berth), so that other load on the machine affects both. With
`--before`, the berth of another checkout takes part, which shows the cost of a change.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from bench.case import Stage
from bench.growth import growths
from bench.pages import RESULTS, write_pages
from bench.plan import QUICK_SIZES, SCENARIOS, SIZES, stages
from bench.report import growth_table, line, tables, verdict_table
from bench.results import Result, Run, new_run, read_run, write_run
from bench.run import Settings, run_stage
from bench.targets import verdicts

_ROOT = Path(__file__).resolve().parent.parent
_BUILD = _ROOT / "build" / "bench"
_DOCS = _ROOT / "docs" / "performance"
_SECONDS, _QUICK_SECONDS = 1.5, 0.3
_ROUNDS_COUNT = 2


@click.command()
@click.option("--peer", is_flag=True, help="Also measure OpenStack Placement, side by side.")
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Also measure the berth of this checkout, which needs its own .venv, side by side.",
)
@click.option("--quick", is_flag=True, help="1,000 hosts and short rounds; takes a few minutes.")
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    type=click.Choice(SCENARIOS),
    help="Measure only this scenario; may be repeated.",
)
@click.option(
    "--case",
    "names",
    multiple=True,
    help="Measure only cases whose name contains this; may be repeated.",
)
@click.option(
    "--hosts",
    "sizes",
    multiple=True,
    type=click.IntRange(min=1000),
    help="Number of hosts; may be repeated.  [default: 1,000 to 1,000,000; 1,000 with --quick]",
)
@click.option(
    "--rounds", default=_ROUNDS_COUNT, show_default=True, help="Number of rounds for each case."
)
@click.option(
    "--seconds", type=float, help="Seconds for each round.  [default: 1.5; 0.3 with --quick]"
)
@click.option(
    "--workers", default=2, show_default=True, help="Number of worker processes of each server."
)
@click.option(
    "--request-seconds-max",
    default=20.0,
    show_default=True,
    help="Skip a case in which one request takes longer than this.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for JSON, tables and charts.  [default: docs/performance for a "
    "whole run with --peer, build/bench for any other]",
)
@click.option(
    "--render",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Do not measure; render the tables and charts of this JSON file again.",
)
def main(
    peer: bool,
    before: Path | None,
    quick: bool,
    scenarios: Sequence[str],
    names: Sequence[str],
    sizes: Sequence[int],
    rounds: int,
    seconds: float | None,
    workers: int,
    request_seconds_max: float,
    output: Path | None,
    render: Path | None,
) -> None:
    """Measure berth, alone or next to OpenStack Placement, and write tables, JSON and charts."""
    # So that the servers are stopped too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(width=None if Console().is_terminal else 200, highlight=False)
    if render is not None:
        run = read_run(render)
        write_pages(run, output or render.parent)
        _show(run, console)
        return
    is_whole = peer and not (before or quick or scenarios or names or sizes or seconds)
    directory = output or (_DOCS if is_whole else _BUILD)
    settings = Settings(
        peer=peer,
        before=before,
        seconds=seconds or (_QUICK_SECONDS if quick else _SECONDS),
        rounds_count=rounds,
        workers=workers,
        request_seconds_max=request_seconds_max,
    )
    run = new_run(
        {
            "workers": workers,
            "seconds per round": settings.seconds,
            "rounds": settings.rounds_count,
            "with Placement": peer,
        }
    )
    fleet_sizes = sizes or (QUICK_SIZES if quick else SIZES)
    planned = stages(fleet_sizes, scenarios or SCENARIOS, workers=workers, names=names)
    _measure(run, planned, settings, console)
    write_pages(run, directory)
    _show(run, console)
    console.print(f"Written to {directory}")


def _measure(run: Run, planned: Sequence[Stage], settings: Settings, console: Console) -> None:
    """Run every stage, add the results to the run, and print each."""
    started_at = time.monotonic()

    def say(text: str) -> None:
        console.print(
            f"{time.monotonic() - started_at:6.0f} s  {text}", markup=False, soft_wrap=True
        )

    for stage in planned:
        say(stage.fleet.name)
        try:
            for of_case in run_stage(stage, settings, say):
                run.results.extend(of_case)
                for result in of_case:
                    say(line(result, run.results))
        # A stage that fails must not lose the results of the others.
        except Exception as error:  # noqa: BLE001
            say(f"{stage.fleet.name} failed: {error}")
            run.results.append(_failed(stage.fleet.kind, stage.fleet.size, error))
        write_run(run, _BUILD / RESULTS)


def _failed(fleet: str, size: int, error: Exception) -> Result:
    """The result of a stage that failed."""
    text = f"{type(error).__name__}: {error}"
    return Result(
        scenario="stage", fleet=fleet, size=size, case="set up", server="both", error=text
    )


def _show(run: Run, console: Console) -> None:
    """Print all tables."""
    growth = growths(run.results)
    for table in tables(run.results):
        console.print(table)
    if growth:
        console.print(growth_table(growth))
    console.print(verdict_table(verdicts(run.results, growth)))
    for result in run.results:
        if result.error is not None:
            console.print(f"{result.scenario}, {result.name}: {result.error}", markup=False)


if __name__ == "__main__":
    main()
