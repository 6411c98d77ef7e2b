# SPDX-License-Identifier: Apache-2.0
"""`ProviderTree` compared with a table: after any operations, both have the same content."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from berth.hosts import ProviderTree
from tests.effort import scaled

NAMES = [f"p{number}" for number in range(4)]
UUIDS = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(4)]
KEYS = st.sampled_from([*NAMES, *UUIDS])
GENERATIONS = st.none() | st.integers(0, 9)
WORDS = st.sets(st.sampled_from(["A", "B", "C"]))
RECORDS = st.dictionaries(
    st.just("VCPU"),
    st.fixed_dictionaries({"total": st.integers(1, 3)}, optional={"reserved": st.integers(0, 1)}),
)


@dataclass
class Row:
    """A provider in the table."""

    name: str
    parent: str | None
    generation: int | None
    inventory: dict[str, dict[str, int]] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)


class Forests(RuleBasedStateMachine):
    """A forest, and a table with the same providers."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = ProviderTree()
        self.table: dict[str, Row] = {}

    @initialize()
    def plant(self) -> None:
        """Start with some providers, so that most operations find theirs."""
        self.new_root(NAMES[0], UUIDS[0], 1)
        self.new_child(NAMES[1], NAMES[0], UUIDS[1], None)
        self.new_root(NAMES[2], UUIDS[2], None)

    def find(self, key: str | None) -> str | None:
        """The uuid for a name or a uuid."""
        rows = self.table.items()
        return next((uuid for uuid, row in rows if key in (uuid, row.name)), None)

    def below(self, uuid: str) -> Iterator[str]:
        """A provider and all below it."""
        yield uuid
        for one, row in self.table.items():
            if row.parent == uuid:
                yield from self.below(one)

    def expect(self, is_possible: bool, method: str, *arguments: Any) -> Any:
        """Call a method; invalid arguments raise ValueError."""
        if is_possible:
            return getattr(self.tree, method)(*arguments)
        with pytest.raises(ValueError):
            getattr(self.tree, method)(*arguments)
        return None

    def is_new(self, name: str, uuid: str) -> bool:
        """Whether neither the name nor the uuid is taken."""
        return uuid not in self.table and all(row.name != name for row in self.table.values())

    @rule(name=st.sampled_from(NAMES), uuid=st.sampled_from(UUIDS), generation=GENERATIONS)
    def new_root(self, name: str, uuid: str, generation: int | None) -> None:
        """Create a root."""
        is_possible = self.is_new(name, uuid)
        self.expect(is_possible, "new_root", name, uuid, generation)
        if is_possible:
            self.table[uuid] = Row(name, None, generation)

    @rule(name=st.sampled_from(NAMES), parent=KEYS, uuid=st.sampled_from(UUIDS), seen=GENERATIONS)
    def new_child(self, name: str, parent: str, uuid: str, seen: int | None) -> None:
        """Create a child."""
        above = self.find(parent)
        is_possible = above is not None and self.is_new(name, uuid)
        self.expect(is_possible, "new_child", name, parent, uuid, seen)
        if is_possible:
            self.table[uuid] = Row(name, above, seen)

    @rule(key=KEYS)
    def remove(self, key: str) -> None:
        """Remove a provider with its descendants."""
        uuid = self.find(key)
        self.expect(uuid is not None, "remove", key)
        for gone in list(self.below(uuid)) if uuid else ():
            del self.table[gone]

    @rule(key=KEYS, name=st.sampled_from(NAMES))
    def rename(self, key: str, name: str) -> None:
        """Rename a provider to a free name, or to its own."""
        uuid = self.find(key)
        holder = next(
            (holder_uuid for holder_uuid, row in self.table.items() if row.name == name), uuid
        )
        self.expect(uuid is not None and holder == uuid, "rename", key, name)
        if uuid is not None and holder == uuid:
            self.table[uuid].name = name

    @rule(key=KEYS, parent=st.none() | KEYS)
    def move(self, key: str, parent: str | None) -> None:
        """Move a provider, but never below itself."""
        uuid, above = self.find(key), self.find(parent)
        is_possible = (
            uuid is not None
            and (parent is None or above is not None)
            and (above is None or above not in self.below(uuid))
        )
        self.expect(is_possible, "move", key, parent)
        if is_possible and uuid is not None:
            self.table[uuid].parent = above

    @rule(key=KEYS, inventory=RECORDS, generation=GENERATIONS)
    def update_inventory(
        self, key: str, inventory: dict[str, dict[str, int]], generation: int | None
    ) -> None:
        """Fields that are left out stay; the result says whether anything changed."""
        uuid = self.find(key)
        changed = self.expect(uuid is not None, "update_inventory", key, inventory, generation)
        if uuid is not None:
            row = self.table[uuid]
            before = row.inventory
            row.inventory = {
                name: {**before.get(name, {}), **record} for name, record in inventory.items()
            }
            assert changed == (before != row.inventory)
            row.generation = row.generation if generation is None else generation

    @rule(
        what=st.sampled_from(["traits", "aggregates"]),
        how=st.sampled_from(["update", "add", "remove"]),
        key=KEYS,
        words=WORDS,
    )
    def edit_words(self, what: str, how: str, key: str, words: set[str]) -> None:
        """Traits and aggregates, as sets."""
        uuid = self.find(key)
        self.expect(
            uuid is not None, f"{how}_{what}", key, *([words] if how == "update" else words)
        )
        if uuid is not None:
            words_before = getattr(self.table[uuid], what)
            wanted = {"update": words, "add": words_before | words, "remove": words_before - words}[
                how
            ]
            setattr(self.table[uuid], what, {*wanted})

    @rule(how=st.sampled_from([copy.deepcopy, lambda tree: pickle.loads(pickle.dumps(tree))]))
    def copy(self, how: Any) -> None:
        """Continue with a copy; changes of the other do not affect it."""
        before, self.tree = self.tree, how(self.tree)
        for uuid in [root.uuid for root in before.roots]:
            before.remove(uuid)

    @invariant()
    def is_what_the_table_says(self) -> None:
        """Compare every provider, by name and uuid; parents come before their children."""
        listed = self.tree.get_provider_uuids()
        assert len(listed) == len(self.table) and {*listed} == {*self.table}
        for position, uuid in enumerate(listed):
            row, data = self.table[uuid], self.tree.data(uuid)
            assert data == self.tree.data(row.name)
            assert (data.name, data.parent_uuid, data.generation) == (
                row.name,
                row.parent,
                row.generation,
            )
            assert (data.inventory, data.traits, data.aggregates) == (
                row.inventory,
                row.traits,
                row.aggregates,
            )
            assert row.parent is None or row.parent in listed[:position]
            assert {*self.tree.get_provider_uuids(uuid)} == {*self.below(uuid)}
        for key in {*NAMES, *UUIDS} - {*self.table} - {row.name for row in self.table.values()}:
            assert not self.tree.exists(key)


TestForests = Forests.TestCase
TestForests.settings = settings(max_examples=scaled(75), stateful_step_count=40)
