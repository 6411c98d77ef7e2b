# SPDX-License-Identifier: Apache-2.0
"""The output of a run for the documentation: results as JSON, tables in Markdown, and charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.charts import Bars, Line, bar_chart, line_chart
from bench.claims import CLIENTS, clients
from bench.engine_targets import engine_verdicts
from bench.growth import growths
from bench.report import label, markdown_growth, markdown_results, markdown_verdicts
from bench.results import BERTH, ORIGINAL, Result, Run, find, write_run
from bench.targets import verdicts

RESULTS: Final = "results.json"

#: Scenarios that the page shows side by side, if they were measured.
_QUERIES: Final = ("flat", "nested", "sharing")
_WRITES: Final = ("churn", "reshape")
_SIDE_BY_SIDE_SIZE: Final = 1_000


def write_pages(run: Run, directory: Path) -> None:
    """Write everything of a run into a directory; `docs/performance.md` shows it.

    Removes the charts and tables of earlier runs, and writes only the parts that this run measured.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for old in (*directory.glob("*.svg"), *directory.glob("*.md")):
        old.unlink()
    write_run(run, directory / RESULTS)
    growth = growths(run.results)
    parts = [
        about(run),
        f"## Targets\n\n{markdown_verdicts(verdicts(run.results, growth))}",
    ]
    charts = dict(_charts(run.results))
    for name, chart in charts.items():
        (directory / f"{name}.svg").write_text(chart)
    if charts:
        shown = "\n\n".join(
            f"![{name.replace('-', ' ')}](performance/{name}.svg)" for name in charts
        )
        parts.append(f"## Charts\n\nIn charts with two axes, both are logarithmic.\n\n{shown}\n")
    if growth:
        parts.append(f"## Growth\n\n{_GROWTH}\n\n{markdown_growth(growth)}")
    parts.append(f"## Every result\n\n{_EVERY_RESULT}\n\n{markdown_results(run.results)}")
    (directory / "results.md").write_text("\n".join(parts))


def write_engine_pages(run: Run, directory: Path) -> None:
    """Write a run of `bench.databases`; `docs/performance-engines.md` shows it."""
    directory.mkdir(parents=True, exist_ok=True)
    write_run(run, directory / RESULTS)
    parts = [about(run)]
    if engine := engine_verdicts(run.results):
        parts.append(f"## Targets\n\n{markdown_verdicts(engine)}")
    parts.append(f"## Every result\n\n{_EVERY_RESULT}\n\n{markdown_results(run.results)}")
    (directory / "results.md").write_text("\n".join(parts))


_GROWTH: Final = """\
The cost of a query is about the size of the fleet to the power of the exponent.
An exponent of 0 means constant cost, 1 means linear cost.
For a query without a limit, the size is that of its response in bytes."""

_EVERY_RESULT: Final = """\
Medians and 99th percentiles are of single operations, in milliseconds unless another unit is given.
"per s" is the rate of all clients together.
"times" is Placement's median divided by berth's.
"of floor" is a median divided by that of the floor: an application that does nothing, behind the \
same server with the same settings, with responses of the same size.
"CPU ms" is the processor time of all processes of the server for each operation; "CPU times" and \
"of CPU floor" compare it in the same ways.
"lost" counts claims that were acknowledged but are not in the database, and the other way round."""


def about(run: Run) -> str:
    """The circumstances of a run, for the top of its page."""
    machine = ", ".join(f"{name} {value}" for name, value in run.machine.items())
    versions = ", ".join(f"{label(name)} {value}" for name, value in run.versions.items())
    settings = ", ".join(f"{name} {value}" for name, value in run.settings.items())
    return (
        f"Measured at {run.measured_at}.\nMachine: {machine}.\nVersions: {versions}.\n"
        f"Run: {settings}.\n"
    )


def _charts(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Every chart that the run has results for, by file name."""
    if lines := list(_query_lines(results)):
        yield (
            "fleet-size",
            line_chart(
                "Candidates over HTTP: median against the size of the fleet",
                lines,
                x_name="hosts, or trees of seven providers",
                y_name="ms",
            ),
        )
    for name, title, scenarios in (
        ("queries", "Candidates at 1,000 hosts: median of a request", _QUERIES),
        ("writes", "Other writes at 1,000 hosts: median of a request", _WRITES),
    ):
        if bars := list(_side_by_side(results, scenarios)):
            yield name, bar_chart(title, (BERTH, label(ORIGINAL)), bars, unit="ms, logarithmic")
    if lines := list(_claim_lines(results)):
        yield (
            "claims",
            line_chart(
                "Claim loop on 1,000 hosts: claims a second against clients",
                lines,
                x_name="clients",
                y_name="claims a second",
            ),
        )


def _query_lines(results: Sequence[Result]) -> Iterator[Line]:
    """Medians by fleet size, for queries that were measured at several sizes."""
    points: dict[str, list[tuple[float, float]]] = {}
    for result in results:
        is_shown = result.scenario in ("flat", "nested") and "clients" not in result.case
        if is_shown and "all match" not in result.case and result.median is not None:
            name = f"{label(result.server)}, {result.fleet}: {result.case.rpartition(', ')[2]}"
            points.setdefault(name, []).append((result.size, result.median))
    for name, of_name in points.items():
        if len(of_name) > 1:
            yield Line(name, sorted(of_name))


def _side_by_side(results: Sequence[Result], scenarios: Sequence[str]) -> Iterator[Bars]:
    for result in results:
        if (
            result.server == BERTH
            and result.scenario in scenarios
            and result.size == _SIDE_BY_SIDE_SIZE
        ):
            theirs = find(results, result.key, ORIGINAL)
            name = f"{result.fleet}: {result.name}" if scenarios is _QUERIES else result.name
            values = (result.median, None if theirs is None else theirs.median)
            if any(values):
                yield Bars(name, values)


def _claim_lines(results: Sequence[Result]) -> Iterator[Line]:
    for server in (BERTH, ORIGINAL):
        for place in ("spread", "one hot provider"):
            points = [
                (count, result.rate)
                for count in CLIENTS
                for result in results
                if (result.server, result.size) == (server, _SIDE_BY_SIDE_SIZE)
                and (result.case, result.quantity) == (f"{place}, {clients(count)}", "claim loop")
                and result.rate
            ]
            if points:
                yield Line(f"{label(server)}, {place}", points)
