# SPDX-License-Identifier: Apache-2.0
"""Hosts that change the structure of their trees, or are interrupted while they do: scenarios of
spec/compute-side.md 8.
"""

from __future__ import annotations

from typing import Any

import pytest

from berth.hosts import BadProviderTree, Conflict, ReshapeFailed, ReshapeNeeded
from berth.hosts.errors import NameTaken
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from tests.hosts.drivers import GPUHost, PCIHost
from tests.hosts.hosts import (
    AFTER,
    BEFORE,
    AsPlacement,
    Falling,
    Interrupted,
    gpu_host,
    lost_connection,
    node,
    periodic,
    start,
    three_guests,
    tracker,
)
from tests.hosts.scenarios import (
    AGENT,
    AGENT_AFTER,
    CARD,
    HEALED,
    SCENARIOS,
    SPLIT,
    UNTOLD,
    VF,
    Merging,
    Scenario,
    pci_host,
)
from tests.hosts.stage import Stage, consumer_uuid, drawn
from tests.worlds import aggregate_uuid, provider_uuid

CN1 = provider_uuid("cn1")


def look(client: ReportClient, host: Any) -> tuple[ProviderTree, Allocations]:
    """What a host wants of the tree and the allocations that the service has now."""
    tree = client.get_provider_tree_and_ensure_root(None, CN1, "cn1")
    allocations = client.get_allocations_for_provider_tree(None, "cn1")
    host.update_provider_tree(tree, "cn1", allocations)
    return tree, allocations


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_host_is_reshaped_at_its_start(stage: Stage, scenario: Scenario) -> None:
    """In one request; a second start changes nothing (H1), and others are not written to."""
    stage.show(scenario.before)
    before = [stage.generation_of(name) for name in scenario.still]
    client = ReportClient(stage.transport)
    assert start(client, scenario.driver).is_reshape
    assert client.service.requests["POST"] >= 1
    assert stage.picture() == drawn(scenario.after)
    assert [stage.generation_of(name) for name in scenario.still] == before
    for again in client, ReportClient(stage.transport):
        again.service.requests.clear()
        assert not start(again, scenario.driver)
        assert set(again.service.requests) == {"GET"}


GUESTS = {"i1": {"84": 1}, "i2": {"84": 2}, "i3": {"85": 1}}


@pytest.mark.parametrize(
    ("world", "driver", "error", "faults"),
    [
        # A2: amounts neither grow nor shrink.
        (
            BEFORE,
            gpu_host(i1={"84": 1, "85": 1}, i2={"84": 1}, i3={"85": 1}),
            BadProviderTree,
            ["i1 holds 1 VGPU and would have 2", "i2 holds 2 VGPU and would have 1"],
        ),
        # A3: a guest without a device.
        (BEFORE, gpu_host(i1={"84": 1}, i2={"84": 2}), ReshapeFailed, ["i3 has no vGPU"]),
        (
            BEFORE,
            GPUHost({"84": 2, "85": 4}, three_guests().guests),
            BadProviderTree,
            ["cn1_pci_84 has 2 VGPU, but 3 are needed"],
        ),
        # I, without moving the allocations.
        (
            SPLIT,
            Merging(moves=False),
            BadProviderTree,
            ["g1 would lose its VGPU, of which 3 are allocated"],
        ),
        (UNTOLD, pci_host(i1=3), BadProviderTree, [f"cn1_{CARD} has 2 {VF}, but 3 are needed"]),
    ],
    ids=["A2", "A3", "too small", "I", "J"],
)
def test_what_cannot_be_is_told_and_nothing_changes(
    stage: Stage, world: str, driver: Any, error: type[Exception], faults: list[str]
) -> None:
    """Before anything is sent; no child remains."""
    stage.show(world)
    with pytest.raises(error) as refused:
        start(ReportClient(stage.transport), driver)
    for fault in faults:
        who, _, what = fault.partition(" ")
        named = f"consumer {consumer_uuid(who)} {what}" if who in ("i1", "i2", "i3") else fault
        assert named in str(refused.value)
    assert stage.picture() == drawn(world)


@pytest.mark.parametrize("happens", ["a guest", "a trait", "a guest goes", "a migration begins"])
def test_somebody_was_quicker(stage: Stage, happens: str) -> None:
    """Scenarios F, F2, F3, F5: a conflict, and nothing changes; after another read it succeeds."""
    stage.show(BEFORE)
    client = ReportClient(stage.transport)
    host = gpu_host(**GUESTS, i4={"85": 1}, m1={"84": 1})
    tree, allocations = look(client, host)
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


# --- Others in the tree ---------------------------------------------------------------------------


def test_another_agent_may_write_its_own_meanwhile(stage: Stage) -> None:
    """Scenario G2: the reshape does not name its providers, so it causes no conflict."""
    stage.show(AGENT)
    client = ReportClient(stage.transport)
    tree, allocations = look(client, gpu_host(i1={"84": 1}))
    stage.trait("bridge", "CUSTOM_NEW")
    client.update_from_provider_tree(None, tree, allocations)
    assert stage.picture() == drawn(AGENT_AFTER.replace("PHYS1", "PHYS1  CUSTOM_NEW"))


def test_another_agent_may_delete_its_own_meanwhile(stage: Stage) -> None:
    """Scenario G3: a deleted provider is no error, and is noticed at once."""
    stage.show(AGENT)
    client = ReportClient(stage.transport)
    client.get_provider_tree_and_ensure_root(None, CN1, "cn1")
    stage.hold("i6", "cn1 VCPU=1")
    stage.remove("bridge")
    tracker(client, gpu_host(i1={"84": 1}), attempts_max=2).report(node(), startup=True)
    assert "bridge" not in stage.picture()
    assert "i1: cn1 VCPU=1, cn1_pci_84 VGPU=1" in stage.picture()


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
    tree = ReportClient(stage.transport).get_provider_tree_and_ensure_root(None, CN1)
    shared = [tree.has_sharing_provider(name) for name in ("DISK_GB", "FPGA", "VGPU")]
    assert shared == [True, True, False]


