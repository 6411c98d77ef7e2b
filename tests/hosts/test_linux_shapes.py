# SPDX-License-Identifier: Apache-2.0
"""The trees of the linux driver: drawings, what it leaves alone, and properties of all machines in
both models.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.hosts import BadProviderTree, ProviderTree, ReshapeNeeded
from berth.hosts.drivers.linux import LinuxDriver
from berth.hosts.plan import Allocations, make_plan, sums_of
from berth.model.inventory import Inventory
from tests.effort import scaled
from tests.hosts import linux_hosts as hosts
from tests.hosts.linux_hosts import drawing, empty_tree, picture, report
from tests.hosts.machines import (
    ARM_SERVER,
    FOUR_NODES,
    GPU_HOST,
    GROWN,
    MACHINES,
    ONE_SOCKET,
    SPARSE,
    SRIOV_HOST,
    TWO_SOCKETS,
)
from tests.hosts.machines.machine import MIB, PCI, Machine
from tests.worlds import provider_uuid, world

DEVICES: dict[str, Any] = {
    "mdev": [{"type": "nvidia-222"}],
    "pci": [
        {"device": "8086:154c", "resource_class": "SRIOV_NET_VF", "physical_network": "phys-1"},
        {"device": "15b3:1017"},
    ],
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files of every machine."""
    return {
        name: machine.write(tmp_path_factory.mktemp("host")) for name, machine in MACHINES.items()
    }


def first_report(host: LinuxDriver) -> ProviderTree:
    """The tree of a host after its first report."""
    tree = empty_tree()
    report(host, tree)
    return tree


def assert_drawn(tree: ProviderTree, expected: str) -> None:
    """Compare a tree with a drawing, with the drawing's fields in the order of `World`."""
    assert drawing(tree) == str(world(expected))


# --- Pictures -------------------------------------------------------------------------------------


def test_flat_everything_of_the_host_stands_on_its_root(tmp_path: Path) -> None:
    """Two sockets, half of the CPUs dedicated."""
    host = hosts.driver(TWO_SOCKETS, tmp_path, cpu_shared="0-7,16-23", cpu_dedicated="8-15,24-31")
    assert_drawn(first_report(host), "cn1  DISK_GB=500  MEMORY_MB=65536  PCPU=16  VCPU=16")


def test_by_numa_node_with_huge_pages_apart(tmp_path: Path) -> None:
    """Huge pages have a provider of their own, in whole pages, and are not part of the other
    memory."""
    host = hosts.driver(FOUR_NODES, tmp_path, model="numa", huge_pages="providers")
    assert_drawn(
        first_report(host),
        """
        cn1  DISK_GB=500
          cn1_NUMA0  MEMORY_MB=48392  VCPU=16  HW_NUMA_ROOT
            cn1_NUMA0_PAGES_1048576  MEMORY_MB=8192(min:1024,step:1024) \
              CUSTOM_MEMORY_PAGE_SIZE_1048576
            cn1_NUMA0_PAGES_2048  MEMORY_MB=8192(min:2,step:2)  CUSTOM_MEMORY_PAGE_SIZE_2048
          cn1_NUMA1  MEMORY_MB=57344  VCPU=16  HW_NUMA_ROOT
            cn1_NUMA1_PAGES_1048576  MEMORY_MB=8192(min:1024,step:1024) \
              CUSTOM_MEMORY_PAGE_SIZE_1048576
          cn1_NUMA2  MEMORY_MB=65336  VCPU=16  HW_NUMA_ROOT
            cn1_NUMA2_PAGES_2048  MEMORY_MB=200(min:2,step:2)  CUSTOM_MEMORY_PAGE_SIZE_2048
          cn1_NUMA3  MEMORY_MB=65535  VCPU=16  HW_NUMA_ROOT
        """,
    )


def test_pages_smaller_than_a_mebibyte_are_counted_too(tmp_path: Path) -> None:
    """An ARM kernel has pages of 64 KiB and of 512 MiB."""
    host = hosts.driver(ARM_SERVER, tmp_path, huge_pages="providers")
    assert_drawn(
        first_report(host),
        """
        cn1  DISK_GB=500  MEMORY_MB=15328  VCPU=4
          cn1_PAGES_524288  MEMORY_MB=1024(min:512,step:512)  CUSTOM_MEMORY_PAGE_SIZE_524288
          cn1_PAGES_64  MEMORY_MB=32  CUSTOM_MEMORY_PAGE_SIZE_64
        """,
    )


