# SPDX-License-Identifier: Apache-2.0
"""Snapshots: the whole fleet at one moment, which never changes under its reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from berth.index.block import Block
from berth.index.maps import ABSENT, Ints, PagedMap, TextMap
from berth.index.memory import Memory
from berth.index.names import Names
from berth.index.revision import Clock
from berth.index.sets import AggregateSets, DrainSets
from berth.model.ids import AggregateId, ClassId, ProviderId, TraitId
from berth.model.named import DrainId

_ROW_SHIFT: Final = 16
_BLOCK_SHIFT: Final = 32
_LOW_BITS: Final = (1 << _ROW_SHIFT) - 1


class Location(NamedTuple):
    """The place of a provider: block, row of the block (its tree), node of the shape (its place in
    the tree)."""

    block_id: int
    row: int
    node: int


def packed(block_id: int, rows: Ints, nodes: Ints) -> Ints:
    """Locations as one integer each, as in `Snapshot.locations`; rows and nodes are below 2^16."""
    return block_id << _BLOCK_SHIFT | rows << _ROW_SHIFT | nodes


def unpacked(places: Ints) -> tuple[Ints, Ints, Ints]:
    """The blocks, rows and nodes of packed locations."""
    return places >> _BLOCK_SHIFT, places >> _ROW_SHIFT & _LOW_BITS, places & _LOW_BITS


def location_of(value: int) -> Location | None:
    """A packed location as it came out of the map, None for `ABSENT`."""
    if value == ABSENT:
        return None
    return Location(value >> _BLOCK_SHIFT, (value >> _ROW_SHIFT) & _LOW_BITS, value & _LOW_BITS)


class Sharing(Struct, frozen=True):
    """The sharing providers, by the aggregates that they share through.

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
        serving = self.of_tree_set.get(tree_set)
        if serving is None:
            providers: set[ProviderId] = set()
            for aggregate in sets.members(tree_set):
                providers.update(self.by_aggregate.get(aggregate, ()))
            serving = self.of_tree_set[tree_set] = tuple(sorted(providers))
        return serving


class Snapshot(Struct, frozen=True):
    """The fleet at one moment.

    Attributes:
        blocks: by number (`block_id`); None where a number is free.
        locations: provider id -> `packed` location.
        uuids, provider_names: which providers may have a uuid, or a name as JSON; shared with
            later snapshots.
        has_short_uuids: whether a uuid may have fewer than 36 characters, as in old databases.
        aggregate_sets: shared with later snapshots, and may already have newer ones; a set's id
            never changes its meaning.
        memory: what readers keep between requests; one object for each index.
        clock: the writers' clock at this moment; that of a scenario is its fleet's.
        drain_sets: shared with later snapshots, as `aggregate_sets`.
        excluding: the drains in effect, from which `Block.drained` follows.
        faults: uuid -> what is wrong with a row, of those that were left out.
    """

    blocks: Sequence[Block | None]
    locations: PagedMap
    names: Names
    uuids: TextMap
    provider_names: TextMap
    has_short_uuids: bool
    aggregate_sets: AggregateSets
    sharing: Sharing
    memory: Memory
    clock: Clock
    drain_sets: DrainSets
    excluding: frozenset[DrainId]
    faults: Mapping[str, str]

    @property
    def has_drained(self) -> bool:
        """Whether any provider is drained."""
        return any(block is not None and block.drained is not None for block in self.blocks)

    @property
    def revision(self) -> str:
        """The revision of this state (`berth.index.revision`)."""
        return self.clock.revision

    def occupied(self) -> Iterator[tuple[int, Block]]:
        """All blocks, with their numbers."""
        return (
            (block_id, block) for block_id, block in enumerate(self.blocks) if block is not None
        )

    def block(self, block_id: int) -> Block:
        """The block with a number, which must be in use."""
        block = self.blocks[block_id]
        assert block is not None
        return block

    def locate(self, provider: ProviderId) -> Location | None:
        """The place of a provider, None if it is not part of this snapshot."""
        return location_of(self.locations.get(provider))

    def locate_uuid(self, uuid: str) -> Location | None:
        """The place of the provider with a uuid, None if there is none."""
        text = uuid.encode(errors="replace")
        for location in self._located(self.uuids.find(text)):
            # It may be a newer provider, with the id of one that this snapshot still has.
            if self.block(location.block_id).uuid_text(location.node, location.row) == text:
                return location
        return None

    def locate_name(self, name: bytes) -> Location | None:
        """The place of the provider with a name, given as JSON; None if there is none."""
        for location in self._located(self.provider_names.find(name)):
            if self.block(location.block_id).names.item(location.node, location.row) == name:
                return location
        return None

    def _located(self, providers: Iterable[ProviderId]) -> Iterator[Location]:
        return (at for provider in providers if (at := self.locate(provider)) is not None)
