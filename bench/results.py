# SPDX-License-Identifier: Apache-2.0
"""Results: the rounds of a case, summarised; and a whole run as JSON."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final, Literal

import msgspec

from bench.peer import PEER_RELEASE
from bench.sample import Sample

BERTH, ORIGINAL = "berth", "original"
#: The berth of another checkout, measured side by side with this one.
BEFORE = "before"
#: An application that does nothing, behind berth's server.
FLOOR: Final = "floor"

_SCALES: Final = {"s": ("ms", 1000.0)}


#: What two servers are compared by.
Figure = Literal["median", "processor_ms"]

#: Identifies a measurement: scenario, fleet, size, case, quantity.
Key = tuple[str, str, int, str, str]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """All rounds of a case on a server; with `what`, one of several quantities that it measures."""

    scenario: str
    fleet: str
    #: Hosts, or trees.
    size: int
    case: str
    quantity: str = msgspec.field(default="", name="what")
    server: str
    unit: str = "ms"
    count: int = 0
    #: None if no operation succeeded.
    median: float | None = None
    p99: float | None = None
    #: Operations per second of all clients together; None if the case has no rate.
    rate: float | None = None
    #: Processor time of the server's processes for each operation; None if it was not measured.
    processor_ms: float | None = None
    answer_bytes: int = 0
    conflicts: int = 0
    #: Number of failed operations, by response status.
    failures: dict[int, int] = {}
    lost: int = 0
    #: Set if one request took longer than this many seconds; there are no other values then.
    gave_up_after_s: float | None = None
    #: Why the measurement failed.
    error: str | None = None

    @property
    def name(self) -> str:
        """The case, and the quantity."""
        return f"{self.case}: {self.quantity}" if self.quantity else self.case

    @property
    def key(self) -> Key:
        """Identifies the measurement on any server."""
        return self.scenario, self.fleet, self.size, self.case, self.quantity


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a run, and its circumstances."""

    measured_at: str
    machine: dict[str, str | int | float]
    versions: dict[str, str]
    #: The options that matter.
    settings: dict[str, str | int | float | bool]
    results: list[Result]


def summarise(about: Result, quantity: str, samples: Sequence[Sample]) -> Result:
    """Summarise the rounds of one quantity as a result like `about`."""
    unit, scale = _SCALES.get(samples[0].unit, (samples[0].unit, 1.0))
    values = sorted(value * scale for sample in samples for value in sample.values)
    elapsed = sum(sample.elapsed for sample in samples)
    used = [sample.processor for sample in samples if sample.processor is not None]
    done = sum(sample.operations_count for sample in samples)
    return msgspec.structs.replace(
        about,
        quantity=quantity,
        unit=unit,
        count=len(values),
        median=statistics.median(values) if values else None,
        p99=quantile(values, 0.99),
        rate=len(values) / elapsed if elapsed else None,
        processor_ms=1000 * sum(used) / done if done and len(used) == len(samples) else None,
        answer_bytes=max(sample.answer_bytes for sample in samples),
        conflicts=sum(sample.conflicts_count for sample in samples),
        failures=dict(sum((sample.failures for sample in samples), Counter[int]())),
        lost=sum(sample.lost_count for sample in samples),
    )


def quantile(values: Sequence[float], fraction: float) -> float | None:
    """A quantile of sorted values, without interpolation; None if there are no values."""
    return values[round(fraction * (len(values) - 1))] if values else None


def times_faster(results: Sequence[Result], key: Key) -> float | None:
    """The median of Placement, or of an earlier berth, divided by berth's.

    If the other server timed out, the lower bound. None if berth ran alone.
    """
    ours = find(results, key, BERTH)
    theirs = find(results, key, ORIGINAL) or find(results, key, BEFORE)
    if ours is None or theirs is None or not ours.median:
        return None
    if theirs.gave_up_after_s is not None:
        return theirs.gave_up_after_s * 1000 / ours.median
    return None if theirs.median is None else theirs.median / ours.median


def times_cheaper(results: Sequence[Result], key: Key) -> float | None:
    """The processor time of Placement, or of an earlier berth, divided by berth's."""
    ours = find(results, key, BERTH)
    theirs = find(results, key, ORIGINAL) or find(results, key, BEFORE)
    return None if ours is None else _ratio(theirs, ours, "processor_ms")


def of_floor(results: Sequence[Result], result: Result, figure: Figure) -> float | None:
    """A figure of any server divided by that of the floor; None if it has no floor."""
    return _ratio(result, find(results, result.key, FLOOR), figure)


def _ratio(one: Result | None, other: Result | None, figure: Figure) -> float | None:
    above: float | None = getattr(one, figure, None)
    below: float | None = getattr(other, figure, None)
    return above / below if above is not None and below else None


def find(results: Sequence[Result], key: Key, server: str) -> Result | None:
    """The result of a measurement on a server."""
    return next(
        (result for result in results if result.key == key and result.server == server), None
    )


def new_run(settings: dict[str, str | int | float | bool]) -> Run:
    """A run that starts now, without results."""
    return Run(
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=_machine(),
        versions=_versions(),
        settings=settings,
        results=[],
    )


def write_run(run: Run, path: Path) -> None:
    """Write a run as indented JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")


def read_run(path: Path) -> Run:
    """Read the file that `write_run` wrote."""
    return msgspec.json.decode(path.read_bytes(), type=Run)


def _machine() -> dict[str, str | int | float]:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory GiB": round(pages / 2**30, 1),
        "system": platform.platform(),
        # What else it does: 0 is an idle machine, and numbers of a busy one are worse.
        "load at the start": round(os.getloadavg()[0], 1),
    }


def _versions() -> dict[str, str]:
    libraries = ("numpy", "SQLAlchemy", "granian")
    return {
        "berth": version("berthd"),
        "original": PEER_RELEASE,
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        **{name: version(name) for name in libraries},
    }


def _processor() -> str:
    """The processor's name from Linux, or else from Python."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
