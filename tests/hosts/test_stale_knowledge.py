# SPDX-License-Identifier: Apache-2.0
"""What a client caches from the service, and changes in between."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import pytest

from berth.hosts.errors import NotThere, Refused
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from berth.hosts.service import MOVING_VERSION, provider_path
from tests.hosts.hosts import AsPlacement, gpu_host, node, tracker
from tests.hosts.stage import Stage, consumer_uuid, drawn
from tests.hosts.test_audit import Meanwhile
from tests.worlds import provider_uuid

SERVICES = ["berth"]


def test_who_came_back_is_read_again(stage: Stage) -> None:
    """A consumer that was deleted and created again has its old generation, but other
    allocations."""
    stage.show("cn1  VCPU=16  VGPU=8\ni1: cn1 VCPU=2 VGPU=1")
    client = ReportClient(stage.transport)
    client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"))
    client.get_allocations_for_provider_tree(None, "cn1")
    stage.hold("i1", "")
    stage.hold("i1", "cn1 VCPU=4 VGPU=1")
    tracker(client, gpu_host(i1={"84": 1})).report(node(), startup=True)
    assert "i1: cn1 VCPU=4, cn1_pci_84 VGPU=1" in stage.picture()


@pytest.mark.parametrize("before", ["cn1 VGPU=1, nfs DISK_GB=10", "cn1 VGPU=1"])
def test_what_somebody_holds_elsewhere_is_not_remembered(stage: Stage, before: str) -> None:
    """It was created again with its old generation and the same amounts on the host."""
    stage.show(f"cn1  VCPU=16  VGPU=8\nnfs  DISK_GB=100\ni1: {before}")
    client = ReportClient(stage.transport)
    client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"))
    client.get_allocations_for_provider_tree(None, "cn1")
    stage.hold("i1", "")
    stage.hold("i1", "cn1 VGPU=1, nfs DISK_GB=20")
    tracker(client, gpu_host(i1={"84": 1})).report(node(), startup=True)
    assert "i1: cn1_pci_84 VGPU=1, nfs DISK_GB=20" in stage.picture()


def test_what_changes_between_the_requests_of_one_reading_is_seen(stage: Stage) -> None:
    """The inventory of a provider, its aggregates and its traits are three requests."""
    stage.show("cn1  VCPU=8")
    uuid = provider_uuid("cn1")
    meanwhile = Meanwhile(
        AsPlacement(stage.transport),
        f"GET {provider_path(uuid, 'traits')}",
        lambda: stage.reserve("cn1", "VCPU", 2),
    )
    client = ReportClient(meanwhile)
    assert [
        client.get_provider_tree_and_ensure_root(None, uuid)
        .data("cn1")
        .inventory["VCPU"]["reserved"]
        for _ in range(2)
    ] == [0, 2]


@pytest.mark.parametrize(
    ("path", "add"),
    [
        ("/traits/CUSTOM_OLD", lambda tree: tree.add_traits("cn1", "CUSTOM_OLD")),
        (
            "/resource_classes/CUSTOM_OLD",
            lambda tree: tree.update_inventory("cn1", {"CUSTOM_OLD": {"total": 1}}),
        ),
    ],
)
def test_a_name_that_was_cleaned_up_is_made_again(
    stage: Stage, path: str, add: Callable[[ProviderTree], None]
) -> None:
    """By the next attempt: an operator may delete custom names that nothing uses."""
    client = ReportClient(AsPlacement(stage.transport))
    for has_it in True, False:
        tree = client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"), "cn1")
        tree.update_inventory("cn1", {})
        tree.update_traits("cn1", ())
        if has_it:
            add(tree)
        client.update_from_provider_tree(None, tree)
    client.service.delete(path)
    tree = client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"))
    add(tree)
    with pytest.raises(Refused):
        client.update_from_provider_tree(None, tree)
    tree = client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"))
    add(tree)
    client.update_from_provider_tree(None, tree)
    assert "CUSTOM_OLD" in stage.picture()


def test_an_older_copy_of_a_tree_deletes_nothing_that_it_never_had(stage: Stage) -> None:
    """A child that was created after the copy is not one that the driver removed."""
    stage.show("cn1  VCPU=16")
    client = ReportClient(stage.transport)
    tree = client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"))
    tree.new_child("cn1_mine", "cn1")
    late = {"name": "late", "parent_provider_uuid": provider_uuid("cn1")}
    client.service.post("/resource_providers", {**late, "uuid": provider_uuid("late")})
    client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"))
    client.update_from_provider_tree(None, tree)
    assert stage.picture() == drawn("cn1  VCPU=16\n  cn1_mine\n  late")
    tree.remove("cn1_mine")
    client.update_from_provider_tree(None, tree)
    assert stage.picture() == drawn("cn1  VCPU=16\n  late")


def test_a_provider_that_goes_while_the_tree_takes_its_shape(stage: Stage) -> None:
    """Scenario G3: the reshape does not fail; the tree is read again."""
    stage.show("cn1  VCPU=16  VGPU=8\n  cn1_old  MEMORY_MB=64\ni1: cn1 VGPU=1")
    client = ReportClient(stage.transport)
    tree = client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"))
    allocations = client.get_allocations_for_provider_tree(None, "cn1")
    gpu_host(i1={"84": 1}).update_provider_tree(tree, "cn1", allocations)
    tree.update_inventory("cn1_old", {"MEMORY_MB": {"total": 32}})
    stage.remove("cn1_old")
    with pytest.raises(NotThere):
        client.update_from_provider_tree(None, tree, allocations)


def test_two_trees_may_be_read_side_by_side(stage: Stage) -> None:
    """Another thread's tree may arrive while one is looked up."""
    stage.show("cn1  VCPU=16\ncn2  VCPU=16\ni1: cn1 VCPU=1")
    client = ReportClient(stage.transport)
    client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"))

    class Slow(str):
        """A name; while it is compared, another thread reads its tree."""

        def __hash__(self) -> int:
            def read() -> None:
                client.get_provider_tree_and_ensure_root(None, provider_uuid("cn2"))

            other = Thread(target=read)
            other.start()
            other.join(0.2)
            return super().__hash__()

    with pytest.raises(ValueError, match="No such provider cn9"):
        client.get_allocations_for_provider_tree(None, Slow("cn9"))
    assert list(client.get_allocations_for_provider_tree(None, "cn1")) == [consumer_uuid("i1")]


