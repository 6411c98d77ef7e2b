# SPDX-License-Identifier: Apache-2.0
"""What the report client caches and counts on, and changes in between: if another client wrote
since, an update is a conflict. And its methods for programs like nova.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from berth.hosts.errors import (
    BadProviderTree,
    Conflict,
    NameTaken,
    NotThere,
    Refused,
    TooOld,
    Unreachable,
)
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from berth.hosts.service import MOVING_VERSION, Answer, provider_path
from tests.hosts.hosts import (
    BEFORE,
    Answered,
    AsPlacement,
    Falling,
    Meanwhile,
    gpu_host,
    lost_connection,
    node,
    start,
    three_guests,
    tracker,
)
from tests.hosts.stage import Stage, consumer_uuid, drawn
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


@pytest.fixture
def guest(stage: Stage) -> Stage:
    """A service with a host with one guest."""
    stage.show("cn1  VCPU=16\ni1: cn1 VCPU=2")
    stage.name_aggregates("A")
    return stage


def look(client: ReportClient) -> ProviderTree:
    return client.get_provider_tree_and_ensure_root(None, CN1)


def write_the_same(client: ReportClient) -> None:
    """Another client writes the same data: only the generation changes."""
    path = f"/resource_providers/{CN1}/aggregates"
    client.service.put(path, client.service.get(path))


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("moves", [False, True])
def test_a_tree_that_was_read_before_somebody_wrote_is_refused(
    guest: Stage, edit: Callable[[ProviderTree], object], moves: bool
) -> None:
    """Even if the client has read the tree again since: the driver has not."""
    client = ReportClient(guest.transport)
    tree = look(client)
    allocations = client.get_allocations_for_provider_tree(None, "cn1") if moves else None
    edit(tree)
    write_the_same(client)
    look(client)
    client.get_allocations_for_provider_tree(None, "cn1")
    before = guest.picture()
    with pytest.raises(Conflict):
        client.update_from_provider_tree(None, tree, allocations)
    assert guest.picture() == before


def make_numa0(client: ReportClient, uuid: str, name: str) -> None:
    """Create it as another agent would."""
    body = {"uuid": uuid, "name": name, "parent_provider_uuid": CN1}
    client.service.post("/resource_providers", body)
    traits = {"traits": ["HW_CPU_X86_AVX2"], "resource_provider_generation": 0}
    client.service.put(f"/resource_providers/{uuid}/traits", traits)


def test_a_provider_that_was_made_meanwhile_counts_on_from_there(guest: Stage) -> None:
    """Another client created the same provider, and has added traits since."""
    client = ReportClient(guest.transport)
    tree = look(client)
    tree.new_child("cn1_numa0", "cn1")
    new = tree.data("cn1_numa0").uuid
    make_numa0(client, new, "cn1_numa0")
    client.update_from_provider_tree(None, tree)
    assert client.last_known_generation(new) == guest.generation_of("cn1_numa0") == 1


def test_a_uuid_that_another_provider_has_is_not_taken_over(guest: Stage) -> None:
    """It was created in between, under another name."""
    client = ReportClient(guest.transport)
    tree = look(client)
    tree.new_child("cn1_numa0", "cn1")
    make_numa0(client, tree.data("cn1_numa0").uuid, "cn1_numa1")
    with pytest.raises(NameTaken):
        client.update_from_provider_tree(None, tree)


def test_a_provider_that_was_made_elsewhere_meanwhile_is_not_taken_over(guest: Stage) -> None:
    """Under another parent; the client notices before it sends anything."""
    client = ReportClient(guest.transport)
    tree = look(client)
    tree.new_child("cn1_numa0", "cn1")
    body = {"uuid": tree.data("cn1_numa0").uuid, "name": "cn1_numa0"}
    client.service.post("/resource_providers", body)
    with pytest.raises(BadProviderTree, match="the name cn1_numa0 is that of provider"):
        client.update_from_provider_tree(None, tree)


def test_a_provider_that_went_meanwhile_is_gone(guest: Stage) -> None:
    """Whichever client deleted it."""
    client = ReportClient(guest.transport)
    tree = look(client)
    tree.new_child("cn1_numa0", "cn1")
    client.update_from_provider_tree(None, tree)
    tree = look(client)
    tree.remove("cn1_numa0")
    guest.remove("cn1_numa0")
    client.update_from_provider_tree(None, tree)
    assert "numa0" not in guest.picture()


def test_an_aggregate_that_is_shown_in_another_spelling_is_no_change(guest: Stage) -> None:
    """The client compares the aggregate in its usual spelling, and sends it as the service shows
    it."""
    client = ReportClient(guest.transport)
    uuid = aggregate_uuid("one that no other test makes")
    spelled = uuid.replace("-", "")
    path = f"/resource_providers/{CN1}/aggregates"
    client.service.put(
        path, {"aggregates": [spelled], "resource_provider_generation": guest.generation_of("cn1")}
    )
    before = guest.generation_of("cn1")
    tree = look(client)
    assert tree.in_aggregates("cn1", [uuid]) and tree.in_aggregates("cn1", [spelled])
    assert not tree.have_aggregates_changed("cn1", [spelled.upper()])
    tree.update_aggregates("cn1", [uuid])
    assert not client.update_from_provider_tree(None, tree)
    client.aggregate_add_host(None, uuid, rp_uuid=CN1)
    assert guest.generation_of("cn1") == before
    client.aggregate_add_host(None, aggregate_uuid("B"), rp_uuid=CN1)
    shown = client.service.get(path)["aggregates"]
    assert sorted(shown) == sorted([spelled, aggregate_uuid("B")])
    client.aggregate_remove_host(None, uuid.upper(), "cn1")
    assert client.service.get(path)["aggregates"] == [aggregate_uuid("B")]


@pytest.mark.parametrize(
    "before", ["cn1 VGPU=1, nfs DISK_GB=10", "cn1 VGPU=1", "cn1 VCPU=2 VGPU=1, nfs DISK_GB=20"]
)
def test_who_came_back_is_read_again(stage: Stage, before: str) -> None:
    """It was created again with its old generation, and holds something else, here or elsewhere."""
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


def test_two_trees_may_be_read_side_by_side(stage: Stage) -> None:
    """Another thread's tree may arrive while one is looked up."""
    stage.show("cn1  VCPU=16\ncn2  VCPU=16\ni1: cn1 VCPU=1")
    client = ReportClient(stage.transport)
    client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"))
    others = []

    class Slow(str):
        """A name; while it is compared, another thread reads its tree."""

        def __hash__(self) -> int:
            def read() -> None:
                client.get_provider_tree_and_ensure_root(None, provider_uuid("cn2"))

            other = Thread(target=read)
            others.append(other)
            other.start()
            other.join(0.2)
            return super().__hash__()

    with pytest.raises(ValueError, match="No such provider cn9"):
        client.get_allocations_for_provider_tree(None, Slow("cn9"))
    for other in others:
        # One that is late would create cn2 again after the test.
        other.join()
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


