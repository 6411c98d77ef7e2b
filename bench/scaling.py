# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.scaling`: what one service carries, from 1,000 to 1,000,000 hosts.

On each engine, for each size and number of workers: the start, the memory of a worker, candidates,
reads, claims and agents' polls over HTTP, with the processor time of berth and of the database.
The results are JSON, from which the tables of `docs/scaling.md` are made.
"""

from __future__ import annotations

import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from bench.bulk import write_fleet
from bench.case import Case, Stage
from bench.claims import claim_cases
from bench.client import Client
from bench.engines import ENGINES, Engine, run_engine, versions
from bench.flat import FILTERED, candidates_case, path_of
from bench.fleet import Fleet, full_flat, host_uuid
from bench.gets import CLIENTS, get_case
from bench.hosts import poll_case
from bench.memory import memory_case, warm_case
from bench.pages import RESULTS
from bench.processor import processes_s
from bench.results import BERTH, Result, Run, new_run, read_run, summarise, write_run
from bench.run import Served, Settings, run_case
from bench.sample import Round, Sample, Samples, clock
from bench.scaling_tables import CLAIMS, DATABASE, POLLS, READS, START, WARM, named, scaling_tables
from bench.server import RunningServer
from bench.services import serve

_ROOT: Final = Path(__file__).resolve().parent.parent
_BUILD: Final = _ROOT / "build" / "bench" / "scaling"
_DOCS: Final = _ROOT / "docs" / "scaling"

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
WORKERS: Final = (1, 2, 4)
_SECONDS: Final = 3.0
_REQUEST_SECONDS_MAX: Final = 60.0
_ROUNDS_COUNT: Final = 2

_ALLOCATIONS_EACH: Final = 10
_ALLOCATIONS_MAX: Final = 1_000_000
#: Objects that are read in turn.
_TURNS: Final = 1000

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Place:
    """A database with a fleet, on a running engine."""

    engine: Engine
    fleet: Fleet
    #: At each node.
    urls: Sequence[str]
    directory: Path
    settings: Settings

    def about(self, case: str) -> Result:
        """A result of a case, without values."""
        engine, fleet = self.engine.name, self.fleet
        return Result(scenario=engine, fleet=fleet.kind, size=fleet.size, case=case, server=BERTH)


@click.command()
@click.option(
    "--engine",
    "engines",
    multiple=True,
    type=click.Choice(ENGINES),
    help="Measure only this engine; may be repeated.",
)
@click.option(
    "--hosts",
    "sizes",
    multiple=True,
    type=click.IntRange(min=1000),
    help="Number of hosts; may be repeated.  [default: 1,000 to 1,000,000]",
)
@click.option(
    "--workers",
    multiple=True,
    type=click.IntRange(min=1),
    help="Number of workers of a service; may be repeated.  [default: 1, 2 and 4]",
)
@click.option("--seconds", default=_SECONDS, show_default=True, help="Seconds for each round.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for JSON and tables.  [default: docs/scaling for a whole run, "
    "build/bench/scaling for any other]",
)
@click.option(
    "--render",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Do not measure; render the tables of this JSON file again.",
)
def main(
    engines: Sequence[str],
    sizes: Sequence[int],
    workers: Sequence[int],
    seconds: float,
    output: Path | None,
    render: Path | None,
) -> None:
    """Measure what one service carries, and print and write tables in Markdown."""
    # So that the servers are stopped too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if render is not None:
        _write(read_run(render), output or render.parent)
        return
    is_whole = not (engines or sizes or workers) and seconds == _SECONDS
    run = new_run({"seconds per round": seconds, "rounds": _ROUNDS_COUNT})
    run.versions.update(versions())
    settings = Settings(
        peer=False,
        before=None,
        seconds=seconds,
        rounds_count=_ROUNDS_COUNT,
        workers=1,
        request_seconds_max=_REQUEST_SECONDS_MAX,
    )
    for engine in engines or ENGINES:
        _measure(run, engine, sizes or SIZES, workers or WORKERS, settings)
    _write(run, output or (_DOCS if is_whole else _BUILD))


def _write(run: Run, directory: Path) -> None:
    text = scaling_tables(run)
    write_run(run, directory / RESULTS)
    (directory / "results.md").write_text(text)
    # As it is, so that it can be pasted.
    click.echo(text)


def _measure(
    run: Run, name: str, sizes: Sequence[int], workers: Sequence[int], settings: Settings
) -> None:
    """Measure an engine at every size, and add the results to the run."""
    console, started_at = Console(stderr=True, highlight=False), time.monotonic()

    def say(text: str) -> None:
        text = f"{time.monotonic() - started_at:6.0f} s  {name}: {text}"
        console.print(text, markup=False, soft_wrap=True)

    try:
        with run_engine(name) as engine:
            for size in sizes:
                run.results.extend(_of_size(engine, size, workers, settings, say))
                write_run(run, _BUILD / RESULTS)
    # An engine that fails must not lose what the others have measured.
    except Exception as error:  # noqa: BLE001
        say(f"failed: {error}")
        run.results.append(_failed(name, 0, "run", error))


def _of_size(
    engine: Engine, size: int, workers: Sequence[int], settings: Settings, say: Say
) -> Iterator[Result]:
    """Fill a new database, and serve it with each number of workers."""
    allocations_count = min(size * _ALLOCATIONS_EACH, _ALLOCATIONS_MAX)
    crowd = allocations_count // _ALLOCATIONS_EACH
    fleet = full_flat(size, allocations_count=allocations_count, crowd=crowd)
    with tempfile.TemporaryDirectory(prefix="berth-scaling-") as home:
        try:
            urls = engine.create(f"scaling{size}")
            start = clock()
            write_fleet(urls[0], fleet)
            say(f"{size:,} hosts, written in {clock() - start:.0f} s")
        # What cannot be loaded, such as for want of memory, is a result.
        except Exception as error:  # noqa: BLE001
            say(f"{size:,} hosts: {error}")
            yield _failed(engine.name, size, "load", error)
            return
        place = Place(engine, fleet, urls, Path(home), settings)
        for count in workers:
            for result in _of_workers(place, count):
                failure = f", {result.error}" if result.error else ""
                say(f"{size:,} hosts, {result.name}: {result.median} {result.unit}{failure}")
                yield result


def _of_workers(place: Place, workers_count: int) -> Iterator[Result]:
    """Start the service, at each node of a cluster, and measure every case."""
    stage, start = Stage(place.fleet, ()), clock()
    settings = replace(place.settings, first_round=_ROUNDS_COUNT * workers_count)
    run = partial(
        serve, BERTH, place.urls, place.directory / f"{workers_count}", workers=workers_count
    )
    try:
        served = Served(run)
    except Exception as error:  # noqa: BLE001
        yield _failed(place.engine.name, place.fleet.size, named(START, workers_count), error)
        return
    try:
        with Client(served.server) as client:
            client.demand("GET", path_of(FILTERED, 10))
        started = [Sample([clock() - start])]
        yield summarise(place.about(named(START, workers_count)), "", started)
        for case in _cases(place):
            case = replace(case, scenario=place.engine.name, name=named(case.name, workers_count))
            yield from run_case(case, stage, [served], settings)
    finally:
        served.stop()


def _cases(place: Place) -> list[Case]:
    size = place.fleet.size
    rng = random.Random("scaling")
    paths = [
        f"/resource_providers/{host_uuid(rng.randrange(size))}/inventories" for _ in range(_TURNS)
    ]
    claims = [case for case in claim_cases(size) if case.name in CLAIMS]
    return [
        memory_case("after the start"),
        *(candidates_case("", "candidates", FILTERED, 10, clients_count=n) for n in CLIENTS),
        *(get_case("", READS, paths, clients_count=n) for n in CLIENTS),
        *(_with_database(case, place.engine) for case in claims),
        replace(poll_case("", size), name=POLLS),
        replace(warm_case(), name=WARM),
    ]


def _with_database(case: Case, engine: Engine) -> Case:
    """The case with the processor time of the database's servers for each operation.

    The few reads with which a case checks its claims are in it.
    """

    def measure(server: RunningServer, wanted: Round) -> Samples:
        before = processes_s(engine.process_ids)
        samples = case.measure(server, wanted)
        used, done = processes_s(engine.process_ids) - before, samples[""].operations_count
        return {**samples, DATABASE: Sample([used / done])} if engine.process_ids else samples

    return replace(case, measure=measure)


def _failed(engine: str, size: int, case: str, error: Exception) -> Result:
    """The result of what could not be measured."""
    text = f"{type(error).__name__}: {str(error)[:300]}"
    return Result(scenario=engine, fleet="flat", size=size, case=case, server=BERTH, error=text)


if __name__ == "__main__":
    main()
