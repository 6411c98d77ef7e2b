# SPDX-License-Identifier: Apache-2.0
"""Capacity: how often a request fits, on each host and on many together, and what is left.

Each figure is two numbers, equal in nearly all fleets: how many fit, by a construction, and how
many at most, by a bound. What a way to serve a request is, and which hosts satisfy everything but
amounts, are answers of the same search as all others; here they are only counted: of all hosts, by
the aggregates and labels of their roots, and by host.

Source: spec/beyond.md 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from berth.candidates.capacity.fragments import Leftovers
from berth.candidates.capacity.packing import Steps
from berth.candidates.capacity.per_host import HostCounts
from berth.candidates.capacity.together import Together
from berth.candidates.capacity.ways import Free, summable
from berth.candidates.fleet import Fleet
from berth.candidates.question import Question
from berth.candidates.references import References
from berth.candidates.resolve import NothingFits, resolve_question
from berth.index.block import Ints
from berth.index.draining import tolerating
from berth.index.providers import named_provider
from berth.index.sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.capacity import FragmentsNow, OfHost, OfValue, Total
from berth.model.ids import AggregateId

#: As `Question.tolerate`.
Tolerated = tuple[str, ...] | Literal["*"]


class Counting:
    """Counts how often requests fit one fleet, within one budget.

    Once the budget has ended, counts are lower bounds, and the bounds above are coarse.
    """

    def __init__(self, snapshot: Snapshot, budget: Budget) -> None:
        self.snapshot = snapshot
        self.budget = budget
        self._free = Free(snapshot)
        self._steps = Steps(budget)
        self._references = References(snapshot)
        #: Drains that some requests tolerate -> the fleet as these see it.
        self._views: dict[Tolerated, _View] = {(): _View.of(snapshot, budget)}

    @property
    def fleet(self) -> Fleet:
        """The hosts."""
        return self._views[()].fleet

    def capacity(self, alternatives: Sequence[Question]) -> Capacity:
        """The capacity for a request: of its alternatives, the first that fits anywhere, else the
        last. Each must take some resource."""
        *earlier, last = enumerate(alternatives)
        for number, question in earlier:
            capacity = self._capacity(number, question)
            if capacity.hosts() or self.budget.ended:
                return capacity
        return self._capacity(*last)

    def _capacity(self, alternative: int, question: Question) -> Capacity:
        snapshot, fleet, _ = self._view(question)
        together: Together | None = None
        try:
            plan = resolve_question(snapshot, question, references=self._references)
        except NothingFits:
            pass
        else:
            together = Together(HostCounts(snapshot, plan, fleet, self._free, self._steps))
        return Capacity(question, alternative, fleet, together)

    def fragments(self, capacity: Capacity) -> dict[str, FragmentsNow]:
        """What is left of each class of a request, by name."""
        leftovers = self._view(capacity.question).leftovers
        return leftovers.of(capacity.question, capacity.total().count)

    def _view(self, question: Question) -> _View:
        tolerated = question.tolerate
        if tolerated not in self._views:
            snapshot = tolerating(self.snapshot, tolerated)
            self._views[tolerated] = _View.of(snapshot, self.budget)
        return self._views[tolerated]


class _View(NamedTuple):
    """The fleet as requests see it that tolerate the same drains."""

    snapshot: Snapshot
    fleet: Fleet
    leftovers: Leftovers

    @classmethod
    def of(cls, snapshot: Snapshot, budget: Budget) -> _View:
        """What requests see."""
        fleet = Fleet(snapshot)
        return cls(snapshot, fleet, Leftovers(snapshot, fleet, budget))


class Capacity:
    """How often one request fits a fleet.

    Attributes:
        alternative: which of the alternatives it is for.
        count, at_most: for each host of the fleet.
        is_shared: whether sharing providers serve several hosts, so that counts do not add up.
    """

    def __init__(
        self, question: Question, alternative: int, fleet: Fleet, together: Together | None
    ) -> None:
        """The capacity; without `together`, nothing can fit."""
        self.question = question
        self.alternative = alternative
        none: Ints = np.zeros(0 if together else fleet.size, dtype=np.int64)
        self.count = together.counts.count if together else none
        self.at_most = together.counts.at_most if together else none
        self.is_shared = together is not None and together.is_shared
        self._together = together
        self._total: Total | None = None

    def total(self, hosts: Mask | None = None) -> Total:
        """How often the request fits on some hosts together; on all by default."""
        if self._together is None:
            return Total(0, 0)
        if hosts is not None:
            return self._together.total(hosts)
        if self._total is None:
            self._total = self._together.total()
        return self._total

    def hosts(self, hosts: Mask | None = None) -> int:
        """How many of some hosts fit; of all by default."""
        count = self.count if hosts is None else self.count[hosts]
        return int(np.count_nonzero(count))


#: Stands for having no label of a key; no label has this value.
NO_VALUE: Final = ""


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
        rest = present.copy()
        for table in self._tables.values():
            rest &= ~table
        if with_rest and rest.any():
            self._tables = {NO_VALUE: rest, **self._tables}

    @property
    def values(self) -> list[str]:
        """See the class."""
        return list(self._tables)

    def lines(self, capacity: Capacity) -> dict[str, OfValue]:
        """The capacity of the hosts of each value."""
        if capacity.is_shared:
            return {
                value: _line(capacity, table[self._roots]) for value, table in self._tables.items()
            }
        # PERF bench, capacity: most hosts are in the same few sets of aggregates.
        counts, at_most = map(self._by_set, (capacity.count, capacity.at_most))
        hosts = self._by_set((capacity.count > 0).astype(np.int64))
        return {
            value: OfValue(
                count=int(counts[table].sum()),
                at_most=int(at_most[table].sum()),
                hosts=int(hosts[table].sum()),
            )
            for value, table in self._tables.items()
        }

    def _by_set(self, values: Ints) -> Ints:
        values = summable(values)
        order = np.zeros(self._roots.max(initial=0) + 1, dtype=values.dtype)
        np.add.at(order, self._roots, values)
        return order


def _line(capacity: Capacity, hosts: Mask) -> OfValue:
    total = capacity.total(hosts)
    return OfValue(count=total.count, at_most=total.at_most, hosts=capacity.hosts(hosts))


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
    return sorted(of_hosts, key=lambda each: (-each.count, each.host.uuid))


def every_host(counting: Counting, capacity: Capacity) -> Iterable[OfHost]:
    """All hosts by uuid."""
    return (of_host(counting, capacity, host) for host in counting.fleet.in_order().tolist())


def of_host(counting: Counting, capacity: Capacity, host: int) -> OfHost:
    """The capacity of one host of the fleet."""
    span, row = counting.fleet.place(host)
    return OfHost(
        host=named_provider(span.block, 0, row),
        count=int(capacity.count[host]),
        at_most=int(capacity.at_most[host]),
    )


def hosts_by_uuid(counting: Counting, uuids: Iterable[str]) -> Mapping[str, int]:
    """The numbers in the fleet of those of some hosts that it has."""
    starts = counting.fleet.starts
    located = ((uuid, counting.snapshot.locate_uuid(uuid)) for uuid in uuids)
    return {uuid: starts[at.block_id] + at.row for uuid, at in located if at is not None}
