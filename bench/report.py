# SPDX-License-Identifier: Apache-2.0
"""Results as a table for people and as JSON for machines."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.table import Table

from bench.scenarios import Sample


@dataclass(frozen=True, slots=True)
class Result:
    """All rounds of one scenario on one server."""

    hosts_count: int
    scenario: str
    server: str
    operations_count: int
    median_ms: float
    p99_ms: float
    #: Operations a second over all clients.
    rate: float
    conflicts_count: int
    lost_count: int


def summarise(hosts_count: int, scenario: str, server: str, samples: Sequence[Sample]) -> Result:
    """Take the rounds of a scenario together."""
    durations = sorted(duration for sample in samples for duration in sample.durations)
    return Result(
        hosts_count=hosts_count,
        scenario=scenario,
        server=server,
        operations_count=len(durations),
        median_ms=statistics.median(durations) * 1000,
        p99_ms=durations[int(0.99 * (len(durations) - 1) + 0.5)] * 1000,
        rate=len(durations) / sum(sample.elapsed for sample in samples),
        conflicts_count=sum(sample.conflicts_count for sample in samples),
        lost_count=sum(sample.lost_count for sample in samples),
    )


def as_table(results: Sequence[Result]) -> Table:
    """The results side by side; a factor where a scenario ran on two servers."""
    table = Table(title="berth bench")
    for heading in ("hosts", "scenario", "server"):
        table.add_column(heading)
    for heading in ("median ms", "p99 ms", "per second", "times", "409", "lost"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(
            f"{result.hosts_count:,}",
            result.scenario,
            result.server,
            f"{result.median_ms:,.2f}",
            f"{result.p99_ms:,.2f}",
            f"{result.rate:,.1f}",
            _factor(result, results),
            str(result.conflicts_count),
            str(result.lost_count),
            end_section=result is _last_of_fleet(result, results),
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


def _factor(result: Result, results: Sequence[Result]) -> str:
    """How many times the other server's rate this one reaches; only shown for the first."""
    same = [
        other
        for other in results
        if (other.hosts_count, other.scenario) == (result.hosts_count, result.scenario)
    ]
    if len(same) < 2 or result is not same[0]:
        return ""
    return f"{result.rate / same[1].rate:,.1f}"


def _last_of_fleet(result: Result, results: Sequence[Result]) -> Result:
    return [other for other in results if other.hosts_count == result.hosts_count][-1]


def _processor() -> str:
    """The processor's name as Linux tells it, else as Python does."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
