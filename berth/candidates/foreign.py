# SPDX-License-Identifier: Apache-2.0
"""Sharing providers as other trees see them.

Each that is met gets a number, so that rows which are served by different ones of the same
structure can be searched, and written, together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.candidates.plan import Plan, Slot
from berth.index.block import UUID_LENGTH, Block
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ClassId, ProviderId

Amounts = NDArray[np.float64]
Numbers = NDArray[np.int64]
Texts = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Foreign:
    """A sharing provider, seen from other trees.

    Attributes:
        serves: the asks for which it would do.
    """

    number: int
    provider_id: ProviderId
    location: Location
    serves: frozenset[int]


class ForeignProviders:
    """The sharing providers that one search has met."""

    def __init__(self, snapshot: Snapshot, plan: Plan) -> None:
        self._snapshot = snapshot
        self._asked = plan.asks
        self._met: list[Foreign] = []
        self._numbers: dict[ProviderId, int] = {}
        #: serving providers -> what `useful` says of them.
        self._useful: dict[tuple[ProviderId, ...], tuple[Foreign, ...]] = {}
        self._texts: Texts | None = None
        self._rooms: dict[ClassId, Amounts] = {}

    def __getitem__(self, number: int) -> Foreign:
        return self._met[number]

    def useful(self, serving: tuple[ProviderId, ...]) -> tuple[Foreign, ...]:
        """Those of some sharing providers that would do for something; of one tree, parents before
        their children."""
        useful = self._useful.get(serving)
        if useful is None:
            met = (self._meet(provider) for provider in serving)
            useful = self._useful[serving] = tuple(
                sorted((each for each in met if each.serves), key=lambda each: each.location)
            )
        return useful

    def structure(self, foreign: Iterable[Foreign]) -> Hashable:
        """All that a search may know of some sharing providers but their amounts: what they would
        do for, of which shape they are, and which of them are of one tree."""
        trees: dict[tuple[int, int], int] = {}
        return tuple(
            (
                each.serves,
                self._snapshot.block(each.location.slot).shape,
                each.location.node,
                trees.setdefault(each.location[:2], len(trees)),
            )
            for each in foreign
        )

    def texts(self, numbers: Numbers) -> Texts:
        """The uuids of some of them, as in `Block.uuid_bytes`: void elements of 36 bytes."""
        if self._texts is None or len(self._texts) < len(self._met):
            self._texts = np.array([self.text(each) for each in self._met])
        return self._texts[numbers]

    def text(self, foreign: Foreign) -> np.void:
        """The uuid of one of them."""
        slot, row, node = foreign.location
        text: np.void = uuid_texts(self._snapshot.block(slot))[node, row]
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
        block = self._snapshot.block(location.slot)
        serves = frozenset(
            ask for ask, slot in self._asked.items() if _would_serve(block, location, slot)
        )
        foreign = Foreign(len(self._met), provider, location, serves)
        self._numbers[provider] = foreign.number
        self._met.append(foreign)
        return foreign


def uuid_texts(block: Block) -> Texts:
    """The uuids of a block as elements of an array of shape (K, R), to be copied whole."""
    texts: Texts = block.uuid_bytes.view(f"V{UUID_LENGTH}")[:, :, 0]
    return texts


def room_at(block: Block, node: int, row: int, class_id: ClassId) -> float:
    """`Trees.room` of one provider."""
    return float(block.columns[class_id].room.item(block.shape.row_of_node[class_id][node], row))


def _would_serve(block: Block, location: Location, wanted: Slot) -> bool:
    """Whether a sharing provider would do for a slot of other trees."""
    kind = block.shape.kinds[location.node]
    if not all(class_id in kind.classes for class_id, _ in wanted.amounts):
        return False
    if wanted.in_tree is not None and (wanted.unsuffixed or wanted.in_tree[:2] != location[:2]):
        return False
    return (
        wanted.traits.passes(kind.traits)
        and wanted.membership.passes(int(block.aggregate_sets[location.node, location.row]))
        and all(_fits_at(block, location, class_id, amount) for class_id, amount in wanted.amounts)
    )


def _fits_at(block: Block, location: Location, class_id: ClassId, amount: int) -> bool:
    """`fits` for one provider."""
    columns = block.columns[class_id]
    at = block.shape.row_of_node[class_id][location.node], location.row
    return (
        columns.min_unit.item(at) <= amount <= columns.room.item(at)
        and amount % columns.step_size.item(at) == 0
    )