def test_sparse_nodes_offer_what_they_have(tmp_path: Path) -> None:
    """Node numbers have gaps. A node without CPUs or without memory offers the other, and one
    without both has no provider. An offline CPU is offered if it is dedicated, not if it is
    shared."""
    host = hosts.driver(
        SPARSE, tmp_path, model="numa", cpu_shared="0-3,4-5", cpu_dedicated="6-7,8-9"
    )
    assert_drawn(
        first_report(host),
        """
        cn1  DISK_GB=500
          cn1_NUMA0  MEMORY_MB=32768  VCPU=4  HW_NUMA_ROOT
          cn1_NUMA2  MEMORY_MB=32768  PCPU=2  VCPU=2  HW_NUMA_ROOT
          cn1_NUMA5  PCPU=2  HW_NUMA_ROOT
          cn1_NUMA8  MEMORY_MB=131072  HW_NUMA_ROOT
        """,
    )
    tree = first_report(hosts.driver(SPARSE, tmp_path, cpu_shared="0-9"))
    assert tree.data("cn1").inventory["VCPU"]["total"] == 9


def test_memory_that_was_added_while_the_host_ran_is_shared_out_by_blocks(tmp_path: Path) -> None:
    """The nodes' figures do not add up; all nodes together never offer more than there is."""
    host = hosts.driver(GROWN, tmp_path, model="numa")
    assert_drawn(
        first_report(host),
        """
        cn1  DISK_GB=500
          cn1_NUMA0  MEMORY_MB=16070  VCPU=2  HW_NUMA_ROOT
          cn1_NUMA1  MEMORY_MB=8035  VCPU=2  HW_NUMA_ROOT
        """,
    )


def test_nodes_that_count_a_little_more_memory_offer_what_the_host_has(tmp_path: Path) -> None:
    """Their figures include what the kernel has for itself."""
    host = hosts.driver(replace(TWO_SOCKETS, memory_kib=65000 * MIB), tmp_path, model="numa")
    tree = first_report(host)
    nodes = ("cn1_NUMA0", "cn1_NUMA1")
    assert [tree.data(node).inventory["MEMORY_MB"]["total"] for node in nodes] == [32500, 32500]


def test_devices_stand_under_their_numa_nodes(tmp_path: Path) -> None:
    """Those whose node the firmware does not report are below the root."""
    pci = [*DEVICES["pci"], {"address": "0000:05:*", "traits": ["hw_nic_sriov", "fast net"]}]
    host = hosts.driver(SRIOV_HOST, tmp_path, model="numa", pci=pci)
    assert_drawn(
        first_report(host),
        """
        cn1  DISK_GB=500
          cn1_0000:05:00.0  CUSTOM_PCI_1AF4_1041=1  CUSTOM_FAST_NET  HW_NIC_SRIOV
          cn1_NUMA0  MEMORY_MB=32768  VCPU=4  HW_NUMA_ROOT
            cn1_0000:B3:00.0  CUSTOM_PCI_15B3_1017=1
          cn1_NUMA1  MEMORY_MB=32768  VCPU=4  HW_NUMA_ROOT
            cn1_0000:AF:00.0  SRIOV_NET_VF=4  CUSTOM_DIVIDED_INTO_VFS \
              CUSTOM_PHYSNET_PHYS_1  HW_NIC_SRIOV
            cn1_0000:AF:00.1  SRIOV_NET_VF=2  CUSTOM_DIVIDED_INTO_VFS \
              CUSTOM_PHYSNET_PHYS_1  HW_NIC_SRIOV
        """,
    )


