# SPDX-License-Identifier: Apache-2.0
"""Results as a table for people and as JSON for machines."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich import box
from rich.table import Table

from bench.scenarios import Sample


@dataclass(frozen=True, slots=True)
class Result:
    """All rounds of one scenario on one server."""

    hosts_count: int
    scenario: str
    server: str
    operations_count: int
    #: None where nothing succeeded.
    median_ms: float | None
    p99_ms: float | None
    #: Operations a second over all clients.
    rate: float
    conflicts_count: int
    failures_count: int
    lost_count: int


def summarise(hosts_count: int, scenario: str, server: str, samples: Sequence[Sample]) -> Result:
    """Take the rounds of a scenario together."""
    durations = sorted(duration for sample in samples for duration in sample.durations)
    return Result(
        hosts_count=hosts_count,
        scenario=scenario,
        server=server,
        operations_count=len(durations),
        median_ms=_quantile_ms(durations, 0.5),
        p99_ms=_quantile_ms(durations, 0.99),
        rate=len(durations) / sum(sample.elapsed for sample in samples),
        conflicts_count=sum(sample.conflicts_count for sample in samples),
        failures_count=sum(sample.failures_count for sample in samples),
        lost_count=sum(sample.lost_count for sample in samples),
    )


def as_table(results: Sequence[Result]) -> Table:
    """One fleet's results side by side; a factor where a scenario ran on two servers."""
    table = Table(
        title=f"{results[0].hosts_count:,} hosts", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for heading in ("scenario", "server"):
        table.add_column(heading, no_wrap=True)
    for heading in ("median ms", "p99 ms", "per s", "times", "409", "5xx", "lost"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        table.add_row(
            result.scenario,
            result.server,
            _number(result.median_ms),
            _number(result.p99_ms),
            f"{result.rate:,.0f}",
            _factor(result, results),
            str(result.conflicts_count),
            str(result.failures_count),
            str(result.lost_count),
        )
    return table


def as_json(results: Sequence[Result]) -> dict[str, object]:
    """The results with all that is needed to read them later."""
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "results": [asdict(result) for result in results],
    }


def machine() -> dict[str, object]:
    """What the numbers were measured on."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in ("numpy", "SQLAlchemy", "falcon", "granian")},
    }


def _quantile_ms(durations: Sequence[float], quantile: float) -> float | None:
    """A quantile of sorted durations in milliseconds."""
    if not durations:
        return None
    return durations[round(quantile * (len(durations) - 1))] * 1000


def _factor(result: Result, results: Sequence[Result]) -> str:
    """How many times the other server's rate this one reaches; only shown for the first."""
    same = [other for other in results if other.scenario == result.scenario]
    if len(same) < 2 or result is not same[0]:
        return ""
    return f"{result.rate / same[1].rate:,.1f}" if same[1].rate else "all"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def _processor() -> str:
    """The processor's name as Linux tells it, else as Python does."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
