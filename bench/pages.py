# SPDX-License-Identifier: Apache-2.0
"""What a run leaves for the documentation: the results as JSON, tables in Markdown, and charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.charts import Bars, Line, bar_chart, line_chart
from bench.claims import CLIENTS, clients
from bench.engine_targets import engine_verdicts
from bench.growth import growths
from bench.report import markdown_growth, markdown_results, markdown_verdicts
from bench.results import BERTH, ORIGINAL, Result, Run, find, write_run
from bench.targets import verdicts

RESULTS: Final = "results.json"

#: What the page shows side by side, as far as it was measured.
_QUERIES: Final = ("flat", "nested", "sharing")
_WRITES: Final = ("churn", "reshape")
_SIDE_BY_SIDE_SIZE: Final = 1_000


def write_pages(run: Run, directory: Path) -> None:
    """Write everything of a run into a directory; `docs/performance.md` shows it.

    Each part is written only if the run has results for it, so that the page never shows a chart of
    an earlier run: what is there already is removed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for old in (*directory.glob("*.svg"), *directory.glob("*.md")):
        old.unlink()
    write_run(run, directory / RESULTS)
    found = growths(run.results)
    parts = [
        _about(run),
        f"## Targets\n\n{markdown_verdicts(verdicts(run.results, found))}",
    ]
    charts = dict(_charts(run.results))
    for name, chart in charts.items():
        (directory / f"{name}.svg").write_text(chart)
    if charts:
        shown = "\n\n".join(
            f"![{name.replace('-', ' ')}](performance/{name}.svg)" for name in charts
        )
        parts.append(f"## Charts\n\nBoth axes are logarithmic where there are two.\n\n{shown}\n")
    if found:
        parts.append(f"## Growth\n\n{_GROWTH}\n\n{markdown_growth(found)}")
    parts.append(f"## Every result\n\n{_EVERY_RESULT}\n\n{markdown_results(run.results)}")
    (directory / "results.md").write_text("\n".join(parts))


def write_engine_pages(run: Run, directory: Path) -> None:
    """Write a run of `bench.databases`; `docs/performance-engines.md` shows it."""
    directory.mkdir(parents=True, exist_ok=True)
    write_run(run, directory / RESULTS)
    parts = [_about(run)]
    if found := engine_verdicts(run.results):
        parts.append(f"## Targets\n\n{markdown_verdicts(found)}")
    parts.append(f"## Every result\n\n{_EVERY_RESULT}\n\n{markdown_results(run.results)}")
    (directory / "results.md").write_text("\n".join(parts))


_GROWTH: Final = """\
The cost of a query is about the size of the fleet to the power of the exponent.
An exponent of 0 is constant, of 1 linear.
A query without limit is held against the bytes of its answer instead."""

_EVERY_RESULT: Final = """\
Medians and 99th percentiles are of single operations, in milliseconds unless said.
"per s" is over all clients.
"times" is how many times longer the original takes, by medians.
"lost" counts what was acknowledged and is not on record, or the other way round."""


def _about(run: Run) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in run.machine.items())
    versions = ", ".join(f"{name} {value}" for name, value in run.versions.items())
    settings = ", ".join(f"{name} {value}" for name, value in run.settings.items())
    return (
        f"Measured at {run.measured_at}.\nMachine: {machine}.\nVersions: {versions}.\n"
        f"Run: {settings}.\n"
    )


def _charts(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Every chart that the results suffice for, by the name of its file."""
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
            yield name, bar_chart(title, (BERTH, ORIGINAL), bars, unit="ms, logarithmic")
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
    """Medians by fleet size, of what was measured at more than one."""
    points: dict[str, list[tuple[float, float]]] = {}
    for one in results:
        is_shown = one.scenario in ("flat", "nested") and "clients" not in one.case
        if is_shown and "all match" not in one.case and one.median is not None:
            name = f"{one.server}, {one.fleet}: {one.case.rpartition(', ')[2]}"
            points.setdefault(name, []).append((one.size, one.median))
    for name, of_name in points.items():
        if len(of_name) > 1:
            yield Line(name, sorted(of_name))


def _side_by_side(results: Sequence[Result], scenarios: Sequence[str]) -> Iterator[Bars]:
    for one in results:
        if one.server == BERTH and one.scenario in scenarios and one.size == _SIDE_BY_SIDE_SIZE:
            theirs = find(results, one.key, ORIGINAL)
            name = f"{one.fleet}: {one.name}" if scenarios is _QUERIES else one.name
            values = (one.median, None if theirs is None else theirs.median)
            if any(values):
                yield Bars(name, values)


def _claim_lines(results: Sequence[Result]) -> Iterator[Line]:
    for server in (BERTH, ORIGINAL):
        for place in ("spread", "one hot provider"):
            points = [
                (count, one.rate)
                for count in CLIENTS
                for one in results
                if (one.server, one.size) == (server, _SIDE_BY_SIDE_SIZE)
                and (one.case, one.what) == (f"{place}, {clients(count)}", "claim loop")
                and one.rate
            ]
            if points:
                yield Line(f"{server}, {place}", points)