def test_memory_encryption_has_a_provider_for_each_kind(tmp_path: Path) -> None:
    """A guest uses one slot; kinds that the host does not have are left out."""
    machine = replace(ONE_SOCKET, encryption={"sev": 500, "sev_es": 0, "tdx": 31})
    tree = first_report(hosts.driver(machine, tmp_path, disk=False))
    assert_drawn(
        tree,
        """
        cn1  MEMORY_MB=16091  VCPU=8
          cn1_amd_sev  MEM_ENCRYPTION_CONTEXT=500(max:1)  HW_CPU_X86_AMD_SEV
          cn1_intel_tdx  MEM_ENCRYPTION_CONTEXT=31(max:1)  HW_CPU_X86_INTEL_TDX
        """,
    )


def test_everything_below_the_root_bears_the_owners_trait(tmp_path: Path) -> None:
    """By it and by the names, a later pass recognises its own providers."""
    host = hosts.driver(GPU_HOST, tmp_path, model="numa", **DEVICES)
    tree = first_report(host)
    below = tree.get_provider_uuids()[1:]
    assert len(below) == 4
    assert all(tree.has_traits(uuid, ["CUSTOM_OWNER_BERTH"]) for uuid in below)
    assert not tree.has_traits("cn1", ["CUSTOM_OWNER_BERTH"])


def test_reserves_and_ratios_are_the_hosts(tmp_path: Path) -> None:
    """The configured amounts are divided among the nodes, and add up."""
    host = hosts.driver(
        TWO_SOCKETS,
        tmp_path,
        model="numa",
        reserved={"VCPU": 3, "MEMORY_MB": 1024, "DISK_GB": 10},
        allocation_ratios={"VCPU": 4},
    )
    assert_drawn(
        first_report(host),
        """
        cn1  DISK_GB=500(reserved:10)
          cn1_NUMA0  MEMORY_MB=32768(reserved:512)  VCPU=16(reserved:1,ratio:4.0)  HW_NUMA_ROOT
          cn1_NUMA1  MEMORY_MB=32768(reserved:512)  VCPU=16(reserved:2,ratio:4.0)  HW_NUMA_ROOT
        """,
    )


# --- What is left alone ---------------------------------------------------------------------------


def test_what_an_operator_set_stays(tmp_path: Path) -> None:
    """Fields that are not configured, and classes and traits that the driver does not manage."""
    tree = first_report(hosts.driver(ONE_SOCKET, tmp_path))
    root = tree.data("cn1")
    vcpu = {**root.inventory["VCPU"], "allocation_ratio": 16.0, "reserved": 1}
    tree.update_inventory("cn1", {**root.inventory, "VCPU": vcpu, "CUSTOM_LICENCE": {"total": 3}})
    tree.add_traits("cn1", "CUSTOM_RACK_7", "COMPUTE_NODE", "HW_CPU_X86_AMD_SEV")
    before = picture(tree)
    report(hosts.driver(ONE_SOCKET, tmp_path), tree)
    assert picture(tree) == before


def test_traits_that_the_host_has_no_more_are_taken_away(tmp_path: Path) -> None:
    """A host has moved to other hardware: the traits that the driver detects are the new ones."""
    tree = empty_tree()
    tree.add_traits("cn1", "HW_CPU_X86_SGX", "STORAGE_DISK_SSD", "HW_ARCH_AARCH64", "CUSTOM_X")
    report(hosts.driver(ONE_SOCKET, tmp_path), tree)
    traits = tree.data("cn1").traits
    assert {"CUSTOM_X", "STORAGE_DISK_HDD", "HW_ARCH_X86_64", "HW_CPU_X86_VMX"} <= traits
    assert not traits & {"HW_CPU_X86_SGX", "STORAGE_DISK_SSD", "HW_ARCH_AARCH64"}


def test_others_providers_are_not_touched(tmp_path: Path) -> None:
    """Not even one with the name of one of this host's devices."""
    tree = empty_tree()
    agent = tree.new_child("cn1:NIC Switch agent", "cn1")
    tree.new_child("cn1:NIC Switch agent:eth1", agent)
    tree.update_inventory("cn1:NIC Switch agent:eth1", {"NET_BW_EGR_KILOBIT_PER_SEC": {"total": 9}})
    theirs = tree.new_child("cn1_pci_0000_84_00_0", "cn1", provider_uuid("theirs"))
    tree.update_inventory(theirs, {"VGPU": {"total": 2}})
    before = picture(tree)
    host = hosts.driver(GPU_HOST, tmp_path, model="numa", **DEVICES)
    report(host, tree)
    after = picture(tree)
    assert {name: after[name] for name in before if name != "cn1"} == {
        name: data for name, data in before.items() if name != "cn1"
    }
    assert host.notices == (
        "cn1_pci_0000_84_00_0 is a provider that berth did not create; the device is left to its "
        "owner",
    )


