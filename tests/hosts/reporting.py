# SPDX-License-Identifier: Apache-2.0
"""Reports of hosts to a service in tests: one attempt, without waiting."""

from __future__ import annotations

from random import Random

from berth.hosts.plan import Plan
from berth.hosts.report_client import ReportClient
from berth.hosts.tracker import Driver, Node, Tracker
from tests.hosts.stage import Stage
from tests.worlds import provider_uuid


def start(stage: Stage, driver: Driver, node: str = "cn1") -> Plan:
    """The first report of a host, from a new client; a conflict is an error."""
    return _report(stage, driver, node, startup=True)


def periodic(stage: Stage, driver: Driver, node: str = "cn1") -> Plan:
    """A later report, from a new client."""
    return _report(stage, driver, node, startup=False)


def _report(stage: Stage, driver: Driver, node: str, *, startup: bool) -> Plan:
    client = ReportClient(stage.transport)
    tracker = Tracker(client, driver, attempts_max=1, pause=_no_pause, rng=Random(1))
    return tracker.report(Node(provider_uuid(node), node), startup=startup)


def _no_pause(seconds: float) -> None:
    """Do not wait."""
