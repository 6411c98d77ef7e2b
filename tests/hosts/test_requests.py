# SPDX-License-Identifier: Apache-2.0
"""The requests that a host's reports send, counted (spec/compute-side.md 2.4): providers over
capacity and usages are followed at a cost of one or two in an idle pass.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from berth.hosts.drivers.static import make_driver
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from berth.hosts.service import Answer, Transport
from berth.hosts.tracker import KnownUsages
from berth.hosts.tree_watch import OverFull, TreeView, TreeWatch
from tests.hosts.hosts import AsPlacement, node, tracker
from tests.hosts.stage import Stage, drawn

#: Providers and consumers of a host, and how many requests the original needs for its start and for
#: a pass in which nothing has changed.
ORIGINAL = {(1, 0): (5, 1), (9, 10): (47, 19), (65, 100): (361, 165)}

#: The same of this agent, as docs/agent.md has it: on OpenStack Placement, with the request that
#: finds out that it is that; and on berth, which shows whole trees.
ON_PLACEMENT = {(1, 0): (5, 1), (9, 10): (29, 1), (65, 100): (197, 1)}
ON_BERTH = (1, 1)


class Still:
    """A host that changes nothing."""

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Leave the tree as it is."""


class WithTrait:
    """A host with one trait."""

    def __init__(self, trait: str) -> None:
        self._trait = trait

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Add the trait to the root."""
        provider_tree.add_traits(nodename, "HW_CPU_X86_AVX2", self._trait)


class Upgraded:
    """A service that knows a trait only after its upgrade."""

    def __init__(self, transport: Transport, trait: str) -> None:
        self._transport = transport
        self._trait = trait
        self.is_new = False

    def request(self, url: str, method: str, **options: Any) -> Answer:
        """Send a request; the old release does not know the trait."""
        if not self.is_new and url.startswith("/traits?"):
            url = url.replace(self._trait, "HW_CPU_X86_AVX2")
        return self._transport.request(url, method, **options)


SERVICES = ["berth"]


@pytest.mark.parametrize("is_placement", [True, False], ids=["Placement", "berth"])
@pytest.mark.parametrize(("providers", "consumers"), ORIGINAL)
def test_a_pass_costs_what_the_page_says(
    stage: Stage, providers: int, consumers: int, is_placement: bool
) -> None:
    """Less than nova's: allocations are read only if something moves."""
    stage.show(
        "cn1  VCPU=1000\n"
        + "".join(f"  cn1_child{number}  VGPU=4\n" for number in range(providers - 1))
        + "".join(f"i{number}: cn1 VCPU=1\n" for number in range(consumers))
    )
    client = ReportClient(AsPlacement(stage.transport, is_one=is_placement))
    reports = tracker(client, Still())
    reports.report(node(), startup=True)
    start = client.service.requests.total()
    reports.report(node(), startup=False)
    idle = client.service.requests.total() - start
    expected = ON_PLACEMENT[providers, consumers] if is_placement else ON_BERTH
    assert (start, idle) == expected
    assert start <= ORIGINAL[providers, consumers][0]
    assert idle <= ORIGINAL[providers, consumers][1]
    assert set(client.service.requests) == {"GET"}


def test_a_pool_that_others_use_all_the_time_costs_no_more(stage: Stage) -> None:
    """The pool is listed and read again from time to time."""
    stage.show(
        """
        nfs  DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE  @A
        cn1  VCPU=8  @A
        """
    )
    now = [0.0]
    client = ReportClient(stage.transport, clock=lambda: now[0])
    reports = tracker(client, Still())
    reports.report(node(), startup=True)
    costs = []
    for now[0] in 60.0, 120.0, 300.0, 360.0:
        stage.hold("elsewhere", f"nfs DISK_GB={int(now[0])}")
        client.service.requests.clear()
        reports.report(node(), startup=False)
        costs.append(dict(client.service.requests))
    assert costs == [{"GET": 1}, {"GET": 1}, {"GET": 5}, {"GET": 1}]