def test_a_numa_node_that_is_somebody_elses_provider_is_refused(tmp_path: Path) -> None:
    """The host cannot be reported without it; the error says what to do."""
    tree = empty_tree()
    tree.new_child("cn1_NUMA1", "cn1", provider_uuid("theirs"))
    with pytest.raises(BadProviderTree, match="cn1_NUMA1 is a provider that berth did not create"):
        report(hosts.driver(TWO_SOCKETS, tmp_path, model="numa"), tree)


def test_a_pass_that_fell_after_making_providers_is_taken_up(tmp_path: Path) -> None:
    """Scenario H2: children without traits and inventory are recognised by their uuids."""
    tree = empty_tree()
    tree.new_child("cn1_NUMA0", "cn1")
    report(hosts.driver(TWO_SOCKETS, tmp_path, model="numa"), tree)
    assert picture(tree) == picture(first_report(hosts.driver(TWO_SOCKETS, tmp_path, model="numa")))


def test_gpus_wait_while_their_class_stands_on_the_root(tmp_path: Path) -> None:
    """It is unknown which devices the consumers of the root's VGPU use; none is counted twice."""
    tree = empty_tree()
    tree.update_inventory("cn1", {"VGPU": {"total": 8}})
    host = hosts.driver(GPU_HOST, tmp_path, **DEVICES)
    report(host, tree)
    assert len(tree.get_provider_uuids()) == 1
    assert tree.data("cn1").inventory["VGPU"] == {"total": 8}
    assert len(host.notices) == 2


def test_an_empty_node_stays_while_others_stand_below_it(tmp_path: Path) -> None:
    """Another client's provider below a NUMA node keeps its parent."""
    tree = first_report(hosts.driver(TWO_SOCKETS, tmp_path, model="numa"))
    tree.new_child("bridge", "cn1_NUMA1", provider_uuid("bridge"))
    host = hosts.driver(TWO_SOCKETS, tmp_path)
    report(host, tree, {})
    assert [tree.data(uuid).name for uuid in tree.get_provider_uuids()] == [
        "cn1",
        "cn1_NUMA1",
        "bridge",
    ]
    assert not tree.has_inventory("cn1_NUMA1")
    assert host.notices == ("cn1_NUMA1 is empty, but stays because bridge is below it",)


# --- What is gone ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "reserved", "left"),
    [
        (0, 0, None),
        (3, 0, {"total": 3, "max_unit": 4}),
        (1, 1, {"total": 2, "max_unit": 4, "reserved": 1}),
    ],
)
def test_a_gpu_that_is_gone_stays_while_it_is_used(
    tmp_path: Path, used: int, reserved: int, left: dict[str, int] | None
) -> None:
    """Only what is allocated is left of its inventory, beside what is reserved; the rest of the
    host is reported."""
    tree = first_report(hosts.driver(GPU_HOST, tmp_path / "whole", model="numa", **DEVICES))
    dead = "cn1_pci_0000_85_00_0"
    if reserved:
        record = tree.data(dead).inventory["VGPU"]
        tree.update_inventory(dead, {"VGPU": {**record, "reserved": reserved}})
    machine = replace(GPU_HOST, disk_gib=400, pci={})
    uuid = tree.data(dead).uuid
    host = hosts.driver(
        machine, tmp_path / "gone", used=lambda of: {"VGPU": used if of == uuid else 0}
    )
    report(host, tree, {"i1": held(tree, {dead: {"VGPU": used}})} if used else {})
    assert tree.data("cn1").inventory["DISK_GB"]["total"] == 400
    assert not tree.exists("cn1_pci_0000_84_00_0")
    assert tree.exists(dead) == (left is not None)
    if left:
        assert tree.data(dead).inventory == {"VGPU": left}
        assert tree.data(dead).parent_uuid == tree.data("cn1").uuid
        assert len(host.notices) == 1
        report(hosts.driver(GPU_HOST, tmp_path / "whole", **DEVICES), tree)
        assert tree.data(dead).inventory["VGPU"]["total"] == 4


