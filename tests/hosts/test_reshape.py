# SPDX-License-Identifier: Apache-2.0
"""Hosts that change the structure of their trees: scenarios of spec/compute-side.md 8."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from berth.hosts import BadProviderTree, Conflict, ReshapeFailed, ReshapeNeeded
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from tests.hosts.drivers import GPUHost
from tests.hosts.hosts import AFTER, BEFORE, gpu_host, node, start, three_guests, tracker
from tests.hosts.stage import Stage, consumer_uuid, drawn
from tests.worlds import aggregate_uuid, provider_uuid


def test_vgpus_move_to_their_gpus(stage: Stage) -> None:
    """Scenario A: all inventories and allocations in one request; a second start changes
    nothing."""
    stage.show(BEFORE)
    client = ReportClient(stage.transport)
    assert start(client, three_guests()).is_reshape
    assert stage.picture() == drawn(AFTER)
    assert not start(client, three_guests())
    assert not start(ReportClient(stage.transport), three_guests())
    assert stage.picture() == drawn(AFTER)


def test_a_guest_on_two_gpus_holds_of_both(stage: Stage) -> None:
    """Scenario A1."""
    stage.show(BEFORE)
    host = gpu_host(i1={"84": 1}, i2={"84": 1, "85": 1}, i3={"85": 1})
    start(ReportClient(stage.transport), host)
    assert "i2: cn1 MEMORY_MB=2048 VCPU=2, cn1_pci_84 VGPU=1, cn1_pci_85 VGPU=1" in stage.picture()


def test_amounts_neither_grow_nor_shrink(stage: Stage) -> None:
    """Scenario A2: the driver's error says what differs; nothing is sent, no child remains."""
    stage.show(BEFORE)
    host = gpu_host(i1={"84": 1, "85": 1}, i2={"84": 1}, i3={"85": 1})
    with pytest.raises(BadProviderTree) as refused:
        start(ReportClient(stage.transport), host)
    assert set(refused.value.faults) == {
        f"consumer {consumer_uuid('i1')} holds 1 VGPU and would have 2",
        f"consumer {consumer_uuid('i2')} holds 2 VGPU and would have 1",
    }
    assert stage.picture() == drawn(BEFORE)


def test_a_guest_without_a_device_is_named(stage: Stage) -> None:
    """Scenario A3: before anything is sent."""
    stage.show(BEFORE)
    host = gpu_host(i1={"84": 1}, i2={"84": 2})
    with pytest.raises(ReshapeFailed, match=consumer_uuid("i3")):
        start(ReportClient(stage.transport), host)
    assert stage.picture() == drawn(BEFORE)


def test_a_gpu_that_is_too_small_is_told_before_anything_is_sent(stage: Stage) -> None:
    """The error names the consumers, the capacity and the amount needed."""
    stage.show(BEFORE)
    host = GPUHost({"84": 2, "85": 4}, three_guests().guests)
    with pytest.raises(BadProviderTree, match="cn1_pci_84 has 2 VGPU, but 3 are needed"):
        start(ReportClient(stage.transport), host)
    assert stage.picture() == drawn(BEFORE)


