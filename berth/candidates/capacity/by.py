# SPDX-License-Identifier: Apache-2.0
"""Capacities by the aggregates that hosts are in, by their labels, and by host.

A host is in the aggregates of its root. Source: spec/beyond.md 4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.capacity import Capacity, Counting
from berth.candidates.capacity.free import summable
from berth.candidates.capacity.pools import Total
from berth.index.aggregate_sets import Mask
from berth.index.block import Ints
from berth.index.named import NamedProvider, named_provider
from berth.model.ids import AggregateId

#: Stands for having no label of a key; no label has this value.
NO_VALUE: Final = ""


class Line(NamedTuple):
    """The capacity of some hosts.

    Attributes:
        hosts: how many of them fit.
    """

    total: Total
    hosts: int


class Partition:
    """Hosts by one label, or by aggregate; a host may be in several parts.

    Attributes:
        values: the values of the label, or the uuids of the aggregates, ascending.
    """

    def __init__(self, counting: Counting, key: str | None, *, with_rest: bool = False) -> None:
        """The hosts by the values of a label.

        Args:
            key: that of the label; None for each aggregate by itself.
            with_rest: whether the hosts in no other part are one too, if there are any: that of
                the empty value.
        """
        self._roots = counting.fleet.roots_in()
        present: Mask = np.zeros(self._roots.max(initial=0) + 1, dtype=np.bool_)
        present[self._roots] = True
        sets, names = counting.snapshot.aggregate_sets, counting.snapshot.names
        #: Value -> the sets of aggregates whose hosts have it.
        self._tables: dict[str, Mask] = {}
        aggregates: dict[str, list[AggregateId]] = {}
        if key is None:
            aggregates = {uuid: [number] for uuid, number in names.aggregate_ids.items()}
        else:
            for (label, value), uuids in names.labels.items():
                if label == key:
                    ids = (names.aggregate_ids.get(uuid) for uuid in uuids)
                    aggregates[value] = [each for each in ids if each is not None]
        for value in sorted(aggregates):
            table = sets.having_any(aggregates[value])[: len(present)] & present
            if table.any():
                self._tables[value] = table
        rest = present & ~_any_of(self._tables.values(), len(present))
        if with_rest and rest.any():
            self._tables = {NO_VALUE: rest, **self._tables}

    @property
    def values(self) -> list[str]:
        """See the class."""
        return list(self._tables)

    def lines(self, capacity: Capacity) -> dict[str, Line]:
        """The capacity of the hosts of each value."""
        if capacity.is_shared:
            return {
                value: _line(capacity, table[self._roots]) for value, table in self._tables.items()
            }
        # PERF bench, capacity: most hosts are in the same few sets of aggregates.
        sums = [self._by_set(each) for each in (capacity.count, capacity.at_most)]
        hosts = self._by_set((capacity.count > 0).astype(np.int64))
        return {
            value: Line(Total(*(int(each[table].sum()) for each in sums)), int(hosts[table].sum()))
            for value, table in self._tables.items()
        }

    def _by_set(self, values: Ints) -> Ints:
        values = summable(values)
        order = np.zeros(self._roots.max(initial=0) + 1, dtype=values.dtype)
        np.add.at(order, self._roots, values)
        return order


def _any_of(tables: Iterable[Mask], size: int) -> Mask:
    any_of: Mask = np.zeros(size, dtype=np.bool_)
    for table in tables:
        any_of |= table
    return any_of


def _line(capacity: Capacity, hosts: Mask) -> Line:
    return Line(capacity.total(hosts), capacity.hosts(hosts))


class OfHost(NamedTuple):
    """The capacity of one host."""

    host: NamedProvider
    total: Total


def best_hosts(counting: Counting, capacity: Capacity, most: int) -> list[OfHost]:
    """The hosts with the highest counts, and of equal ones the first by uuid; only such as fit."""
    count, fleet = capacity.count, counting.fleet
    most = min(most, int(np.count_nonzero(count)))
    if not most:
        return []
    least = np.partition(count, len(count) - most)[len(count) - most]
    chosen = np.flatnonzero(count > least).tolist()
    chosen += fleet.first(count == least, most - len(chosen))
    of_hosts = (of_host(counting, capacity, host) for host in chosen)
    return sorted(of_hosts, key=lambda each: (-each.total.count, each.host.uuid))


def every_host(counting: Counting, capacity: Capacity) -> Iterable[OfHost]:
    """All hosts by uuid."""
    return (of_host(counting, capacity, host) for host in counting.fleet.in_order().tolist())


def of_host(counting: Counting, capacity: Capacity, host: int) -> OfHost:
    """The capacity of one host of the fleet."""
    span, row = counting.fleet.place(host)
    total = Total(int(capacity.count[host]), int(capacity.at_most[host]))
    return OfHost(named_provider(span.block, 0, row), total)


def hosts_by_uuid(counting: Counting, uuids: Iterable[str]) -> Mapping[str, int]:
    """The numbers in the fleet of those of some hosts that it has."""
    starts = counting.fleet.starts
    located = ((uuid, counting.snapshot.locate_uuid(uuid)) for uuid in uuids)
    return {uuid: starts[at.block_id] + at.row for uuid, at in located if at is not None}
