# SPDX-License-Identifier: Apache-2.0
"""The page of the host agent has every key, every metric and the requests as they are counted."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

from berth.hosts import agent_config
from berth.hosts.agent import Agent, Orders, Woken
from berth.hosts.agent_report import AgentReport
from berth.hosts.plan import Plan
from berth.hosts.tracker import Node
from tests.docs.pages import published, section
from tests.exposed import Exposed
from tests.hosts.test_requests import ON_BERTH, ON_PLACEMENT, ORIGINAL

PAGE = published("agent.md")


class Done:
    """Every report is done."""

    def report(self, node: Node, *, startup: bool) -> Plan:
        """Nothing differs."""
        return Plan()

    def is_reshape_pending(self, node: Node) -> bool:
        """It is not."""
        return False


def test_every_key_is_on_the_page() -> None:
    """And no others."""
    of_sections = {
        "service": agent_config.ServiceAccess.__struct_fields__,
        "node": agent_config.NodeEntry.__struct_fields__,
        "metrics": agent_config.MetricsEndpoint.__struct_fields__,
    }
    keys = {
        f"{key}.{inner}" if inner else key
        for key in agent_config.AgentFile.__struct_fields__
        for inner in of_sections.get(key, ("",))
    }
    documented = re.findall(r"^\| `([\w.]+)` \|", section(PAGE, "agent.yaml"), re.MULTILINE)
    assert set(documented) == keys


def test_every_metric_is_on_the_page_with_its_labels() -> None:
    """By the name that a query uses."""
    agent = Agent(
        lambda: Orders(Done(), [Node("u", "cn1")], interval_s=1, start_patience_s=0),
        wait=lambda seconds: Woken.TO_STOP,
        clock=lambda: 0.0,
        now=lambda: 0.0,
        rng=Random(1),
    )
    agent.start()
    _, body = AgentReport(agent, Counter(GET=1)).metrics("")
    told = Exposed(body.decode())
    rows = re.findall(r"^\| `(berth_\w+)` \|([^|]*)\|", PAGE, re.MULTILINE)
    documented = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    assert set(documented) == told.names()
    for name, labels in documented.items():
        series = told.series(name) or told.series(f"{name}_count")
        assert series and all(set(one) == labels for one in series), name


def test_the_requests_are_those_that_are_counted() -> None:
    """In `tests/hosts/test_requests.py`, beside the original's."""
    rows = re.findall(r"^\|" + r" (\d+) \|" * 7 + "$", PAGE, re.MULTILINE)
    assert rows == [
        tuple(
            map(
                str,
                (
                    *size,
                    ON_BERTH[0],
                    ON_PLACEMENT[size][0],
                    original[0],
                    ON_PLACEMENT[size][1],
                    original[1],
                ),
            )
        )
        for size, original in ORIGINAL.items()
    ]
