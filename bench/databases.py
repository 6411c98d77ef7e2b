# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.databases`: both services on PostgreSQL, MariaDB and a Galera cluster.

The engine's servers are started here, durable, and both services stand on them and take turns in
each case. Then berth's own costs are measured: the question to the writers' clock, taking over a
database of Placement, the loss of a node.
"""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from bench.adoption import adoption_fleet
from bench.engine_targets import engine_verdicts
from bench.engines import ENGINES, run_engine, versions
from bench.fleet import Fleet
from bench.on_engine import PARTS, prepared
from bench.pages import RESULTS, write_engine_pages
from bench.report import line, tables, verdict_table
from bench.results import Result, Run, new_run, read_run, write_run
from bench.run import Settings

_ROOT: Final = Path(__file__).resolve().parent.parent
_BUILD: Final = _ROOT / "build" / "bench" / "engines"
_DOCS: Final = _ROOT / "docs" / "performance" / "engines"
_SECONDS: Final = 5.0
_QUICK_SECONDS: Final = 0.5
_ROUNDS_COUNT: Final = 2
_WORKERS: Final = 2
#: With 64 clients and two cores, Placement takes half a minute for a response.
_REQUEST_SECONDS_MAX: Final = 60.0

#: Parts that the page Performance does not have; adoption on a cluster is that of MariaDB.
_PARTS_OF: Final = {
    "sqlite": ("clock", "adoption"),
    "galera": ("claims", "pairs", "clock", "loss"),
}

#: Hosts and allocations of the adopted database.
_ADOPTED: Final = (100_000, 1_000_000)
_QUICK_ADOPTED: Final = (1_000, 10_000)


@click.command()
@click.option(
    "--engine",
    "engines",
    multiple=True,
    type=click.Choice(ENGINES),
    help="Measure only this engine; may be repeated.",
)
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(list(PARTS)),
    help="Measure only this part; may be repeated.",
)
@click.option("--peer", is_flag=True, help="Also measure OpenStack Placement, side by side.")
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Also measure the berth of this checkout, which needs its own .venv, side by side.",
)
@click.option("--quick", is_flag=True, help="Short rounds and a small database, for a first try.")
@click.option(
    "--seconds", type=float, help="Seconds for each round.  [default: 5; 0.5 with --quick]"
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for JSON and tables.  [default: docs/performance/engines for a "
    "whole run with --peer, build/bench/engines for any other]",
)
@click.option(
    "--render",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Do not measure; render the tables of this JSON file again.",
)
def main(
    engines: Sequence[str],
    parts: Sequence[str],
    peer: bool,
    before: Path | None,
    quick: bool,
    seconds: float | None,
    output: Path | None,
    render: Path | None,
) -> None:
    """Measure berth on each engine, alone or next to OpenStack Placement."""
    # So that the servers are stopped too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(width=None if Console().is_terminal else 200, highlight=False)
    if render is not None:
        write_engine_pages(read_run(render), output or render.parent)
        return
    is_whole = peer and not (before or quick or engines or parts or seconds)
    directory = output or (_DOCS if is_whole else _BUILD)
    settings = Settings(
        peer=peer,
        before=before,
        seconds=seconds or (_QUICK_SECONDS if quick else _SECONDS),
        rounds_count=1 if quick else _ROUNDS_COUNT,
        workers=_WORKERS,
        request_seconds_max=_REQUEST_SECONDS_MAX,
    )
    run = new_run(
        {
            "seconds per round": settings.seconds,
            "rounds": settings.rounds_count,
            "with Placement": peer,
        }
    )
    run.versions.update(versions())
    adopted = adoption_fleet(*(_QUICK_ADOPTED if quick else _ADOPTED))
    for engine in engines or ENGINES:
        engine_parts = parts or _PARTS_OF.get(engine, list(PARTS))
        _measure(run, engine, engine_parts, adopted, settings, console)
        write_run(run, _BUILD / RESULTS)
    write_engine_pages(run, directory)
    for table in tables(run.results):
        console.print(table)
    if verdicts := engine_verdicts(run.results):
        console.print(verdict_table(verdicts))
    console.print(f"Written to {directory}")


def _measure(
    run: Run,
    name: str,
    parts: Sequence[str],
    adopted: Fleet,
    settings: Settings,
    console: Console,
) -> None:
    """Measure the parts on one engine, add the results to the run, and print each."""
    started_at = time.monotonic()

    def say(text: str) -> None:
        console.print(
            f"{time.monotonic() - started_at:6.0f} s  {text}", markup=False, soft_wrap=True
        )

    say(name)
    try:
        with run_engine(name) as engine, tempfile.TemporaryDirectory(prefix="bench-") as home:
            on = prepared(engine, settings, adopted, Path(home))
            say(f"{name}: running, with data")
            for part in parts:
                for of_case in PARTS[part](on):
                    run.results.extend(of_case)
                    for result in of_case:
                        say(
                            line(result, run.results)
                            + (f"  {result.error}" if result.error else "")
                        )
    # An engine that fails must not lose what the others have measured.
    except Exception as error:  # noqa: BLE001
        say(f"{name} failed: {error}")
        run.results.append(_failed(name, error))


def _failed(engine: str, error: Exception) -> Result:
    """The result of an engine whose measurement failed."""
    text = f"{type(error).__name__}: {error}"
    return Result(scenario=engine, fleet="flat", size=0, case="run", server="both", error=text)


if __name__ == "__main__":
    main()