def test_what_is_kept_gives_room_for_what_is_held_and_no_more(tmp_path: Path) -> None:
    """A node that is gone had allocation ratio 4, and so has what stays of it."""
    options: dict[str, Any] = {"model": "numa", "allocation_ratios": {"VCPU": 4}}
    tree = first_report(hosts.driver(TWO_SOCKETS, tmp_path / "whole", **options))
    half = replace(TWO_SOCKETS, nodes={0: TWO_SOCKETS.nodes[0]})
    gone = tree.data("cn1_NUMA1").uuid
    host = hosts.driver(
        half, tmp_path / "half", used=lambda of: {"VCPU": 10 if of == gone else 0}, **options
    )
    report(host, tree)
    (record,) = tree.data(gone).inventory.values()
    assert Inventory(**record).capacity == 12


def test_a_host_that_shrinks_below_what_is_reserved_offers_nothing(tmp_path: Path) -> None:
    """An operator has reserved more than there is now: it is logged, and the rest is reported. When
    the host has grown again, the amount is still reserved."""
    tree = first_report(hosts.driver(TWO_SOCKETS, tmp_path / "large"))
    inventory = tree.data("cn1").inventory
    tree.update_inventory("cn1", {**inventory, "VCPU": {**inventory["VCPU"], "reserved": 20}})
    host = hosts.driver(ONE_SOCKET, tmp_path / "small")
    report(host, tree)
    assert tree.data("cn1").inventory["VCPU"] == {"total": 20, "max_unit": 8, "reserved": 20}
    assert host.notices == ("cn1 has reserved 20 VCPU, and has 8",)
    report(hosts.driver(TWO_SOCKETS, tmp_path / "large"), tree)
    assert tree.data("cn1").inventory["VCPU"] == {"total": 32, "max_unit": 32, "reserved": 20}
    configured = hosts.driver(ONE_SOCKET, tmp_path / "small", reserved={"VCPU": 20})
    report(configured, tree)
    assert tree.data("cn1").inventory["VCPU"] == {"total": 8, "max_unit": 8, "reserved": 8}


def sriov(functions: int) -> Machine:
    """A host with a card with this many virtual functions."""
    card = "0000:81:00.0"
    every = {f"0000:81:00.{number}": "8086:154c" for number in range(1, 1 + functions)}
    return replace(ONE_SOCKET, pci={card: PCI("8086:1572", functions=every)})


@pytest.mark.parametrize(
    ("held", "kept_back", "shrunk"),
    [(0, 4, (4, 2)), (3, 0, (3, 3)), (1, 2, (3, 2)), (1, 1, (2, 2))],
)
def test_a_card_that_shrinks_for_a_while_loses_nothing(
    tmp_path: Path, held: int, kept_back: int, shrunk: tuple[int, int]
) -> None:
    """A boot script has created two of four functions so far: existing allocations can be written
    again, reserved amounts stay, and no more than exist can be claimed."""
    card, name = "cn1_0000:81:00.0", "CUSTOM_PCI_8086_154C"
    tree = empty_tree()

    def pass_with(functions: int) -> dict[str, int]:
        host = hosts.driver(
            sriov(functions),
            tmp_path / str(functions),
            used=lambda _: {name: held},
            pci=[{"functions_of": "0000:81:00.0"}],
        )
        report(host, tree)
        return dict(tree.data(card).inventory[name])

    tree.update_inventory(card, {name: {**pass_with(4), "reserved": kept_back}})
    now = pass_with(2)
    assert (now["total"], now["max_unit"], now["reserved"]) == (*shrunk, kept_back)
    assert pass_with(4) == {"total": 4, "max_unit": 4, "reserved": kept_back}


