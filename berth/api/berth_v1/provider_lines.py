# SPDX-License-Identifier: Apache-2.0
"""Providers as lines: the form in which the whole fleet, its changes and single trees show them.

Source: spec/beyond.md 6.1.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from berth.api.inventories import render
from berth.index.block import Block
from berth.index.drain_sets import NO_DRAINS
from berth.index.drained import drains_of_set
from berth.index.providers import IndexedProvider
from berth.index.shape import NO_PARENT
from berth.index.snapshot import Snapshot
from berth.model.ids import parse_uuid_lax

GENERATION: Final = "generation"
INVENTORIES: Final = "inventories"
USAGES: Final = "usages"
TRAITS: Final = "traits"
AGGREGATES: Final = "aggregates"
DRAINS: Final = "drains"
#: What a line may show of a provider beside its place in its tree, in the order of its members.
PARTS: Final = (GENERATION, INVENTORIES, USAGES, TRAITS, AGGREGATES, DRAINS)

Line = dict[str, Any]


class ProviderLines:
    """Makes the lines of one answer.

    Args:
        parts: those of `PARTS` that the lines show.
    """

    def __init__(self, snapshot: Snapshot, parts: Collection[str]) -> None:
        self._snapshot = snapshot
        self._parts = frozenset(parts)
        #: By the set of each: most providers have the same ones.
        self._traits: dict[object, list[str]] = {}
        self._aggregates: dict[int, list[str]] = {}
        self._drains: dict[int, list[str]] = {}

    def line(self, block: Block, node: int, row: int) -> Line:
        """The line of one provider."""
        parent = block.shape.parents[node]
        line: Line = {
            "uuid": block.uuid(node, row),
            "name": msgspec.json.decode(block.names.item(node, row)),
            "parent": None if parent == NO_PARENT else block.uuid(parent, row),
            "root": block.uuid(0, row),
        }
        provider = IndexedProvider(self._snapshot, block, node, row)
        if GENERATION in self._parts:
            line[GENERATION] = provider.generation
        if INVENTORIES in self._parts:
            inventories = provider.inventories()
            line[INVENTORIES] = {name: render(each) for name, each in inventories.items()}
        if USAGES in self._parts:
            line[USAGES] = provider.usages()
        if TRAITS in self._parts:
            line[TRAITS] = self._traits_of(provider)
        if AGGREGATES in self._parts:
            line[AGGREGATES] = self._aggregates_of(provider)
        if DRAINS in self._parts:
            line[DRAINS] = self._drains_of(provider)
        return line

    def _traits_of(self, provider: IndexedProvider) -> list[str]:
        own = provider.block.shape.node_types[provider.node].traits
        names = self._traits.get(own)
        if names is None:
            names = self._traits[own] = msgspec.json.decode(provider.traits().names, type=list[str])
        return names

    def _drains_of(self, provider: IndexedProvider) -> list[str]:
        sets = provider.block.drain_sets
        number = NO_DRAINS if sets is None else sets.item(provider.node, provider.row)
        names = self._drains.get(number)
        if names is None:
            every = drains_of_set(self._snapshot, number, in_effect=True)
            names = self._drains[number] = [*every]
        return names

    def _aggregates_of(self, provider: IndexedProvider) -> list[str]:
        number = provider.block.aggregate_sets.item(provider.node, provider.row)
        uuids = self._aggregates.get(number)
        if uuids is None:
            uuids = self._aggregates[number] = aggregates_of_set(self._snapshot, number)
        return uuids


def aggregates_of_set(snapshot: Snapshot, number: int) -> list[str]:
    """The aggregates of a set, in canonical form, whatever the spelling that created them."""
    spellings = snapshot.aggregate_sets.spellings(number)
    return [parse_uuid_lax(each) or each for each in spellings]
