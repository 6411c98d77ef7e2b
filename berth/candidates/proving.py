# SPDX-License-Identifier: Apache-2.0
"""Proving that several consumers of one request cannot be placed together.

The bounds of `berth.candidates.capacity` hold whatever the order of choices: several ways to serve
a request, shared providers and amounts that are split included. They take longer than a choice, so
they are for choices that failed.

Source: spec/beyond.md 4.1 and 5.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from berth.candidates.capacity import MostPlaced
from berth.candidates.choosing import Limits
from berth.candidates.fleet import Fleet
from berth.candidates.host_groups import HOST
from berth.candidates.hosts import Hosts, located
from berth.candidates.masks import Rows
from berth.candidates.order import Order
from berth.candidates.placement_bounds import PoolHosts, most_of_each
from berth.candidates.plan import Plan
from berth.candidates.pool import Pool
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.errors import SearchGaveUp


def most_placed(snapshot: Snapshot, plan: Plan, limits: Limits, budget: Budget) -> int:
    """No more consumers of a plan, which takes some resource, fit together.

    If the budget ends, the bound is coarse.
    """
    pool = Pool(snapshot, plan, Order(), budget)
    has_all_hosts = budget.ended is None
    most = MostPlaced(snapshot, plan, budget)
    if not has_all_hosts:
        return most.together()
    try:
        return _most_of_pool(pool, most, limits, budget)
    except SearchGaveUp:
        return most.together()


def _most_of_pool(pool: Pool, most: MostPlaced, limits: Limits, budget: Budget) -> int:
    """As `most_placed`, if all hosts are in a pool.

    Raises:
        SearchGaveUp: the budget is spent.
    """
    is_final = pool.is_whole and not pool.plan.splits
    if is_final or not pool.snapshot.sharing.by_aggregate:
        hosts = PoolHosts(pool.snapshot, pool.hosts, pool.aggregate_sets)
        numbers = most.fleet.numbers(*located(hosts.keys))
    else:
        # Candidates of other hosts may be among those that the pool has left out, or appear when
        # what sharing providers have left is divided otherwise.
        numbers = most.each.nonzero()[0]
        hosts = PoolHosts(
            pool.snapshot, _keys_of(most.fleet)[numbers], most.fleet.roots_in()[numbers]
        )
    each = most.each[numbers]
    if is_final:
        each = np.minimum(each, most_of_each(pool, hosts.keys, budget))
    groups = hosts.groups_of(limits.within)
    bounds = hosts.most_of_groups(groups, limits.max_per, budget, each)
    several = [(bounds[group], numbers[places]) for group, places in groups.items()]
    return _most_of_any(several, most, limits.max_per.get(HOST), budget)


def _keys_of(fleet: Fleet) -> Rows:
    """The keys of all hosts, ascending."""
    keys = [
        Hosts(each.block_id, each.block, np.arange(each.block.rows), each.hosts).keys
        for each in fleet.spans
    ]
    return np.concatenate(keys)


def _most_of_any(
    groups: Sequence[tuple[int, Rows]], most: MostPlaced, per_host: int | None, budget: Budget
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
            bound = min(bound, _together(most, hosts, per_host))
        highest = max(highest, bound)
    return highest


def _together(most: MostPlaced, hosts: Rows, per_host: int | None) -> int:
    mask = most.fleet.none()
    mask[hosts] = True
    return most.together(mask, per_host=per_host)
