# SPDX-License-Identifier: Apache-2.0
"""Capacity: how often a request fits, on each host and on many together, and what is left.

Each figure is two numbers, equal in nearly all fleets: so many fit, by a construction, and no more,
by a bound. What a way to serve a request is, and which hosts satisfy everything but amounts, are
answers of the same search as all others; here they are only counted.

Source: spec/beyond.md 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from berth.candidates.budget import Budget
from berth.candidates.capacity.branching import Steps
from berth.candidates.capacity.fragments import Fragments, Leftovers
from berth.candidates.capacity.free import Free
from berth.candidates.capacity.hosts import HostCounts
from berth.candidates.capacity.pools import Together, Total
from berth.candidates.fleet import Fleet
from berth.candidates.plan import Plan
from berth.candidates.question import Question
from berth.candidates.references import References, request_of
from berth.candidates.resolve import NothingFits, resolve
from berth.index.aggregate_sets import Mask
from berth.index.block import Ints
from berth.index.snapshot import Snapshot

__all__ = ["Capacity", "Counting", "Total", "total"]


class Counting:
    """Counts how often requests fit one fleet, within one budget.

    Once the budget has ended, counts are lower bounds, and the bounds above are coarse.
    """

    def __init__(self, snapshot: Snapshot, budget: Budget) -> None:
        self.snapshot = snapshot
        self.fleet = Fleet(snapshot)
        self.budget = budget
        self._free = Free(snapshot)
        self._steps = Steps(budget)
        self._references = References(snapshot)
        self._leftovers = Leftovers(snapshot, self.fleet, budget)

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
        request = request_of(question, self._references)
        counts: HostCounts | None = None
        together: Together | None = None
        try:
            plan = resolve(self.snapshot, request, one_per_tree=False)
        except NothingFits:
            pass
        else:
            counts = HostCounts(
                self.snapshot,
                plan,
                self.fleet,
                self._free,
                budget=self.budget,
                steps=self._steps,
            )
            together = Together(self.snapshot, plan, self.fleet, counts, self._free, self.budget)
        return Capacity(question, alternative, self.fleet, counts, together)

    def fragments(self, capacity: Capacity) -> dict[str, Fragments]:
        """What is left of each class of a request, by name."""
        return self._leftovers.of(capacity.question, capacity.total().count)


class Capacity:
    """How often one request fits a fleet.

    Attributes:
        alternative: which of the alternatives it is for.
        count, at_most: for each host of the fleet.
        is_shared: whether sharing providers serve several hosts, so that counts do not add up.
    """

    def __init__(
        self,
        question: Question,
        alternative: int,
        fleet: Fleet,
        counts: HostCounts | None,
        together: Together | None,
    ) -> None:
        """The capacity; without counts, nothing can fit."""
        self.question = question
        self.alternative = alternative
        none: Ints = np.zeros(0 if counts else fleet.size, dtype=np.int64)
        self.count = counts.count if counts else none
        self.at_most = counts.at_most if counts else none
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


def total(
    snapshot: Snapshot, plan: Plan, budget: Budget, hosts: Mapping[int, Mask] | None = None
) -> Total:
    """How often a plan, which takes some resource, fits some hosts of a snapshot together.

    If the budget ends, the count is a lower bound, and the other bound is coarse.

    Args:
        hosts: the rows of each block that count; None for all hosts.
    """
    fleet, free = Fleet(snapshot), Free(snapshot)
    counts = HostCounts(snapshot, plan, fleet, free, budget=budget, steps=Steps(budget))
    together = Together(snapshot, plan, fleet, counts, free, budget)
    return together.total(None if hosts is None else fleet.of_blocks(hosts))
