# SPDX-License-Identifier: Apache-2.0
"""The sums of several processes' metrics, compared with those of prometheus-client."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.core import Metric
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.utils import floatToGoString

from berth.edge.exposition import SharedCounts

BOUNDS = [*map(floatToGoString, (0.005, 0.25, 1.0, 10.0)), "+Inf"]


def by_the_library(folder: Path) -> dict[str, Any]:
    """The library's result, the slow way."""
    files = [str(path) for path in folder.glob("*.db")]
    return told(MultiProcessCollector.merge(files))  # type: ignore[no-untyped-call]


def told(metrics: Iterable[Metric]) -> dict[str, Any]:
    """The content of each metric, without the order of samples."""
    return {
        metric.name: (
            metric.type,
            metric.documentation,
            sorted(
                (sample.name, sorted(sample.labels.items()), sample.value)
                for sample in metric.samples
            ),
        )
        for metric in metrics
    }


class Process:
    """A process with metrics."""

    def __init__(self, folder: Path, pid: int) -> None:
        self._folder, self._pid = folder, pid
        self._files: dict[str, MmapedDict] = {}

    def write(self, kind: str, name: str, value: float, **labels: str) -> None:
        """Set one value."""
        if kind not in self._files:
            path = str(self._folder / f"{kind}_{self._pid}.db")
            self._files[kind] = MmapedDict(path)  # type: ignore[no-untyped-call]
        metric = name.removesuffix("_total").removesuffix("_bucket").removesuffix("_sum")
        key = mmap_key(metric, name, list(labels), list(labels.values()), f"What {metric} is.")
        self._files[kind].write_value(key, value, 0.0)  # type: ignore[no-untyped-call]

    def write_some(self, rng: random.Random) -> None:
        """Set values of every kind, some of them for the first time."""
        for _ in range(30):
            route = f'/route "{rng.randrange(6)}" \\ é'
            self.write("counter", "requests_total", rng.randrange(9), route=route, method="GET")
            self.write("gauge_livesum", "waiting", rng.randrange(9), line=route)
            self.write("gauge_liveall", "refreshed", rng.random())
            bound = rng.choice(BOUNDS)
            self.write("histogram", "seconds_bucket", rng.randrange(9), route=route, le=bound)
            self.write("histogram", "seconds_sum", rng.randrange(99), route=route)


@pytest.mark.parametrize("seed", range(5))
def test_the_sums_are_those_of_the_library(tmp_path: Path, seed: int) -> None:
    """After each change, while series and processes are added, and processes exit."""
    rng = random.Random(seed)
    shared = SharedCounts(str(tmp_path))
    assert told(shared.collect()) == {}
    processes = [Process(tmp_path, pid) for pid in (1, 22)]
    for look in range(8):
        for process in processes:
            process.write_some(rng)
        if look == 2:
            processes.append(Process(tmp_path, 333))
        if look == 5:
            for path in tmp_path.glob("gauge_live*_22.db"):
                path.unlink()
            del processes[1]
        assert told(shared.collect()) == by_the_library(tmp_path)


@pytest.mark.parametrize("size", [0, 4, 8])
def test_a_file_that_is_only_begun_is_passed_over(tmp_path: Path, size: int) -> None:
    """Its process was killed when it began to count, or is about to begin."""
    Process(tmp_path, 1).write("counter", "requests_total", 3)
    (tmp_path / "counter_2.db").write_bytes(b"\0" * size)
    (metric,) = SharedCounts(str(tmp_path)).collect()
    assert [sample.value for sample in metric.samples] == [3]
