# SPDX-License-Identifier: Apache-2.0
"""PCI functions of a host with libvirt: scenario J of spec/compute-side.md 8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from berth.hosts import HealingNeeded
from berth.hosts.drivers.libvirt.driver import LibvirtDriver
from berth.hosts.drivers.libvirt.options import read_options
from berth.hosts.report_client import ReportClient
from tests.hosts.hosts import node, tracker
from tests.hosts.libvirt_hosts import RecordedHost, domain_xml, pci_xml
from tests.hosts.reporting import periodic, start
from tests.hosts.stage import Stage, consumer_uuid, drawn

CARD, VF = "0000:81:00.0", "CUSTOM_PCI_8086_1528"
ROOT = """cn1  VCPU=8(max:8)  MEMORY_MB=16384(max:16384)  HW_ARCH_X86_64  HW_CPU_X86_ABM
HW_CPU_X86_AMD_SVM  HW_CPU_X86_AVX2  HW_CPU_X86_SSE4A  HW_CPU_X86_SVM""".replace("\n", "  ")

BEFORE = f"""
    {ROOT}
    i1: cn1 VCPU=1
"""
AFTER = f"""
    {ROOT}
      cn1_{CARD}  {VF}=2(max:2)  CUSTOM_DIVIDED_INTO_VFS  CUSTOM_OWNER_BERTH  HW_NIC_SRIOV
    i1: cn1 VCPU=1, cn1_{CARD} {VF}=2
