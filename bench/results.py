# SPDX-License-Identifier: Apache-2.0
"""Results: what the rounds of a case gave, taken together; and a whole run as JSON."""

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
from typing import Final

import msgspec

from bench.peer import PEER_RELEASE
from bench.sample import Sample

BERTH, ORIGINAL = "berth", "original"
#: The berth of another checkout, that is measured beside this one.
BEFORE = "before"

_SCALES: Final = {"s": ("ms", 1000.0)}


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """All rounds of one case on one server; or, with `what`, one thing of several it measures."""

    scenario: str
    fleet: str
    #: Hosts, or trees.
    size: int
    case: str
    what: str = ""
    server: str
    unit: str = "ms"
    count: int = 0
    #: None where nothing succeeded.
    median: float | None = None
    p99: float | None = None
    #: Operations a second over all clients; None where there is no such thing.
    rate: float | None = None
    answer_bytes: int = 0
    conflicts: int = 0
    #: How many operations the server failed to do, by the status that it answered.
    failures: dict[int, int] = {}
    lost: int = 0
    #: Set where one request took longer than this many seconds, and nothing else is known.
    gave_up_after_s: float | None = None
    #: Why nothing was measured.
    error: str | None = None

    @property
    def name(self) -> str:
        """The case, and what of it."""
        return f"{self.case}: {self.what}" if self.what else self.case

    @property
    def key(self) -> tuple[str, str, int, str, str]:
        """What is measured, whichever the server."""
        return self.scenario, self.fleet, self.size, self.case, self.what


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """All that one run has found, with what is needed to read it later."""

    measured_at: str
    machine: dict[str, str | int | float]
    versions: dict[str, str]
    #: How it was called, as far as it matters.
    settings: dict[str, str | int | float | bool]
    results: list[Result]


def summarise(about: Result, what: str, samples: Sequence[Sample]) -> Result:
    """The rounds of one thing taken together, as a result like `about`."""
    unit, scale = _SCALES.get(samples[0].unit, (samples[0].unit, 1.0))
    values = sorted(value * scale for sample in samples for value in sample.values)
    elapsed = sum(sample.elapsed for sample in samples)
    return msgspec.structs.replace(
        about,
        what=what,
        unit=unit,
        count=len(values),
        median=statistics.median(values) if values else None,
        p99=quantile(values, 0.99),
        rate=len(values) / elapsed if elapsed else None,
        answer_bytes=max(sample.answer_bytes for sample in samples),
        conflicts=sum(sample.conflicts_count for sample in samples),
        failures=dict(sum((sample.failures for sample in samples), Counter[int]())),
        lost=sum(sample.lost_count for sample in samples),
    )


def quantile(values: Sequence[float], wanted: float) -> float | None:
    """A quantile of sorted values: the one that stands nearest to it, None where there is none."""
    return values[round(wanted * (len(values) - 1))] if values else None


def times_faster(results: Sequence[Result], key: tuple[str, str, int, str, str]) -> float | None:
    """How many times longer the original takes than berth, by medians; or an earlier berth.

    Where the other was given up, the least that it can be. None where berth ran alone.
    """
    ours = find(results, key, BERTH)
    theirs = find(results, key, ORIGINAL) or find(results, key, BEFORE)
    if ours is None or theirs is None or not ours.median:
        return None
    if theirs.gave_up_after_s is not None:
        return theirs.gave_up_after_s * 1000 / ours.median
    return None if theirs.median is None else theirs.median / ours.median


def find(
    results: Sequence[Result], key: tuple[str, str, int, str, str], server: str
) -> Result | None:
    """The result of one thing on one server."""
    return next((one for one in results if one.key == key and one.server == server), None)


def new_run(settings: dict[str, str | int | float | bool]) -> Run:
    """A run that begins now, without results."""
    return Run(
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=_machine(),
        versions=_versions(),
        settings=settings,
        results=[],
    )


def write_run(run: Run, path: Path) -> None:
    """Write a run as JSON that people can read too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")


def read_run(path: Path) -> Run:
    """Read what `write_run` has written."""
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
    libraries = ("numpy", "SQLAlchemy", "falcon", "granian")
    return {
        "berth": version("berthd"),
        "original": PEER_RELEASE,
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        **{name: version(name) for name in libraries},
    }


def _processor() -> str:
    """The processor's name as Linux tells it, else as Python does."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