def test_a_root_is_made_with_its_name(stage: Stage) -> None:
    """The first read creates it, the second finds it. Scenario L: a host that comes back with
    another uuid is refused."""
    for _ in range(2):
        client = ReportClient(stage.transport)
        tree = client.get_provider_tree_and_ensure_root(None, provider_uuid("cn7"), "cn7")
        assert [root.name for root in tree.roots] == ["cn7"]
    with pytest.raises(NameTaken, match="cn7"):
        client.get_provider_tree_and_ensure_root(None, provider_uuid("new"), "cn7")


# --- Guests that use more than is allocated to them -----------------------------------------------


def test_what_guests_have_is_added_in_any_pass(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """The second pass sends nothing. A guest without allocations is lost or about to move, and its
    project is unknown: the agent only logs it."""
    stage.show(UNTOLD)
    client = ReportClient(stage.transport)
    reporter = tracker(client, pci_host(i1=1, i2=1))
    assert reporter.report(node(), startup=False).is_reshape
    once = HEALED.replace(f"1, cn1_{CARD} {VF}=2", f"1, cn1_{CARD} {VF}=1")
    assert stage.picture() == drawn(once)
    assert f"Consumer {consumer_uuid('i2')} uses 1 {VF} but has no allocation" in caplog.text
    client.service.requests.clear()
    assert not reporter.report(node(), startup=False)
    assert set(client.service.requests) == {"GET"}


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
    guests = {**GUESTS, "i1": {"84": 1, "85": 1}}
    host = Growing({"84": 4, "85": 4}, gpu_host(**guests).guests)
    host.actual = actual
    if told:
        with pytest.raises(BadProviderTree, match=f"consumer {consumer_uuid('i1')} {told}$"):
            start(ReportClient(stage.transport), host)
        assert stage.picture() == drawn(BEFORE)
    else:
        start(ReportClient(stage.transport), host)
        line = "i1: cn1 MEMORY_MB=2048 VCPU=2, cn1_pci_84 VGPU=1, cn1_pci_85 VGPU=1"
        assert line in stage.picture()


def test_who_uses_less_than_it_holds_keeps_all_of_it(stage: Stage) -> None:
    """A stopped guest uses nothing for now; only an undo removes allocations."""
    stage.show(BEFORE)
    host = Growing({"84": 4, "85": 4}, gpu_host(**GUESTS).guests)
    host.who, host.actual = "i2", 1
    start(ReportClient(stage.transport), host)
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
    client = ReportClient(stage.transport)
    with pytest.raises(BadProviderTree, match="would hold 0 VCPU of cn1 instead of 1, but alloc"):
        periodic(client, host)
    assert stage.picture() == drawn(UNTOLD)
    start(client, host)
    assert f"i1: cn1_{CARD} {VF}=2, numa0 VCPU=1" in stage.picture()


# --- Interrupted (H) ------------------------------------------------------------------------------

#: Two children, a trait for each, and then the reshape.
WRITES = 5


def consumers_in(picture: str) -> list[str]:
    """The lines of a drawing with allocations."""
    return [line.strip() for line in picture.splitlines() if line.strip()[2:3] == ":"]


@pytest.mark.parametrize("is_done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("at", range(WRITES + 1))
def test_a_start_that_is_killed_is_finished_by_the_next(
    stage: Stage, at: int, is_done: bool
) -> None:
    """H2 and H3, at every write, before and after the service has performed it: inventories and
    allocations are either all old or all new. There is no further write."""
    stage.show(BEFORE)
    falling = Falling(stage.transport, at=at, is_done=is_done, fault=Interrupted())
    if at == WRITES:
        start(ReportClient(falling), three_guests())
    else:
        with pytest.raises(Interrupted):
            start(ReportClient(falling), three_guests())
    between = consumers_in(stage.picture())
    has_moved = at == WRITES or (at == WRITES - 1 and is_done)
    assert between == consumers_in(drawn(AFTER if has_moved else BEFORE))
    start(ReportClient(stage.transport), three_guests())
    assert stage.picture() == drawn(AFTER)
    assert not start(ReportClient(stage.transport), three_guests())


@pytest.mark.parametrize("at", range(6))
def test_nothing_is_offered_without_its_traits(stage: Stage, at: int) -> None:
    """Where two new children take six writes, as at OpenStack Placement: after each of them."""
    stage.show("cn1  VCPU=16")
    falling = Falling(stage.transport, at=at, is_done=True, fault=Interrupted())
    with pytest.raises(Interrupted):
        start(ReportClient(AsPlacement(falling)), gpu_host())
    offers = [line for line in stage.picture().splitlines() if "VGPU" in line]
    assert all("CUSTOM_OWNER_BERTH" in line for line in offers)


@pytest.mark.parametrize("at", range(WRITES))
def test_an_answer_that_is_lost_is_no_failure(stage: Stage, at: int) -> None:
    """H4: the client reads the tree again, sees its change, and continues."""
    stage.show(BEFORE)
    falling = Falling(stage.transport, at=at, is_done=True, fault=lost_connection())
    reporter = tracker(ReportClient(falling), three_guests(), attempts_max=2)
    reporter.report(node(), startup=True)
    assert stage.picture() == drawn(AFTER)