def test_a_host_may_get_the_beginning_of_its_name_as_its_name(tmp_path: Path) -> None:
    """Its children, which already have the new prefix, are still recognised as its own."""
    tree = ProviderTree()
    tree.new_root("web_1", provider_uuid("web_1"))
    host = hosts.driver(TWO_SOCKETS, tmp_path, model="numa")
    host.update_provider_tree(tree, "web_1")
    children = set(tree.get_provider_uuids("web_1"))
    tree.rename("web_1", "web")
    host.update_provider_tree(tree, "web")
    assert set(tree.get_provider_uuids("web")) == children
    assert {tree.data(child).name for child in children} == {"web", "web_NUMA0", "web_NUMA1"}


def test_pages_that_may_be_in_use_are_not_counted_apart(tmp_path: Path) -> None:
    """Consumers of the pages have memory of the host, and the driver cannot know how much: nothing
    changes until that is released."""
    tree = first_report(hosts.driver(FOUR_NODES, tmp_path))
    before = picture(tree)
    in_use = {"MEMORY_MB": 4096}
    apart = hosts.driver(FOUR_NODES, tmp_path, huge_pages="providers", used=lambda _: in_use)
    report(apart, tree)
    assert picture(tree) == before
    assert apart.notices == (
        "Huge pages are not offered separately, because MEMORY_MB of cn1 is allocated, in pages or "
        "not: release that first",
    )
    in_use.clear()
    report(apart, tree)
    assert picture(tree) == picture(first_report(apart))


def test_a_disk_that_another_provider_shares_is_not_counted(tmp_path: Path) -> None:
    """Unless the host already has disk inventory in the service, which may have allocations."""
    tree = empty_tree()
    tree.new_root("nfs", provider_uuid("nfs"))
    tree.update_inventory("nfs", {"DISK_GB": {"total": 9}})
    tree.add_traits("nfs", "MISC_SHARES_VIA_AGGREGATE")
    report(hosts.driver(ONE_SOCKET, tmp_path), tree)
    assert "DISK_GB" not in tree.data("cn1").inventory
    tree.update_inventory("cn1", {"DISK_GB": {"total": 7}})
    report(hosts.driver(ONE_SOCKET, tmp_path), tree)
    assert tree.data("cn1").inventory["DISK_GB"]["total"] == 500


def test_a_numa_node_that_is_gone_does_not_move_to_the_others(tmp_path: Path) -> None:
    """Its memory is gone and not elsewhere: if the usage is unknown, its provider stays as it
    is."""
    tree = first_report(hosts.driver(TWO_SOCKETS, tmp_path / "whole", model="numa"))
    before = tree.data("cn1_NUMA1").inventory
    half = replace(TWO_SOCKETS, nodes={0: TWO_SOCKETS.nodes[0]})
    report(hosts.driver(half, tmp_path / "half", model="numa"), tree)
    assert tree.data("cn1_NUMA1").inventory == before
    report(hosts.driver(half, tmp_path / "half", model="numa", used=lambda uuid: {}), tree)
    assert not tree.exists("cn1_NUMA1")


def test_pages_move_back_into_the_other_memory(tmp_path: Path) -> None:
    """With the allocations, if the configuration counts them together again."""
    apart = hosts.driver(FOUR_NODES, tmp_path, model="numa", huge_pages="providers")
    tree = first_report(apart)
    body = held(tree, {"cn1_NUMA0_PAGES_2048": {"MEMORY_MB": 512}, "cn1_NUMA0": {"MEMORY_MB": 100}})
    allocations: Allocations = {"i1": body}
    together = hosts.driver(FOUR_NODES, tmp_path, model="numa")
    with pytest.raises(ReshapeNeeded):
        report(together, tree)
    report(together, tree, allocations)
    assert picture(tree) == picture(first_report(together))
    assert resources_of(allocations["i1"]) == {tree.data("cn1_NUMA0").uuid: {"MEMORY_MB": 612}}


# --- Properties -----------------------------------------------------------------------------------


