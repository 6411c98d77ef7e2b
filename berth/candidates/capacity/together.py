# SPDX-License-Identifier: Apache-2.0
"""How often a request fits on many hosts together, where sharing providers serve several of them.

Hosts and the sharing providers that may serve them form components, which do not matter to each
other. In each, hosts are filled one after another, those with the fewest sharing providers first;
and no more fits than all its providers can give.

Source: spec/beyond.md 4.1, `total`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Final, TypeVar

import numpy as np

from berth.candidates.capacity.greedy import asked_of
from berth.candidates.capacity.per_host import HostCounts, Piece, Single
from berth.candidates.capacity.ways import Factor, summable
from berth.candidates.conditions import Rows
from berth.candidates.fleet import FREE_MAX, Fleet
from berth.index.block import Ints
from berth.index.sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.capacity import Total
from berth.model.ids import ClassId, ProviderId

T = TypeVar("T")

#: The component of a host that shares nothing with any other.
_ALONE: Final = -1

_Left = dict[tuple[ProviderId, ClassId], int]


class Together:
    """The hosts of one fleet, and what they share, for one request."""

    def __init__(self, counts: HostCounts) -> None:
        self.counts = counts
        self._free = counts.free
        self._budget = budget = counts.budget
        self._asked = asked_of(counts.plan)
        self._pieces = sorted(counts.pieces, key=lambda piece: len(piece.foreign))
        #: The sharing providers that serve any other tree.
        self._pools: set[ProviderId] = set()
        # PERF bench, capacity: without sharing providers there is nothing to find.
        if self._pieces:
            for piece in _until_spent(self._pieces, budget):
                self._pools |= piece.pools()
            several = _until_spent(self._pieces, budget)
            self._components = _Components(counts.snapshot, counts.fleet, self._pools, several)
            for piece in _until_spent(self._pieces, budget):
                piece.find_own(self._pools)
        #: Whether it is not known what hosts share: then they are bounded one by one.
        self._is_cut = budget.ended is not None and bool(counts.snapshot.sharing.by_aggregate)

    @property
    def is_shared(self) -> bool:
        """Whether any host may be served by another tree."""
        return bool(self._pools) or self._is_cut

    def total(self, hosts: Mask | None = None) -> Total:
        """How often the request fits on some hosts together; on all by default."""
        count = self.counts.count
        if hosts is not None:
            count = np.where(hosts, count, 0)
        if self._is_cut:
            # What fits on one host alone fits on all.
            return Total(int(count.max(initial=0)), self.at_most(hosts))
        if not self._pools:
            total = int(summable(count).sum())
            is_exact = self.counts.at_most is self.counts.count
            return Total(total, total if is_exact else self.at_most(hosts))
        of_host = self._components.of_host
        alone = of_host == _ALONE
        # One host alone may do better than all in turn.
        best = np.zeros(self._components.size, dtype=np.int64)
        np.maximum.at(best, of_host[~alone], count[~alone])
        filled = sum(map(max, self._filled(hosts), best.tolist()))
        return Total(int(summable(count[alone]).sum()) + filled, self.at_most(hosts))

    def at_most(self, hosts: Mask | None = None, *, per_host: int | None = None) -> int:
        """No more requests fit some hosts together; all by default.

        Args:
            per_host: no host gets more; None for no such bound.
        """
        at_most = self.counts.at_most
        if hosts is not None:
            at_most = np.where(hosts, at_most, 0)
        if per_host is not None:
            at_most = np.minimum(at_most, per_host)
        at_most = summable(at_most)
        if not self._pools or self._is_cut:
            return int(at_most.sum())
        of_host = self._components.of_host
        alone = of_host == _ALONE
        most = np.zeros(self._components.size, dtype=at_most.dtype)
        np.add.at(most, of_host[~alone], at_most[~alone])
        for cut in self._cuts(hosts):
            most = np.minimum(most, cut)
        return int(at_most[alone].sum() + most.sum())

    def _cuts(self, hosts: Mask | None) -> Iterable[Ints]:
        """For each class what all providers of each component can give; as far as the budget
        allows."""
        for class_id, asked in self._asked.items():
            for unit in asked.units:
                total: Ints = np.zeros(self._components.size, dtype=np.int64)
                pools: set[ProviderId] = set()
                for piece in _until_spent(self._pieces, self._budget):
                    some = piece.some(hosts)
                    of_rows = self._components.of_host[piece.hosts[some]]
                    shared = of_rows != _ALONE
                    own = summable(piece.own_times(self._free, class_id, unit)[some])
                    total = total.astype(np.result_type(total, own), copy=False)
                    np.add.at(total, of_rows[shared], own[shared])
                    pools |= piece.pools_giving(class_id, some)
                of_pools = [0] * self._components.size
                for pool in pools:
                    component = self._components.of_pool(pool)
                    of_pools[component] += self._free.of_provider(pool, class_id) // unit
                total = total + (
                    of_pools if max(of_pools) < FREE_MAX else np.array(of_pools, object)
                )
                if self._budget.ended is not None:
                    return
                yield total // asked.units_of(unit)

    def _filled(self, hosts: Mask | None) -> list[int]:
        """How many placements a construction finds in each component."""
        filled = [0] * self._components.size
        left: _Left = {}
        for piece in _until_spent(self._pieces, self._budget):
            some = piece.some(hosts)
            some = some[self._components.of_host[piece.hosts[some]] != _ALONE]
            if piece.single is not None:
                plain = some[~piece.is_pool[some]]
                for pool, number in self._through_one(piece, piece.single, plain, left):
                    filled[self._components.of_pool(pool)] += number
                some = some[piece.is_pool[some]]
            for row in some.tolist():
                if self._budget.is_spent():
                    return filled
                component = self._components.of_host[piece.hosts[row]]
                filled[component] += self._on_row(piece, row, left)
        return filled

    def _through_one(
        self, piece: Piece, single: Single, rows: Rows, left: _Left
    ) -> Iterable[tuple[ProviderId, int]]:
        """Fill hosts each of which needs one pool: of each pool how often."""
        pools = piece.trees.provider_ids(single.choice, rows)
        for pool in np.unique(pools).tolist():
            number = min(self._left(pool, cell, left) // amount for cell, amount in single.takes)
            if single.own is not None:
                number = min(number, int(summable(single.own[rows[pools == pool]]).sum()))
            for cell, amount in single.takes:
                left[pool, cell] = self._left(pool, cell, left) - number * amount
            yield pool, number

    def _left(self, pool: ProviderId, class_id: ClassId, left: _Left) -> int:
        key = pool, class_id
        return left[key] if key in left else self._free.of_provider(pool, class_id)

    def _on_row(self, piece: Piece, row: int, left: _Left) -> int:
        """Fill one host."""
        if not piece.factors:
            return self._again(piece, row, left)
        limit: int | None = None
        shared: list[Factor] = []
        for factor, bounds in piece.factors:
            if any(piece.trees.provider_id(cell[0], row) in self._pools for cell in factor.cells):
                shared.append(factor)
            else:
                own = int(bounds.count[row])
                limit = own if limit is None else min(limit, own)
        for factor in shared:
            limit, _ = self._place(piece, factor, row, left, limit)
        for factor in shared:
            _, taken = self._place(piece, factor, row, left, limit)
            left.update({key: each for key, each in taken.items() if key[0] in self._pools})
        assert limit is not None, "a request takes something"
        return limit

    def _place(
        self, piece: Piece, factor: Factor, row: int, left: _Left, limit: int | None
    ) -> tuple[int, _Left]:
        """Take the ways of a factor one after another, those with the fewest pools first: how often
        all together, and what is left then of what they take."""
        ways = [way for way in factor.ways if way.rows is None or way.rows[row]]
        size = piece.trees.block.shape.size
        ways.sort(key=lambda way: sum(choice >= size for (choice, _), _ in way.takes))
        placed = 0
        after: _Left = {}
        for way in ways:
            takes = [((piece.trees.provider_id(cell[0], row), cell[1]), n) for cell, n in way.takes]
            for key, _ in takes:
                after.setdefault(key, self._left(*key, left))
            number = min(after[key] // amount for key, amount in takes)
            if limit is not None:
                number = min(number, limit - placed)
            for key, amount in takes:
                after[key] -= number * amount
            placed += number
        return placed, after

    def _again(self, piece: Piece, row: int, left: _Left) -> int:
        """Repeat the placements of a host that was filled, as far as the pools allow."""
        trees = piece.trees
        at = trees.block_id, int(trees.rows[row])
        placed = 0
        for takes, times in self.counts.placements.get(at, ()):
            shared = [(key, amount) for key, amount in takes.items() if key[0] in self._pools]
            number = min([times, *(self._left(*key, left) // amount for key, amount in shared)])
            for key, amount in shared:
                left[key] = self._left(*key, left) - number * amount
            placed += number
        return placed


def _until_spent(several: Iterable[T], budget: Budget) -> Iterator[T]:
    """As many of some things as the budget allows."""
    return takewhile(lambda _: not budget.is_spent(), several)


class _Components:
    """Which hosts and pools can meet.

    Attributes:
        of_host: for each host of the fleet its component; `_ALONE` if it shares nothing.
        size: how many components there are.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        fleet: Fleet,
        pools: set[ProviderId],
        pieces: Iterable[Piece],
    ) -> None:
        #: Pool -> the number of its tree; and host -> the number of its tree.
        self._trees: dict[ProviderId, int] = {}
        own: dict[int, int] = {}
        for pool in sorted(pools):
            location = snapshot.locate(pool)
            assert location is not None, "the snapshot has the providers that it names"
            host = fleet.starts[location.block_id] + location.row
            self._trees[pool] = own.setdefault(host, len(own))
        self._parents = list(range(len(own)))
        first: Ints = np.full(fleet.size, _ALONE, dtype=np.int64)
        for host, tree in own.items():
            first[host] = tree
        for piece in pieces:
            for choice in piece.foreign:
                pools_of, which = np.unique(piece.trees.provider_ids(choice), return_inverse=True)
                trees = np.array([self._trees[ProviderId(each)] for each in pools_of.tolist()])
                here = trees[which]
                before = first[piece.hosts]
                pairs = np.stack((before, here))[:, before != _ALONE]
                for first_tree, other in np.unique(pairs, axis=1).T.tolist():
                    self._parents[self._top(first_tree)] = self._top(other)
                first[piece.hosts] = np.where(before == _ALONE, here, before)
        tops = sorted({self._top(tree) for tree in range(len(own))})
        numbers = {top: number for number, top in enumerate(tops)}
        self.size = len(tops)
        self._component = [numbers[self._top(tree)] for tree in range(len(own))]
        self.of_host: Ints = first
        if own:
            sharing = first != _ALONE
            self.of_host[sharing] = np.array(self._component)[first[sharing]]

    def of_pool(self, pool: ProviderId) -> int:
        """The component of a pool."""
        return self._component[self._trees[pool]]

    def _top(self, tree: int) -> int:
        while self._parents[tree] != tree:
            self._parents[tree] = self._parents[self._parents[tree]]
            tree = self._parents[tree]
        return tree
