# SPDX-License-Identifier: Apache-2.0
"""Choosing: the candidates of several consumers of one request, one after another.

Each consumer gets the best candidate that is left when those before it have theirs. This finds
places for all whenever there are any, if hosts share no provider, each serves the request in one
way, and the keys of `max_per` are nested: then every order of choices gets equally far.

Source: spec/beyond.md 5.4.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from berth.candidates.batch import Batch
from berth.candidates.budget import Budget
from berth.candidates.host_groups import Group, HostGroups
from berth.candidates.order import Order, Scores
from berth.candidates.placement_bounds import HostKey, most_of_each, most_together
from berth.candidates.plan import Plan
from berth.candidates.pool import Choice, Pool, taken_by
from berth.candidates.ranking import best
from berth.index.aggregate_sets import Mask
from berth.index.scenario import with_usage
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, ProviderId

#: Provider and class -> amount.
Taken = Mapping[tuple[ProviderId, ClassId], int]


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
        batches: each of one candidate, with its score when it was chosen.
    """

    batches: Sequence[tuple[Batch, Scores | None]]
    taken: Taken


class Short(NamedTuple):
    """Not all consumers got a candidate.

    Attributes:
        at_most: how many could at most, if that is proven and too few; else None.
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
            chosen = _Run(snapshot, plan, order, limits, budget).choose(count, None)
            if chosen is not None:
                return chosen
        order = replace(order, among=None)
    return _choose_of_all(snapshot, plan, order, count, limits, budget)


def _choose_one(snapshot: Snapshot, plan: Plan, order: Order, budget: Budget) -> Chosen | Short:
    """The best candidate; nothing limits a single consumer."""
    chosen = best(snapshot, plan, order, budget)
    if chosen is None:
        return Short(0 if budget.ended is None else None)
    return Chosen([chosen], _sums(snapshot, plan, chosen[0], 0))


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
    hosts = _HostsOf(pool)
    groups = hosts.groups_of(limits.within)
    if not groups:
        return Short(0 if budget.ended is None else None)
    most = None
    if pool.is_whole and not plan.splits:
        most = hosts.most_of_groups(groups, limits)
    by_size = sorted(groups, key=lambda group: -(most or hosts.counts(groups))[group])
    for group in by_size:
        if budget.is_spent():
            return Short(None)
        if most is None or most[group] >= count:
            chosen = _Run(snapshot, plan, order, limits, budget).choose(count, group)
            if chosen is not None:
                return chosen
    at_most = None if most is None else max(most.values())
    return Short(at_most if at_most is not None and at_most < count else None)


class _HostsOf:
    """The hosts of a pool, each once."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._hosts, first = np.unique(pool.hosts, return_index=True)
        self._sets = pool.aggregate_sets[first]

    def groups_of(self, key: str | None) -> dict[Group | None, list[int]]:
        """The hosts of each group, by their places; without a key all hosts under None."""
        if key is None:
            return {None: list(range(len(self._hosts)))} if len(self._hosts) else {}
        groups: defaultdict[Group | None, list[int]] = defaultdict(list)
        for place, of_host in enumerate(self._groups(key)):
            for group in of_host:
                groups[group].append(place)
        return groups

    def most_of_groups(
        self, groups: Mapping[Group | None, Sequence[int]], limits: Limits
    ) -> dict[Group | None, int]:
        """How many consumers each group could hold at most."""
        most = most_of_each(self._pool, self._hosts).tolist()
        keys = [HostKey(self._groups(key), each) for key, each in limits.max_per.items()]
        return {
            group: most_together(
                [most[place] for place in places],
                [HostKey([key.groups[place] for place in places], key.most) for key in keys],
            )
            for group, places in groups.items()
        }

    def counts(self, groups: Mapping[Group | None, Sequence[int]]) -> dict[Group | None, int]:
        """How many hosts each group has."""
        return {group: len(places) for group, places in groups.items()}

    def _groups(self, key: str) -> list[tuple[Group, ...]]:
        """The groups of each host."""
        groups = HostGroups(self._pool.snapshot, key)
        return [
            groups.of(host, aggregate_set)
            for host, aggregate_set in zip(self._hosts.tolist(), self._sets.tolist(), strict=True)
        ]


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

    def choose(self, count: int, within: Group | None) -> Chosen | None:
        """The candidates of `count` consumers, None if there are too few.

        Args:
            within: the group of hosts in which all must be; None for any hosts.
        """
        pool = Pool(self._snapshot, self._plan, self._order, self._budget)
        allowed = self._allowed(pool, within)
        chosen: list[Choice] = []
        while (number := pool.best(allowed & pool.fits)) is not None:
            choice = pool.chosen(number)
            chosen.append(choice)
            self._taken.update(_sums(pool.snapshot, self._plan, choice.batch, 0))
            if len(chosen) == count:
                return Chosen([self._shown(each) for each in chosen], self._taken)
            for keys, group in self._note(pool, number):
                allowed &= ~keys.mask(group, pool.hosts, pool.aggregate_sets)
            if self._plan.splits:
                # Amounts that may be split are divided otherwise now.
                pool = self._searched_again()
                allowed = self._allowed(pool, within)
            else:
                pool.take(number)
        return None

    def _searched_again(self) -> Pool:
        snapshot = with_usage(self._snapshot, self._taken)
        return Pool(snapshot, self._plan, self._order, self._budget)

    def _allowed(self, pool: Pool, within: Group | None) -> Mask:
        """The candidates whose hosts may get one more."""
        hosts, sets = pool.hosts, pool.aggregate_sets
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

    def _shown(self, choice: Choice) -> tuple[Batch, Scores | None]:
        return choice.batch, choice.scores if self._order.has_scores else None


def _sums(
    snapshot: Snapshot, plan: Plan, batch: Batch, place: int
) -> Counter[tuple[ProviderId, ClassId]]:
    """What a candidate takes of each provider and class."""
    sums: Counter[tuple[ProviderId, ClassId]] = Counter()
    for provider, _, class_id, amount in taken_by(snapshot, plan, batch, place):
        sums[provider, class_id] += amount
    return sums
