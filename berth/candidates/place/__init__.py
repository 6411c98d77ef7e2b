# SPDX-License-Identifier: Apache-2.0
"""Placing: the candidates of several consumers of one request, one after another.

Each consumer gets the best candidate that is left when those before it have theirs. This finds
places for all whenever there are any, if hosts share no provider, each serves the request in one
way, and the keys of `max_per` are nested: then every order of choices gets equally far.

Clients who place at the same time mostly ask the same question. The search then runs once for all
of them: what one chooses counts as used for the next, as it does for the consumers of one call.

Source: spec/beyond.md 5.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from berth.candidates.order import Order
from berth.candidates.place.bounds import Group, HostGroups, Limits, PoolHosts, most_of_each
from berth.candidates.place.pool import Amounts, Choice, Pool, ranked, taken_by
from berth.candidates.plan import Plan
from berth.candidates.ranking import Ranked, rank
from berth.index.sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId, ProviderId


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
            `most_placed` may know more.
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
            pool = Pool(snapshot, plan, order, budget)
            chosen = _Run(snapshot, limits, budget).choose_from(pool, count)
            if chosen is not None:
                return chosen
        order = replace(order, among=None)
    return _choose_of_all(Pool(snapshot, plan, order, budget), count, limits, budget)


def choose_from(pool: Pool, count: int, limits: Limits, budget: Budget) -> Chosen | None:
    """The candidates of `count` consumers from a pool, which has them as taken afterwards; None if
    there are too few. Not with `within`, and not for plans with splits."""
    assert limits.within is None and not pool.plan.splits
    return _Run(pool.snapshot, limits, budget).choose_from(pool, count)


def _choose_one(snapshot: Snapshot, plan: Plan, order: Order, budget: Budget) -> Chosen | Short:
    """The best candidate; nothing limits a single consumer."""
    first = rank(snapshot, plan, order, budget, limit=1, per_host=None)
    if not first.batches:
        return Short(0 if budget.ended is None else None)
    ((batch, _),) = first.batches
    return Chosen(first, taken_by(plan, batch, 0))


def _choose_of_all(pool: Pool, count: int, limits: Limits, budget: Budget) -> Chosen | Short:
    """The candidates of several consumers, of a pool with those of all hosts; or a proof that there
    are too few."""
    hosts = PoolHosts(pool.snapshot, pool.hosts, pool.aggregate_sets)
    groups = hosts.groups_of(limits.within)
    if not groups:
        return Short(0 if budget.ended is None else None)
    most = None
    if pool.is_whole and not pool.plan.splits:
        each = most_of_each(pool, hosts.keys, budget)
        most = hosts.most_of_groups(groups, limits.max_per, budget, each)
    by_size = sorted(groups, key=lambda group: -(most[group] if most else len(groups[group])))
    for group in by_size:
        if budget.is_spent():
            return Short(None)
        if most is None or most[group] >= count:
            some = pool if group is None else pool.some(hosts.candidates(groups[group]))
            run = _Run(pool.snapshot, limits, budget)
            if (chosen := run.choose_from(some, count, group)) is not None:
                return chosen
    at_most = None if most is None else max(most.values())
    return Short(at_most if at_most is not None and at_most < count else None)


class _Run:
    """The choices of one call, as far as they get."""

    def __init__(self, snapshot: Snapshot, limits: Limits, budget: Budget) -> None:
        self._budget = budget
        self._within = HostGroups(snapshot, limits.within) if limits.within else None
        self._keys = [(HostGroups(snapshot, key), most) for key, most in limits.max_per.items()]
        #: For each key, how many choices each group of hosts has got.
        self._counts: list[Counter[Group]] = [Counter() for _ in self._keys]
        self._taken: Counter[tuple[ProviderId, ClassId]] = Counter()

    def choose_from(self, pool: Pool, count: int, within: Group | None = None) -> Chosen | None:
        """The candidates of `count` consumers from a pool of the same snapshot; None if there are
        too few, or the budget ends.

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
            splits = bool(pool.plan.splits)
            self._taken.update(pool.amounts(number) if splits else pool.take(number))
            if len(chosen) == count:
                has_scores = pool.order.has_scores
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


#: Candidates of all pools together: some 100 bytes each.
CANDIDATES_MAX: Final = 1 << 17
_POOLS_MAX: Final = 8


class _Shared(Struct):
    """A pool.

    Attributes:
        noted: how many of `SharedPools._taken` it has.
    """

    pool: Pool
    noted: int


class SharedPools:
    """The pools of one state. For one thread at a time."""

    def __init__(self) -> None:
        self._pools: dict[Hashable, _Shared] = {}
        #: What the choices so far take, in their order.
        self._taken: list[Amounts] = []

    def chosen(
        self, question: Hashable, count: int, limits: Limits, budget: Budget
    ) -> tuple[Pool, Chosen] | None:
        """Candidates from the pool of a question; None if there is none, or it has too few.

        What they take must be noted next.
        """
        shared = self._pools.pop(question, None)
        if shared is None:
            return None
        for taken in self._taken[shared.noted :]:
            shared.pool.use(taken)
        chosen = choose_from(shared.pool, count, limits, budget)
        if chosen is None:
            return None
        self._pools[question] = shared
        shared.noted = len(self._taken) + 1
        return shared.pool, chosen

    def keep(self, question: Hashable, pool: Pool) -> None:
        """Keep a pool, from which a choice was made, for the next with the same question.

        What was chosen must be noted next.
        """
        size = len(pool.fits) + sum(len(each.pool.fits) for each in self._pools.values())
        if size > CANDIDATES_MAX or len(self._pools) == _POOLS_MAX:
            self._pools.clear()
        if len(pool.fits) <= CANDIDATES_MAX:
            pool.outlive()
            self._pools[question] = _Shared(pool, len(self._taken) + 1)

    def note(self, taken: Amounts) -> None:
        """A choice was made."""
        if self._pools:
            self._taken.append(taken)
