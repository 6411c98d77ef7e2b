# SPDX-License-Identifier: Apache-2.0
"""Gauges of the fleet: its state, computed from the index when the metrics are read.

To add one, write a function from a snapshot to its metrics, and yield from it in
`FleetGauges.collect`; list the metric in docs/metrics.md.

The state is the same for all workers, so it has no instrument, whose values would be added up over
them: the worker that is scraped computes it. What one process does, such as the requests that it
serves or the watchers that it has, is an instrument (`berth.edge.instruments`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC
from typing import Final, NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric

from berth.api.berth_v1.fleet_questions import flavor_to_count
from berth.api.berth_v1.questions import Asked
from berth.candidates.capacity import NO_VALUE, Counting, Partition
from berth.config import CAPACITY_LABEL, MetricsSettings
from berth.index.draining import reach
from berth.index.snapshot import Snapshot
from berth.index.totals import Totals, totals_of
from berth.model.bounds import CAPACITY_VALUES_MAX
from berth.model.budget import Budget
from berth.model.capacity import Fragments, OfValue, Total
from berth.model.named import FlavorName

#: Seconds of CPU time that one scrape may count. By the wall clock, series would disappear whenever
#: the service has much to do.
BUDGET_S: Final = 0.2

#: A flavor that alone takes this part of them is counted after all others the next time.
_SLOW_S: Final = BUDGET_S / 2


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
    created = [each.created_at for each in snapshot.names.records.drains.values() if each.excludes]
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


class _Figures(NamedTuple):
    """The capacity for one flavor.

    Attributes:
        totals: by the value of the label that divides them; `NO_VALUE` for the hosts without it,
            and for all hosts if there is no such label.
        hosts: how many fit.
        classes: what is left of each class.
    """

    totals: Mapping[str, Total | OfValue]
    hosts: int
    classes: Mapping[str, Fragments]


class CapacityGauges:
    """How many more of each exposed flavor fit. Not thread-safe.

    Args:
        clock: seconds that the calling thread has worked.
    """

    def __init__(
        self, settings: MetricsSettings, *, clock: Callable[[], float] = time.thread_time
    ) -> None:
        self._flavors_max = settings.flavors_max
        self._by = settings.capacity_by
        self._clock = clock
        #: The revision of the figures.
        self._revision: str | None = None
        #: By flavor, as far as they have been counted; None for one that cannot be.
        self._figures: dict[FlavorName, _Figures | None] = {}
        #: Flavors that took long the last time.
        self._slow: set[FlavorName] = set()

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        """The metrics of a snapshot."""
        exposed = sorted(
            name for name, each in snapshot.names.records.flavors.items() if each.expose
        )
        chosen = exposed[: self._flavors_max]
        if snapshot.revision != self._revision:
            self._revision, self._figures = snapshot.revision, {}
        if uncounted := [name for name in chosen if name not in self._figures]:
            self._count(snapshot, uncounted)
        figures = {name: self._figures[name] for name in chosen if name in self._figures}
        shown = {name: each for name, each in figures.items() if each is not None}
        yield from self._totals(shown)
        yield from _of_hosts(shown)
        yield _left_out(
            flavors_max=len(exposed) - len(chosen),
            invalid=len(figures) - len(shown),
            time=len(chosen) - len(figures),
        )

    def _count(self, snapshot: Snapshot, names: Collection[FlavorName]) -> None:
        """Count as many flavors as there is time for."""
        budget = Budget(self._clock, seconds=BUDGET_S)
        counting = Counting(snapshot, budget)
        partition = self._partition(counting)
        # A flavor that takes longer than the budget would otherwise keep out those after it.
        for name in sorted(names, key=lambda name: (name in self._slow, name)):
            if budget.is_spent():
                break
            started = self._clock()
            figures = _figures(counting, name, partition)
            if self._clock() - started >= _SLOW_S:
                self._slow.add(name)
            else:
                self._slow.discard(name)
            if budget.ended is not None:
                break  # its counts may be too low
            self._figures[name] = figures
        self._slow &= snapshot.names.records.flavors.keys()

    def _partition(self, counting: Counting) -> Partition | None:
        """The hosts by the label; None if there is none, or if it has too many values."""
        if not self._by:
            return None
        partition = Partition(counting, self._by, with_rest=True)
        return partition if len(partition.values) <= CAPACITY_VALUES_MAX else None

    def _totals(self, shown: Mapping[FlavorName, _Figures]) -> Iterator[Metric]:
        labels = [CAPACITY_LABEL, _metric_label(self._by)] if self._by else [CAPACITY_LABEL]
        for field, text in (
            ("count", "How many more of a flavor fit, at least."),
            ("at_most", "How many more of a flavor fit, at most; nearly always the same."),
        ):
            family = GaugeMetricFamily(f"berth_capacity_{field}", text, labels=labels)
            for name, figures in shown.items():
                for value, total in figures.totals.items():
                    values = [name, value] if self._by else [name]
                    family.add_metric(values, getattr(total, field))
            yield family


def _figures(counting: Counting, name: FlavorName, partition: Partition | None) -> _Figures | None:
    """The capacity for a flavor; None if it cannot be counted."""
    asked = flavor_to_count(counting.snapshot, name)
    if not isinstance(asked, Asked):
        return None
    capacity = counting.capacity([asked.question])
    totals: Mapping[str, Total | OfValue] = {NO_VALUE: capacity.total()}
    if partition is not None:
        totals = partition.lines(capacity)
    return _Figures(totals, capacity.hosts(), counting.fragments(capacity))


def _of_hosts(shown: Mapping[FlavorName, _Figures]) -> Iterator[Metric]:
    hosts = GaugeMetricFamily(
        "berth_capacity_hosts", "Hosts on which a flavor fits.", labels=[CAPACITY_LABEL]
    )
    for name, figures in shown.items():
        hosts.add_metric([name], figures.hosts)
    yield hosts
    for field, text in (
        ("stranded", "What is free of a class, but not usable for a flavor."),
        ("largest", "The largest amount of a class with which a flavor would still fit a host."),
    ):
        family = GaugeMetricFamily(
            f"berth_capacity_{field}", text, labels=[CAPACITY_LABEL, "resource_class"]
        )
        for name, figures in shown.items():
            for resource_class, fragments in figures.classes.items():
                family.add_metric([name, resource_class], getattr(fragments, field))
        yield family


def _left_out(**numbers: int) -> Metric:
    """The number of exposed flavors without series, by the reason."""
    family = GaugeMetricFamily(
        "berth_capacity_left_out",
        "Exposed flavors without series: more than [berth]metrics_flavors_max, not counted in "
        "time, or with a name that does not exist.",
        labels=["reason"],
    )
    for reason, number in numbers.items():
        family.add_metric([reason], number)
    return family


def _metric_label(key: str) -> str:
    """A key of aggregates as Prometheus spells labels."""
    return key.replace(".", "_").replace("-", "_")
