# SPDX-License-Identifier: Apache-2.0
"""The metrics as they are told: all that was counted, and how the processes and the fleet are now.

Any worker tells of all. What was counted stands in files that workers share; how a process is, the
kernel says of each; and the fleet is the same in every index, so that the one that is asked adds it
up, from a state as fresh as that of any read.
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
from berth.api.instruments import Instruments, shared_folder
from berth.api.readiness import NotReady, Readiness
from berth.api.shared_counts import SharedCounts
from berth.index.snapshot import Snapshot
from berth.index.totals import totals_of

#: Seconds for which what was told is told again. Nobody needs a token for it on the same host, and
#: it is answered before the admission.
TOLD_S: Final = 1.0

#: The kernel tells the start of a process by hundredths of a second.
_CLOCK_S: Final = 1.0


class Exposition(Collector):
    """Tells the metrics of all workers.

    Args:
        classes_max: resource classes that are told of one by one.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        instruments: Instruments,
        readiness: Readiness,
        *,
        classes_max: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._instruments = instruments
        self._readiness = readiness
        self._classes_max = classes_max
        self._folder = shared_folder()
        self._shared = None if self._folder is None else SharedCounts(self._folder)
        self._clock = clock
        #: One at a time: it is work for the processor. Guards the rest.
        self._lock = threading.Lock()
        #: By content type: what was told, and when. There are as many as forms of Prometheus's.
        self._told: dict[str, tuple[float, bytes]] = {}

    def render(self, accept: str | None) -> tuple[str, bytes]:
        """The content type and the body, in the form of Prometheus's that is preferred.

        Where processes share what they count, all who ask within `TOLD_S` get the same.
        """
        encode, content_type = choose_encoder(accept or "")
        with self._lock:
            if self._shared is None:
                return content_type, encode(self)
            now = self._clock()
            told_at, body = self._told.get(content_type, (-math.inf, b""))
            if now - told_at >= TOLD_S:
                body = encode(self)
                self._told[content_type] = (now, body)
            return content_type, body

    def collect(self) -> Iterator[Metric]:
        """Everything there is to tell."""
        # First: it forgets those who have died, whose levels do not count any more.
        yield from _processes(self._folder)
        self._instruments.searches.tell()
        yield from _without_births(
            self._instruments.registry.collect() if self._shared is None else self._shared.collect()
        )
        yield from self._fleet()
        build = GaugeMetricFamily(
            "berth_build_info", "What serves.", labels=("version", "python_version")
        )
        build.add_metric((berth.__version__, platform.python_version()), 1)
        yield build

    def _fleet(self) -> Iterator[Metric]:
        try:
            snapshot = self._readiness.snapshot()
        except NotReady:
            snapshot = None
        yield GaugeMetricFamily(
            "berth_ready",
            "1 where the fleet could be read for this answer; 0, and nothing is told of it.",
            value=snapshot is not None,
        )
        if snapshot is not None:
            yield from _sums(snapshot, self._classes_max)


def _without_births(metrics: Iterable[Metric]) -> Iterator[Metric]:
    for metric in metrics:
        # When a counter was made is of no use, and not known where processes share it.
        metric.samples = [one for one in metric.samples if not one.name.endswith("_created")]
        yield metric


def _sums(snapshot: Snapshot, classes_max: int) -> Iterator[Metric]:
    totals = totals_of(snapshot)
    for name, text, number in (
        ("providers", "Resource providers.", totals.providers),
        ("trees", "Provider trees.", totals.trees),
        ("shapes", "Shapes of trees: those of one shape are searched together.", totals.shapes),
    ):
        yield GaugeMetricFamily(f"berth_index_{name}", text, value=number)
    names = snapshot.names.class_names
    # Those that came first, which are always the same: series must not come and go.
    told = list(totals.classes.items())[:classes_max]
    for field, text in (
        ("capacity", "(total - reserved) x allocation_ratio, of all providers."),
        ("used", "What is allocated."),
        ("providers", "Providers with inventory of the class."),
    ):
        family = GaugeMetricFamily(f"berth_fleet_{field}", text, labels=("resource_class",))
        for class_id, of_class in told:
            family.add_metric((names[class_id],), getattr(of_class, field))
        yield family
    yield GaugeMetricFamily(
        "berth_fleet_classes_left_out",
        "Resource classes with inventory that are not told of: see [berth]metrics_classes_max.",
        value=len(totals.classes) - len(told),
    )


def _processes(folder: str | None) -> Iterator[Metric]:
    """How the processes are that share a folder, each by its number; None: this one alone."""
    living = {os.getpid(): _process(os.getpid())} if folder is None else _living(folder)
    families: dict[str, Metric] = {}
    for pid, metrics in living.items():
        for metric in metrics:
            family = families.setdefault(metric.name, metric)
            samples = [one._replace(labels={"pid": str(pid)}) for one in metric.samples]
            family.samples = samples if family is metric else family.samples + samples
    yield from families.values()
    yield GaugeMetricFamily("berth_workers", "Processes that serve.", value=len(living))


def _living(folder: str) -> dict[int, list[Metric]]:
    """The processes that share a folder, as far as they live; the levels of others go."""
    written: dict[int, float] = {}
    for path in Path(folder).glob("*_*.db"):
        with suppress(FileNotFoundError):
            pid = int(path.stem.rpartition("_")[2])
            written[pid] = max(written.get(pid, 0.0), path.stat().st_mtime)
    living = {}
    for pid, written_at in sorted(written.items()):
        metrics = _process(pid)
        # A number may be another process's by now, which began after the last write of the first.
        if _started_at(metrics) <= written_at + _CLOCK_S:
            living[pid] = metrics
        else:
            with suppress(FileNotFoundError):  # another worker is at it too
                mark_process_dead(pid, folder)  # type: ignore[no-untyped-call]
    return living


def _process(pid: int) -> list[Metric]:
    """What the kernel says of a process; nothing where there is none."""
    return list(_OfProcess(namespace="berth", pid=lambda: pid, registry=None).collect())


class _OfProcess(ProcessCollector):
    """As the library has it, where a service may see nothing of /proc but processes too."""

    def _boot_time(self) -> float:
        # Whole seconds, as the kernel tells it: else it would be another at each look.
        return float(round(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)))


def _started_at(metrics: list[Metric]) -> float:
    started = (
        one.value
        for metric in metrics
        for one in metric.samples
        if metric.name == "berth_process_start_time_seconds"
    )
    return next(started, math.inf)