@pytest.mark.parametrize("parents", [["rack1"], ["rack1", None]])
def test_a_host_that_was_moved_takes_its_shape(stage: Stage, parents: list[str | None]) -> None:
    """Below a rack, and to the top again, while its agent runs."""
    stage.show("cn1  VCPU=16  VGPU=8\nrack1\ni1: cn1 VCPU=2 VGPU=1")
    client = ReportClient(stage.transport)
    for parent in parents:
        client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"))
        client.get_allocations_for_provider_tree(None, "cn1")
        moved = {"name": "cn1", "parent_provider_uuid": parent and provider_uuid(parent)}
        client.service.put(provider_path(provider_uuid("cn1")), moved, version=MOVING_VERSION)
    tracker(client, gpu_host(i1={"84": 1})).report(node(), startup=True)
    assert "i1: cn1 VCPU=2, cn1_pci_84 VGPU=1" in stage.picture()


def test_every_node_of_a_process_learns_what_is_shared(stage: Stage) -> None:
    """Each of them after five minutes, not only the first."""
    stage.show("nfs  MISC_SHARES_VIA_AGGREGATE  @A\ncn1  VCPU=4  @A\ncn2  VCPU=4  @A")
    now = [0.0]
    client = ReportClient(stage.transport, clock=lambda: now[0])

    def know_the_disk() -> list[bool]:
        trees = [
            client.get_provider_tree_and_ensure_root(None, provider_uuid(name))
            for name in ("cn1", "cn2")
        ]
        return [tree.has_sharing_provider("DISK_GB") for tree in trees]

    assert know_the_disk() == [False, False]
    ReportClient(stage.transport).set_inventory_for_provider(
        None, provider_uuid("nfs"), {"DISK_GB": {"total": 100}}
    )
    now[0] = 60.0
    assert know_the_disk() == [False, False]
    now[0] = 300.0
    assert know_the_disk() == [True, True]
