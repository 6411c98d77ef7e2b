# SPDX-License-Identifier: Apache-2.0
"""A Linux host and the service: it changes its model, loses devices, and meets providers of others.

Scenario letters are those of spec/compute-side.md 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from berth.hosts import BadProviderTree, ReshapeNeeded
from berth.hosts.drivers.linux import LinuxDriver
from berth.hosts.plan import Plan
from berth.hosts.report_client import ReportClient
from berth.hosts.transports import with_token
from tests.e2e.serving import served
from tests.hosts import linux_hosts as hosts
from tests.hosts.hosts import Falling, Interrupted, node, start, tracker
from tests.hosts.machines import GPU_HOST, SRIOV_HOST, TWO_SOCKETS
from tests.hosts.machines.machine import GIB, INTEL, Node
from tests.hosts.stage import Stage, consumer_uuid, drawn

#: The traits of the processors are not what these tests are about; one is left, as in the scenario.
PLAIN = replace(TWO_SOCKETS, flags="avx2", has_threads=False, disk_turns=None)
ROOT_TRAITS = "COMPUTE_NODE  HW_ARCH_X86_64  HW_CPU_X86_AVX2"

HALVES: dict[str, Any] = {"cpu_shared": "0-7,16-23", "cpu_dedicated": "8-15,24-31"}

BEFORE = f"""
    cn1  VCPU=16(ratio:4,reserved:2)  PCPU=16  MEMORY_MB=65536(reserved:1024)  DISK_GB=500 \
      {ROOT_TRAITS}
    i1: cn1 PCPU=4 MEMORY_MB=8192 DISK_GB=20
    i2: cn1 VCPU=2 MEMORY_MB=4096 DISK_GB=20
    i3: cn1 PCPU=8 MEMORY_MB=16384 DISK_GB=20
"""
NODE = (
    "VCPU=8(ratio:4,reserved:1,max:8)  PCPU=8(max:8)  MEMORY_MB=32768(reserved:512,max:32768)  "
    "HW_NUMA_ROOT  CUSTOM_OWNER_BERTH"
)
AFTER = f"""
    cn1  DISK_GB=500(max:500)  {ROOT_TRAITS}
      cn1_NUMA0  {NODE}
      cn1_NUMA1  {NODE}
    i1: cn1_NUMA0 PCPU=4 MEMORY_MB=8192, cn1 DISK_GB=20
    i2: cn1_NUMA1 VCPU=2 MEMORY_MB=4096, cn1 DISK_GB=20
    i3: cn1_NUMA0 PCPU=4 MEMORY_MB=8192, cn1_NUMA1 PCPU=4 MEMORY_MB=8192, cn1 DISK_GB=20
"""
WHERE = {"i1": {0: 4}, "i2": {1: 2}, "i3": {0: 4, 1: 4}}


def places(of: Mapping[str, Mapping[int, int]]) -> dict[str, dict[int, int]]:
    """The placements of consumers in the configuration's form."""
    return {consumer_uuid(name): dict(placement) for name, placement in of.items()}


def later(client: ReportClient, host: LinuxDriver) -> Plan:
    """A later report than the first."""
    return tracker(client, host).report(node(), startup=False)


def test_b_a_host_is_split_by_its_numa_nodes(stage: Stage, tmp_path: Path) -> None:
    """Scenario B: in one request, with ratio and reserved amount; a second start changes
    nothing."""
    stage.show(BEFORE)
    client = ReportClient(stage.transport)
    host = hosts.driver(PLAIN, tmp_path, model="numa", placements=places(WHERE), **HALVES)
    plan = start(client, host)
    assert (len(plan.created), len(plan.inventories), len(plan.allocations or {})) == (2, 3, 3)
    assert stage.picture() == drawn(AFTER)
    assert client.service.requests["POST"] == 3
    assert not start(client, host)
    assert not start(ReportClient(stage.transport), host)


def test_a_host_is_split_at_a_service_without_configuration(tmp_path: Path) -> None:
    """`make serve`, and a token file with the role `admin`: the agent may move allocations."""
    home = tmp_path / "service"
    home.mkdir()
    with served(home) as url:
        stage = Stage(with_token(url, "admin"))
        stage.show(BEFORE)
        host = hosts.driver(PLAIN, tmp_path, model="numa", placements=places(WHERE), **HALVES)
        start(ReportClient(stage.transport), host)
        assert stage.picture() == drawn(AFTER)


