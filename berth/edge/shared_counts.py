# SPDX-License-Identifier: Apache-2.0
"""Adds up the metrics of the processes that share a folder.

prometheus-client keeps a file for each process and kind of instrument: the number of bytes in use,
then an entry for each series, its key and its value. Entries are only ever added. This module
parses each key once, so that a scrape reads little but numbers. The library's
`MultiProcessCollector.merge` gives the same result, but parses everything each time.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Final

from prometheus_client.core import Metric
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

#: Bytes before the first entry.
_HEAD: Final = 8
#: Bytes of a value and its timestamp.
_VALUE: Final = 16

_int: Final = struct.Struct("i").unpack_from
_double: Final = struct.Struct("d").unpack_from

_BOUND: Final = "le"

_by_bound: Final = itemgetter(0)


@dataclass(frozen=True, slots=True, eq=False)
class Series:
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
    """Adds up the files of one folder. Not thread-safe."""

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
            with_bound = {**dict(labels), _BOUND: floatToGoString(bound)}  # type: ignore[no-untyped-call]
            yield Sample(f"{metric}_bucket", with_bound, count)
        if counts:
            yield Sample(f"{metric}_count", dict(labels), counts[-1])