# --- As programs like nova use it (spec/compute-side.md 2.3 and 2.6) ------------------------------

WORLD = """
    cn1  VCPU=8  PCPU=4  MEMORY_MB=1024  COMPUTE_NODE
    nfs  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
    i1: cn1 VCPU=2 PCPU=1 MEMORY_MB=512
"""

A = aggregate_uuid("A")
NOBODY = aggregate_uuid("nobody")


@pytest.fixture
def client(stage: Stage) -> ReportClient:
    """A client that has read nothing yet."""
    stage.show(WORLD)
    return ReportClient(stage.transport)


def test_single_things_are_read(client: ReportClient) -> None:
    """A missing object is an error, never None."""
    found = client.get_provider_traits(None, CN1)
    assert found.traits == {"COMPUTE_NODE"} and found.generation > 0
    assert client.get_resource_provider_name(None, CN1) == "cn1"
    allocations = client.get_allocations_for_resource_provider(None, CN1).allocations
    assert allocations[consumer_uuid("i1")]["resources"] == {"VCPU": 2, "PCPU": 1, "MEMORY_MB": 512}
    assert set(client.get_allocations_for_consumer(None, consumer_uuid("i1"))) == {CN1}
    assert client.get_allocations_for_consumer(None, consumer_uuid("i9")) == {}
    for read in (
        client.get_provider_traits,
        client.get_resource_provider_name,
        client.get_allocations_for_resource_provider,
    ):
        with pytest.raises(NotThere):
            read(None, NOBODY)


