# SPDX-License-Identifier: Apache-2.0
"""Sharing providers as other trees see them.

A search numbers the sharing providers that it meets, so that rows served by different providers of
the same structure can be searched and rendered together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.candidates.conditions import all_of, fits
from berth.candidates.plan import Plan
from berth.index.block import UUID_LENGTH, Block, Floats, Ints
from berth.index.sets import Mask
from berth.index.snapshot import Location, Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId, ProviderId

Texts = NDArray[np.void]

T = TypeVar("T", bound=np.generic)

_UUID: Final = np.dtype(f"V{UUID_LENGTH}")


class SharingProvider(NamedTuple):
    """A sharing provider, seen from other trees.

    Attributes:
        serves: the queries that it could serve.
    """

    number: int
    provider_id: ProviderId
    location: Location
    serves: frozenset[int]


class SharingProviders:
    """The sharing providers that one search has met.

    Those that it meets after its budget has ended serve nothing.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        plan: Plan,
        budget: Budget,
        eligible: Callable[[], Iterable[tuple[int, Block, Ints]]],
    ) -> None:
        """None so far.

        Args:
            eligible: finds the rows of each block that may anchor candidates without a provider of
                their own.
        """
        self.sharing = snapshot.sharing
        self._snapshot = snapshot
        self._eligible = eligible
        self._plan = plan
        self._budget = budget
        self._met: list[SharingProvider] = []
        self._numbers: dict[ProviderId, int] = {}
        #: Arguments of `useful` -> its results.
        self._useful: dict[tuple[ProviderId, ...], tuple[SharingProvider, ...]] = {}
        #: (block_id, node) -> (query id, the rows in which that node could serve it; None for all).
        self._serving: dict[tuple[int, int], list[tuple[int, Mask | None]]] = {}
        self._uuid_texts: dict[int, Texts] = {}
        self._values: dict[Hashable, NDArray[Any]] = {}
        self._least: dict[tuple[ProviderId, ...], tuple[int, int] | None] = {}

    def __len__(self) -> int:
        return len(self._met)

    def __getitem__(self, number: int) -> SharingProvider:
        return self._met[number]

    def useful(self, serving: tuple[ProviderId, ...]) -> tuple[SharingProvider, ...]:
        """Those of some sharing providers that could serve at least one query; within a tree,
        parents before their children."""
        useful = self._useful.get(serving)
        if useful is None:
            met = [each for each in map(self._meet, serving) if each.serves]
            if len(met) > 1:
                met.sort(key=lambda each: each.location)
            useful = self._useful[serving] = tuple(met)
        return useful

    def structure(self, foreign: Iterable[SharingProvider]) -> Hashable:
        """Everything about some sharing providers but their amounts and names: the queries they
        could serve, their shapes and nodes, and which of them are in the same tree."""
        trees: dict[tuple[int, int], int] = {}
        return tuple(
            [
                (
                    each.serves,
                    self._snapshot.block(each.location.block_id).shape.number,
                    each.location.node,
                    trees.setdefault(each.location[:2], len(trees)),
                )
                for each in foreign
            ]
        )

    def ids(self, numbers: Ints) -> Ints:
        """The ids of some providers."""
        return self._each("ids", lambda each: each.provider_id, np.dtype(np.int64))[numbers]

    def texts(self, numbers: Ints) -> Texts:
        """The uuids of some providers, as void elements of 36 bytes."""
        return self._each("texts", self.text, _UUID)[numbers]

    def text(self, foreign: SharingProvider) -> np.void:
        """The uuid of one provider."""
        block_id, row, node = foreign.location
        texts = self._uuid_texts.get(block_id)
        if texts is None:
            texts = self._uuid_texts[block_id] = self._snapshot.block(block_id).uuid_elements
        text: np.void = texts[node, row]
        return text

    def room(self, foreign: SharingProvider, class_id: ClassId) -> float:
        """`Trees.room` of one provider."""
        block_id, row, node = foreign.location
        return room_at(self._snapshot.block(block_id), node, row, class_id)

    def units(self, foreign: SharingProvider, class_id: ClassId) -> tuple[int, int]:
        """min_unit and step_size of a class that a provider has."""
        block_id, row, node = foreign.location
        block = self._snapshot.block(block_id)
        line, columns = block.shape.row_of_node[class_id][node], block.columns[class_id]
        return columns.min_unit.item(line, row), columns.step_size.item(line, row)

    def rooms(self, class_id: ClassId, numbers: Ints) -> Floats:
        """`Trees.room` of some providers, all of which have the class."""

        def room(each: SharingProvider) -> float:
            return self.room(each, class_id) if self._has(each, class_id) else 0.0

        return self._each(class_id, room, np.dtype(np.float64))[numbers]

    def _each(
        self, key: Hashable, value: Callable[[SharingProvider], object], kind: np.dtype[T]
    ) -> NDArray[T]:
        """A value of every provider that was met; kept until more are met."""
        values = self._values.get(key)
        if values is None or len(values) < len(self._met):
            values = np.fromiter(map(value, self._met), dtype=kind, count=len(self._met))
            self._values[key] = values
        return values

    def least_anchor(self, providers: tuple[ProviderId, ...]) -> tuple[int, int] | None:
        """The block and the row of the root with the smallest uuid that may anchor a candidate of
        sharing providers; None if no root but the one that it was found from is known to.

        Args:
            providers: one for each of `Plan.asking`.

        Source: spec/beyond.md 2.6.
        """
        if providers not in self._least:
            self._least[providers] = self._least_anchor(providers)
        return self._least[providers]

    def _least_anchor(self, providers: tuple[ProviderId, ...]) -> tuple[int, int] | None:
        asking = zip(self._plan.asking, providers, strict=True)
        if not all(demand.query_id in self._meet(each).serves for demand, each in asking):
            # One of the providers serves its demand only in its own tree.
            return None
        roots, of_provider = self._roots
        common = set.intersection(*(of_provider.get(each, set()) for each in set(providers)))
        return roots[min(common)] if common else None

    @cached_property
    def _roots(self) -> tuple[list[tuple[int, int]], dict[ProviderId, set[int]]]:
        """For each aggregate set of a tree, the eligible root with the smallest uuid, all in the
        order of their uuids; and for each sharing provider, the numbers of the roots that it
        serves."""
        least: dict[int, tuple[bytes, tuple[int, int]]] = {}
        for block_id, block, rows in self._eligible():
            uuids, sets = block.uuid_texts[0].take(rows), block.tree_aggregate_sets[rows]
            order = np.lexsort((uuids, sets))
            for place in order[np.unique(sets[order], return_index=True)[1]].tolist():
                root = uuids[place], (block_id, int(rows[place]))
                of_set = int(sets[place])
                least[of_set] = min(least.get(of_set, root), root)
        ordered = sorted(least.items(), key=itemgetter(1))
        of_provider: dict[ProviderId, set[int]] = {}
        for number, (of_set, _) in enumerate(ordered):
            for each in self.sharing.serving(of_set, self._snapshot.aggregate_sets):
                of_provider.setdefault(each, set()).add(number)
        return [root for _, (_, root) in ordered], of_provider

    def _has(self, foreign: SharingProvider, class_id: ClassId) -> bool:
        block_id, _, node = foreign.location
        return class_id in self._snapshot.block(block_id).shape.node_types[node].classes

    def _meet(self, provider: ProviderId) -> SharingProvider:
        number = self._numbers.get(provider)
        if number is not None:
            return self._met[number]
        location = self._snapshot.locate(provider)
        assert location is not None, "a snapshot has the sharing providers that it names"
        block_id, row, node = location
        serving = self._serving.get((block_id, node))
        if serving is None:
            # PERF bench, sharing: all trees of the block at once, because most sharing providers
            # look alike.
            block = self._snapshot.block(block_id)
            by_query = (
                () if self._budget.is_spent() else _serving(self._plan, block_id, block, node)
            )
            serving = self._serving[block_id, node] = list(by_query)
        serves = frozenset(
            [query_id for query_id, mask in serving if mask is None or mask.item(row)]
        )
        foreign = SharingProvider(len(self._met), provider, location, serves)
        self._numbers[provider] = foreign.number
        self._met.append(foreign)
        return foreign


def room_at(block: Block, node: int, row: int, class_id: ClassId) -> float:
    """`Trees.room` of one provider."""
    return float(block.columns[class_id].room.item(block.shape.row_of_node[class_id][node], row))


def _serving(
    plan: Plan, block_id: int, block: Block, node: int
) -> Iterator[tuple[int, Mask | None]]:
    """The queries of other trees that a node of a block's trees could serve, each with the rows in
    which it could; None for all."""
    shape, rows = block.shape, slice(0, block.rows)
    for query_id, demand in plan.queries.items():
        places = demand.places
        if places.in_tree is not None and demand.unsuffixed:
            continue
        if not places.has_any_in(block_id) or not demand.admits(shape.node_types[node]):
            continue
        having = (
            fits(block.columns[each], amount, (shape.row_of_node[each][node], rows))
            for each, amount in demand.amounts
        )
        meeting = (
            demand.membership.mask(block.aggregate_sets[node]),
            None if block.drained is None else ~block.drained[node],
            places.mask(block_id, shape.lineage[node], rows),
        )
        yield query_id, all_of((*having, *meeting))
