# SPDX-License-Identifier: Apache-2.0
"""Hosts that change the shape of their trees: the scenarios of spec/compute-side.md 8."""

from __future__ import annotations

from random import Random

import pytest

from berth.compute import BadProviderTree, Conflict, ReshapeNeeded
from berth.compute.plan import Plan
from berth.compute.report_client import ReportClient
from berth.compute.tracker import Driver, Node, Tracker
from tests.compute.drivers import GPUHost
from tests.compute.stage import Stage, consumer_uuid, drawn
from tests.worlds import aggregate_uuid, provider_uuid

BEFORE = """
    cn1  VCPU=16  MEMORY_MB=32768  VGPU=8  COMPUTE_NODE
    i1: cn1 VCPU=2 MEMORY_MB=2048 VGPU=1
    i2: cn1 VCPU=2 MEMORY_MB=2048 VGPU=2
    i3: cn1 VCPU=2 MEMORY_MB=2048 VGPU=1
"""

AFTER = """
    cn1  VCPU=16  MEMORY_MB=32768  COMPUTE_NODE
      cn1_pci_84  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
      cn1_pci_85  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
    i1: cn1 VCPU=2 MEMORY_MB=2048, cn1_pci_84 VGPU=1
    i2: cn1 VCPU=2 MEMORY_MB=2048, cn1_pci_84 VGPU=2
    i3: cn1 VCPU=2 MEMORY_MB=2048, cn1_pci_85 VGPU=1
"""


def gpu_host(**guests: dict[str, int]) -> GPUHost:
    """The host cn1: two GPUs, and guests that hold vGPUs of them."""
    return GPUHost({"84": 4, "85": 4}, {consumer_uuid(name): held for name, held in guests.items()})


def start(client: ReportClient, host: Driver, node: str = "cn1") -> Plan:
    """A host's first report."""
    return tracker(client, host).report(Node(provider_uuid(node), node), startup=True)


def tracker(client: ReportClient, host: Driver) -> Tracker:
    """One that gives up at the first conflict."""
    return Tracker(client, host, attempts_max=1, pause=no_pause, rng=Random(1))


def no_pause(seconds: float) -> None:
    """Do not wait."""


def test_a_vgpus_move_to_their_gpus(stage: Stage) -> None:
    """Scenario A: all inventory and all allocations at once; a second start finds nothing to do."""
    stage.show(BEFORE)
    host = gpu_host(i1={"84": 1}, i2={"84": 2}, i3={"85": 1})
    client = ReportClient(stage.transport)
    assert start(client, host).is_reshape
    assert stage.picture() == drawn(AFTER)
    assert not start(client, host)
    assert not start(ReportClient(stage.transport), host)
    assert stage.picture() == drawn(AFTER)


def test_a_driver_that_knows_of_fewer_devices_is_refused(stage: Stage) -> None:
    """Scenario A2: amounts neither grow nor shrink; nothing is sent, no empty child is left."""
    stage.show(BEFORE)
    host = gpu_host(i1={"84": 1, "85": 1}, i2={"84": 1}, i3={"85": 1})
    with pytest.raises(BadProviderTree) as refused:
        start(ReportClient(stage.transport), host)
    assert set(refused.value.faults) == {
        f"consumer {consumer_uuid('i1')} holds 1 VGPU and would hold 2",
        f"consumer {consumer_uuid('i2')} holds 2 VGPU and would hold 1",
    }
    assert stage.picture() == drawn(BEFORE)


def test_a_gpu_that_is_too_small_is_told_before_anything_is_sent(stage: Stage) -> None:
    """All that does not fit is listed, with what is there and what is needed."""
    stage.show(BEFORE)
    host = GPUHost(
        {"84": 2, "85": 4},
        {
            consumer_uuid("i1"): {"84": 1},
            consumer_uuid("i2"): {"84": 2},
            consumer_uuid("i3"): {"85": 1},
        },
    )
    with pytest.raises(BadProviderTree, match="cn1_pci_84 has 2 VGPU, and 3 are needed"):
        start(ReportClient(stage.transport), host)
    assert stage.picture() == drawn(BEFORE)