@pytest.mark.parametrize("at", [0, 3])
def test_a_start_that_was_killed_is_finished_by_the_next(
    stage: Stage, tmp_path: Path, at: int
) -> None:
    """Killed after the first child was created, and after the last write before the reshape."""
    stage.show(BEFORE)
    falling = Falling(stage.transport, at=at, is_done=True, fault=Interrupted())
    host = hosts.driver(PLAIN, tmp_path, model="numa", placements=places(WHERE), **HALVES)
    with pytest.raises(Interrupted):
        start(ReportClient(falling), host)
    start(ReportClient(stage.transport), host)
    assert stage.picture() == drawn(AFTER)


def test_b_negative_a_node_that_is_too_small_is_told_before_anything_is_sent(
    stage: Stage, tmp_path: Path
) -> None:
    """Guests of 8192 and 16384 MiB for a node of 16384: the error has the node, the class, the
    amount, the capacity and the consumers."""
    drawing = f"""
        cn1  VCPU=8  MEMORY_MB=32768  DISK_GB=500  {ROOT_TRAITS}
        i1: cn1 VCPU=1 MEMORY_MB=8192
        i2: cn1 VCPU=1 MEMORY_MB=16384
    """
    stage.show(drawing)
    small = replace(
        PLAIN,
        nodes={
            0: Node(cpus="0-3", memory_kib=16 * GIB),
            1: Node(cpus="4-7", memory_kib=16 * GIB),
        },
    )
    both = places({"i1": {0: 1}, "i2": {0: 1}})
    host = hosts.driver(small, tmp_path, model="numa", placements=both)
    with pytest.raises(BadProviderTree) as refused:
        start(ReportClient(stage.transport), host)
    (fault,) = refused.value.faults
    assert fault.startswith("cn1_NUMA0 has 16384 MEMORY_MB, but 24576 are needed: by consumer ")
    for guest, amount in ("i1", 8192), ("i2", 16384):
        assert f"consumer {consumer_uuid(guest)} {amount}" in fault
    assert stage.picture() == drawn(drawing)


def test_nodes_become_one_host_again(stage: Stage, tmp_path: Path) -> None:
    """The way back: the root has everything of the nodes, and these are deleted."""
    stage.show(AFTER)
    client = ReportClient(stage.transport)
    host = hosts.driver(PLAIN, tmp_path, model="flat", **HALVES)
    start(client, host)
    assert stage.picture() == drawn(
        f"""
        cn1  VCPU=16(ratio:4,reserved:2,max:16)  PCPU=16(max:16) \
          MEMORY_MB=65536(reserved:1024,max:65536)  DISK_GB=500(max:500)  {ROOT_TRAITS}
        i1: cn1 PCPU=4 MEMORY_MB=8192 DISK_GB=20
        i2: cn1 VCPU=2 MEMORY_MB=4096 DISK_GB=20
        i3: cn1 PCPU=8 MEMORY_MB=16384 DISK_GB=20
        """
    )
    assert not start(client, host)


@pytest.mark.parametrize("changed", [1, 2])
def test_of_nodes_with_different_ratios_the_smaller_is_that_of_the_host(
    stage: Stage, tmp_path: Path, changed: int
) -> None:
    """So that claims never exceed what the operator allowed on any node."""
    parts = AFTER.split("ratio:4")
    parts[changed - 1 : changed + 1] = ["ratio:2".join(parts[changed - 1 : changed + 1])]
    stage.show("ratio:4".join(parts))
    start(ReportClient(stage.transport), hosts.driver(PLAIN, tmp_path, model="flat", **HALVES))
    (record,) = (word for word in stage.picture().split() if word.startswith("VCPU=16("))
    assert "ratio:2" in record


def test_later_than_at_the_start_a_host_keeps_its_model(stage: Stage, tmp_path: Path) -> None:
    """The pass logs what would move, and changes nothing."""
    stage.show(BEFORE)
    host = hosts.driver(PLAIN, tmp_path, model="numa", **HALVES)
    with pytest.raises(ReshapeNeeded, match="VCPU from cn1 to cn1_NUMA0, cn1_NUMA1"):
        later(ReportClient(stage.transport), host)
    assert stage.picture() == drawn(BEFORE)


