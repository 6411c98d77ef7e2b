# SPDX-License-Identifier: Apache-2.0
"""How many placements the hosts of a pool could hold at most.

A proof that so many consumers do not fit: what each host holds is bounded class by class, and the
bounds of `max_per` hold for the hosts together. Exact if each host has one candidate, shares no
provider, and the keys of `max_per` are nested.

Source: spec/beyond.md 4.1 and 5.4.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from berth.candidates.fleet import FREE_MAX
from berth.candidates.host_groups import Group, HostGroups
from berth.candidates.masks import Rows
from berth.candidates.pool import Pool
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId

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
    for class_id, of_demands in amounts.items():
        if budget.is_spent():
            break
        numbers, free = _free_of(pool, class_id, hosts)
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


def _free_of(pool: Pool, class_id: ClassId, hosts: Rows) -> tuple[Rows, Rows]:
    """The numbers of hosts, and what is free of a class, for each host and provider that gives it
    in some candidate."""
    pairs: list[Rows] = []
    free: list[Rows] = []
    places = np.searchsorted(hosts, pool.hosts)
    for batch, given, span in pool.batches:
        numbers = places[span] << _PROVIDER_BITS
        for choice, of_class in given:
            if of_class == class_id:
                pairs.append(numbers | pool.providers(batch, choice))
                free.append(pool.free(batch, choice, class_id))
    distinct, first = np.unique(np.concatenate(pairs), return_index=True)
    return distinct >> _PROVIDER_BITS, np.concatenate(free)[first]
