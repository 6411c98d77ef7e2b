# SPDX-License-Identifier: Apache-2.0
"""Reports to berth, which reads and writes a tree in one request (spec/beyond.md 6.3)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.api.berth_v1 import trees
from berth.hosts.plan import Allocations, Plan
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from berth.hosts.service import Answer, Transport
from berth.hosts.tree_watch import TreeWatch
from berth.store import provider_trees
from tests.effort import scaled
from tests.hosts.hosts import AsPlacement, node, tracker
from tests.hosts.stage import Stage, drawn
from tests.worlds import aggregate_uuid, provider_uuid

CN1 = provider_uuid("cn1")
DRAINS = "/berth/v1/drains"


SERVICES = ["berth"]


class Logged:
    """A transport that notes each request with its status."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.seen: list[tuple[str, int]] = []

    def request(self, url: str, method: str, **options: Any) -> Answer:
        answer = self._transport.request(url, method, **options)
        self.seen.append((method, answer.status_code))
        return answer

    def taken(self) -> list[tuple[str, int]]:
        """The requests since the last call."""
        seen, self.seen = self.seen, []
        return seen


class Forbidding(Logged):
    """A service whose policy keeps hosts from whole trees."""

    def request(self, url: str, method: str, **options: Any) -> Answer:
        """Send a request, one for a tree without the role that it needs."""
        if url.startswith("/berth/"):
            options["headers"] = {**options.get("headers", {}), "X-Roles": "nobody"}
        return super().request(url, method, **options)


class Machine:
    """A host with two NUMA nodes, and a GPU on each."""

    def __init__(self) -> None:
        self.cpus = 16

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Make everything as it is."""
        for number in range(2):
            numa, gpu = f"{nodename}_numa{number}", f"{nodename}_gpu{number}"
            for name, parent in ((numa, nodename), (gpu, numa)):
                if not provider_tree.exists(name):
                    provider_tree.new_child(name, parent)
            provider_tree.update_inventory(numa, {"VCPU": {"total": self.cpus}})
            provider_tree.add_traits(numa, "HW_NUMA_ROOT")
            provider_tree.update_inventory(gpu, {"CUSTOM_GPU": {"total": 1}})
            provider_tree.add_traits(gpu, "CUSTOM_A100")
        provider_tree.update_inventory(nodename, {"DISK_GB": {"total": 1000}})


MACHINE = """
    cn1  DISK_GB=1000
      cn1_numa0  VCPU=16  HW_NUMA_ROOT
        cn1_gpu0  CUSTOM_GPU=1  CUSTOM_A100
      cn1_numa1  VCPU=16  HW_NUMA_ROOT
        cn1_gpu1  CUSTOM_GPU=1  CUSTOM_A100
"""


def test_a_new_host_costs_three_requests_and_an_idle_pass_one(stage: Stage) -> None:
    """With two NUMA nodes, two GPUs, and names that are new too; a change costs two."""
    transport = Logged(stage.transport)
    host = Machine()
    reports = tracker(ReportClient(transport), host)
    reports.report(node(), startup=True)
    assert transport.taken() == [("GET", 404), ("PUT", 201), ("PUT", 200)]
    assert stage.picture() == drawn(MACHINE)
    for _ in range(2):
        assert not reports.report(node(), startup=False)
        assert transport.taken() == [("GET", 304)]
    host.cpus = 32
    reports.report(node(), startup=False)
    assert transport.taken() == [("GET", 304), ("PUT", 200)]
    assert stage.picture() == drawn(MACHINE.replace("VCPU=16", "VCPU=32"))
    reports.report(node(), startup=False)
    assert transport.taken() == [("GET", 304)]


def test_a_claim_is_no_conflict_and_is_seen(stage: Stage) -> None:
    """The next pass reads the tree again, in one request."""
    transport = Logged(stage.transport)
    client = ReportClient(transport)
    reports = tracker(client, Machine())
    reports.report(node(), startup=True)
    stage.hold("i1", "cn1_numa0 VCPU=2")
    transport.taken()
    reports.report(node(), startup=False)
    assert transport.taken() == [("GET", 200)]
    numa0 = stage.uuid_of("cn1_numa0")
    assert client.last_known_generation(numa0) == stage.generation_of("cn1_numa0")
    tree = client.get_provider_tree_and_ensure_root(None, CN1)
    stage.hold("i2", "cn1_numa0 VCPU=2")
    tree.add_traits("cn1", "COMPUTE_NODE")
    transport.taken()
    client.update_from_provider_tree(None, tree)
    assert transport.taken() == [("PUT", 200)]


def test_a_tree_that_others_edit_before_the_answer_is_read_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to the write has no tree then; the next pass must not begin with an old one."""
    client = ReportClient(stage.transport)
    reports = tracker(client, host := Machine())
    reports.report(node(), startup=True)
    edit_tree = provider_trees.edit_tree

    def followed_by_another(*arguments: Any, **options: Any) -> Any:
        edit = edit_tree(*arguments, **options)
        stage.trait("cn1_numa0", "CUSTOM_RACK_7")
        return edit

    host.cpus = 32
    with monkeypatch.context() as racing:
        racing.setattr(trees, "edit_tree", followed_by_another)
        reports.report(node(), startup=False)
    host.cpus = 64
    reports.report(node(), startup=False)
    expected = MACHINE.replace("VCPU=16", "VCPU=64")
    expected = expected.replace("VCPU=64  HW_NUMA", "VCPU=64  CUSTOM_RACK_7  HW_NUMA", 1)
    assert stage.picture() == drawn(expected)


