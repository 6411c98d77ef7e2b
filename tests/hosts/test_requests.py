# SPDX-License-Identifier: Apache-2.0
"""The requests that a host's reports send, counted (spec/compute-side.md 2.4)."""

from __future__ import annotations

from typing import Any

import pytest

from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from berth.hosts.service import Answer, Transport
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
