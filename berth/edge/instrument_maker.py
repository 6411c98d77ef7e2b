# SPDX-License-Identifier: Apache-2.0
"""Makes the instruments of metrics: with a common prefix, and children that are looked up once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

M = TypeVar("M", bound=MetricWrapperBase)
GaugeMode = Literal["liveall", "livesum"]


class Maker:
    """Makes instruments in one registry, with the common prefix in their names."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(self, name: str, text: str) -> Counter:
        """A counter without labels."""
        return Counter(f"berth_{name}", text, registry=self._registry)

    def histogram(self, name: str, text: str, *, buckets: Iterable[float]) -> Histogram:
        """A histogram without labels."""
        return Histogram(f"berth_{name}", text, registry=self._registry, buckets=tuple(buckets))

    def gauge(self, name: str, text: str, *, multiprocess_mode: GaugeMode) -> Gauge:
        """A gauge without labels."""
        return Gauge(
            f"berth_{name}", text, registry=self._registry, multiprocess_mode=multiprocess_mode
        )

    def labelled(
        self, kind: Callable[..., M], name: str, text: str, *labels: str
    ) -> Callable[..., M]:
        """Instruments of one name, each made at the first lookup of its labels and kept."""
        parent = kind(f"berth_{name}", text, labels, registry=self._registry)
        children: dict[tuple[str, ...], M] = {}

        def of(*label_values: str) -> M:
            try:
                return children[label_values]
            except KeyError:
                child = children[label_values] = parent.labels(*label_values)
                return child

        return of
