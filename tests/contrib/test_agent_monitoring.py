# SPDX-License-Identifier: Apache-2.0
"""The agents' alerts and dashboard, compared with the metrics of an agent.

`test_monitoring.py` checks when the alerts fire.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Final

import pytest

from berth.cli.agent_endpoint import metrics_served_at
from berth.hosts import BadProviderTree
from berth.hosts.agent import Agent, Orders, Woken
from berth.hosts.agent_report import AgentReport
from berth.hosts.plan import Plan
from berth.hosts.tracker import Node
from berth.hosts.tree_watch import OverFull, TreeView
from tests.contrib.test_monitoring import (
    AGENT_RULES,
    CONTRIB,
    Prometheus,
    alerts,
    asked_for,
    families,
    panels,
    promtool,
    scraping,
)
from tests.e2e.serving import wait_until

DASHBOARD: Final = CONTRIB / "grafana" / "berth-agents.json"


class Hosts:
    """Two nodes: the first is reported and over capacity; the second cannot be reported."""

    def report(self, node: Node, *, startup: bool) -> Plan:
        """Report that one inventory was sent."""
        if node.name == "cn2":
            raise BadProviderTree("cn2 has no name that the service takes")
        return Plan(inventories={"u": {}})

    def is_reshape_pending(self, node: Node) -> bool:
        """No."""
        return False

    def look(self, node: Node, plan: Plan) -> TreeView:
        """A root with a child, and a provider of others."""
        return TreeView(providers=2, others=1, over_full=(OverFull("cn1", "VCPU", 6, 4),))


@pytest.fixture(scope="module")
def report() -> AgentReport:
    """The report of an agent after one pass."""
    hosts = Hosts()
    agent = Agent(
        lambda: Orders(
            hosts,
            [Node("u1", "cn1"), Node("u2", "cn2")],
            interval_s=60.0,
            start_patience_s=0.0,
            driver="static",
            watch=hosts,
        ),
        wait=lambda seconds: Woken.TO_STOP,
        clock=time.monotonic,
        now=time.time,
        rng=Random(1),
    )
    agent.start()
    return AgentReport(agent, Counter(GET=5, PUT=1))


@pytest.fixture(scope="module")
def prometheus(
    report: AgentReport, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the agent and has loaded the alerts."""
    folder = tmp_path_factory.mktemp("prometheus")
    with (
        metrics_served_at("127.0.0.1", 0, report) as url,
        scraping(folder, "berth-agent", url.removeprefix("http://"), AGENT_RULES) as server,
    ):
        yield server


def test_the_agents_metrics_are_as_prometheus_would_have_them(report: AgentReport) -> None:
    """Names, units and help: `promtool check metrics` reports nothing."""
    promtool("check", "metrics", text=report.metrics("")[1].decode())


def test_every_agents_metric_that_is_asked_for_is_told(report: AgentReport) -> None:
    """And every metric of an agent is on the dashboard."""
    asked = asked_for(DASHBOARD, AGENT_RULES)
    assert asked == families(report.metrics("")[1].decode())


def test_the_agents_dashboard_shows_what_there_is(prometheus: Prometheus) -> None:
    """Each expression is valid, and has a result unless it is a rate of 0."""
    by_title = panels(DASHBOARD)

    def empty() -> set[str]:
        return {
            title
            for title, expressions in by_title.items()
            if not any(list(map(prometheus.query, expressions)))
        }

    # One pass was made, before the first scrape: nothing has failed since.
    wait_until(lambda: empty() <= {"Failures"}, "data on all panels")


def test_the_agents_alerts_can_be_evaluated(prometheus: Prometheus) -> None:
    """Those that apply to this agent are pending; no others are."""

    def states() -> dict[str, str]:
        return {rule["name"]: rule["state"] for rule in prometheus.rules()}

    pending = {"BerthAgentNeverReported", "BerthAgentOverFull"}
    wait_until(
        lambda: {name for name, state in states().items() if state == "pending"} == pending,
        "the alerts of this agent",
    )
    assert set(states()) == set(alerts(AGENT_RULES))
    assert [rule["lastError"] for rule in prometheus.rules() if rule.get("lastError")] == []