def test_a_service_that_is_replaced_while_its_hosts_run(stage: Stage) -> None:
    """berth, then OpenStack Placement, then berth, which is found out within the hour."""
    now = [0.0]
    service = AsPlacement(stage.transport, is_one=False)
    transport = Logged(service)
    host = Machine()
    reports = tracker(ReportClient(transport, clock=lambda: now[0]), host)
    reports.report(node(), startup=True)
    service.is_one, host.cpus, now[0] = True, 32, 60.0
    transport.taken()
    reports.report(node(), startup=False)
    assert ("GET", 404) in transport.taken()
    assert stage.picture() == drawn(MACHINE.replace("VCPU=16", "VCPU=32"))
    service.is_one, host.cpus, now[0] = False, 8, 120.0
    reports.report(node(), startup=False)
    assert all(status == 200 for _, status in transport.taken())
    now[0] = 3720.0
    reports.report(node(), startup=False)
    now[0] = 3780.0
    transport.taken()
    reports.report(node(), startup=False)
    assert transport.taken() == [("GET", 304)]
    assert stage.picture() == drawn(MACHINE.replace("VCPU=16", "VCPU=8"))


def test_a_host_that_may_not_read_whole_trees_reports_by_the_old_routes(stage: Stage) -> None:
    """An operator's policy may know the old routes only."""
    transport = Forbidding(stage.transport)
    reports = tracker(ReportClient(transport), Machine())
    reports.report(node(), startup=True)
    assert transport.taken()[0] == ("GET", 403)
    assert stage.picture() == drawn(MACHINE)
    reports.report(node(), startup=False)
    assert transport.taken() == [("GET", 200)]


def test_the_log_says_when_the_host_is_drained(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, with the reason, and once when it no longer is; no idle pass costs more for it."""
    caplog.set_level(logging.INFO)
    transport = Logged(stage.transport)
    client = ReportClient(transport)
    reports, watch = tracker(client, Machine()), TreeWatch(client, lambda: 0.0)

    def passes() -> list[str]:
        caplog.clear()
        plan: Plan = reports.report(node(), startup=False)
        watch.look(node(), plan)
        return [each.getMessage() for each in caplog.records if each.name.startswith("berth.hosts")]

    passes()
    body = {"providers": ["cn1"], "reason": "new fans"}
    stage.transport.request(f"{DRAINS}/fans", "PUT", json=body)
    assert passes() == [
        "cn1 is drained by fans (new fans, by admin): nothing new is placed there",
    ]
    transport.taken()
    assert (passes(), transport.taken()) == ([], [("GET", 304)])
    stage.transport.request(f"{DRAINS}/fans", "DELETE")
    stage.transport.request(f"{DRAINS}/card", "PUT", json={"providers": ["cn1_gpu1"]})
    assert passes() == [
        "cn1 is no longer drained by fans",
        "cn1_gpu1 of cn1 is drained by card (by admin): nothing new is placed there",
    ]
    stage.transport.request(f"{DRAINS}/card", "DELETE")


# --- Both ways come to the same -------------------------------------------------------------------

NAMES = ("cn1", "a", "b", "c")
EDITS = st.one_of(
    st.tuples(st.just("new_child"), st.sampled_from(NAMES[1:]), st.sampled_from(NAMES)),
    st.tuples(st.just("remove"), st.sampled_from(NAMES[1:])),
    st.tuples(
        st.just("update_inventory"),
        st.sampled_from(NAMES),
        st.dictionaries(
            st.sampled_from(["VCPU", "CUSTOM_NEW"]),
            st.fixed_dictionaries({"total": st.integers(1, 9)}),
        ),
    ),
    st.tuples(
        st.just("update_traits"),
        st.sampled_from(NAMES),
        st.sets(st.sampled_from(["HW_NUMA_ROOT", "CUSTOM_GOLD", "COMPUTE_NODE"])),
    ),
    st.tuples(
        st.just("update_aggregates"),
        st.sampled_from(NAMES),
        st.sets(st.sampled_from([aggregate_uuid("A"), aggregate_uuid("B")])),
    ),
    st.tuples(st.just("rename"), st.sampled_from(NAMES[1:]), st.sampled_from(("d", "e"))),
    st.tuples(st.just("move"), st.sampled_from(NAMES[1:]), st.sampled_from(NAMES)),
)


@settings(
    max_examples=scaled(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.lists(EDITS, max_size=5), min_size=1, max_size=4))
def test_whole_trees_and_single_steps_come_to_the_same(
    stage: Stage, reports: list[list[tuple[Any, ...]]]
) -> None:
    """Whatever a driver does in its passes, with each provider's generation and all."""
    pictures = []
    stage.name_aggregates("A", "B")
    for is_one in True, False:
        client = ReportClient(AsPlacement(stage.transport, is_one=is_one))
        for edits in reports:
            tree = client.get_provider_tree_and_ensure_root(None, CN1, "cn1")
            for name, *arguments in edits:
                try:
                    getattr(tree, name)(*arguments)
                except ValueError:
                    continue
            client.update_from_provider_tree(None, tree)
            for data in map(tree.data, tree.get_provider_uuids()):
                assert client.last_known_generation(data.uuid) == stage.generation_of(data.name)
        pictures.append(stage.picture())
        stage.clear()
    assert pictures[0] == pictures[1]
