# SPDX-License-Identifier: Apache-2.0
"""Gauges of the fleet: its state, computed from the index when the metrics are read.

To add one, write a function from a snapshot to its metrics, and yield from it in
`FleetGauges.collect`; list the metric in docs/metrics.md.

The state is the same for all workers, so it has no instrument, whose values would be added up over
them: the worker that is scraped computes it. What one process does, such as the requests that it
serves or the watchers that it has, is an instrument (`berth.edge.instruments`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC

from prometheus_client.core import GaugeMetricFamily, Metric

from berth.config import MetricsSettings
from berth.edge.capacity_gauges import CapacityGauges
from berth.index.drained import reach
from berth.index.snapshot import Snapshot
from berth.index.totals import Totals, totals_of


class FleetGauges:
    """The gauges of the fleet. Not thread-safe."""

    def __init__(self, settings: MetricsSettings) -> None:
        self._classes_max = settings.classes_max
        self._capacity = CapacityGauges(settings)

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        """The metrics of a snapshot."""
        totals = totals_of(snapshot)
        yield from _sizes(totals)
        yield from _of_classes(snapshot, totals, self._classes_max)
        yield from _of_drains(snapshot)
        yield from self._capacity.collect(snapshot)


def _sizes(totals: Totals) -> Iterator[Metric]:
    for name, text, number in (
        ("providers", "Resource providers.", totals.providers),
        ("trees", "Provider trees.", totals.trees),
        ("shapes", "Shapes of trees: those of one shape are searched together.", totals.shapes),
    ):
        yield GaugeMetricFamily(f"berth_index_{name}", text, value=number)


def _of_drains(snapshot: Snapshot) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "berth_drained_providers",
        "Providers that get nothing new.",
        value=reach(snapshot).providers,
    )
    created = [each.created_at for each in snapshot.names.drains.values() if each.excludes]
    oldest = GaugeMetricFamily(
        "berth_drains_oldest_timestamp_seconds",
        "When the oldest drain in effect was created.",
    )
    if created:
        oldest.add_metric((), min(created).replace(tzinfo=UTC).timestamp())
    yield oldest


def _of_classes(snapshot: Snapshot, totals: Totals, classes_max: int) -> Iterator[Metric]:
    names = snapshot.names.class_names
    # The oldest classes, which are always the same: series must not come and go.
    shown = list(totals.classes.items())[:classes_max]
    for field, text in (
        ("capacity", "(total - reserved) x allocation_ratio, of all providers."),
        ("used", "What is allocated."),
        ("providers", "Providers with inventory of the class."),
    ):
        family = GaugeMetricFamily(f"berth_fleet_{field}", text, labels=("resource_class",))
        for class_id, of_class in shown:
            family.add_metric((names[class_id],), getattr(of_class, field))
        yield family
    yield GaugeMetricFamily(
        "berth_fleet_classes_left_out",
        "Resource classes with inventory without series of their own: see "
        "[berth]metrics_classes_max.",
        value=len(totals.classes) - len(shown),
    )
