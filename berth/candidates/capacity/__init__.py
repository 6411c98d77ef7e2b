# SPDX-License-Identifier: Apache-2.0
"""Capacity: how often a request fits, on each host and on many together, and what is left.

Each figure is two numbers, equal in nearly all fleets: so many fit, by a construction, and no more,
by a bound. What a way to serve a request is, and which hosts satisfy everything but amounts, are
answers of the same search as all others; here they are only counted.

Source: spec/beyond.md 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

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
from berth.index.draining import tolerating
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget

__all__ = ["Capacity", "Counting", "MostPlaced", "Total"]

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
        request = request_of(question, self._references)
        snapshot, fleet, _ = self._view(question)
        counts: HostCounts | None = None
        together: Together | None = None
        try:
            plan = resolve(snapshot, request, one_per_tree=False)
        except NothingFits:
            pass
        else:
            counts = HostCounts(
                snapshot,
                plan,
                fleet,
                self._free,
                budget=self.budget,
                steps=self._steps,
            )
            together = Together(snapshot, plan, fleet, counts, self._free, self.budget)
        return Capacity(question, alternative, fleet, counts, together)

    def fragments(self, capacity: Capacity) -> dict[str, Fragments]:
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


class MostPlaced:
    """How often a plan, which takes some resource, fits the hosts of a snapshot at most.

    If the budget ends, the bounds are coarse.

    Attributes:
        each: on each host of the fleet alone.
    """

    def __init__(self, snapshot: Snapshot, plan: Plan, budget: Budget) -> None:
        self.fleet = Fleet(snapshot)
        free = Free(snapshot)
        counts = HostCounts(snapshot, plan, self.fleet, free, budget=budget, steps=Steps(budget))
        self._together = Together(snapshot, plan, self.fleet, counts, free, budget)
        self.each = counts.at_most

    def together(self, hosts: Mask | None = None, *, per_host: int | None = None) -> int:
        """On some hosts together; on all by default.

        Args:
            per_host: no host gets more; None for no such bound.
        """
        return self._together.at_most(hosts, per_host=per_host)
