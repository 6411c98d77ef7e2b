# SPDX-License-Identifier: Apache-2.0
"""`ProviderTree`: the object that a driver edits (spec/compute-side.md 1). `Forests` compares it
with a table: after any operations, both have the same content.
"""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from berth.hosts import ProviderTree
from tests.effort import scaled

CN1 = "00000000-0000-4000-8000-000000000001"
CN2 = "00000000-0000-4000-8000-000000000002"
NFS = "00000000-0000-4000-8000-000000000003"


@pytest.fixture
def tree() -> ProviderTree:
    """Two hosts, one of them with NUMA nodes and a GPU, and shared storage."""
    made = ProviderTree()
    made.new_root("cn1", CN1, generation=5)
    made.new_root("cn2", CN2)
    made.new_root("nfs", NFS)
    for name in ("numa0", "numa1"):
        made.new_child(name, "cn1")
    made.new_child("gpu", "numa1")
    made.update_inventory("cn1", {"VCPU": {"total": 8, "reserved": 2}})
    return made


def names(tree: ProviderTree, uuids: list[str]) -> list[str]:
    return [tree.data(uuid).name for uuid in uuids]


def test_a_child_made_again_is_the_same(tree: ProviderTree) -> None:
    """The root and the name determine its uuid, wherever in the tree it is created."""
    before = tree.data("gpu").uuid
    tree.remove("gpu")
    assert tree.new_child("gpu", "cn1") == before
    assert tree.new_child("gpu2", "cn1") != before


def test_what_is_copied_is_not_held_on_to(tree: ProviderTree) -> None:
    """Neither arguments nor results are shared with the tree."""
    record = {"total": 8}
    tree.update_inventory("numa0", {"VCPU": record})
    record["total"] = 9
    tree.data("numa0").inventory["VCPU"]["total"] = 10
    assert tree.data("numa0").inventory == {"VCPU": {"total": 8}}


def test_traits_and_aggregates_are_sets(tree: ProviderTree) -> None:
    """From any iterable, in any order."""
    assert tree.update_traits("cn1", ["B", "A"])
    assert not tree.have_traits_changed("cn1", iter(("A", "B")))
    tree.add_traits("cn1", "C")
    tree.remove_traits("cn1", "A", "Z")
    assert tree.data("cn1").traits == {"B", "C"}
    assert tree.has_traits("cn1", []) and not tree.has_traits("cn1", ["A"])
    tree.add_aggregates("cn1", "x", "y")
    tree.remove_aggregates("cn1", "y")
    assert tree.in_aggregates("cn1", ["x"]) and tree.have_aggregates_changed("cn1", [])
    assert tree.update_resources("cn1", {"VGPU": {"84"}})
    assert not tree.update_resources("cn1", {"VGPU": {"84"}})


def test_a_subtree_is_a_copy_that_says_what_it_is_of(tree: ProviderTree) -> None:
    """Only of a root."""
    part = tree.subtree("cn1")
    assert part.scope_rp_uuid == CN1
    part.remove("numa1")
    assert tree.exists("gpu") and not part.exists("gpu")
    with pytest.raises(ValueError, match="gpu is not a root"):
        tree.subtree("gpu")


def test_what_is_listed_replaces_what_is_there(tree: ProviderTree) -> None:
    """With their descendants; what is neither listed nor below a listed provider stays."""
    tree.populate_from_iterable(
        [
            {"uuid": tree.data("gpu").uuid, "name": "gpu0", "parent_provider_uuid": CN1},
            {"uuid": CN1, "name": "cn1", "generation": 9, "parent_provider_uuid": None},
        ]
    )
    assert names(tree, tree.get_provider_uuids()) == ["cn2", "nfs", "cn1", "gpu0"]
    assert tree.data("cn1").generation == 9 and not tree.has_inventory("cn1")


@pytest.mark.parametrize(
    "listed",
    [
        [{"uuid": "a", "name": "a", "parent_provider_uuid": "nobody"}],
        [
            {"uuid": "a", "name": "a", "parent_provider_uuid": "b"},
            {"uuid": "b", "name": "b", "parent_provider_uuid": "a"},
        ],
        [{"uuid": CN1, "name": "cn1"}, {"uuid": "a", "name": "cn2"}],
    ],
    ids=["an unknown parent", "a circle", "a name twice"],
)
def test_a_bad_list_changes_nothing(tree: ProviderTree, listed: list[dict[str, str]]) -> None:
    """It is applied completely or not at all."""
    before = pickle.dumps(tree)
    with pytest.raises(ValueError):
        tree.populate_from_iterable(listed)
    assert pickle.dumps(tree) == before
    tree.populate_from_iterable(None)
    assert pickle.dumps(tree) == before


def test_an_error_undoes_a_transaction(tree: ProviderTree) -> None:
    """All of its changes."""
    with pytest.raises(RuntimeError), tree.transaction():
        tree.remove("cn1")
        raise RuntimeError
    assert tree.exists("gpu")


def test_other_threads_see_none_or_all_of_a_transaction(tree: ProviderTree) -> None:
    """A reader waits until the writer has finished."""
    entered, seen = threading.Event(), []

    def read() -> None:
        entered.wait()
        seen.append(tree.exists("b"))

    reader = threading.Thread(target=read)
    reader.start()
    with tree.transaction():
        tree.new_child("a", "cn1")
        entered.set()
        reader.join(0.05)
        assert not seen
        tree.new_child("b", "cn1")
    reader.join()
    assert seen == [True]


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
        is_possible = self.is_new(name, uuid)
        self.expect(is_possible, "new_root", name, uuid, generation)
        if is_possible:
            self.table[uuid] = Row(name, None, generation)

    @rule(name=st.sampled_from(NAMES), parent=KEYS, uuid=st.sampled_from(UUIDS), seen=GENERATIONS)
    def new_child(self, name: str, parent: str, uuid: str, seen: int | None) -> None:
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
        would = self.expect(uuid is not None, "has_inventory_changed", key, inventory)
        changed = self.expect(uuid is not None, "update_inventory", key, inventory, generation)
        assert changed == would
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
        generation=GENERATIONS,
    )
    def edit_words(
        self, what: str, how: str, key: str, words: set[str], generation: int | None
    ) -> None:
        """Traits and aggregates, as sets; a generation is noted even if nothing changes."""
        uuid = self.find(key)
        arguments = (words, generation) if how == "update" else words
        self.expect(uuid is not None, f"{how}_{what}", key, *arguments)
        if uuid is not None:
            words_before = getattr(self.table[uuid], what)
            wanted = {"update": words, "add": words_before | words, "remove": words_before - words}[
                how
            ]
            setattr(self.table[uuid], what, {*wanted})
            if how == "update" and generation is not None:
                self.table[uuid].generation = generation

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
            root = self.tree.get_root_uuid(uuid)
            assert self.table[root].parent is None and uuid in {*self.below(root)}
            assert {*self.tree.get_provider_uuids_in_tree(uuid)} == {*self.below(root)}
        for key in {*NAMES, *UUIDS} - {*self.table} - {row.name for row in self.table.values()}:
            assert not self.tree.exists(key)


TestForests = Forests.TestCase
TestForests.settings = settings(max_examples=scaled(75), stateful_step_count=40)
