# SPDX-License-Identifier: Apache-2.0
"""What a reader holds: the whole fleet as it was at one moment, never changing under the reader's
hands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from berth.index.aggregate_sets import AggregateSets
from berth.index.allowance import Allowance
from berth.index.block import Block
from berth.index.memory import Memory
from berth.index.paged_map import ABSENT, Ints, PagedMap
from berth.index.uuid_map import UuidMap
from berth.model.ids import AggregateId, AggregateUUID, ClassId, ProviderId, TraitId

_ROW_SHIFT: Final = 16
_SLOT_SHIFT: Final = 32
_LOW_BITS: Final = (1 << _ROW_SHIFT) - 1


class Location(NamedTuple):
    """Where a provider stands: block, row of the block (its tree), node of the shape (its place in
    the tree)."""

    slot: int
    row: int
    node: int


def packed(slot: int, rows: Ints, nodes: Ints) -> Ints:
    """Locations as one integer each, as `Snapshot.locations` holds them; rows and nodes below
    2^16."""
    return slot << _SLOT_SHIFT | rows << _ROW_SHIFT | nodes


def location_of(value: int) -> Location | None:
    """A packed location as it came out of the map, None for `ABSENT`."""
    if value == ABSENT:
        return None
    return Location(value >> _SLOT_SHIFT, (value >> _ROW_SHIFT) & _LOW_BITS, value & _LOW_BITS)


@dataclass(frozen=True, slots=True)
class Names:
    """The deployment's resource classes and traits, both ways; one object as long as all are the
    same."""

    class_ids: Mapping[str, ClassId]
    class_names: Mapping[ClassId, str]
    trait_ids: Mapping[str, TraitId]
    trait_names: Mapping[TraitId, str]

    @classmethod
    def of(cls, class_ids: Mapping[str, ClassId], trait_ids: Mapping[str, TraitId]) -> Names:
        """Both ways, from one way."""
        return cls(
            class_ids,
            {number: name for name, number in class_ids.items()},
            trait_ids,
            {number: name for name, number in trait_ids.items()},
        )


@dataclass(frozen=True, slots=True)
class Sharing:
    """The sharing providers, by what they share through.

    Attributes:
        by_aggregate: aggregate -> the sharing providers directly in it, ascending.
        trait: the id of MISC_SHARES_VIA_AGGREGATE, None where the deployment does not know it.
        classes: every class that some sharing provider has inventory of.
        of_tree_set: aggregate set of a tree -> the sharing providers it can be served by (its own
            among them). Kept between requests; it depends on `by_aggregate` alone, since the id of
            a set never changes its meaning, and ends with this object: the first change of any
            sharing provider, its aggregates or its classes makes another.
    """

    by_aggregate: Mapping[AggregateId, tuple[ProviderId, ...]]
    trait: TraitId | None
    classes: frozenset[ClassId]
    of_tree_set: dict[int, tuple[ProviderId, ...]] = field(default_factory=dict)

    def serving(self, tree_set: int, sets: AggregateSets) -> tuple[ProviderId, ...]:
        """The sharing providers that trees with some aggregate set can use, ascending."""
        known = self.of_tree_set.get(tree_set)
        if known is None:
            serving: set[ProviderId] = set()
            for aggregate in sets.members(tree_set):
                serving.update(self.by_aggregate.get(aggregate, ()))
            known = self.of_tree_set[tree_set] = tuple(sorted(serving))
        return known


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The fleet at one moment.

    Attributes:
        blocks: by slot; None where a slot is free.
        locations: provider id -> `packed` location.
        uuids: which providers may have a uuid; shared with later snapshots.
        aggregate_ids: uuid -> id; one object as long as all are the same.
        aggregate_sets: shared with later snapshots, and may already have newer ones; a set's id
            never changes its meaning.
        memory: what readers keep between requests; one object as long as `names` is.
        allowance: shared with later snapshots; bounds what searches remember about shapes.
    """

    blocks: Sequence[Block | None]
    locations: PagedMap
    names: Names
    uuids: UuidMap
    aggregate_ids: Mapping[AggregateUUID, AggregateId]
    aggregate_sets: AggregateSets
    sharing: Sharing
    memory: Memory
    allowance: Allowance

    def occupied(self) -> Iterator[tuple[int, Block]]:
        """All blocks, with their slots."""
        return ((slot, block) for slot, block in enumerate(self.blocks) if block is not None)

    def block(self, slot: int) -> Block:
        """The block in a slot that is known to be taken."""
        block = self.blocks[slot]
        assert block is not None
        return block

    def locate(self, provider: ProviderId) -> Location | None:
        """Where a provider stands, None if it is not part of this snapshot."""
        return location_of(self.locations.get(provider))

    def locate_uuid(self, uuid: str) -> Location | None:
        """Where the provider with a uuid stands, None if there is none."""
        for provider in self.uuids.find(uuid):
            location = self.locate(provider)
            if location is None:
                continue
            # It may be a newer provider, with the id of one that this snapshot still has.
            if self.block(location.slot).uuid(location.node, location.row) == uuid:
                return location
        return None
