# SPDX-License-Identifier: Apache-2.0
"""Results for people: a line as each comes; tables for the terminal and for the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich import box
from rich.table import Table

from bench.growth import Growth
from bench.results import BERTH, ORIGINAL, Result, find, times_faster
from bench.targets import Verdict

Row = list[str]

HEADINGS = ("fleet", "case", "server", "median", "p99", "per s", "times", "409", "failed", "lost")


def line(result: Result, results: Sequence[Result]) -> str:
    """One result, as it is said while a run goes on."""
    fleet, case, server, median, _, rate, times, conflicts, failed, lost = _row(result, results)
    faults = {"409": conflicts, "failed": failed, "lost": lost}
    told = "".join(f"  {name}: {value}" for name, value in faults.items() if value)
    subject = f"{result.scenario:9} {fleet:22} {case:58.58} {server:8}"
    return f"{subject} {median:>14} {rate:>9} {times:>9}{told}"


def tables(results: Sequence[Result]) -> Iterator[Table]:
    """A table for each scenario, for the terminal."""
    for scenario, some in _by_scenario(results):
        table = Table(title=scenario, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for number, heading in enumerate(HEADINGS):
            table.add_column(heading, justify="left" if number < 3 else "right")
        for one in some:
            table.add_row(*_row(one, results))
        yield table


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """The targets, for the terminal."""
    table = Table(title="targets", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("case", "target", "measured", ""):
        table.add_column(heading)
    for one in verdicts:
        table.add_row(one.case, one.target, one.measured, _met(one))
    return table


def growth_table(found: Sequence[Growth]) -> Table:
    """The exponents, for the terminal."""
    table = Table(title="growth", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("query", "against", "exponent"):
        table.add_column(heading)
    for one in found:
        table.add_row(one.name, one.against, f"{one.exponent:.2f}")
    return table


def markdown_results(results: Sequence[Result]) -> str:
    """Every result, for the documentation, a table for each scenario."""
    parts = []
    for scenario, some in _by_scenario(results):
        rows = [_row(one, results) for one in some]
        parts.append(f"### {scenario}\n\n{markdown_table(HEADINGS, rows, numbers_from=3)}")
    return "\n".join(parts)


def markdown_verdicts(verdicts: Sequence[Verdict]) -> str:
    """The targets, for the documentation."""
    rows = [[one.case, one.target, one.measured, _met(one)] for one in verdicts]
    return markdown_table(("case", "target", "measured", ""), rows, numbers_from=4)


def markdown_growth(found: Sequence[Growth]) -> str:
    """The exponents, for the documentation."""
    rows = [
        [
            one.name,
            one.against,
            ", ".join(f"{size:,}" for size in one.sizes),
            ", ".join(number(median) for median in one.medians),
            f"{one.exponent:.2f}",
        ]
        for one in found
    ]
    headings = ("query", "against", "hosts", "median ms", "exponent")
    return markdown_table(headings, rows, numbers_from=4)


def markdown_table(headings: Sequence[str], rows: Sequence[Row], *, numbers_from: int) -> str:
    """A table in Markdown; from one column on, what stands in it is set to the right."""
    rule = ["---" if at < numbers_from else "--:" for at in range(len(headings))]
    lines = [" | ".join(cells) for cells in (headings, rule, *rows)]
    return "".join(f"| {one} |\n" for one in lines)


def number(value: float) -> str:
    """A number with about three digits that count."""
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if value >= 10 else f"{value:,.2f}"


def _by_scenario(results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    ordered = sorted(results, key=lambda one: _order(results).index(one.scenario))
    for scenario, some in groupby(ordered, key=lambda one: one.scenario):
        yield scenario, list(some)


def _order(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(one.scenario for one in results))


def _row(result: Result, results: Sequence[Result]) -> Row:
    failed = ", ".join(f"{count} × {status}" for status, count in sorted(result.failures.items()))
    return [
        f"{result.fleet}, {result.size:,}",
        result.name,
        result.server,
        _median(result),
        "" if result.p99 is None or result.unit != "ms" or result.count < 2 else number(result.p99),
        "" if result.rate is None else number(result.rate),
        _times(result, results),
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
    """How many times faster berth is; said with berth's own result."""
    if result.server != BERTH or result.unit != "ms":
        return ""
    times = times_faster(results, result.key)
    if times is None:
        return ""
    theirs = find(results, result.key, ORIGINAL)
    at_least = theirs is not None and theirs.gave_up_after_s is not None
    return f"{'> ' if at_least else ''}{number(times)} ×"


def _met(verdict: Verdict) -> str:
    return {True: "met", False: "not met", None: "not measured"}[verdict.is_met]
