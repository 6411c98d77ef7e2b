# SPDX-License-Identifier: Apache-2.0
"""Results for people: a line for each as it arrives, and tables for terminal and documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich import box
from rich.table import Table

from bench.growth import Growth
from bench.results import (
    BERTH,
    FLOOR,
    ORIGINAL,
    Figure,
    Result,
    find,
    of_floor,
    times_cheaper,
    times_faster,
)
from bench.targets import Verdict

Row = list[str]

HEADINGS = (
    *("fleet", "case", "server", "median", "p99", "per s", "times", "of floor"),
    *("CPU ms", "CPU times", "of CPU floor", "409", "failed", "lost"),
)


def label(server: str) -> str:
    """The name of a server in tables and charts."""
    return "Placement" if server == ORIGINAL else server


def line(result: Result, results: Sequence[Result]) -> str:
    """One line about a result, printed during the run."""
    fleet, case, server, median, _, rate, times, floor, *cpu, conflicts, failed, lost = _row(
        result, results
    )
    faults = {"409": conflicts, "failed": failed, "lost": lost}
    problems = "".join(f"  {name}: {value}" for name, value in faults.items() if value)
    subject = f"{result.scenario:9} {fleet:22} {case:58.58} {server:9}"
    figures = f"{times:>9} {floor:>6} {' '.join(f'{each:>8}' for each in cpu)}"
    return f"{subject} {median:>14} {rate:>9} {figures}{problems}"


def tables(results: Sequence[Result]) -> Iterator[Table]:
    """A table for each scenario, for the terminal."""
    for scenario, of_scenario in _by_scenario(results):
        table = Table(title=scenario, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for number, heading in enumerate(HEADINGS):
            table.add_column(heading, justify="left" if number < 3 else "right")
        for result in of_scenario:
            table.add_row(*_row(result, results))
        yield table


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """The targets, for the terminal."""
    table = Table(title="targets", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("case", "target", "measured", ""):
        table.add_column(heading)
    for verdict in verdicts:
        table.add_row(verdict.case, verdict.target, verdict.measured, _met(verdict))
    return table


def growth_table(growths: Sequence[Growth]) -> Table:
    """The exponents, for the terminal."""
    table = Table(title="growth", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("query", "against", "exponent"):
        table.add_column(heading)
    for growth in growths:
        table.add_row(growth.name, growth.against, f"{growth.exponent:.2f}")
    return table


def markdown_results(results: Sequence[Result]) -> str:
    """Every result, for the documentation, a table for each scenario."""
    parts = []
    for scenario, of_scenario in _by_scenario(results):
        rows = [_row(result, results) for result in of_scenario]
        parts.append(f"### {scenario}\n\n{markdown_table(HEADINGS, rows, numbers_from=3)}")
    return "\n".join(parts)


def markdown_verdicts(verdicts: Sequence[Verdict]) -> str:
    """The targets, for the documentation."""
    rows = [[verdict.case, verdict.target, verdict.measured, _met(verdict)] for verdict in verdicts]
    return markdown_table(("case", "target", "measured", ""), rows, numbers_from=4)


def markdown_growth(growths: Sequence[Growth]) -> str:
    """The exponents, for the documentation."""
    rows = [
        [
            growth.name,
            growth.against,
            ", ".join(f"{size:,}" for size in growth.sizes),
            ", ".join(number(median) for median in growth.medians),
            f"{growth.exponent:.2f}",
        ]
        for growth in growths
    ]
    headings = ("query", "against", "hosts", "median ms", "exponent")
    return markdown_table(headings, rows, numbers_from=4)


def markdown_table(headings: Sequence[str], rows: Sequence[Row], *, numbers_from: int) -> str:
    """A table in Markdown; columns from `numbers_from` on are right-aligned."""
    rule = ["---" if at < numbers_from else "--:" for at in range(len(headings))]
    lines = [" | ".join(cells) for cells in (headings, rule, *rows)]
    return "".join(f"| {line} |\n" for line in lines)


def number(value: float) -> str:
    """A number with about three significant digits."""
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if value >= 10 else f"{value:,.2f}"


def _by_scenario(results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    ordered = sorted(results, key=lambda result: _order(results).index(result.scenario))
    for scenario, of_scenario in groupby(ordered, key=lambda result: result.scenario):
        yield scenario, list(of_scenario)


def _order(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(result.scenario for result in results))


def _row(result: Result, results: Sequence[Result]) -> Row:
    failed = ", ".join(f"{count} × {status}" for status, count in sorted(result.failures.items()))
    return [
        f"{result.fleet}, {result.size:,}",
        result.name,
        label(result.server),
        _median(result),
        "" if result.p99 is None or result.unit != "ms" or result.count < 2 else number(result.p99),
        "" if result.rate is None else number(result.rate),
        _times(result, results),
        _of_floor(result, results, "median"),
        "" if result.processor_ms is None else number(result.processor_ms),
        _times_cheaper(result, results),
        _of_floor(result, results, "processor_ms"),
        str(result.conflicts or ""),
        failed,
        str(result.lost or ""),
    ]


def _median(result: Result) -> str:
    if result.error is not None:
        return "failed"
    if result.gave_up_after_s is not None:
        return f"> {result.gave_up_after_s:g} s"
    return "" if result.median is None else f"{number(result.median)} {result.unit}"


def _times(result: Result, results: Sequence[Result]) -> str:
    """How many times faster berth is; only in berth's own row."""
    if result.server != BERTH or result.unit != "ms":
        return ""
    times = times_faster(results, result.key)
    if times is None:
        return ""
    theirs = find(results, result.key, ORIGINAL)
    at_least = theirs is not None and theirs.gave_up_after_s is not None
    return f"{'> ' if at_least else ''}{number(times)} ×"


def _times_cheaper(result: Result, results: Sequence[Result]) -> str:
    """By how many times less processor time berth needs; only in berth's own row."""
    times = times_cheaper(results, result.key) if result.server == BERTH else None
    return "" if times is None else f"{number(times)} ×"


def _of_floor(result: Result, results: Sequence[Result], figure: Figure) -> str:
    """How many times the floor's; not in the floor's own row."""
    times = None if result.server == FLOOR else of_floor(results, result, figure)
    return "" if times is None else f"{number(times)} ×"


def _met(verdict: Verdict) -> str:
    return {True: "met", False: "not met", None: "not measured"}[verdict.is_met]