def test_usage_is_counted_for_quotas(client: ReportClient) -> None:
    """VCPU and PCPU together; of one user, if given."""
    assert client.get_usages_counts_for_quota(None, "web") == {"project": {"cores": 3, "ram": 512}}
    assert client.get_usages_counts_for_quota(None, "web", user_id="bob") == {
        "project": {"cores": 3, "ram": 512},
        "user": {"cores": 0, "ram": 0},
    }


def test_one_provider_is_written(stage: Stage, client: ReportClient) -> None:
    """Its inventory, traits and aggregates; nothing is sent if nothing differs."""
    inventory = {"VCPU": {"total": 8}, "PCPU": {"total": 4}, "MEMORY_MB": {"total": 2048}}
    for _ in range(2):
        client.set_inventory_for_provider(None, CN1, inventory)
        client.set_traits_for_provider(None, CN1, ["CUSTOM_GOLD"])
        client.set_aggregates_for_provider(None, CN1, [A], use_cache=False)
        assert stage.picture() == drawn(
            WORLD.replace("1024  COMPUTE_NODE", "2048  CUSTOM_GOLD  @A")
        )
        writes = client.service.requests["PUT"]
    assert writes == 3, "the custom trait is made with the tree"
    with pytest.raises(BadProviderTree, match="cn1 would lose its MEMORY_MB"):
        client.set_inventory_for_provider(None, CN1, {"VCPU": {"total": 8}, "PCPU": {"total": 4}})
    with pytest.raises(NotThere):
        client.set_traits_for_provider(None, NOBODY, [])
    with pytest.raises(Conflict):
        client.set_traits_for_provider(None, CN1, ["COMPUTE_NODE"], generation=0)


def test_who_lost_a_race_wins_the_next(stage: Stage, client: ReportClient) -> None:
    """After a conflict the client reads the tree again, whichever client changed it. A claim is no
    conflict."""
    client.set_traits_for_provider(None, CN1, ["COMPUTE_NODE", "CUSTOM_GOLD"])
    stage.trait("cn1", "CUSTOM_RACK_7")
    wanted = ["COMPUTE_NODE", "CUSTOM_RACK_7"]
    with pytest.raises(Conflict):
        client.set_traits_for_provider(None, CN1, wanted)
    client.set_traits_for_provider(None, CN1, wanted)
    assert stage.picture() == drawn(WORLD.replace("COMPUTE_NODE", "COMPUTE_NODE  CUSTOM_RACK_7"))
    stage.name_consumers("i2")
    parts = {"allocations": {CN1: {"resources": {"VCPU": 1}}}}
    client.claim_resources(None, consumer_uuid("i2"), parts, "web", "alice")
    client.set_aggregates_for_provider(None, CN1, [A])
    assert "CUSTOM_RACK_7  @A" in stage.picture()


@pytest.mark.parametrize("is_told", [True, False])
def test_what_is_as_it_should_be_was_not_read_long_ago(stage: Stage, is_told: bool) -> None:
    """What another client removed is restored after an hour, or at once if the client is told."""
    stage.show(WORLD)
    now = [0.0]
    client = ReportClient(stage.transport, clock=lambda: now[0])
    client.set_traits_for_provider(None, CN1, ["COMPUTE_NODE"])
    ReportClient(stage.transport).set_traits_for_provider(None, CN1, [])
    if is_told:
        client.invalidate_resource_provider(CN1)
    else:
        now[0] = 3600.0
    client.set_traits_for_provider(None, CN1, ["COMPUTE_NODE"])
    assert stage.picture() == drawn(WORLD)


