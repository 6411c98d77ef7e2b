# SPDX-License-Identifier: Apache-2.0
"""Providers over capacity are found soon, at a cost of at most two requests in an idle pass."""

from __future__ import annotations

import logging

import pytest

from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from berth.hosts.tree_watch import OverFull, TreeView, TreeWatch
from tests.hosts.hosts import node, tracker
from tests.hosts.stage import Stage

HOST = """
    cn1  VCPU=8
      cn1_gpu0  VGPU=4  CUSTOM_OWNER_BERTH
      cn1_agent  CUSTOM_VNIC_TYPE_NORMAL
    i1: cn1 VCPU=6
"""


SERVICES = ["berth"]


class Host:
    """A host with some processors."""

    def __init__(self, total: int) -> None:
        self.total = total

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Report their number."""
        provider_tree.update_inventory(nodename, {"VCPU": {"total": self.total}})


class Watched:
    """An agent's passes, with a check after each."""

    def __init__(self, stage: Stage, host: Host) -> None:
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
    stage.show(HOST)
    host = Host(8)
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
    stage.show(HOST)
    assert Watched(stage, Host(4)).passes(startup=True)[0].over_full == TOO_FULL


def test_what_was_too_full_before_is_found_in_idle_passes(stage: Stage) -> None:
    """One provider in each pass, and again after an hour: two requests, and then one."""
    stage.show(HOST)
    Watched(stage, Host(4)).passes(startup=True)
    watched = Watched(stage, Host(4))
    view, requests = watched.passes(startup=True)
    assert (view.over_full, requests) == ((), 1)
    assert watched.passes() == (TreeView(3, 1, TOO_FULL), 2)
    assert [watched.passes()[1] for _ in range(3)] == [2, 1, 1]
    watched.now = 3600.0
    assert [watched.passes()[1] for _ in range(3)] == [2, 2, 1]
