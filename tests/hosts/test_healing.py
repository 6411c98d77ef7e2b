# SPDX-License-Identifier: Apache-2.0
"""Guests that use more than is allocated to them: scenario J of spec/compute-side.md 8."""

from __future__ import annotations

import pytest

from berth.hosts import BadProviderTree, ReshapeNeeded
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from tests.hosts.drivers import GPUHost, PCIHost
from tests.hosts.hosts import AFTER, BEFORE, gpu_host, node, tracker
from tests.hosts.stage import Stage, consumer_uuid, drawn

CARD, VF = "0000:81:00.0", "CUSTOM_PCI_8086_1528"

UNTOLD = """
    cn1  VCPU=8
    i1: cn1 VCPU=1
"""

HEALED = f"""
    cn1  VCPU=8
      cn1_{CARD}  {VF}=2  COMPUTE_MANAGED_PCI_DEVICE  OWNER_NOVA
    i1: cn1 VCPU=1, cn1_{CARD} {VF}=2
"""


def pci_host(**guests: int) -> PCIHost:
    """The host cn1, with two functions of one card."""
    had = {consumer_uuid(name): {CARD: count} for name, count in guests.items()}
    return PCIHost(VF, {CARD: 2}, had)


@pytest.mark.parametrize("startup", [True, False], ids=["at the start", "later"])
def test_what_guests_have_is_added_to_what_they_hold(stage: Stage, startup: bool) -> None:
    """Scenario J: in any pass, with one reshape; the second pass sends nothing."""
    stage.show(UNTOLD)
    client = ReportClient(stage.transport)
    reporter = tracker(client, pci_host(i1=2))
    assert reporter.report(node(), startup=startup).is_reshape
    assert stage.picture() == drawn(HEALED)
    client.service.requests.clear()
    assert not reporter.report(node(), startup=startup)
    assert set(client.service.requests) == {"GET"}
    again = ReportClient(stage.transport)
    assert not tracker(again, pci_host(i1=2)).report(node(), startup=startup)
    assert set(again.service.requests) == {"GET"}


def test_who_holds_nothing_is_told_and_gets_nothing(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """The guest is lost or about to move, and its project is unknown: the agent only logs it."""
    stage.show(UNTOLD)
    reporter = tracker(ReportClient(stage.transport), pci_host(i1=1, i2=1))
    reporter.report(node(), startup=False)
    assert stage.picture() == drawn(
        HEALED.replace(f"1, cn1_{CARD} {VF}=2", f"1, cn1_{CARD} {VF}=1")
    )
    assert f"Consumer {consumer_uuid('i2')} uses 1 {VF} but has no allocation" in caplog.text


def test_more_than_there_is_is_refused(stage: Stage) -> None:
    """Before anything is sent."""
    stage.show(UNTOLD)
    reporter = tracker(ReportClient(stage.transport), pci_host(i1=3))
    with pytest.raises(BadProviderTree, match=f"cn1_{CARD} has 2 {VF}, but 3 are needed"):
        reporter.report(node(), startup=False)
    assert stage.picture() == drawn(UNTOLD)


class Growing(GPUHost):
    """A host that reports what guests use, and allocates something else."""

    who = "i1"
    actual = 0

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Allocate more vGPUs to its guests."""
        if allocations is None and "VGPU" in provider_tree.data(nodename).inventory:
            guest = consumer_uuid(self.who)
            usage = {guest: {"VGPU": self.actual}} if self.actual else None
            raise ReshapeNeeded(actual_usage=usage)
        super().update_provider_tree(provider_tree, nodename, allocations)


@pytest.mark.parametrize(
    ("actual", "told"),
    [
        (0, "holds 1 VGPU and would have 2"),
        (1, "holds 1 VGPU and would have 2"),
        (3, "holds 1 VGPU, actually uses 3 and would have 2"),
        (2, ""),
    ],
)
def test_what_grows_has_to_be_said(stage: Stage, actual: int, told: str) -> None:
    """Scenario A2: the new amounts must be exactly those of the actual usage; then moving and
    growing are one request."""
    stage.show(BEFORE)
    host = Growing(
        {"84": 4, "85": 4}, gpu_host(i1={"84": 1, "85": 1}, i2={"84": 2}, i3={"85": 1}).guests
    )
    host.actual = actual
    reporter = tracker(ReportClient(stage.transport), host)
    if told:
        with pytest.raises(BadProviderTree, match=f"consumer {consumer_uuid('i1')} {told}$"):
            reporter.report(node(), startup=True)
        assert stage.picture() == drawn(BEFORE)
    else:
        reporter.report(node(), startup=True)
        assert (
            "i1: cn1 MEMORY_MB=2048 VCPU=2, cn1_pci_84 VGPU=1, cn1_pci_85 VGPU=1" in stage.picture()
        )


def test_who_uses_less_than_it_holds_keeps_all_of_it(stage: Stage) -> None:
    """A stopped guest uses nothing for now; only an undo removes allocations."""
    stage.show(BEFORE)
    host = Growing({"84": 4, "85": 4}, gpu_host(i1={"84": 1}, i2={"84": 2}, i3={"85": 1}).guests)
    host.who, host.actual = "i2", 1
    tracker(ReportClient(stage.transport), host).report(node(), startup=True)
    assert stage.picture() == drawn(AFTER)


class Moving(PCIHost):
    """A host that moves allocations while it adds missing ones."""

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Move the VCPUs to a child."""
        super().update_provider_tree(provider_tree, nodename, allocations)
        if allocations is None:
            return
        child = provider_tree.new_child("numa0", nodename)
        provider_tree.update_inventory(child, {"VCPU": {"total": 8}})
        for body in allocations.values():
            body["allocations"][child] = body["allocations"].pop(provider_tree.data(nodename).uuid)


def test_nothing_moves_while_it_is_healed(stage: Stage) -> None:
    """Moving is only allowed at the start."""
    stage.show(UNTOLD)
    host = Moving(VF, {CARD: 2}, {consumer_uuid("i1"): {CARD: 2}})
    reporter = tracker(ReportClient(stage.transport), host)
    with pytest.raises(
        BadProviderTree, match="would hold 0 VCPU of cn1 instead of 1, but allocations"
    ):
        reporter.report(node(), startup=False)
    assert stage.picture() == drawn(UNTOLD)
    reporter.report(node(), startup=True)
    assert f"i1: cn1_{CARD} {VF}=2, numa0 VCPU=1" in stage.picture()
