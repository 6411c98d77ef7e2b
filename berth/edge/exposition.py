# SPDX-License-Identifier: Apache-2.0
"""Renders `/metrics`: the counters, and the current state of the processes and of the fleet.

Any worker can report for all of them. The counters are in files that the workers share, and the
kernel reports the state of each process. Every worker has an index of the whole fleet, so the
worker that is scraped computes the gauges of the fleet (`berth.edge.fleet_gauges`) from its own,
refreshed as for any other read.
"""

from __future__ import annotations

import math
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import mark_process_dead
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

import berth
from berth.config import MetricsSettings
from berth.edge.fleet_gauges import FleetGauges
from berth.edge.instruments import Instruments, shared_folder
from berth.edge.readiness import NotReady, Readiness, State
from berth.edge.shared_counts import SharedCounts
from berth.model.errors import Unavailable

#: Seconds for which a response is reused: on the same host a scrape needs no token, and it bypasses
#: admission control.
REUSED_S: Final = 1.0

#: Tolerance in seconds: the kernel reports the start of a process in hundredths of a second.
_CLOCK_S: Final = 1.0


class Exposition(Collector):
    """Reports the metrics of all workers.

    Args:
        engine: the name of the database's engine.
        leases: counts the leases; it may raise `Unavailable`.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        instruments: Instruments,
        readiness: Readiness,
        settings: MetricsSettings,
        *,
        engine: str,
        leases: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._instruments = instruments
        self._readiness = readiness
        self._fleet_gauges = FleetGauges(settings)
        self._engine = engine
        self._leases = leases
        self._folder = shared_folder()
        self._shared = None if self._folder is None else SharedCounts(self._folder)
        self._clock = clock
        #: Allows one rendering at a time, as it needs the CPU. Guards the rest.
        self._lock = threading.Lock()
        #: By content type: the time and body of the last response. Prometheus has few formats.
        self._responses: dict[str, tuple[float, bytes]] = {}

    def render(self, accept: str | None) -> tuple[str, bytes]:
        """The content type and the body, in the Prometheus format that the client prefers.

        If processes share their metrics, all scrapes within `REUSED_S` get the same body.
        """
        encode, content_type = choose_encoder(accept or "")
        with self._lock:
            if self._shared is None:
                return content_type, encode(self)
            now = self._clock()
            rendered_at, body = self._responses.get(content_type, (-math.inf, b""))
            if now - rendered_at >= REUSED_S:
                body = encode(self)
                self._responses[content_type] = (now, body)
            return content_type, body

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        # First: this removes exited processes, whose gauges must not count any more.
        yield from _processes(self._folder)
        self._instruments.requests.flush()
        yield from _without_births(
            self._instruments.registry.collect() if self._shared is None else self._shared.collect()
        )
        yield from self._fleet()
        build = GaugeMetricFamily(
            "berth_build_info", "The version that serves.", labels=("version", "python_version")
        )
        build.add_metric((berth.__version__, platform.python_version()), 1)
        yield build
        database = GaugeMetricFamily(
            "berth_database_info", "The engine of the database.", labels=("engine",)
        )
        database.add_metric((self._engine,), 1)
        yield database

    def _fleet(self) -> Iterator[Metric]:
        try:
            state = self._readiness.state()
        except NotReady as error:
            state = State(fleet=str(error), write_fault=str(error))
        snapshot = None if isinstance(state.fleet, str) else state.fleet
        yield GaugeMetricFamily(
            "berth_ready",
            "1 if the fleet could be read for this response; if 0, its metrics are missing.",
            value=snapshot is not None,
        )
        yield GaugeMetricFamily(
            "berth_writable",
            "1 if the database can be written; if 0, /readyz has the reason.",
            value=state.write_fault is None,
        )
        if snapshot is not None:
            yield from self._fleet_gauges.collect(snapshot)
            # The database may have failed since.
            with suppress(Unavailable):
                yield GaugeMetricFamily(
                    "berth_leases", "Consumers with a lease.", value=self._leases()
                )


def _without_births(metrics: Iterable[Metric]) -> Iterator[Metric]:
    for metric in metrics:
        # The creation time of a counter is useless, and unknown if processes share the counter.
        metric.samples = [
            sample for sample in metric.samples if not sample.name.endswith("_created")
        ]
        yield metric


def _processes(folder: str | None) -> Iterator[Metric]:
    """The state of each process that shares a folder, by pid; None: of this process only."""
    living = {os.getpid(): _process(os.getpid())} if folder is None else _living(folder)
    families: dict[str, Metric] = {}
    for pid, metrics in living.items():
        for metric in metrics:
            family = families.setdefault(metric.name, metric)
            samples = [sample._replace(labels={"pid": str(pid)}) for sample in metric.samples]
            family.samples = samples if family is metric else family.samples + samples
    yield from families.values()
    yield GaugeMetricFamily("berth_workers", "Processes that serve.", value=len(living))


def _living(folder: str) -> dict[int, list[Metric]]:
    """The running processes that share a folder; removes the gauges of the others."""
    written: dict[int, float] = {}
    for path in Path(folder).glob("*_*.db"):
        with suppress(FileNotFoundError):
            pid = int(path.stem.rpartition("_")[2])
            written[pid] = max(written.get(pid, 0.0), path.stat().st_mtime)
    living = {}
    for pid, written_at in sorted(written.items()):
        metrics = _process(pid)
        # A reused pid belongs to a process that started after the last write of the first one.
        if _started_at(metrics) <= written_at + _CLOCK_S:
            living[pid] = metrics
        else:
            with suppress(FileNotFoundError):  # another worker removes them too
                mark_process_dead(pid, folder)  # type: ignore[no-untyped-call]
    return living


def _process(pid: int) -> list[Metric]:
    """What the kernel reports about a process; empty if it does not exist."""
    return list(_OfProcess(namespace="berth", pid=lambda: pid, registry=None).collect())


class _OfProcess(ProcessCollector):
    """The library's collector, made to work where only the processes in /proc are visible."""

    def _boot_time(self) -> float:
        # Whole seconds, as the kernel reports it: otherwise it would differ each time.
        return float(round(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)))


def _started_at(metrics: list[Metric]) -> float:
    started = (
        sample.value
        for metric in metrics
        for sample in metric.samples
        if metric.name == "berth_process_start_time_seconds"
    )
    return next(started, math.inf)
