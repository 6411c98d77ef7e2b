# SPDX-License-Identifier: Apache-2.0
"""`python -m bench`, which `make bench` runs: measure berth, alone or beside the original.

With `--peer` both servers run through the whole measurement, on the same data loaded the same way,
and take turns (berth, original, berth, original) in each scenario, so that whatever else the
machine does meanwhile falls on both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from bench.fleet import load_fleet
from bench.peer import run_peer
from bench.report import Result, as_json, as_table, machine, summarise
from bench.scenarios import Sample, standard_scenarios
from bench.server import RunningServer, run_berth

_ROUNDS_COUNT = 2
_SECONDS = 5.0
_QUICK_SECONDS = 1.0


@click.command()
@click.option("--peer", is_flag=True, help="Measure the original too, side by side.")
@click.option("--quick", is_flag=True, help="Small fleet, short rounds: about a minute.")
@click.option(
    "--hosts",
    "hosts_counts",
    multiple=True,
    type=click.IntRange(min=9),
    help="Size of a fleet; may be repeated.  [default: 1000 and 10000; 1000 with --quick]",
)
@click.option("--seconds", type=float, help="Length of a round.  [default: 5; 1 with --quick]")
@click.option("--workers", default=2, show_default=True, help="Worker processes of each server.")
@click.option(
    "--output",
    default=Path("build/bench.json"),
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the results here, as JSON.",
)
def main(
    peer: bool,
    quick: bool,
    hosts_counts: Sequence[int],
    seconds: float | None,
    workers: int,
    output: Path,
) -> None:
    """Measure candidates queries and claims on flat fleets."""
    console = Console()
    sizes = hosts_counts or ((1000,) if quick else (1000, 10000))
    length = seconds or (_QUICK_SECONDS if quick else _SECONDS)
    results: list[Result] = []
    for hosts_count in sizes:
        with ExitStack() as servers:
            running = [servers.enter_context(run_berth(workers=workers))]
            if peer:
                running.append(servers.enter_context(run_peer(processes=workers)))
            of_fleet = _measure(running, hosts_count, seconds=length, console=console)
        console.print(as_table(of_fleet))
        results += of_fleet
    console.print(", ".join(f"{name}: {value}" for name, value in machine().items()))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(as_json(results), indent=2) + "\n")
    console.print(f"Written to {output}")


def _measure(
    servers: Sequence[RunningServer], hosts_count: int, *, seconds: float, console: Console
) -> list[Result]:
    """Load the fleet into all servers, then let them take turns in every scenario."""
    results: list[Result] = []
    with Progress(console=console, transient=True) as progress:
        with ThreadPoolExecutor(len(servers)) as pool:
            list(pool.map(lambda server: load_fleet(server, hosts_count, progress), servers))
        scenarios = standard_scenarios()
        task = progress.add_task("measuring", total=len(scenarios) * _ROUNDS_COUNT * len(servers))
        for scenario in scenarios:
            samples: dict[str, list[Sample]] = {server.name: [] for server in servers}
            for seed in range(_ROUNDS_COUNT):
                for server in servers:
                    progress.update(task, description=f"{scenario.name}: {server.name}")
                    sample = scenario.run(server, seconds=seconds, seed=seed)
                    samples[server.name].append(sample)
                    progress.advance(task)
            results += [
                summarise(hosts_count, scenario.name, name, rounds)
                for name, rounds in samples.items()
            ]
    return results


if __name__ == "__main__":
    main()