@dataclass
class StandardClass:
    """A host whose custom class has become a standard one, on a provider given by the test."""

    target: str = "cn1"

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Rename CUSTOM_PGPU to PGPU."""
        root = provider_tree.data(nodename)
        if "CUSTOM_PGPU" not in root.inventory:
            return
        if allocations is None:
            raise ReshapeNeeded
        if not provider_tree.exists(self.target):
            provider_tree.new_child(self.target, nodename)
        left = {name: record for name, record in root.inventory.items() if name != "CUSTOM_PGPU"}
        provider_tree.update_inventory(nodename, left)
        target = provider_tree.data(self.target)
        record = root.inventory["CUSTOM_PGPU"]
        provider_tree.update_inventory(self.target, {**target.inventory, "PGPU": record})
        for body in allocations.values():
            parts = body["allocations"]
            amount = parts[root.uuid]["resources"].pop("CUSTOM_PGPU")
            part = parts.setdefault(target.uuid, {"resources": {}})
            part["resources"]["PGPU"] = amount


def test_a_custom_class_becomes_standard(stage: Stage) -> None:
    """Scenario C: inventory and allocations change their class in one request."""
    stage.show(
        """
        cn1  VCPU=8  CUSTOM_PGPU=2
        i1: cn1 VCPU=1 CUSTOM_PGPU=1
        i2: cn1 VCPU=1 CUSTOM_PGPU=1
        """
    )
    start(ReportClient(stage.transport), StandardClass())
    assert stage.picture() == drawn(
        """
        cn1  VCPU=8  PGPU=2
        i1: cn1 VCPU=1 PGPU=1
        i2: cn1 VCPU=1 PGPU=1
        """
    )
    assert not start(ReportClient(stage.transport), StandardClass())


def test_what_has_become_empty_is_left_out(stage: Stage) -> None:
    """Scenario C2: the service refuses an allocation on a provider without amounts."""
    stage.show(
        """
        cn1  CUSTOM_PGPU=2
        i1: cn1 CUSTOM_PGPU=1
        """
    )
    start(ReportClient(stage.transport), StandardClass(target="g"))
    assert stage.picture() == drawn(
        """
        cn1
          g  PGPU=2
        i1: g PGPU=1
        """
    )
    assert not start(ReportClient(stage.transport), StandardClass(target="g"))


def test_a_migration_moves_like_the_guest_it_stands_for(stage: Stage) -> None:
    """Scenario D: if the host knows whose devices a migration has."""
    elsewhere = """
        cn2  VCPU=16  MEMORY_MB=32768
        i3: cn2 VCPU=2 MEMORY_MB=2048
    """
    stage.show(
        """
        cn1  VCPU=16  MEMORY_MB=32768  VGPU=8
        m3: cn1 VCPU=2 MEMORY_MB=2048 VGPU=1
        """
        + elsewhere
    )
    before = stage.generation_of("cn2")
    plan = start(ReportClient(stage.transport), gpu_host(m3={"85": 1}))
    assert plan.allocations is not None and list(plan.allocations) == [consumer_uuid("m3")]
    assert stage.generation_of("cn2") == before
    assert stage.picture() == drawn(
        """
        cn1  VCPU=16  MEMORY_MB=32768
          cn1_pci_84  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
          cn1_pci_85  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
        m3: cn1 VCPU=2 MEMORY_MB=2048, cn1_pci_85 VGPU=1
        """
        + elsewhere
    )
    assert not start(ReportClient(stage.transport), gpu_host(m3={"85": 1}))


def test_an_evacuated_guest_keeps_what_it_holds_elsewhere(stage: Stage) -> None:
    """Scenario D2: only the part on this host moves."""
    stage.show(
        """
        cn1  VCPU=16  VGPU=8
        cn2  VCPU=16  VGPU=4
        i3: cn1 VCPU=2 VGPU=1, cn2 VCPU=2 VGPU=1
        """
    )
    start(ReportClient(stage.transport), gpu_host(i3={"85": 1}))
    assert stage.picture() == drawn(
        """
        cn1  VCPU=16
          cn1_pci_84  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
          cn1_pci_85  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
        cn2  VCPU=16  VGPU=4
        i3: cn1 VCPU=2, cn1_pci_85 VGPU=1, cn2 VCPU=2 VGPU=1
        """
    )
    assert not start(ReportClient(stage.transport), gpu_host(i3={"85": 1}))


@dataclass
class Merging:
    """A host that goes back to a single provider."""

    moves: bool = True

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Move everything from the children to the root, and remove them."""
        root = provider_tree.data(nodename)
        children = provider_tree.get_provider_uuids(nodename)[1:]
        if children and self.moves and allocations is None:
            raise ReshapeNeeded
        total = 0
        for child in children:
            total += provider_tree.data(child).inventory["VGPU"]["total"]
            provider_tree.remove(child)
            for body in (allocations or {}).values():
                parts = body["allocations"]
                if part := parts.pop(child, None):
                    resources = parts[root.uuid]["resources"]
                    resources["VGPU"] = resources.get("VGPU", 0) + part["resources"]["VGPU"]
        if total:
            provider_tree.update_inventory(nodename, {**root.inventory, "VGPU": {"total": total}})


