# SPDX-License-Identifier: Apache-2.0
"""Choosing: the candidates of several consumers of one request, one after another.

Each consumer gets the best candidate that is left when those before it have theirs. This finds
places for all whenever there are any, if hosts share no provider, each serves the request in one
way, and the keys of `max_per` are nested: then every order of choices gets equally far.

Source: spec/beyond.md 5.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from berth.candidates.host_groups import Group, HostGroups
from berth.candidates.order import Order
from berth.candidates.placement_bounds import PoolHosts, most_of_each
from berth.candidates.plan import Plan
from berth.candidates.pool import Amounts, Choice, Pool, ranked, sums_of, taken_by
from berth.candidates.ranking import Ranked, best
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId, ProviderId


@dataclass(frozen=True, slots=True)
class Limits:
    """How the consumers of one call may be spread.

    Attributes:
        max_per: label key, or `HOST` -> how many of them may be in one group of hosts.
        within: label key, or `HOST`: all are in one group; None for no such condition.
    """

    max_per: Mapping[str, int] = field(default_factory=dict)
    within: str | None = None


class Chosen(NamedTuple):
    """The candidates that were chosen, in the order of the consumers.

    Attributes:
        ranked: each with its score when it was chosen.
    """

    ranked: Ranked
    taken: Amounts


class Short(NamedTuple):
    """Not all consumers got a candidate.

    Attributes:
        at_most: how many could at most, if that is proven and too few; else None, and
            `berth.candidates.proving` may know more.
    """

    at_most: int | None


def choose(
    snapshot: Snapshot,
    plan: Plan,
    order: Order,
    count: int,
    limits: Limits,
    budget: Budget,
) -> Chosen | Short:
    """The candidates of `count` consumers. If the budget ends, some may be missing.

    With `within`, and where the hosts of `Order.among` do not suffice, all hosts are scored.
    """
    if count == 1:
        return _choose_one(snapshot, plan, order, budget)
    if order.among is not None:
        if limits.within is None:
            chosen = _Run(snapshot, plan, order, limits, budget).choose(count)
            if chosen is not None:
                return chosen
        order = replace(order, among=None)
    return _choose_of_all(snapshot, plan, order, count, limits, budget)


def choose_from(pool: Pool, count: int, limits: Limits, budget: Budget) -> Chosen | None:
    """The candidates of `count` consumers from a pool, which has them as taken afterwards; None if
    there are too few. Not with `within`, and not for plans with splits."""
    assert limits.within is None and not pool.plan.splits
    return _Run(pool.snapshot, pool.plan, pool.order, limits, budget).choose_from(pool, count)


def _choose_one(snapshot: Snapshot, plan: Plan, order: Order, budget: Budget) -> Chosen | Short:
    """The best candidate; nothing limits a single consumer."""
    chosen = best(snapshot, plan, order, budget)
    if chosen is None:
        return Short(0 if budget.ended is None else None)
    return Chosen(
        Ranked([chosen], [(0, 0)], more=False), sums_of(taken_by(snapshot, plan, chosen[0], 0))
    )


def _choose_of_all(
    snapshot: Snapshot,
    plan: Plan,
    order: Order,
    count: int,
    limits: Limits,
    budget: Budget,
) -> Chosen | Short:
    """The candidates of several consumers, of all hosts; or a proof that there are too few."""
    pool = Pool(snapshot, plan, order, budget)
    hosts = PoolHosts(snapshot, pool.hosts, pool.aggregate_sets)
    groups = hosts.groups_of(limits.within)
    if not groups:
        return Short(0 if budget.ended is None else None)
    most = None
    if pool.is_whole and not plan.splits:
        each = most_of_each(pool, hosts.keys, budget)
        most = hosts.most_of_groups(groups, limits.max_per, budget, each)
    by_size = sorted(groups, key=lambda group: -(most[group] if most else len(groups[group])))
    for group in by_size:
        if budget.is_spent():
            return Short(None)
        if most is None or most[group] >= count:
            some = pool if group is None else pool.some(hosts.candidates(groups[group]))
            run = _Run(snapshot, plan, order, limits, budget)
            if (chosen := run.choose_from(some, count, group)) is not None:
                return chosen
    at_most = None if most is None else max(most.values())
    return Short(at_most if at_most is not None and at_most < count else None)


class _Run:
    """The choices of one call, as far as they get."""

    def __init__(
        self, snapshot: Snapshot, plan: Plan, order: Order, limits: Limits, budget: Budget
    ) -> None:
        self._snapshot = snapshot
        self._plan = plan
        self._order = order
        self._budget = budget
        self._within = HostGroups(snapshot, limits.within) if limits.within else None
        self._keys = [(HostGroups(snapshot, key), most) for key, most in limits.max_per.items()]
        #: For each key, how many choices each group of hosts has got.
        self._counts: list[Counter[Group]] = [Counter() for _ in self._keys]
        self._taken: Counter[tuple[ProviderId, ClassId]] = Counter()

    def choose(self, count: int) -> Chosen | None:
        """The candidates of `count` consumers; None if there are too few."""
        return self.choose_from(Pool(self._snapshot, self._plan, self._order, self._budget), count)

    def choose_from(self, pool: Pool, count: int, within: Group | None = None) -> Chosen | None:
        """`choose`, from a pool of the same snapshot, plan and order; None if the budget ends.

        Args:
            within: the group of hosts in which all must be; None for any hosts.
        """
        allowed = self._allowed(pool, within)
        chosen: list[Choice] = []
        while (number := pool.best(allowed & pool.fits)) is not None:
            if self._budget.is_spent():
                return None
            chosen.append(pool.chosen(number))
            # Amounts that may be split are divided otherwise now.
            splits = bool(self._plan.splits)
            self._taken.update(pool.amounts(number) if splits else pool.take(number))
            if len(chosen) == count:
                has_scores = self._order.has_scores
                return Chosen(ranked(chosen, has_scores=has_scores), self._taken)
            for keys, group in self._note(pool, number):
                allowed &= ~keys.mask(group, pool.hosts, pool.aggregate_sets)
            if splits:
                pool, since = pool.after(number)
                allowed = np.append(allowed[:since], self._allowed(pool, within, since))
        return None

    def _allowed(self, pool: Pool, within: Group | None, since: int = 0) -> Mask:
        """The candidates from some place on whose hosts may get one more."""
        hosts, sets = pool.hosts[since:], pool.aggregate_sets[since:]
        allowed: Mask = np.ones(len(hosts), dtype=np.bool_)
        if within is not None and self._within is not None:
            allowed &= self._within.mask(within, hosts, sets)
        for (keys, most), counts in zip(self._keys, self._counts, strict=True):
            for group, number in counts.items():
                if number >= most:
                    allowed &= ~keys.mask(group, hosts, sets)
        return allowed

    def _note(self, pool: Pool, number: int) -> Iterator[tuple[HostGroups, Group]]:
        """Count a choice; the groups that are full with it."""
        host, aggregate_set = int(pool.hosts[number]), int(pool.aggregate_sets[number])
        for (keys, most), counts in zip(self._keys, self._counts, strict=True):
            for group in keys.of(host, aggregate_set):
                counts[group] += 1
                if counts[group] == most:
                    yield keys, group