def test_devices_move_under_their_nodes_with_what_is_held_of_them(
    stage: Stage, tmp_path: Path
) -> None:
    """A device's provider gets another parent and keeps its uuid; children of others stay."""
    machine = replace(GPU_HOST, flags=INTEL, disk_turns=None)
    client = ReportClient(stage.transport)
    mdev = [{"type": "nvidia-222"}]
    stage.show("cn1\n  agent\n    bridge  NET_BW_EGR_KILOBIT_PER_SEC=1000")
    start(client, hosts.driver(machine, tmp_path, mdev=mdev))
    stage.hold("i1", "cn1 VCPU=2 MEMORY_MB=1024, cn1_pci_0000_85_00_0 VGPU=2")
    before = stage.uuid_of("cn1_pci_0000_85_00_0")

    start(client, hosts.driver(machine, tmp_path, mdev=mdev, model="numa"))
    assert stage.uuid_of("cn1_pci_0000_85_00_0") == before
    lines = [line.split("  ") for line in stage.picture().splitlines()]
    form = "CUSTOM_DIVIDED_INTO_NVIDIA_222"
    assert ["", "", "cn1_pci_0000_85_00_0", "VGPU=4(max:4)", form, "CUSTOM_OWNER_BERTH"] in lines
    assert ["", "agent"] in lines
    assert ["", "", "bridge", "NET_BW_EGR_KILOBIT_PER_SEC=1000"] in lines
    assert ["i1: cn1_NUMA0 MEMORY_MB=1024 VCPU=2, cn1_pci_0000_85_00_0 VGPU=2"] in lines


def test_virtual_functions_that_vanish_stay_while_somebody_holds_them(
    stage: Stage, tmp_path: Path
) -> None:
    """Nothing more can be claimed; once they are free, their provider is deleted. The other port
    stays."""
    pci = [{"device": "8086:154c", "resource_class": "SRIOV_NET_VF"}]
    client = ReportClient(stage.transport)

    start(client, hosts.driver(SRIOV_HOST, tmp_path / "full", pci=pci))
    stage.hold("i1", "cn1_0000:AF:00.0 SRIOV_NET_VF=1")
    port = replace(SRIOV_HOST.pci["0000:af:00.0"], functions={})
    without = replace(SRIOV_HOST, pci={**SRIOV_HOST.pci, "0000:af:00.0": port})

    unknowing = hosts.driver(without, tmp_path / "without", pci=pci)
    assert not later(client, unknowing)
    assert unknowing.notices == (
        "The host no longer has SRIOV_NET_VF for cn1_0000:AF:00.0; it stays in case it is "
        "allocated",
    )
    knowing = hosts.driver(without, tmp_path / "without", pci=pci, used=client.get_usages)
    later(client, knowing)
    assert "cn1_0000:AF:00.0  SRIOV_NET_VF=1(max:4)" in stage.picture()
    assert "cn1_0000:AF:00.1  SRIOV_NET_VF=2(max:2)" in stage.picture()
    assert not later(client, knowing)

    stage.hold("i1", "")
    later(client, knowing)
    assert "cn1_0000:AF:00.0" not in stage.picture()
    assert not knowing.notices


def test_what_guests_hold_elsewhere_stays(stage: Stage, tmp_path: Path) -> None:
    """Scenarios D2 and E: a guest that was evacuated from here, and one with a shared disk."""
    others = """
        cn2  VCPU=16
        nfs  DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE  @A
        vol: nfs DISK_GB=7
    """
    stage.show(f"""
        cn1  VCPU=32  MEMORY_MB=65536  {ROOT_TRAITS}  @A
        i1: cn1 VCPU=2 MEMORY_MB=2048, cn2 VCPU=2
        i2: cn1 VCPU=4, nfs DISK_GB=20
        {others}
    """)
    host = hosts.driver(
        PLAIN, tmp_path, model="numa", disk=False, placements=places({"i2": {1: 1}})
    )
    start(ReportClient(stage.transport), host)
    node = "VCPU=16(max:16)  MEMORY_MB=32768(max:32768)  HW_NUMA_ROOT  CUSTOM_OWNER_BERTH"
    assert stage.picture() == drawn(f"""
        cn1  {ROOT_TRAITS}  @A
          cn1_NUMA0  {node}
          cn1_NUMA1  {node}
        i1: cn1_NUMA0 VCPU=2 MEMORY_MB=2048, cn2 VCPU=2
        i2: cn1_NUMA1 VCPU=4, nfs DISK_GB=20
        {others}
    """)