SPLIT = """
    cn1  VCPU=16
      g1  VGPU=4
      g2  VGPU=4
    i1: cn1 VCPU=1, g1 VGPU=1
    i2: cn1 VCPU=1, g1 VGPU=2, g2 VGPU=1
"""


def test_children_merge_back(stage: Stage) -> None:
    """Scenario I: the reverse of A; the children are deleted."""
    stage.show(SPLIT)
    client = ReportClient(stage.transport)
    start(client, Merging())
    assert stage.picture() == drawn(
        """
        cn1  VCPU=16  VGPU=8
        i1: cn1 VCPU=1 VGPU=1
        i2: cn1 VCPU=1 VGPU=3
        """
    )
    assert not start(client, Merging())


def test_a_provider_in_use_does_not_go(stage: Stage) -> None:
    """Scenario I, without moving the allocations: refused, and nothing changes."""
    stage.show(SPLIT)
    with pytest.raises(BadProviderTree, match="g1 would lose its VGPU, of which 3 are allocated"):
        start(ReportClient(stage.transport), Merging(moves=False))
    assert stage.picture() == drawn(SPLIT)


def test_later_than_at_the_start_nothing_moves(stage: Stage) -> None:
    """A driver that needs a reshape gets an error, and waits for the next start."""
    stage.show(BEFORE)
    with pytest.raises(ReshapeNeeded):
        tracker(ReportClient(stage.transport), three_guests()).report(node(), startup=False)
    assert stage.picture() == drawn(BEFORE)


def test_an_idle_pass_is_one_look_or_two(stage: Stage) -> None:
    """One request for the tree. OpenStack Placement is also asked for its sharing providers, if
    there may be any; berth only every five minutes."""
    stage.show(AFTER + "    nfs  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A")
    client = ReportClient(stage.transport)
    start(client, gpu_host())
    client.service.requests.clear()
    start(client, gpu_host())
    assert client.service.requests == {"GET": 1}

    tree = client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"), "cn1")
    tree.add_aggregates("cn1", aggregate_uuid("A"))
    client.update_from_provider_tree(None, tree)
    start(client, gpu_host())
    client.service.requests.clear()
    start(client, gpu_host())
    is_berth = stage.transport.request("/berth/v1", "GET").status_code == 200
    assert client.service.requests == {"GET": 1 if is_berth else 2}


@pytest.mark.parametrize("happens", ["a guest", "a trait", "a guest goes", "a migration begins"])
def test_somebody_was_quicker(stage: Stage, happens: str) -> None:
    """Scenarios F, F2, F3, F5: a conflict, and nothing changes; after another read it succeeds."""
    stage.show(BEFORE)
    client = ReportClient(stage.transport)
    host = gpu_host(i1={"84": 1}, i2={"84": 2}, i3={"85": 1}, i4={"85": 1}, m1={"84": 1})
    tree = client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"), "cn1")
    allocations = client.get_allocations_for_provider_tree(None, "cn1")
    host.update_provider_tree(tree, "cn1", allocations)
    expected = AFTER
    if happens == "a guest":
        stage.hold("i4", "cn1 VCPU=1 VGPU=1")
        expected += "    i4: cn1 VCPU=1, cn1_pci_85 VGPU=1"
    elif happens == "a trait":
        stage.trait("cn1", "CUSTOM_GOLD")
        expected = expected.replace("COMPUTE_NODE", "COMPUTE_NODE  CUSTOM_GOLD")
    elif happens == "a guest goes":
        stage.hold("i3", "")
        expected = "\n".join(line for line in AFTER.splitlines() if "i3:" not in line)
    else:
        stage.hold("i1", "")
        stage.hold("m1", "cn1 VCPU=2 MEMORY_MB=2048 VGPU=1")
        expected = expected.replace("i1:", "m1:")
    with pytest.raises(Conflict):
        client.update_from_provider_tree(None, tree, allocations)
    start(client, host)
    assert stage.picture() == drawn(expected)