"""


def host(**guests: str) -> RecordedHost:
    """A host with two virtual functions of one card, and the functions that guests use."""
    made = RecordedHost(node_devices=[pci_xml(CARD, "8086:1520")])
    for number in (1, 2):
        made.node_devices.append(pci_xml(vf(number), "8086:1528", physical=CARD))
    for name, numbers in guests.items():
        functions = " ".join(vf(int(number)) for number in numbers)
        made.domains.append((domain_xml(consumer_uuid(name), functions=functions), True))
    return made


def vf(number: int) -> str:
    """The address of a virtual function."""
    return f"0000:81:00.{number}"


def driver(recorded: RecordedHost, **options: Any) -> LibvirtDriver:
    """A driver that offers the functions of the card."""
    said = {"disk": False, "pci": [{"functions_of": CARD}], **options}
    return LibvirtDriver(recorded, read_options(said))


@pytest.fixture
def stage(service_in_process: Stage) -> Iterator[Stage]:
    """An empty service in this process: the transport does not matter here."""
    yield service_in_process
    service_in_process.clear()


@pytest.mark.parametrize("report", [start, periodic])
def test_j_what_guests_have_is_added_to_what_they_hold(stage: Stage, report: Any) -> None:
    """Scenario J: one reshape in any pass; the second pass writes nothing, the third sends no extra
    request."""
    stage.show(BEFORE)
    libvirt = driver(host(i1="12"))
    assert report(stage, libvirt).is_reshape
    assert stage.picture() == drawn(AFTER)
    client = ReportClient(stage.transport)
    reporter = tracker(client, libvirt)
    assert not reporter.report(node(), startup=False)
    client.service.requests.clear()
    assert not reporter.report(node(), startup=False)
    assert client.service.requests.total() == 1
    assert not report(stage, driver(host(i1="12")))


def heal(stage: Stage, libvirt: LibvirtDriver) -> None:
    """Run two passes: the second uses what the first has read."""
    for _ in range(2):
        periodic(stage, libvirt)


def test_what_is_lost_or_new_is_healed_later(stage: Stage) -> None:
    """A guest gets a function, and another client deletes the allocations of a guest."""
    stage.show(BEFORE + "    i2: cn1 VCPU=1\n")
    recorded = host(i1="1")
    libvirt = driver(recorded)
    heal(stage, libvirt)
    assert f"i1: cn1 VCPU=1, cn1_{CARD} {VF}=1" in stage.picture()
    recorded.domains.append((domain_xml(consumer_uuid("i2"), functions=vf(2)), True))
    heal(stage, libvirt)
    assert f"i2: cn1 VCPU=1, cn1_{CARD} {VF}=1" in stage.picture()
    stage.hold("i1", "cn1 VCPU=1")
    periodic(stage, libvirt)
    assert f"i1: cn1 VCPU=1, cn1_{CARD} {VF}=1" in stage.picture()


def test_a_function_that_somebody_else_holds_is_told(stage: Stage) -> None:
    """The consumer's guest no longer exists: the agent logs it in passes and at a start; once it is
    released, the function is allocated.

    Until then each pass sends one request, to see whether it was released.
    """
    stage.show(BEFORE + "    i2: cn1 VCPU=1\n    gone: cn1 VCPU=1\n")
    recorded = host(i1="1")
    libvirt = driver(recorded)
    heal(stage, libvirt)
    stage.hold("gone", f"cn1 VCPU=1, cn1_{CARD} {VF}=1")
    recorded.domains.append((domain_xml(consumer_uuid("i2"), functions=vf(2)), True))
    before = stage.picture()
    assert not start(stage, driver(recorded))

    client = ReportClient(stage.transport)
    libvirt.used = client.get_usages
    reporter = tracker(client, libvirt)
    for _ in range(2):
        client.service.requests.clear()
        assert not reporter.report(node(), startup=False)
        assert libvirt.notices == (
            f"the guest of consumer {consumer_uuid('i2')} has 1 more {VF} of cn1_{CARD} than are "
            f"allocated to it, and no more fit: 2 can be allocated, and "
            f"consumer {consumer_uuid('gone')} holds 1, consumer {consumer_uuid('i1')} holds 1; "
            f"take from {consumer_uuid('gone')} what its guest does not use",
        )
    assert client.service.requests.total() == 2
    assert stage.picture() == before

    stage.release("gone")
    assert reporter.report(node(), startup=False).is_reshape
    assert f"i2: cn1 VCPU=1, cn1_{CARD} {VF}=1" in stage.picture()
    assert not libvirt.notices


@pytest.mark.parametrize("report", [start, periodic])
def test_a_function_that_is_reserved_is_told(stage: Stage, report: Any) -> None:
    """An operator drains the card: of a guest's two functions, one is added."""
    stage.show(
        f"""
        {ROOT}
          cn1_{CARD}  {VF}=2(reserved:1,max:2)  CUSTOM_DIVIDED_INTO_VFS  CUSTOM_OWNER_BERTH
        i1: cn1 VCPU=1
        """
    )
    libvirt = driver(host(i1="12"))
    report(stage, libvirt)
    assert f"i1: cn1 VCPU=1, cn1_{CARD} {VF}=1" in stage.picture()
    assert "has 1 more" in libvirt.notices[0]
    assert "1 can be allocated" in libvirt.notices[0]
    assert "reserve less than 1 of it" in libvirt.notices[0]
    stage.reserve(f"cn1_{CARD}", VF, 0)
    report(stage, libvirt)
    assert stage.picture() == drawn(AFTER)


def test_what_cannot_be_written_anew_is_told(stage: Stage) -> None:
    """A consumer has less than the min_unit that an operator has set since."""
    stage.show(BEFORE)
    stage.stock("cn1", "VCPU", total=8, max_unit=8, min_unit=2)
    libvirt = driver(host(i1="1"))
    heal(stage, libvirt)
    assert "i1: cn1 VCPU=1\n" in f"{stage.picture()}\n"
    (notice,) = libvirt.notices
    assert f"guest of consumer {consumer_uuid('i1')} has 1 more {VF} of cn1_{CARD}" in notice
    assert "holds 1 VCPU of cn1, where one consumer may have 2 to 8 in steps of 1" in notice


