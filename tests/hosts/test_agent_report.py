# SPDX-License-Identifier: Apache-2.0
"""The agent's metrics and health (their names: tests/docs/test_pages.py)."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from berth.cli.agent_running import metrics_served_at
from berth.cli.failure import CommandFailed
from berth.hosts import BadProviderTree, ReshapeNeeded
from berth.hosts.agent import Agent, Orders, Woken
from berth.hosts.agent_report import AgentReport
from berth.hosts.plan import Plan
from berth.hosts.tracker import Node
from berth.hosts.tree_watch import OverFull, TreeView
from tests.exposed import Exposed

VIEW = TreeView(providers=3, others=1, over_full=(OverFull("cn1", "VCPU", 6, 4),))


class Host:
    """A tracker and a watch whose reports end as the test decides, at times of its own."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.report_s = 2.0
        self.fault: Exception | None = None
        self.without_fault = ""

    def report(self, node: Node, *, startup: bool) -> Plan:
        """Send one inventory, unless the test set an error."""
        self.now += self.report_s
        if self.fault is not None and node.name != self.without_fault:
            raise self.fault
        return Plan(inventories={"u": {}})

    def is_reshape_pending(self, node: Node) -> bool:
        """As the test set it."""
        return isinstance(self.fault, ReshapeNeeded)

    def look(self, node: Node, plan: Plan) -> TreeView:
        """Always return the same view."""
        return VIEW


@pytest.fixture
def host() -> Host:
    return Host()


def agent_of(host: Host, *names: str) -> Agent:
    """An agent that makes one more pass when it is run."""
    woken = iter([Woken.BY_TIME, Woken.TO_STOP] * 9)
    return Agent(
        lambda: Orders(
            host,
            [Node(f"uuid of {name}", name) for name in names],
            interval_s=60.0,
            start_patience_s=0.0,
            driver="static",
            watch=host,
        ),
        wait=lambda seconds: next(woken),
        clock=lambda: host.now,
        now=lambda: host.now,
        rng=Random(1),
    )


@pytest.fixture
def agent(host: Host) -> Agent:
    """An agent of one node."""
    return agent_of(host, "cn1")


def report(agent: Agent, host: Host) -> AgentReport:
    """The report of the agent."""
    return AgentReport(agent, Counter(GET=5, PUT=1), clock=lambda: host.now)


def test_metrics_tell_what_happened(agent: Agent, host: Host) -> None:
    """Each metric has its value."""
    agent.start()
    agent.run()
    host.fault = ReshapeNeeded()
    agent.run()
    _, body = report(agent, host).metrics("")
    metrics = Exposed(body.decode())
    values = {name: metrics.value(name, node="cn1") for name in metrics.names()}
    assert {
        name.removeprefix("berth_agent_"): value for name, value in values.items() if value
    } == {
        "last_success_timestamp_seconds": 1004.0,
        "reports_total": 2,
        "failures_total": 1,
        "changes_total": 2,
        "reshape_pending": 1,
        "providers": 3,
        "others_providers": 1,
        "over_full_providers": 1,
    }
    assert metrics.by("method", "berth_agent_requests_total") == {"GET": 5, "PUT": 1}
    assert metrics.value("berth_agent_pass_seconds_count") == 3
    assert metrics.value("berth_agent_pass_seconds_sum") == 6


def test_health_is_a_report_of_late(agent: Agent, host: Host) -> None:
    """It is false before the first report, and after three passes without one."""
    assert not report(agent, host).health()[0]
    agent.start()
    is_well, said = report(agent, host).health()
    assert is_well
    assert said["nodes"]["cn1"] == {
        "is_well": True,
        "last_success_s_ago": 0.0,
        "failures": 0,
        "error": None,
        "reshape_pending": False,
        "providers": 3,
        "over_full": [{"provider": "cn1", "resource_class": "VCPU", "used": 6, "capacity": 4}],
    }
    host.fault = BadProviderTree(["total is missing"])
    agent.run()
    assert report(agent, host).health()[0]
    host.now += 200
    is_well, said = report(agent, host).health()
    assert not is_well
    assert (said["status"], said["nodes"]["cn1"]["error"]) == ("unwell", "total is missing")


def test_every_node_has_to_be_reported(host: Host) -> None:
    """One that is late is told, however well the other is."""
    agent = agent_of(host, "cn1", "cn2")
    agent.start()
    host.now += 200
    host.fault, host.without_fault = BadProviderTree(["total is missing"]), "cn2"
    agent.run()
    is_well, said = report(agent, host).health()
    assert {name: node["is_well"] for name, node in said["nodes"].items()} == {
        "cn1": False,
        "cn2": True,
    }
    assert not is_well


def test_a_pass_over_many_nodes_may_take_its_time(agent: Agent, host: Host) -> None:
    """What is late is counted in intervals and passes."""
    host.report_s = 200
    agent.start()
    for later, is_well in ((3 * 260, True), (1, False)):
        host.now += later
        assert report(agent, host).health()[0] is is_well


def test_it_is_told_over_http(agent: Agent, host: Host) -> None:
    """`/healthz` is 503 if something is wrong, and has the same content."""
    with metrics_served_at("127.0.0.1", 0, report(agent, host)) as url:
        with pytest.raises(HTTPError) as unwell:
            urlopen(f"{url}/healthz", timeout=10)
        assert unwell.value.code == 503
        assert json.load(unwell.value)["status"] == "unwell"
        agent.start()
        with urlopen(f"{url}/healthz?pretty", timeout=10) as answer:
            assert json.load(answer)["nodes"]["cn1"]["is_well"]
        with urlopen(f"{url}/metrics", timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain")
            assert Exposed(answer.read().decode()).value("berth_agent_reports_total") == 1
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"{url}/", timeout=10)


def test_an_address_that_is_taken_is_told(agent: Agent, host: Host) -> None:
    """The error says where to configure another."""
    with metrics_served_at("127.0.0.1", 0, report(agent, host)) as url:
        port = int(url.rpartition(":")[2])
        with (
            pytest.raises(CommandFailed, match=r"in use; set another metrics\.bind"),
            metrics_served_at("127.0.0.1", port, report(agent, host)),
        ):
            pass