def held(tree: ProviderTree, amounts: dict[str, dict[str, int]]) -> dict[str, Any]:
    """A consumer's allocations, by names of providers, as the service shows them."""
    return {
        "allocations": {
            tree.data(name).uuid: {"resources": dict(resources), "generation": 1}
            for name, resources in amounts.items()
        },
        "project_id": "web",
        "user_id": "alice",
        "consumer_generation": 1,
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_every_shape_can_become_every_other(recorded: dict[str, Path], machine: str) -> None:
    """The result depends on the host and its options, not on the tree before; a second pass changes
    nothing."""
    drivers = [
        hosts.driver(
            MACHINES[machine], recorded[machine], model=model, huge_pages=huge_pages, **DEVICES
        )
        for model in ("flat", "numa")
        for huge_pages in ("memory", "providers")
    ]
    for before, after in product(drivers, drivers):
        tree = first_report(before)
        report(after, tree, {})
        assert picture(tree) == picture(first_report(after))
        once = picture(tree)
        report(after, tree)
        assert picture(tree) == once


@pytest.mark.parametrize("machine", MACHINES)
@settings(max_examples=scaled(25))
@given(data=st.data(), huge_pages=st.sampled_from(["memory", "providers"]))
def test_a_host_is_split_and_merged_with_what_is_held_of_it(
    recorded: dict[str, Path], machine: str, data: st.DataObject, huge_pages: str
) -> None:
    """Flat, by NUMA node, flat again: operators' reserved amounts and ratios, and all allocations,
    are as before. In between every consumer has the same amounts, and all of them fit."""
    options: dict[str, Any] = {"huge_pages": huge_pages, **DEVICES}
    files = recorded[machine]
    flat = hosts.driver(MACHINES[machine], files, model="flat", **options)
    numa = hosts.driver(MACHINES[machine], files, model="numa", **options)
    tree = first_report(flat)
    inventory = tree.data("cn1").inventory
    inventory["VCPU"] |= {"reserved": data.draw(st.integers(0, 2)), "allocation_ratio": 2.0}
    inventory["MEMORY_MB"]["reserved"] = data.draw(st.integers(0, 3000))
    tree.update_inventory("cn1", inventory)
    before = copy.deepcopy(tree)
    allocations = data.draw(holdings(tree))
    first = copy.deepcopy(allocations)

    report(numa, tree, allocations)
    make_plan(before, tree, tree.data("cn1").uuid, current=first, allocations=allocations)
    assert {who: sums_of(body) for who, body in allocations.items()} == {
        who: sums_of(body) for who, body in first.items()
    }
    second = copy.deepcopy(allocations)
    split = copy.deepcopy(tree)
    report(flat, tree, allocations)
    make_plan(split, tree, tree.data("cn1").uuid, current=second, allocations=allocations)
    assert picture(tree) == picture(before)
    assert {who: resources_of(body) for who, body in allocations.items()} == {
        who: resources_of(body) for who, body in first.items()
    }


@st.composite
def holdings(draw: st.DrawFn, tree: ProviderTree) -> Allocations:
    """Allocations of up to eight consumers, well within a tree's capacity."""
    free = dict(_free(tree))
    allocations: Allocations = {}
    for number in range(draw(st.integers(0, 8))):
        amounts: dict[str, dict[str, int]] = {}
        some = draw(st.lists(st.sampled_from(sorted(free)), min_size=1, max_size=4, unique=True))
        for name, resource_class in some:
            step, units = free[name, resource_class]
            taken = draw(st.integers(0, units // 2))
            if taken:
                free[name, resource_class] = (step, units - taken)
                amounts.setdefault(name, {})[resource_class] = taken * step
        if amounts:
            allocations[f"consumer {number}"] = held(tree, amounts)
    return allocations


def _free(tree: ProviderTree) -> Iterator[tuple[tuple[str, str], tuple[int, int]]]:
    """By provider and class: the step, and the number of steps in nine tenths of the capacity."""
    for data in map(tree.data, tree.get_provider_uuids()):
        for resource_class, record in data.inventory.items():
            stock = Inventory(**record)
            room = min(stock.capacity, stock.max_unit) * 9 // 10
            yield (data.name, resource_class), (stock.step_size, room // stock.step_size)


def resources_of(body: dict[str, Any]) -> dict[str, dict[str, int]]:
    """A consumer's resources by provider."""
    return {provider: part["resources"] for provider, part in body["allocations"].items()}