def test_a_trait_that_the_service_does_not_know_is_asked_for_once_an_hour(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """A host may have a newer os-traits. The agent logs it once, and passes stay idle."""
    now = [0.0]
    client = ReportClient(AsPlacement(stage.transport), clock=lambda: now[0])
    reports = tracker(client, WithTrait("HW_CPU_X86_NOT_YET"))
    reports.report(node(), startup=True)
    costs = []
    for now[0] in 10.0, 3590.0, 3700.0, 3710.0:
        client.service.requests.clear()
        reports.report(node(), startup=False)
        costs.append(dict(client.service.requests))
    # After an hour the traits are asked for, and the tree is read anew: its list, and three more.
    # And whether the service is berth by now.
    assert costs == [{"GET": 1}, {"GET": 1}, {"GET": 6}, {"GET": 1}]
    assert stage.picture() == drawn("cn1  HW_CPU_X86_AVX2")
    assert caplog.text.count("does not know the traits HW_CPU_X86_NOT_YET") == 1


def test_a_trait_that_an_upgraded_service_knows_is_not_taken_from_who_has_it(stage: Stage) -> None:
    """An operator has added it before the agent looks the trait up again after an hour."""
    stage.show("cn1  VCPU=8")
    service = Upgraded(AsPlacement(stage.transport), "HW_CPU_X86_AVX512F")
    now = [0.0]
    client = ReportClient(service, clock=lambda: now[0])
    reports = tracker(client, WithTrait("HW_CPU_X86_AVX512F"))
    reports.report(node(), startup=True)
    assert stage.picture() == drawn("cn1  VCPU=8  HW_CPU_X86_AVX2")
    service.is_new = True
    stage.trait("cn1", "HW_CPU_X86_AVX512F")
    for now[0] in 60.0, 120.0, 3700.0:
        reports.report(node(), startup=False)
        assert stage.picture() == drawn("cn1  VCPU=8  HW_CPU_X86_AVX2  HW_CPU_X86_AVX512F")


WATCHED = """
    cn1  VCPU=8
      cn1_gpu0  VGPU=4  CUSTOM_OWNER_BERTH
      cn1_agent  CUSTOM_VNIC_TYPE_NORMAL
    i1: cn1 VCPU=6
"""


class Processors:
    """A host with some processors."""

    def __init__(self, total: int) -> None:
        self.total = total

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        provider_tree.update_inventory(nodename, {"VCPU": {"total": self.total}})


class Watched:
    """An agent's passes, with a check after each."""

    def __init__(self, stage: Stage, host: Processors) -> None:
        self.now = 0.0
        self._client = ReportClient(stage.transport, refresh_s=1e9, clock=lambda: self.now)
        self._tracker = tracker(self._client, host)
        self._watch = TreeWatch(self._client, lambda: self.now)

    def passes(self, *, startup: bool = False) -> tuple[TreeView, int]:
        """What a pass has found, and its number of requests."""
        before = self._client.service.requests.total()
        plan = self._tracker.report(node(), startup=startup)
        view = self._watch.look(node(), plan)
        return view, self._client.service.requests.total() - before


TOO_FULL = (OverFull("cn1", "VCPU", 6, 4),)


def test_what_becomes_too_small_is_told_at_once(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged once, and again when the capacity suffices."""
    caplog.set_level(logging.INFO)
    stage.show(WATCHED)
    host = Processors(8)
    watched = Watched(stage, host)
    assert watched.passes(startup=True)[0] == TreeView(providers=3, others=1)
    host.total = 4
    assert watched.passes()[0].over_full == TOO_FULL
    assert watched.passes()[0].over_full == TOO_FULL
    assert caplog.text.count("cn1 has 4 VCPU, and 6 is used") == 1
    stage.hold("i1", "cn1 VCPU=4")
    assert watched.passes()[0].over_full == ()
    assert "cn1 has enough VCPU again" in caplog.text


def test_a_start_that_takes_away_knows_at_once(stage: Stage) -> None:
    """It sends no request for the rest: many hosts start at the same time."""
    stage.show(WATCHED)
    assert Watched(stage, Processors(4)).passes(startup=True)[0].over_full == TOO_FULL


def test_what_was_too_full_before_is_found_in_idle_passes(stage: Stage) -> None:
    """One provider in each pass, and again after an hour: two requests, and then one."""
    stage.show(WATCHED)
    Watched(stage, Processors(4)).passes(startup=True)
    watched = Watched(stage, Processors(4))
    view, requests = watched.passes(startup=True)
    assert (view.over_full, requests) == ((), 1)
    assert watched.passes() == (TreeView(3, 1, TOO_FULL), 2)
    assert [watched.passes()[1] for _ in range(3)] == [2, 1, 1]
    watched.now = 3600.0
    assert [watched.passes()[1] for _ in range(3)] == [2, 2, 1]


#: GPUs that leave the file, each with a holder.
LOST = 4


class Losing:
    """A host whose file no longer lists some GPUs that have allocations."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.now = 0.0
        client = ReportClient(stage.transport, refresh_s=1e9, clock=lambda: self.now)
        self._requests = client.service.requests
        file = folder / "host.yaml"
        driver = make_driver({"file": str(file), "state": str(folder / "owned.json")})
        driver.used = KnownUsages(client, lambda: self.now).used
        self._tracker = tracker(client, driver)
        whole = "inventories: {VCPU: {total: 16}}\n"
        gpus = "".join(
            f"- {{name: $NODE_gpu{number}, inventories: {{VGPU: {{total: 4}}}}}}\n"
            for number in range(LOST)
        )
        file.write_text(f"{whole}children:\n{gpus}")
        self.passes(startup=True)
        for number in range(LOST):
            stage.hold(f"i{number}", f"cn1_gpu{number} VGPU=1")
        file.write_text(whole)
        self.passes()

    def passes(self, *, startup: bool = False) -> int:
        """The number of requests of each pass, a minute after the one before."""
        self.now += 60.0
        before = self._requests.total()
        self._tracker.report(node(), startup=startup)
        return self._requests.total() - before


def test_an_idle_pass_asks_for_the_use_of_one_of_them_at_most(stage: Stage, tmp_path: Path) -> None:
    """It used to ask for each of them in every pass."""
    agent = Losing(stage, tmp_path)
    agent.passes()  # their generations have moved when they were closed
    assert [agent.passes() for _ in range(3 * LOST)] == [2] * 3 * LOST


@pytest.mark.parametrize("let_go", [range(LOST), range(LOST)[::-1]], ids=["first", "last"])
def test_what_is_let_go_goes(stage: Stage, tmp_path: Path, let_go: range) -> None:
    """Each usage is read in its turn, also when others have been removed or stay: a release moves
    no generation."""
    agent = Losing(stage, tmp_path)
    agent.passes()
    for gone, number in enumerate(let_go, start=1):
        stage.release(f"i{number}")
        for _ in range(LOST):
            agent.passes()
        assert stage.picture().count("VGPU=4") == LOST - gone