def test_what_may_have_been_done_is_looked_at(stage: Stage) -> None:
    """If the answer was lost, the client reads the provider again."""
    stage.show(WORLD)
    broken = Falling(stage.transport, at=0, is_done=True, fault=lost_connection())
    client = ReportClient(broken)
    with pytest.raises(Unreachable):
        client.set_traits_for_provider(None, CN1, [])
    client.set_traits_for_provider(None, CN1, ["COMPUTE_NODE"])
    assert stage.picture() == drawn(WORLD)


def test_a_host_is_put_into_an_aggregate(stage: Stage, client: ReportClient) -> None:
    """By name or uuid, and out of it again; its tree then includes the aggregate's sharing
    providers."""
    for _ in range(2):
        client.aggregate_add_host(None, A, host_name="cn1")
        assert stage.picture() == drawn(WORLD.replace("COMPUTE_NODE", "COMPUTE_NODE  @A"))
    tree = client.get_provider_subtree_and_ensure_root(None, CN1, name="cn1")
    assert tree.has_sharing_provider("DISK_GB")
    client.aggregate_remove_host(None, A, "cn1")
    assert stage.picture() == drawn(WORLD)
    tree = client.get_provider_subtree_and_ensure_root(None, CN1, name="cn1")
    assert not tree.has_sharing_provider("DISK_GB")
    client.aggregate_add_host(None, A, rp_uuid=CN1)
    with pytest.raises(ValueError, match="No such provider cn9"):
        client.aggregate_add_host(None, A, "cn9")
    with pytest.raises(ValueError, match="Give the host's name"):
        client.aggregate_add_host(None, A)


def test_nobody_loses_his_type(stage: Stage, client: ReportClient) -> None:
    """This client uses microversions without types; the existing type stays."""
    i1 = consumer_uuid("i1")
    client.add_resources_to_instance_allocation(None, i1, {CN1: {"VCPU": 1}})
    nfs = {"allocations": {provider_uuid("nfs"): {"resources": {"DISK_GB": 1}}}}
    client.claim_resources(None, i1, nfs, "web", "alice", "1.36", consumer_generation=None)
    assert stage.type_of("i1") == "INSTANCE"
    stage.hold("m1", "cn1 VCPU=1", kind="MIGRATION")
    client.move_allocations(None, i1, consumer_uuid("m1"))
    assert stage.type_of("m1") == "MIGRATION"
    client.delete_allocation_for_instance(None, consumer_uuid("m1"), "migration", force=True)
    assert stage.picture() == drawn(WORLD.replace("    i1: cn1 VCPU=2 PCPU=1 MEMORY_MB=512\n", ""))


def test_a_reshape_keeps_types(stage: Stage) -> None:
    """For all consumers whose allocations move."""
    stage.show(BEFORE)
    stage.hold("i3", "cn1 VCPU=2 MEMORY_MB=2048 VGPU=1", kind="MIGRATION")
    start(ReportClient(stage.transport), three_guests())
    assert [stage.type_of(name) for name in ("i1", "i3")] == ["INSTANCE", "MIGRATION"]


class Old:
    """A service whose newest microversion is 1.29."""

    def request(self, url: str, method: str, **options: Any) -> Answer:
        assert options["microversion"] == "1.30"
        error = {"detail": "Unacceptable version header: 1.30", "max_version": "1.29"}
        return Answered(406, json.dumps({"errors": [{**error, "min_version": "1.0"}]}))


def test_a_service_that_is_too_old_is_named_as_that() -> None:
    """Every call fails with that message, and nothing is written."""
    client = ReportClient(Old())
    with pytest.raises(
        TooOld, match=r"does not speak microversion 1\.30, only up to 1\.29; upgrade it"
    ):
        start(client, three_guests())
    assert client.service.requests == {"GET": 1}
