# SPDX-License-Identifier: Apache-2.0
"""Sharing providers as other trees see them.

Each that is met gets a number, so that rows which are served by different ones of the same
structure can be searched, and written, together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.candidates.budget import Budget
from berth.candidates.local import fits
from berth.candidates.plan import Plan
from berth.index.aggregate_sets import Mask
from berth.index.block import UUID_LENGTH, Block
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ClassId, ProviderId

Amounts = NDArray[np.float64]
Numbers = NDArray[np.int64]
Texts = NDArray[np.void]

_UUID: Final = np.dtype(f"V{UUID_LENGTH}")


class Foreign(NamedTuple):
    """A sharing provider, seen from other trees.

    Attributes:
        serves: the asks for which it would do.
    """

    number: int
    provider_id: ProviderId
    location: Location
    serves: frozenset[int]


class ForeignProviders:
    """The sharing providers that one search has met.

    Those that it meets when its budget has ended would do for nothing.
    """

    def __init__(self, snapshot: Snapshot, plan: Plan, budget: Budget) -> None:
        self._snapshot = snapshot
        self._plan = plan
        self._budget = budget
        self._met: list[Foreign] = []
        self._numbers: dict[ProviderId, int] = {}
        #: serving providers -> what `useful` says of them.
        self._useful: dict[tuple[ProviderId, ...], tuple[Foreign, ...]] = {}
        #: (slot of a block, node) -> for each ask for which that node would do in some rows, these.
        self._serving: dict[tuple[int, int], list[tuple[int, Mask]]] = {}
        self._uuid_texts: dict[int, Texts] = {}
        self._texts: Texts | None = None
        self._rooms: dict[ClassId, Amounts] = {}

    def __len__(self) -> int:
        return len(self._met)

    def __getitem__(self, number: int) -> Foreign:
        return self._met[number]

    def useful(self, serving: tuple[ProviderId, ...]) -> tuple[Foreign, ...]:
        """Those of some sharing providers that would do for something; of one tree, parents before
        their children."""
        useful = self._useful.get(serving)
        if useful is None:
            met = [each for each in map(self._meet, serving) if each.serves]
            if len(met) > 1:
                met.sort(key=lambda each: each.location)
            useful = self._useful[serving] = tuple(met)
        return useful

    def structure(self, foreign: Iterable[Foreign]) -> Hashable:
        """All that a search may know of some sharing providers but their amounts: what they would
        do for, of which shape they are, and which of them are of one tree."""
        trees: dict[tuple[int, int], int] = {}
        return tuple(
            [
                (
                    each.serves,
                    self._snapshot.block(each.location.slot).shape.number,
                    each.location.node,
                    trees.setdefault(each.location[:2], len(trees)),
                )
                for each in foreign
            ]
        )

    def texts(self, numbers: Numbers) -> Texts:
        """The uuids of some of them, as in `Block.uuid_bytes`: void elements of 36 bytes."""
        if self._texts is None or len(self._texts) < len(self._met):
            self._texts = np.empty(len(self._met), dtype=_UUID)
            for each in self._met:
                self._texts[each.number] = self.text(each)
        return self._texts[numbers]

    def text(self, foreign: Foreign) -> np.void:
        """The uuid of one of them."""
        slot, row, node = foreign.location
        texts = self._uuid_texts.get(slot)
        if texts is None:
            texts = self._uuid_texts[slot] = uuid_texts(self._snapshot.block(slot))
        text: np.void = texts[node, row]
        return text

    def room(self, foreign: Foreign, class_id: ClassId) -> float:
        """`Trees.room` of one of them."""
        slot, row, node = foreign.location
        return room_at(self._snapshot.block(slot), node, row, class_id)

    def rooms(self, class_id: ClassId, numbers: Numbers) -> Amounts:
        """`Trees.room` of some of them, all of which have the class."""
        rooms = self._rooms.get(class_id)
        if rooms is None or len(rooms) < len(self._met):
            rooms = self._rooms[class_id] = np.array(
                [
                    self.room(each, class_id) if self._has(each, class_id) else 0.0
                    for each in self._met
                ]
            )
        return rooms[numbers]

    def _has(self, foreign: Foreign, class_id: ClassId) -> bool:
        slot, _, node = foreign.location
        return class_id in self._snapshot.block(slot).shape.kinds[node].classes

    def _meet(self, provider: ProviderId) -> Foreign:
        number = self._numbers.get(provider)
        if number is not None:
            return self._met[number]
        location = self._snapshot.locate(provider)
        assert location is not None, "a sharing provider stands in the snapshot that names it"
        slot, row, node = location
        serving = self._serving.get((slot, node))
        if serving is None:
            # PERF bench, sharing: the trees of a block are asked together, for most sharing
            # providers look alike.
            block = self._snapshot.block(slot)
            asked = () if self._budget.is_spent() else _serving(self._plan, slot, block, node)
            serving = self._serving[slot, node] = list(asked)
        serves = frozenset([ask for ask, mask in serving if mask.item(row)])
        foreign = Foreign(len(self._met), provider, location, serves)
        self._numbers[provider] = foreign.number
        self._met.append(foreign)
        return foreign


def uuid_texts(block: Block) -> Texts:
    """The uuids of a block as elements of an array of shape (K, R), to be copied whole."""
    texts: Texts = block.uuid_bytes.view(_UUID)[:, :, 0]
    return texts


def room_at(block: Block, node: int, row: int, class_id: ClassId) -> float:
    """`Trees.room` of one provider."""
    return float(block.columns[class_id].room.item(block.shape.row_of_node[class_id][node], row))


def _serving(plan: Plan, slot: int, block: Block, node: int) -> Iterator[tuple[int, Mask]]:
    """The asks of other trees for which a node of a block's trees would do: and in which rows."""
    kind = block.shape.kinds[node]
    for ask, wanted in plan.asks.items():
        in_tree = wanted.in_tree
        if in_tree is not None and (wanted.unsuffixed or in_tree.slot != slot):
            continue
        if not wanted.traits.passes(kind.traits) or not all(
            class_id in kind.classes for class_id, _ in wanted.amounts
        ):
            continue
        mask: Mask = np.ones(block.rows, dtype=np.bool_)
        for class_id, amount in wanted.amounts:
            line = block.shape.row_of_node[class_id][node]
            mask &= fits(block.columns[class_id], amount, (line, slice(None)))
        if wanted.membership.member is not None:
            mask &= wanted.membership.member[block.aggregate_sets[node]]
        if wanted.membership.forbidden is not None:
            mask &= ~wanted.membership.forbidden[block.aggregate_sets[node]]
        if in_tree is not None:
            mask &= np.arange(block.rows) == in_tree.row
        yield ask, mask
