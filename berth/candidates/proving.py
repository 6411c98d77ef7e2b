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

from berth.candidates.budget import Budget
from berth.candidates.capacity import MostPlaced
from berth.candidates.choosing import Limits
from berth.candidates.host_groups import HOST
from berth.candidates.hosts import located
from berth.candidates.masks import Rows
from berth.candidates.order import Order
from berth.candidates.placement_bounds import PoolHosts, most_of_each
from berth.candidates.plan import Plan
from berth.candidates.pool import Pool
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Snapshot


def most_placed(snapshot: Snapshot, plan: Plan, limits: Limits, budget: Budget) -> int:
    """No more consumers of a plan, which takes some resource, fit together.

    If the budget ends, the bound is coarse.
    """
    pool = Pool(snapshot, plan, Order(), budget)
    has_all_hosts = budget.ended is None
    most = MostPlaced(snapshot, plan, budget)
    if not has_all_hosts:
        return most.together()
    hosts, per_host = PoolHosts(pool), limits.max_per.get(HOST)
    numbers = most.fleet.numbers(*located(hosts.keys))
    loose = _unanchored(pool, hosts)
    each = np.where(loose, most.together(), most.each[numbers])
    if pool.is_whole and not plan.splits:
        each = np.minimum(each, most_of_each(pool, hosts.keys))
    groups = hosts.groups_of(limits.within)
    bounds = hosts.most_of_groups(groups, limits.max_per, each)
    if loose.any():
        return min(max(bounds.values(), default=0), most.together())
    return _most_of_any(
        [(bounds[group], numbers[places]) for group, places in groups.items()],
        most,
        per_host,
        budget,
    )


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


def _unanchored(pool: Pool, hosts: PoolHosts) -> Mask:
    """The hosts of which some candidates may be anchored elsewhere only: their capacity says
    nothing of these."""
    if not pool.is_whole and pool.snapshot.sharing.by_aggregate:
        # They may be among those that the pool has left out.
        return np.ones(len(hosts.keys), dtype=np.bool_)
    loose: Mask = np.zeros(len(hosts.keys), dtype=np.bool_)
    loose[np.searchsorted(hosts.keys, pool.hosts[~pool.is_anchored])] = True
    return loose


def _together(most: MostPlaced, hosts: Rows, per_host: int | None) -> int:
    mask = most.fleet.none()
    mask[hosts] = True
    return most.together(mask, per_host=per_host)