def test_who_asked_in_vain_asks_again(stage: Stage) -> None:
    """There is capacity by now, but the service fails at the first attempt; the next pass
    succeeds."""
    stage.show(BEFORE + "    i2: cn1 VCPU=1\n    gone: cn1 VCPU=1\n")
    recorded = host(i1="1")
    libvirt = driver(recorded)
    libvirt.used = stage.used
    heal(stage, libvirt)
    stage.hold("gone", f"cn1 VCPU=1, cn1_{CARD} {VF}=1")
    recorded.domains.append((domain_xml(consumer_uuid("i2"), functions=vf(2)), True))
    heal(stage, libvirt)
    stage.release("gone")
    tree = ReportClient(stage.transport).get_provider_tree_and_ensure_root(None, node().uuid, "cn1")
    for _ in range(2):
        with pytest.raises(HealingNeeded):
            libvirt.update_provider_tree(tree, "cn1")
    periodic(stage, libvirt)
    assert f"i2: cn1 VCPU=1, cn1_{CARD} {VF}=1" in stage.picture()


def test_a_migration_holds_what_its_instances_guest_has(stage: Stage) -> None:
    """A guest without allocations is healed as soon as it has some on the host."""
    stage.show(BEFORE.replace("i1: ", "m1: "))
    migrations = {consumer_uuid("m1"): consumer_uuid("i1")}
    libvirt = driver(host(i1="1", i2="2"), migrations=migrations)
    heal(stage, libvirt)
    assert f"m1: cn1 VCPU=1, cn1_{CARD} {VF}=1" in stage.picture()
    stage.hold("i2", "cn1 VCPU=1")
    periodic(stage, libvirt)
    assert f"i2: cn1 VCPU=1, cn1_{CARD} {VF}=1" in stage.picture()


def test_healing_and_a_move_are_one_step(stage: Stage) -> None:
    """The host is split by NUMA nodes at its start, and its guests lack allocations: one
    request."""
    stage.show(BEFORE)
    recorded = host(i1="12")
    recorded.node_devices[1:] = [
        pci_xml(vf(number), "8086:1528", physical=CARD, node=0) for number in (1, 2)
    ]
    assert start(stage, driver(recorded, model="numa")).is_reshape
    picture = stage.picture()
    assert f"i1: cn1_0000:81:00.0 {VF}=2, cn1_NUMA0 VCPU=1" in picture
    assert f"    cn1_{CARD}" in picture, "it is below its NUMA node"


def test_functions_that_are_gone_stay_until_they_are_let_go(stage: Stage) -> None:
    """One function of two, and then the card: the provider keeps what is allocated, and no more."""
    stage.show(BEFORE)
    recorded = host(i1="12")
    libvirt = driver(recorded)
    libvirt.used = stage.used
    start(stage, libvirt)
    del recorded.node_devices[2]
    periodic(stage, libvirt)
    assert f"cn1_{CARD}  {VF}=2(max:2)" in stage.picture()
    assert libvirt.notices == (f"cn1_{CARD} has 1 {VF}, and 2 are allocated",)
    recorded.node_devices.clear()
    periodic(stage, libvirt)
    assert f"cn1_{CARD}  {VF}=2(max:2)" in stage.picture()
    recorded.domains.clear()
    stage.hold("i1", "cn1 VCPU=1")
    periodic(stage, libvirt)
    assert stage.picture() == drawn(BEFORE)


def test_more_than_are_offered_is_not_asked_for(stage: Stage) -> None:
    """A function that no rule offers is ignored."""
    stage.show(BEFORE)
    libvirt = driver(host(i1="12"), pci=[{"address": vf(1)}])
    with pytest.raises(HealingNeeded) as needed:
        libvirt.update_provider_tree(
            ReportClient(stage.transport).get_provider_tree_and_ensure_root(
                None, node().uuid, "cn1"
            ),
            "cn1",
        )
    assert needed.value.actual_usage == {consumer_uuid("i1"): {VF: 1}}