def test_what_others_share_is_never_written(stage: Stage) -> None:
    """Scenario E: the sharing provider keeps its inventory, and everybody's share of it."""
    disk = """
        nfs  DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE  @A
    """
    others = """
        cn2  VCPU=16
        x9: cn2 VCPU=1, nfs DISK_GB=50
        vol: nfs DISK_GB=7
    """
    stage.show(
        disk
        + others
        + """
        cn1  VCPU=16  MEMORY_MB=32768  VGPU=8  @A
        i1: cn1 VCPU=2 MEMORY_MB=2048 VGPU=1, nfs DISK_GB=20
        i2: cn1 VCPU=2 VGPU=2, nfs DISK_GB=20
        """
    )
    client = ReportClient(stage.transport)
    tree = client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"), "cn1")
    assert tree.has_sharing_provider("DISK_GB")
    start(client, gpu_host(i1={"84": 1}, i2={"85": 2}))
    assert stage.picture() == drawn(
        disk
        + others
        + """
        cn1  VCPU=16  MEMORY_MB=32768  @A
          cn1_pci_84  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
          cn1_pci_85  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
        i1: cn1 VCPU=2 MEMORY_MB=2048, cn1_pci_84 VGPU=1, nfs DISK_GB=20
        i2: cn1 VCPU=2, cn1_pci_85 VGPU=2, nfs DISK_GB=20
        """
    )


def test_two_nodes_of_one_agent_do_not_touch_each_other(stage: Stage) -> None:
    """Scenario K: an idle node keeps its inventory while another is reshaped."""
    stage.show(
        """
        cn1  VCPU=16  VGPU=8
        cn2  VCPU=16
        i1: cn1 VGPU=1
        """
    )
    client = ReportClient(stage.transport)
    client.get_provider_tree_and_ensure_root(None, provider_uuid("cn2"), "cn2")
    before = stage.generation_of("cn2")
    start(client, gpu_host(i1={"84": 1}))
    assert "cn2  VCPU=16" in stage.picture()
    assert stage.generation_of("cn2") == before


def test_other_agents_children_stay(stage: Stage) -> None:
    """Scenario G: what a driver does not know, it leaves as it is, and so does the flush."""
    stage.show(
        """
        cn1  VCPU=16  VGPU=8
          agent  CUSTOM_VNIC_TYPE_NORMAL
            bridge  NET_BW_EGR_KILOBIT_PER_SEC=1000000  CUSTOM_PHYSNET_PHYS1
        i1: cn1 VCPU=1 VGPU=1
        i6: cn1 VCPU=1, bridge NET_BW_EGR_KILOBIT_PER_SEC=1000
        """
    )
    before = stage.generation_of("agent")
    start(ReportClient(stage.transport), gpu_host(i1={"84": 1}))
    assert stage.generation_of("agent") == before
    assert stage.picture() == drawn(
        """
        cn1  VCPU=16
          agent  CUSTOM_VNIC_TYPE_NORMAL
            bridge  NET_BW_EGR_KILOBIT_PER_SEC=1000000  CUSTOM_PHYSNET_PHYS1
          cn1_pci_84  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
          cn1_pci_85  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
        i1: cn1 VCPU=1, cn1_pci_84 VGPU=1
        i6: cn1 VCPU=1, bridge NET_BW_EGR_KILOBIT_PER_SEC=1000
        """
    )


def test_a_newcomer_between_reading_and_reshaping_is_a_conflict(stage: Stage) -> None:
    """Scenario F: nothing is changed; read again, the newcomer moves with the others."""
    stage.show(BEFORE)
    client = ReportClient(stage.transport)
    host = gpu_host(i1={"84": 1}, i2={"84": 2}, i3={"85": 1}, i4={"85": 1})
    tree = client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"), "cn1")
    allocations = client.get_allocations_for_provider_tree(None, "cn1")
    host.update_provider_tree(tree, "cn1", allocations)
    stage.hold("i4", "cn1 VCPU=1 VGPU=1")
    with pytest.raises(Conflict):
        client.update_from_provider_tree(None, tree, allocations)
    start(client, host)
    assert stage.picture() == drawn(AFTER + "    i4: cn1 VCPU=1, cn1_pci_85 VGPU=1")


def test_later_than_at_the_start_nothing_moves(stage: Stage) -> None:
    """A driver that needs a reshape is told to wait for the next start."""
    stage.show(BEFORE)
    host = gpu_host(i1={"84": 1}, i2={"84": 2}, i3={"85": 1})
    with pytest.raises(ReshapeNeeded):
        tracker(ReportClient(stage.transport), host).report(
            Node(provider_uuid("cn1"), "cn1"), startup=False
        )
    assert stage.picture() == drawn(BEFORE)


def test_an_idle_pass_is_one_look_or_two(stage: Stage) -> None:
    """One request for the tree, and one for who shares with it, where somebody may."""
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
    assert client.service.requests == {"GET": 2}
