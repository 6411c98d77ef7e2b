# SPDX-License-Identifier: Apache-2.0
"""A host leaves alone what is not its own: scenarios E, G, K and L of spec/compute-side.md 8."""

from __future__ import annotations

from textwrap import dedent

import pytest

from berth.hosts.errors import NameTaken
from berth.hosts.report_client import ReportClient
from tests.hosts.hosts import gpu_host, node, start, tracker
from tests.hosts.stage import Stage, drawn
from tests.worlds import aggregate_uuid, provider_uuid

SHARED_DISK = """
nfs  DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE  @A
"""

OTHERS = """
cn2  VCPU=16  @A
x9: cn2 VCPU=1, nfs DISK_GB=50
vol: nfs DISK_GB=7
"""


def test_a_sharing_provider_in_use_is_never_written(stage: Stage) -> None:
    """Scenario E: its inventory and all allocations on it stay."""
    stage.show(
        SHARED_DISK
        + dedent(
            """
        cn1  VCPU=16  MEMORY_MB=32768  VGPU=8  @A
        i1: cn1 VCPU=2 MEMORY_MB=2048 VGPU=1, nfs DISK_GB=20
        i2: cn1 VCPU=2 VGPU=2, nfs DISK_GB=20
        """
        )
        + OTHERS
    )
    client = ReportClient(stage.transport)
    tree = client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"), "cn1")
    assert tree.has_sharing_provider("DISK_GB")
    start(client, gpu_host(i1={"84": 1}, i2={"85": 2}))
    assert stage.picture() == drawn(
        SHARED_DISK
        + dedent(
            """
        cn1  VCPU=16  MEMORY_MB=32768  @A
          cn1_pci_84  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
          cn1_pci_85  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
        i1: cn1 VCPU=2 MEMORY_MB=2048, cn1_pci_84 VGPU=1, nfs DISK_GB=20
        i2: cn1 VCPU=2, cn1_pci_85 VGPU=2, nfs DISK_GB=20
        """
        )
        + OTHERS
    )
    assert not start(ReportClient(stage.transport), gpu_host(i1={"84": 1}, i2={"85": 2}))


def test_a_pool_is_seen_among_very_many_aggregates(stage: Stage) -> None:
    """One request does not name them all: the last that one names counts, and the next."""
    names = sorted((f"A{number}" for number in range(201)), key=aggregate_uuid)
    stage.show(
        f"""
        cn1  {"  ".join(f"@{name}" for name in names)}
        nfs  DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE  @{names[199]}
        fpgas  FPGA=4  MISC_SHARES_VIA_AGGREGATE  @{names[200]}
        """
    )
    tree = ReportClient(stage.transport).get_provider_tree_and_ensure_root(
        None, provider_uuid("cn1")
    )
    assert [tree.has_sharing_provider(name) for name in ("DISK_GB", "FPGA", "VGPU")] == [
        True,
        True,
        False,
    ]


def test_an_idle_sharing_provider_is_never_written(stage: Stage) -> None:
    """Scenario E2: even if the service would allow its removal."""
    stage.show(SHARED_DISK + "cn1  VCPU=16  VGPU=8  @A\ni1: cn1 VGPU=1")
    before = stage.generation_of("nfs")
    start(ReportClient(stage.transport), gpu_host(i1={"84": 1}))
    assert stage.generation_of("nfs") == before
    assert stage.picture() == drawn(
        SHARED_DISK
        + dedent(
            """
        cn1  VCPU=16  @A
          cn1_pci_84  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
          cn1_pci_85  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
        i1: cn1_pci_84 VGPU=1
        """
        )
    )
    assert not start(ReportClient(stage.transport), gpu_host(i1={"84": 1}))


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
    assert stage.generation_of("cn2") == before
    assert stage.picture() == drawn(
        """
        cn1  VCPU=16
          cn1_pci_84  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
          cn1_pci_85  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
        cn2  VCPU=16
        i1: cn1_pci_84 VGPU=1
        """
    )
    assert not start(client, gpu_host(i1={"84": 1}))


AGENT = """
    cn1  VCPU=16  VGPU=8
      agent  CUSTOM_VNIC_TYPE_NORMAL
        bridge  NET_BW_EGR_KILOBIT_PER_SEC=1000000  CUSTOM_PHYSNET_PHYS1
    i1: cn1 VCPU=1 VGPU=1
    i6: cn1 VCPU=1, bridge NET_BW_EGR_KILOBIT_PER_SEC=1000
"""

AGENT_AFTER = """
    cn1  VCPU=16
      agent  CUSTOM_VNIC_TYPE_NORMAL
        bridge  NET_BW_EGR_KILOBIT_PER_SEC=1000000  CUSTOM_PHYSNET_PHYS1
      cn1_pci_84  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
      cn1_pci_85  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
    i1: cn1 VCPU=1, cn1_pci_84 VGPU=1
    i6: cn1 VCPU=1, bridge NET_BW_EGR_KILOBIT_PER_SEC=1000
"""


def test_other_agents_children_stay(stage: Stage) -> None:
    """Scenario G: a driver and the client leave unknown providers as they are."""
    stage.show(AGENT)
    before = stage.generation_of("agent"), stage.generation_of("bridge")
    start(ReportClient(stage.transport), gpu_host(i1={"84": 1}))
    assert (stage.generation_of("agent"), stage.generation_of("bridge")) == before
    assert stage.picture() == drawn(AGENT_AFTER)
    assert not start(ReportClient(stage.transport), gpu_host(i1={"84": 1}))


def test_another_agent_may_write_its_own_meanwhile(stage: Stage) -> None:
    """Scenario G2: the reshape does not name its providers, so it causes no conflict."""
    stage.show(AGENT)
    client = ReportClient(stage.transport)
    host = gpu_host(i1={"84": 1})
    tree = client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"), "cn1")
    allocations = client.get_allocations_for_provider_tree(None, "cn1")
    host.update_provider_tree(tree, "cn1", allocations)
    stage.trait("bridge", "CUSTOM_NEW")
    client.update_from_provider_tree(None, tree, allocations)
    assert stage.picture() == drawn(AGENT_AFTER.replace("PHYS1", "PHYS1  CUSTOM_NEW"))


def test_another_agent_may_delete_its_own_meanwhile(stage: Stage) -> None:
    """Scenario G3: a deleted provider is no error, and is noticed at once."""
    stage.show(AGENT)
    client = ReportClient(stage.transport)
    host = tracker(client, gpu_host(i1={"84": 1}), attempts_max=2)
    client.get_provider_tree_and_ensure_root(None, provider_uuid("cn1"), "cn1")
    stage.hold("i6", "cn1 VCPU=1")
    stage.remove("bridge")
    host.report(node(), startup=True)
    assert "bridge" not in stage.picture()
    assert "i1: cn1 VCPU=1, cn1_pci_84 VGPU=1" in stage.picture()


def test_a_root_is_made_with_its_name(stage: Stage) -> None:
    """The first read creates it, the second finds it."""
    for _ in range(2):
        client = ReportClient(stage.transport)
        tree = client.get_provider_tree_and_ensure_root(None, provider_uuid("cn7"), "cn7")
        assert [root.name for root in tree.roots] == ["cn7"]


def test_a_name_that_is_taken_is_told(stage: Stage) -> None:
    """Scenario L: a host comes back with another uuid."""
    stage.show("    cn9  VCPU=1")
    client = ReportClient(stage.transport)
    with pytest.raises(NameTaken, match="cn9"):
        client.get_provider_tree_and_ensure_root(None, provider_uuid("new"), "cn9")
