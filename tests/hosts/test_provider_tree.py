# SPDX-License-Identifier: Apache-2.0
"""`ProviderTree`: the object that a driver edits (spec/compute-side.md 1)."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.hosts import ProviderTree

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
    """The names of providers."""
    return [tree.data(uuid).name for uuid in uuids]


def test_parents_come_before_their_children(tree: ProviderTree) -> None:
    """Of the whole forest, of a subtree, and of the tree of a provider."""
    assert names(tree, tree.get_provider_uuids()) == [
        "cn1",
        "numa0",
        "numa1",
        "gpu",
        "cn2",
        "nfs",
    ]
    assert names(tree, tree.get_provider_uuids("numa1")) == ["numa1", "gpu"]
    assert names(tree, tree.get_provider_uuids_in_tree("gpu")) == ["cn1", "numa0", "numa1", "gpu"]
    assert [root.name for root in tree.roots] == ["cn1", "cn2", "nfs"]
    assert tree.get_root_uuid("gpu") == CN1


def test_a_name_and_a_uuid_will_both_do(tree: ProviderTree) -> None:
    """Anything else is a ValueError, except for `exists`."""
    assert tree.data("cn1") == tree.data(CN1)
    assert tree.exists("gpu") and not tree.exists("fpga")
    with pytest.raises(ValueError, match="No such provider fpga"):
        tree.add_traits("fpga")


def test_uuids_and_names_are_unique_in_the_forest(tree: ProviderTree) -> None:
    """As in the service."""
    for make in (
        lambda: tree.new_root("cn9", CN1),
        lambda: tree.new_root("gpu", "00000000-0000-4000-8000-000000000009"),
        lambda: tree.new_child("cn2", "cn1"),
        lambda: tree.rename("gpu", "numa0"),
    ):
        with pytest.raises(ValueError, match=r"already exists|is that of provider"):
            make()
    with pytest.raises(ValueError, match="cn9 needs a uuid"):
        tree.new_root("cn9", None)  # type: ignore[arg-type]
    assert len(tree.get_provider_uuids()) == 6


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


@pytest.mark.parametrize(
    ("record", "changed", "then"),
    [
        ({"total": 8}, False, {"total": 8, "reserved": 2}),
        ({"total": 9}, True, {"total": 9, "reserved": 2}),
        ({"total": 8, "reserved": 0}, True, {"total": 8, "reserved": 0}),
        ({"total": 8, "max_unit": 4}, True, {"total": 8, "reserved": 2, "max_unit": 4}),
    ],
)
def test_a_field_that_is_left_out_stays(
    tree: ProviderTree, record: dict[str, int], changed: bool, then: dict[str, int]
) -> None:
    """An operator's `reserved` survives a driver that does not give it."""
    assert tree.has_inventory_changed("cn1", {"VCPU": record}) is changed
    assert tree.update_inventory("cn1", {"VCPU": record}) is changed
    assert tree.data("cn1").inventory == {"VCPU": then}


def test_a_class_that_is_left_out_goes(tree: ProviderTree) -> None:
    """An inventory is replaced as a whole."""
    assert tree.update_inventory("cn1", {"MEMORY_MB": {"total": 1}})
    assert tree.data("cn1").inventory == {"MEMORY_MB": {"total": 1}}
    assert tree.update_inventory("cn1", {})
    assert not tree.has_inventory("cn1")


def test_a_generation_is_noted_even_where_nothing_changes(tree: ProviderTree) -> None:
    """Without one, the tree keeps the old generation."""
    assert not tree.update_traits("cn1", [], generation=7)
    assert tree.data("cn1").generation == 7
    tree.update_aggregates("cn1", ["a"])
    assert tree.data("cn1").generation == 7


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


def test_who_shares_is_found(tree: ProviderTree) -> None:
    """By the trait and by the inventory."""
    tree.update_inventory("nfs", {"DISK_GB": {"total": 100}})
    assert not tree.has_sharing_provider("DISK_GB")
    tree.add_traits("nfs", "MISC_SHARES_VIA_AGGREGATE")
    assert tree.has_sharing_provider("DISK_GB") and not tree.has_sharing_provider("VCPU")


def test_a_provider_moves_with_all_below_it(tree: ProviderTree) -> None:
    """Below another parent, or to the top; never below itself."""
    tree.move("numa1", "cn2")
    assert names(tree, tree.get_provider_uuids("cn2")) == ["cn2", "numa1", "gpu"]
    tree.move("numa1", None)
    assert "numa1" in [root.name for root in tree.roots]
    with pytest.raises(ValueError, match="cannot be moved below gpu"):
        tree.move("numa1", "gpu")


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


def test_copies_are_apart(tree: ProviderTree) -> None:
    """By copy and by pickle, each with a lock of its own."""
    for twin in (copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
        twin.remove("cn1")
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


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 5)), max_size=40))
def test_moving_about_keeps_a_forest(moves: list[tuple[int, int]]) -> None:
    """After any moves, every provider occurs once, below its parent and above its children."""
    forest = ProviderTree()
    for number in range(6):
        forest.new_root(f"p{number}", f"00000000-0000-4000-8000-00000000000{number}")
    for child, parent in moves:
        try:
            forest.move(f"p{child}", None if parent < 0 else f"p{parent}")
        except ValueError:
            assert f"p{parent}" in names(forest, forest.get_provider_uuids(f"p{child}"))
    listed = forest.get_provider_uuids()
    assert sorted(names(forest, listed)) == [f"p{number}" for number in range(6)]
    for uuid in listed:
        above = forest.data(uuid).parent_uuid
        assert above is None or listed.index(above) < listed.index(uuid)
