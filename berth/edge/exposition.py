# SPDX-License-Identifier: Apache-2.0
"""Renders `/metrics`: the counters, and the current state of the processes and of the fleet.

Any worker can report for all of them. The counters are in files that the workers share, and the
kernel reports the state of each process. Every worker has an index of the whole fleet, so the
worker that is scraped computes the gauges of the fleet (`berth.edge.fleet_gauges`) from its own,
refreshed as for any other read.
"""

from __future__ import annotations

import json
import math
import os
import platform
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Final

from msgspec import Struct
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import mark_process_dead
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

import berth
from berth.config import MetricsSettings
from berth.edge.fleet_gauges import FleetGauges
from berth.edge.instruments import Instruments, shared_folder
from berth.edge.readiness import NotReady, Readiness, State
from berth.model.errors import Unavailable

#: Seconds for which a response is reused: on the same host a scrape needs no token, and it bypasses
#: admission control.
REUSED_S: Final = 1.0

#: Tolerance in seconds: the kernel reports the start of a process in hundredths of a second.
_CLOCK_S: Final = 1.0

#: Bytes before the first entry.
_HEAD: Final = 8

#: Bytes of a value and its timestamp.
_VALUE: Final = 16

_int: Final = struct.Struct("i").unpack_from

_double: Final = struct.Struct("d").unpack_from

_BOUND: Final = "le"

_by_bound: Final = itemgetter(0)


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


class Series(Struct, frozen=True, eq=False):
    """One series of one metric; each series has exactly one such object."""

    metric: str
    help: str
    type: str
    name: str
    #: Sorted by name; those of a histogram without the bucket's bound.
    labels: tuple[tuple[str, str], ...]
    #: The bound of a histogram's bucket; None for anything else.
    bound: float | None


class SharedCounts:
    """Adds up the metrics of the processes that share a folder. Not thread-safe.

    prometheus-client keeps a file for each process and kind of instrument: the number of bytes in
    use, then an entry for each series, its key and its value. Entries are only ever added. This
    parses each key once, so that a scrape reads little but numbers. The library's
    `MultiProcessCollector.merge` gives the same result, but parses everything each time.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        #: By kind, by pid (of gauges reported per process), and by key. Cleared when a file has
        #: gone: the gauges of a replaced worker are removed.
        self._series: dict[tuple[str, str], dict[bytes, Series]] = {}
        #: The names of the files at the last scrape.
        self._names: set[str] = set()

    def collect(self) -> Iterator[Metric]:
        """All metrics, in the order of the files."""
        sums: dict[Series, float] = defaultdict(float)
        paths = sorted(self._folder.glob("*.db"))
        names = {path.name for path in paths}
        if self._names - names:
            self._series = {}
        self._names = names
        for path in paths:
            with suppress(FileNotFoundError):  # gauges of a worker that has exited
                self._add(path, sums)
        metrics: dict[str, list[tuple[Series, float]]] = defaultdict(list)
        for series, value in sums.items():
            metrics[series.metric].append((series, value))
        for of_metric in metrics.values():
            first = of_metric[0][0]
            metric = Metric(first.metric, first.help, first.type)
            samples = _accumulated if first.type == "histogram" else _plain
            metric.samples = list(samples(of_metric))
            yield metric

    def _add(self, path: Path, sums: dict[Series, float]) -> None:
        """Add the values of a file to the sums. A file just created is empty."""
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
            used = _int(head)[0] if len(head) == _HEAD else 0
            data = head + stream.read(max(used - _HEAD, 0))
        # Such as `counter_7`, `histogram_7` or `gauge_livesum_7`.
        kind, _, rest = path.stem.partition("_")
        mode, _, pid = rest.rpartition("_")
        assert mode in ("", "livesum", "liveall"), "no other kind of level is made"
        pid = pid if mode == "liveall" else ""
        by_key = self._series.setdefault((kind, pid), {})
        place = _HEAD
        while place < used:
            length = _int(data, place)[0]
            place += 4
            key = data[place : place + length]
            series = by_key.get(key)
            if series is None:
                series = by_key[key] = _series_of(key, kind, pid)
            # The value is aligned to eight bytes.
            place += length + 8 - (length + 4) % 8
            sums[series] += _double(data, place)[0]
            place += _VALUE


def _series_of(key: bytes, kind: str, pid: str) -> Series:
    """Parse a key.

    Args:
        pid: the process id if it is a label, else empty.
    """
    metric, name, labels, text = json.loads(key)
    bound = labels.pop(_BOUND, None)
    if pid:
        labels["pid"] = pid
    return Series(
        metric,
        text,
        kind,
        name,
        tuple(sorted(labels.items())),
        None if bound is None else float(bound),
    )


def _plain(of_metric: Iterable[tuple[Series, float]]) -> Iterator[Sample]:
    for series, value in of_metric:
        yield Sample(series.name, dict(series.labels), value)


def _accumulated(of_metric: Iterable[tuple[Series, float]]) -> Iterator[Sample]:
    """The samples of a histogram: each bucket includes those below it, and the last counts all."""
    rest: dict[tuple[tuple[str, str], ...], list[Sample]] = defaultdict(list)
    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = defaultdict(list)
    metric = ""
    for series, value in of_metric:
        metric = series.metric
        if series.bound is None:
            rest[series.labels].append(Sample(series.name, dict(series.labels), value))
        else:
            buckets[series.labels].append((series.bound, value))
    for labels, samples in rest.items():
        yield from samples
        in_order = sorted(buckets[labels], key=_by_bound)
        counts = list(accumulate(value for _, value in in_order))
        for (bound, _), count in zip(in_order, counts, strict=True):
            # prometheus_client has types, but not for this function.
            with_bound = {**dict(labels), _BOUND: floatToGoString(bound)}  # type: ignore[no-untyped-call]
            yield Sample(f"{metric}_bucket", with_bound, count)
        if counts:
            yield Sample(f"{metric}_count", dict(labels), counts[-1])
