# SPDX-License-Identifier: Apache-2.0
"""How the consumers of one call may be spread, and how many could be placed together at most.

Hosts are grouped by a label key, for `max_per` and `within` of a placement. A host has the labels
of all aggregates that its root is directly in. A host without the label is a group of its own, and
so is every host for the key `host`.

What each host holds is bounded class by class, and the bounds of `max_per` hold for the hosts
together: exact if each host has one candidate, shares no provider, and the keys of `max_per` are
nested. The bounds of `berth.candidates.capacity` hold whatever the order of choices: several ways
to serve a request, shared providers and amounts that are split included. They take longer than
a choice, so they are for choices that failed.

Source: spec/beyond.md 4.1, 5.2, 5.4 and 7.2.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct, field

from berth.candidates.capacity.packing import Steps
from berth.candidates.capacity.per_host import HostCounts
from berth.candidates.capacity.together import Together
from berth.candidates.capacity.ways import Free
from berth.candidates.conditions import Rows
from berth.candidates.fleet import FREE_MAX, Fleet
from berth.candidates.order import Order
from berth.candidates.place.pool import Pool
from berth.candidates.plan import Plan
from berth.index.sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.errors import SearchGaveUp
from berth.model.ids import AggregateId, ClassId

#: The key that stands for the hosts themselves.
HOST: Final = "host"

_NO_HOST: Final = -1

#: The value of a label, or the key of a host that is a group of its own.
Group = str | int


class Limits(Struct, frozen=True):
    """How the consumers of one call may be spread.

    Attributes:
        max_per: label key, or `HOST` -> how many of them may be in one group of hosts.
        within: label key, or `HOST`: all are in one group; None for no such condition.
    """

    max_per: Mapping[str, int] = field(default_factory=dict)
    within: str | None = None


class HostGroups:
    """The hosts of one snapshot by one key."""

    def __init__(self, snapshot: Snapshot, key: str) -> None:
        self._snapshot = snapshot
        self._values = {} if key == HOST else dict(_labelled(snapshot, key))
        #: Set of aggregates -> the groups of hosts in it; empty for those without the label.
        self._of_set: dict[int, tuple[Group, ...]] = {}

    def of(self, host: int, aggregate_set: int) -> tuple[Group, ...]:
        """The groups of a host, at least one.

        Args:
            host: its key (`Hosts.keys`).
            aggregate_set: what its root is in.
        """
        groups = self._of_set.get(aggregate_set)
        if groups is None:
            members = self._snapshot.aggregate_sets.members(aggregate_set)
            values = {self._values[each] for each in members if each in self._values}
            groups = self._of_set[aggregate_set] = tuple(sorted(values))
        return groups or (host,)

    def mask(self, group: Group, hosts: Rows, aggregate_sets: Rows) -> Mask:
        """Which of some hosts are in a group."""
        if isinstance(group, int):
            alone: Mask = hosts == group
            return alone
        having = [
            number
            for number in np.unique(aggregate_sets).tolist()
            if group in self.of(_NO_HOST, number)
        ]
        return np.isin(aggregate_sets, having)


def _labelled(snapshot: Snapshot, key: str) -> Iterator[tuple[AggregateId, str]]:
    """The aggregates with a label, and its value."""
    ids = snapshot.names.aggregate_ids
    for uuid, labels in snapshot.names.records.labels_of.items():
        if key in labels and uuid in ids:
            yield ids[uuid], labels[key]


#: Of the id of a provider, one that a scenario adds too; the number of its host is above.
_PROVIDER_BITS: Final = 41


class PoolHosts:
    """The hosts of a pool, or others, each once.

    Attributes:
        keys: ascending, see `Hosts.keys`. A place is one of their indexes.
    """

    def __init__(self, snapshot: Snapshot, hosts: Rows, aggregate_sets: Rows) -> None:
        """The hosts with some keys, which may repeat, and what the root of each is in."""
        self._snapshot = snapshot
        self.keys, first, self._which = np.unique(hosts, return_index=True, return_inverse=True)
        self._sets = aggregate_sets[first]

    def candidates(self, places: Sequence[int]) -> Mask:
        """The candidates of some hosts."""
        some: Mask = np.zeros(len(self.keys), dtype=np.bool_)
        some[places] = True
        return some[self._which]

    def groups_of(self, key: str | None) -> dict[Group | None, list[int]]:
        """The hosts of each group, by their places; without a key all hosts under None."""
        if key is None:
            return {None: list(range(len(self.keys)))} if len(self.keys) else {}
        groups: defaultdict[Group | None, list[int]] = defaultdict(list)
        for place, of_host in enumerate(self._groups(key)):
            for group in of_host:
                groups[group].append(place)
        return groups

    def most_of_groups(
        self,
        groups: Mapping[Group | None, Sequence[int]],
        max_per: Mapping[str, int],
        budget: Budget,
        most: Rows,
    ) -> dict[Group | None, int]:
        """How many consumers each group could hold at most.

        If the budget ends, the bounds are coarse.

        Args:
            most: of each host alone.
        """
        each = most.tolist()
        keys = []
        for key, number in max_per.items():
            if budget.is_spent():
                break
            keys.append(HostKey(self._groups(key), number))
        bounds: dict[Group | None, int] = {}
        for group, places in groups.items():
            kept = () if budget.is_spent() else keys
            bounds[group] = most_together(
                [each[place] for place in places],
                [HostKey([key.groups[place] for place in places], key.most) for key in kept],
            )
        return bounds

    def _groups(self, key: str) -> list[tuple[Group, ...]]:
        """The groups of each host."""
        groups = HostGroups(self._snapshot, key)
        return [
            groups.of(host, aggregate_set)
            for host, aggregate_set in zip(self.keys.tolist(), self._sets.tolist(), strict=True)
        ]


class HostKey(NamedTuple):
    """A key of `max_per`: the groups of each host, and how many each group gets at most."""

    groups: Sequence[Sequence[Group]]
    most: int


def most_of_each(pool: Pool, hosts: Rows, budget: Budget) -> Rows:
    """How many candidates each of some hosts can give one after another, at most.

    If the budget ends, the bounds are coarse.

    Args:
        pool: whole, without splits, and with nothing taken.
        hosts: keys, ascending: all hosts of the pool.
    """
    most = np.full(len(hosts), np.iinfo(np.int64).max)
    amounts: defaultdict[ClassId, list[int]] = defaultdict(list)
    for demand in pool.plan.demands:
        for class_id, amount in demand.amounts:
            amounts[class_id].append(amount)
    places, left = np.searchsorted(hosts, pool.hosts), Free(pool.snapshot)
    for class_id, of_demands in amounts.items():
        if budget.is_spent():
            break
        numbers, free = _free_of(pool, class_id, places, left)
        if len(of_demands) == 1:
            # One provider gives it all: what is left of two does not add up.
            possible = np.bincount(numbers, free // of_demands[0], len(hosts))
        else:
            possible = np.bincount(numbers, free, len(hosts)) // sum(of_demands)
        most = np.minimum(most, np.minimum(possible, FREE_MAX).astype(np.int64))
    return most


def most_together(most: Sequence[int], keys: Iterable[HostKey]) -> int:
    """How many candidates some hosts can give together, at most.

    Args:
        most: of each host alone.
    """
    finest_first = sorted(keys, key=lambda key: -len(set(chain.from_iterable(key.groups))))
    least = min((_of_one_key(most, key) for key in finest_first), default=sum(most))
    nested = _of_nested_keys(most, finest_first)
    return least if nested is None else min(least, nested)


def _of_one_key(most: Sequence[int], key: HostKey) -> int:
    """The bound of one key alone. A host in several groups counts in each, which is more than
    there is."""
    sums: Counter[Group] = Counter()
    for amount, groups in zip(most, key.groups, strict=True):
        for group in groups:
            sums[group] += amount
    return sum(min(amount, key.most) for amount in sums.values())


def _of_nested_keys(most: Sequence[int], keys: Iterable[HostKey]) -> int | None:
    """The bound of all keys together; None if a group of one is in several of the next."""
    units: Sequence[Group] = range(len(most))
    amounts: Mapping[Group, int] = dict(enumerate(most))
    for key in keys:
        outer: dict[Group, Group] = {}
        for unit, groups in zip(units, key.groups, strict=True):
            if len(groups) > 1 or outer.setdefault(unit, groups[0]) != groups[0]:
                return None
        sums: Counter[Group] = Counter()
        for unit, group in outer.items():
            sums[group] += amounts[unit]
        amounts = {group: min(amount, key.most) for group, amount in sums.items()}
        units = [groups[0] for groups in key.groups]
    return sum(amounts.values())


def _free_of(pool: Pool, class_id: ClassId, places: Rows, left: Free) -> tuple[Rows, Rows]:
    """What is free of a class on each provider that gives it to a host in some candidate: the
    number of the host, and the amount.

    Args:
        places: the number of each candidate's host.
        left: what the providers have left.
    """
    pairs: list[Rows] = []
    free: list[Rows] = []
    for batch, given, span in pool.batches:
        numbers = places[span] << _PROVIDER_BITS
        for choice, of_class in given:
            if of_class == class_id:
                pairs.append(numbers | pool.providers(batch, choice))
                free.append(left.times(batch.trees, (choice, class_id), 1)[batch.positions])
    distinct, first = np.unique(np.concatenate(pairs), return_index=True)
    return distinct >> _PROVIDER_BITS, np.concatenate(free)[first]


def most_placed(snapshot: Snapshot, plan: Plan, limits: Limits, budget: Budget) -> int:
    """No more consumers of a plan, which takes some resource, fit together.

    If the budget ends, the bound is coarse.
    """
    pool = Pool(snapshot, plan, Order(), budget)
    has_all_hosts = budget.ended is None
    most = Together(HostCounts(snapshot, plan, Fleet(snapshot), Free(snapshot), Steps(budget)))
    if not has_all_hosts:
        return most.at_most()
    try:
        return _most_of_pool(pool, most, limits, budget)
    except SearchGaveUp:
        return most.at_most()


def _most_of_pool(pool: Pool, most: Together, limits: Limits, budget: Budget) -> int:
    """As `most_placed`, if all hosts are in a pool.

    Raises:
        SearchGaveUp: the budget is spent.
    """
    fleet, of_each = most.counts.fleet, most.counts.at_most
    is_final = pool.is_whole and not pool.plan.splits
    if is_final or not pool.snapshot.sharing.by_aggregate:
        hosts = PoolHosts(pool.snapshot, pool.hosts, pool.aggregate_sets)
        numbers = np.searchsorted(fleet.keys, hosts.keys)
    else:
        # Candidates of other hosts may be among those that the pool has left out, or appear when
        # what sharing providers have left is divided otherwise.
        numbers = of_each.nonzero()[0]
        hosts = PoolHosts(pool.snapshot, fleet.keys[numbers], fleet.roots_in()[numbers])
    each = of_each[numbers]
    if is_final:
        each = np.minimum(each, most_of_each(pool, hosts.keys, budget))
    groups = hosts.groups_of(limits.within)
    bounds = hosts.most_of_groups(groups, limits.max_per, budget, each)
    several = [(bounds[group], numbers[places]) for group, places in groups.items()]
    return _most_of_any(several, most, limits.max_per.get(HOST), budget)


def _most_of_any(
    groups: Sequence[tuple[int, Rows]], most: Together, per_host: int | None, budget: Budget
) -> int:
    """No group holds more.

    Args:
        groups: (what it holds at most, its hosts) of each; what these share makes it less.
    """
    highest = 0
    for bound, hosts in sorted(groups, key=lambda group: -group[0]):
        if bound <= highest:
            break
        if len(hosts) > 1 and not budget.is_spent():
            some = most.counts.fleet.none()
            some[hosts] = True
            bound = min(bound, most.at_most(some, per_host=per_host))
        highest = max(highest, bound)
    return highest
