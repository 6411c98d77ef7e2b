# SPDX-License-Identifier: Apache-2.0
"""Two drivers that report on one node: neither removes what is the other's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from berth.hosts.drivers.static import StaticDriver
from tests.hosts import linux_hosts as hosts
from tests.hosts.linux_hosts import empty_tree, report
from tests.hosts.machines import GPU_HOST, TWO_SOCKETS
from tests.hosts.reporting import periodic, start
from tests.hosts.stage import Stage, drawn

#: An operator's additions: to the node, to a NUMA node, and a child that is named like a device.
ADDITIONS = """
inventories: {CUSTOM_LICENCE: {total: 3}}
traits: [CUSTOM_RACK_7]
children:
  - {name: $NODE_NUMA0, inventories: {CUSTOM_CACHE: {total: 2}}, traits: [CUSTOM_PHYSNET_A]}
  - {name: $NODE_pci_0000_99_00_0, inventories: {FPGA: {total: 1}}}
  - {name: $NODE_disk, inventories: {CUSTOM_SCRATCH_GB: {total: 9}}}
"""

PLAIN = replace(TWO_SOCKETS, flags="", has_threads=False, disk_turns=None)

OWN = """
      cn1_disk  CUSTOM_SCRATCH_GB=9  CUSTOM_OWNER_BERTH_STATIC
      cn1_pci_0000_99_00_0  FPGA=1  CUSTOM_OWNER_BERTH_STATIC
"""

BOTH = f"""
    cn1  DISK_GB=500(max:500)  CUSTOM_LICENCE=3  HW_ARCH_X86_64  CUSTOM_RACK_7
      cn1_NUMA0  VCPU=16(max:16)  MEMORY_MB=32768(max:32768)  CUSTOM_CACHE=2  HW_NUMA_ROOT \
          CUSTOM_OWNER_BERTH  CUSTOM_PHYSNET_A
      cn1_NUMA1  VCPU=16(max:16)  MEMORY_MB=32768(max:32768)  HW_NUMA_ROOT  CUSTOM_OWNER_BERTH
{OWN}
"""


@pytest.fixture
def stage(service_in_process: Stage) -> Iterator[Stage]:
    """An empty service in this process: the transport does not matter here."""
    yield service_in_process
    service_in_process.clear()


def from_file(folder: Path, text: str) -> StaticDriver:
    """A static driver without its file of recorded additions."""
    (folder / "owned.json").unlink(missing_ok=True)
    (folder / "providers.yaml").write_text(text)
    return StaticDriver(folder / "providers.yaml", folder / "owned.json")


def test_a_hosts_driver_and_a_file_leave_each_other_alone(stage: Stage, tmp_path: Path) -> None:
    """Passes change nothing; a new start of either sends nothing, and each can be removed without
    the other."""
    linux = hosts.driver(PLAIN, tmp_path, model="numa", used=stage.used)
    start(stage, linux)
    static = from_file(tmp_path, ADDITIONS)
    start(stage, static)
    assert stage.picture() == drawn(BOTH)
    for driver in (linux, static, hosts.driver(PLAIN, tmp_path, model="numa")):
        assert not periodic(stage, driver)
    assert not start(stage, from_file(tmp_path, ADDITIONS))

    start(stage, hosts.driver(PLAIN, tmp_path))
    assert "cn1_NUMA0  CUSTOM_CACHE=2  CUSTOM_OWNER_BERTH" in stage.picture()
    assert "cn1_NUMA1" not in stage.picture()
    start(stage, hosts.driver(PLAIN, tmp_path, model="numa"))
    assert stage.picture() == drawn(BOTH)

    periodic(stage, from_file(tmp_path, "{}"))
    assert stage.picture() == drawn(BOTH.replace(OWN, "")), "who it added to cannot be told"


def test_the_children_of_a_renamed_host_are_named_anew(stage: Stage, tmp_path: Path) -> None:
    """No provider is created again: each driver finds its own under the old names."""
    devices = [{"type": "nvidia-222"}]
    tree = empty_tree()
    linux = hosts.driver(GPU_HOST, tmp_path, model="numa", huge_pages="providers", mdev=devices)
    static = from_file(tmp_path, ADDITIONS)
    for driver in (linux, static):
        driver.update_provider_tree(tree, "cn1")
    before = {data.uuid: data.name for data in map(tree.data, tree.get_provider_uuids())}
    tree.rename("cn1", "pci_rack_9")
    for driver in (linux, static):
        driver.update_provider_tree(tree, "pci_rack_9")
    after = {data.uuid: data.name for data in map(tree.data, tree.get_provider_uuids())}
    assert after == {uuid: name.replace("cn1", "pci_rack_9") for uuid, name in before.items()}
    tree.rename("pci_rack_9", "cn1")
    report(linux, tree)
    static.update_provider_tree(tree, "cn1")
    assert {data.uuid: data.name for data in map(tree.data, tree.get_provider_uuids())} == before


def test_a_child_of_the_file_that_was_not_marked_is_its_own(tmp_path: Path) -> None:
    """A pass was killed right after creating it: its uuid identifies it, and it is deleted with its
    entry."""
    tree = empty_tree()
    from_file(tmp_path, ADDITIONS).update_provider_tree(tree, "cn1")
    tree.remove_traits("cn1_disk", "CUSTOM_OWNER_BERTH_STATIC")
    from_file(tmp_path, ADDITIONS).update_provider_tree(tree, "cn1")
    from_file(tmp_path, "{}").update_provider_tree(tree, "cn1")
    assert not tree.exists("cn1_disk")
