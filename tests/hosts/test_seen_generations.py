# SPDX-License-Identifier: Apache-2.0
"""An update uses the generations that the driver saw: if another client wrote since, it is a
conflict.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from berth.hosts.errors import BadProviderTree, Conflict, NameTaken
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from tests.hosts.stage import Stage
from tests.worlds import aggregate_uuid, provider_uuid

CN1 = provider_uuid("cn1")

#: What a driver may want of a provider.
EDITS: dict[str, Callable[[ProviderTree], object]] = {
    "inventory": lambda tree: tree.update_inventory("cn1", {"VCPU": {"total": 8}}),
    "traits": lambda tree: tree.add_traits("cn1", "HW_CPU_X86_AVX2"),
    "aggregates": lambda tree: tree.add_aggregates("cn1", aggregate_uuid("A")),
    "all": lambda tree: [edit(tree) for name, edit in EDITS.items() if name != "all"],
}


SERVICES = ["berth"]


@pytest.fixture(autouse=True)
def _world(stage: Stage) -> None:
    """A host with one guest."""
    stage.show("cn1  VCPU=16\ni1: cn1 VCPU=2")
    stage.name_aggregates("A")


def look(client: ReportClient) -> ProviderTree:
    """Read the host's tree."""
    return client.get_provider_tree_and_ensure_root(None, CN1)


def write_the_same(client: ReportClient) -> None:
    """Another client writes the same data: only the generation changes."""
    path = f"/resource_providers/{CN1}/aggregates"
    client.service.put(path, client.service.get(path))


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("moves", [False, True])
def test_a_tree_that_was_read_before_somebody_wrote_is_refused(
    stage: Stage, edit: Callable[[ProviderTree], object], moves: bool
) -> None:
    """Even if the client has read the tree again since: the driver has not."""
    client = ReportClient(stage.transport)
    tree = look(client)
    allocations = client.get_allocations_for_provider_tree(None, "cn1") if moves else None
    edit(tree)
    write_the_same(client)
    look(client)
    client.get_allocations_for_provider_tree(None, "cn1")
    before = stage.picture()
    with pytest.raises(Conflict):
        client.update_from_provider_tree(None, tree, allocations)
    assert stage.picture() == before


def make_numa0(client: ReportClient, uuid: str, name: str) -> None:
    """Create it as another agent would."""
    body = {"uuid": uuid, "name": name, "parent_provider_uuid": CN1}
    client.service.post("/resource_providers", body)
    traits = {"traits": ["HW_CPU_X86_AVX2"], "resource_provider_generation": 0}
    client.service.put(f"/resource_providers/{uuid}/traits", traits)


def test_a_provider_that_was_made_meanwhile_counts_on_from_there(stage: Stage) -> None:
    """Another client created the same provider, and has added traits since."""
    client = ReportClient(stage.transport)
    tree = look(client)
    tree.new_child("cn1_numa0", "cn1")
    new = tree.data("cn1_numa0").uuid
    make_numa0(client, new, "cn1_numa0")
    client.update_from_provider_tree(None, tree)
    assert client.last_known_generation(new) == stage.generation_of("cn1_numa0") == 1


def test_a_uuid_that_another_provider_has_is_not_taken_over(stage: Stage) -> None:
    """It was created in between, under another name."""
    client = ReportClient(stage.transport)
    tree = look(client)
    tree.new_child("cn1_numa0", "cn1")
    make_numa0(client, tree.data("cn1_numa0").uuid, "cn1_numa1")
    with pytest.raises(NameTaken):
        client.update_from_provider_tree(None, tree)


def test_a_provider_that_was_made_elsewhere_meanwhile_is_not_taken_over(stage: Stage) -> None:
    """Under another parent; the client notices before it sends anything."""
    client = ReportClient(stage.transport)
    tree = look(client)
    tree.new_child("cn1_numa0", "cn1")
    body = {"uuid": tree.data("cn1_numa0").uuid, "name": "cn1_numa0"}
    client.service.post("/resource_providers", body)
    with pytest.raises(BadProviderTree, match="the name cn1_numa0 is that of provider"):
        client.update_from_provider_tree(None, tree)


def test_a_provider_that_went_meanwhile_is_gone(stage: Stage) -> None:
    """Whichever client deleted it."""
    client = ReportClient(stage.transport)
    tree = look(client)
    tree.new_child("cn1_numa0", "cn1")
    client.update_from_provider_tree(None, tree)
    tree = look(client)
    tree.remove("cn1_numa0")
    stage.remove("cn1_numa0")
    client.update_from_provider_tree(None, tree)
    assert "numa0" not in stage.picture()


@pytest.mark.parametrize("generation", [None, 0])
def test_a_caller_may_say_which_generation_it_saw(stage: Stage, generation: int | None) -> None:
    """None: the generation that the client read."""
    client = ReportClient(stage.transport)
    look(client)
    if generation is None:
        client.set_traits_for_provider(None, CN1, ["HW_CPU_X86_AVX2"], generation)
        client.set_aggregates_for_provider(None, CN1, [aggregate_uuid("A")], generation=generation)
        return
    with pytest.raises(Conflict):
        client.set_traits_for_provider(None, CN1, ["HW_CPU_X86_AVX2"], generation)
    with pytest.raises(Conflict):
        client.set_aggregates_for_provider(None, CN1, [aggregate_uuid("A")], generation=generation)


def test_an_aggregate_that_is_shown_in_another_spelling_is_no_change(stage: Stage) -> None:
    """The client compares the aggregate in its usual spelling, and sends it as the service shows
    it."""
    client = ReportClient(stage.transport)
    uuid = aggregate_uuid("one that no other test makes")
    spelled = uuid.replace("-", "")
    path = f"/resource_providers/{CN1}/aggregates"
    client.service.put(
        path, {"aggregates": [spelled], "resource_provider_generation": stage.generation_of("cn1")}
    )
    before = stage.generation_of("cn1")
    tree = look(client)
    assert tree.in_aggregates("cn1", [uuid]) and tree.in_aggregates("cn1", [spelled])
    assert not tree.have_aggregates_changed("cn1", [spelled.upper()])
    tree.update_aggregates("cn1", [uuid])
    assert not client.update_from_provider_tree(None, tree)
    client.aggregate_add_host(None, uuid, rp_uuid=CN1)
    assert stage.generation_of("cn1") == before
    client.aggregate_add_host(None, aggregate_uuid("B"), rp_uuid=CN1)
    shown = client.service.get(path)["aggregates"]
    assert sorted(shown) == sorted([spelled, aggregate_uuid("B")])
    client.aggregate_remove_host(None, uuid.upper(), "cn1")
    assert client.service.get(path)["aggregates"] == [aggregate_uuid("B")]
