# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.databases`: both services on PostgreSQL, MariaDB and a Galera cluster.

The engine's servers are started here, durable, and both services stand on them and take turns in
each case. Then berth's own costs are measured: the question to the writers' clock, taking over a
database of the original's, the loss of a node.
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
#: The original with 64 clients takes half a minute for an answer on a machine of two cores.
_REQUEST_SECONDS_MAX: Final = 60.0

#: What is not on the page Performance already; and a cluster takes a database over as MariaDB does.
_PARTS_OF: Final = {
    "sqlite": ("clock", "adoption"),
    "galera": ("claims", "pairs", "clock", "loss"),
}

#: Hosts and allocations of the database that is taken over.
_ADOPTED: Final = (100_000, 1_000_000)
_QUICK_ADOPTED: Final = (1_000, 10_000)


@click.command()
@click.option(
    "--engine",
    "engines",
    multiple=True,
    type=click.Choice(ENGINES),
    help="Measure this one only; may be repeated.",
)
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(list(PARTS)),
    help="Measure this part only; may be repeated.",
)
@click.option("--peer", is_flag=True, help="Measure the original too, side by side.")
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Measure the berth of this checkout, which has a .venv of its own, side by side.",
)
@click.option("--quick", is_flag=True, help="Short rounds and a small database, to see it run.")
@click.option("--seconds", type=float, help="Length of a round.  [default: 5; 0.5 with --quick]")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write JSON and tables into this directory.  [default: docs/performance/engines for a "
    "whole run with --peer, build/bench/engines for any other]",
)
@click.option(
    "--render",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Measure nothing: write the tables of this JSON anew.",
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
    """Measure berth on each engine, alone or beside the original; tables, and JSON."""
    # So that the servers are ended too when somebody ends this.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(width=None if Console().is_terminal else 160, highlight=False)
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
        cache=_BUILD,
    )
    run = new_run(
        {"seconds a round": settings.seconds, "rounds": settings.rounds_count, "peer": peer}
    )
    run.versions.update(versions())
    adopted = adoption_fleet(*(_QUICK_ADOPTED if quick else _ADOPTED))
    for engine in engines or ENGINES:
        wanted = parts or _PARTS_OF.get(engine, list(PARTS))
        _measure(run, engine, wanted, adopted, settings, console)
        write_run(run, _BUILD / RESULTS)
    write_engine_pages(run, directory)
    for table in tables(run.results):
        console.print(table)
    if found := engine_verdicts(run.results):
        console.print(verdict_table(found))
    console.print(f"Written to {directory}")


def _measure(
    run: Run,
    name: str,
    parts: Sequence[str],
    adopted: Fleet,
    settings: Settings,
    console: Console,
) -> None:
    """Measure the parts on one engine, adding to the run's results and saying each as it comes."""
    begun_at = time.monotonic()

    def say(text: str) -> None:
        console.print(f"{time.monotonic() - begun_at:6.0f} s  {text}", markup=False, soft_wrap=True)

    say(name)
    try:
        with run_engine(name) as engine, tempfile.TemporaryDirectory(prefix="bench-") as home:
            on = prepared(engine, settings, adopted, Path(home))
            say(f"{name}: runs, and is filled")
            for part in parts:
                for of_case in PARTS[part](on):
                    run.results.extend(of_case)
                    for one in of_case:
                        say(line(one, run.results) + (f"  {one.error}" if one.error else ""))
    # An engine that fails must not lose what the others have measured.
    except Exception as error:  # noqa: BLE001
        say(f"{name} failed: {error}")
        run.results.append(_failed(name, error))


def _failed(engine: str, error: Exception) -> Result:
    """A result that says that an engine could not be measured to the end."""
    text = f"{type(error).__name__}: {error}"
    return Result(scenario=engine, fleet="flat", size=0, case="run", server="both", error=text)


if __name__ == "__main__":
    main()
