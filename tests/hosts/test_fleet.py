# SPDX-License-Identifier: Apache-2.0
"""Many hosts start at once at one service, and no problem is logged.

`BERTH_FLEET_HOSTS=1000` sets their number; the number of requests per host is printed.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1.adapter import Adapter

from bench.fleet import host_uuid
from bench.simulated_hosts import (
    CELLS,
    GPU_MODEL,
    LICENCE,
    ON_CELL,
    ON_ROOT,
    OWNER,
    VGPUS_PER_GPU,
    Reports,
    Shape,
    SimulatedFleet,
    SimulatedHost,
    cell_name,
    gpu_name,
    vgpus,
)
from berth.hosts.errors import Unreachable
from berth.hosts.provider_tree import Inventory
from berth.hosts.report_client import ReportClient
from berth.hosts.service import Answer
from berth.hosts.transports import let_go, with_token
from tests.client import Client
from tests.e2e.serving import Service, serving
from tests.hosts.hosts import Answered

HOSTS = int(os.environ.get("BERTH_FLEET_HOSTS", "30"))


class Site:
    """A service, and transports to it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.client = Client.at(service.url)

    def transport(self) -> Adapter:
        """A connection of its own for a host."""
        return with_token(self.service.url, "admin")

    def get(self, path: str) -> Any:
        """A body at the newest microversion."""
        answer = self.client.get(path)
        assert answer.status == HTTPStatus.OK, answer.text
        return answer.json


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service; each test has hosts of its own in it."""
    with serving(tmp_path_factory.mktemp("site")) as service:
        yield Site(service)


@pytest.fixture(autouse=True)
def nothing_to_complain_about(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No warning and no error is logged."""
    yield
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def told(what: str, reports: Reports) -> Reports:
    """Print the requests of each host; nothing went wrong."""
    each = {method: count / HOSTS for method, count in sorted(reports.requests.items())}
    slowest = max(reports.seconds)
    print(
        f"{what}: {HOSTS} hosts in {reports.elapsed_s:.1f} s (slowest {slowest:.1f}), {each}, "
        f"{reports.put_off} put off"
    )
    assert reports.errors == []
    return reports


#: The parent's name, capacity and use by class, traits.
Picture = tuple[str | None, dict[str, tuple[int, int]], frozenset[str]]


def expected(host: SimulatedHost) -> dict[str, Picture]:
    """A host's providers by name."""
    name = host.node.name
    tree = {name: picture(None, ON_ROOT, "COMPUTE_NODE")}
    for cell in range(CELLS):
        node = cell_name(name, cell)
        tree[node] = picture(name, ON_CELL, "HW_NUMA_ROOT")
        tree[gpu_name(name, cell)] = picture(node, vgpus(VGPUS_PER_GPU), GPU_MODEL)
    return tree


def picture(parent: str | None, inventory: Inventory, trait: str) -> Picture:
    """One provider, of which nothing is used."""
    room = {name: record["total"] - record.get("reserved", 0) for name, record in inventory.items()}
    return parent, {name: (amount, 0) for name, amount in room.items()}, frozenset({trait, OWNER})


def assert_world(site: Site, fleet: SimulatedFleet) -> None:
    """Check that the service has the expected trees."""
    hosts = [SimulatedHost(number, Shape.BY_GPU) for number in fleet.numbers]
    roots = {host.node.uuid for host in hosts}
    wanted = {name: provider for host in hosts for name, provider in expected(host).items()}
    listed = site.get("/resource_providers")["resource_providers"]
    names = {
        provider["uuid"]: provider["name"]
        for provider in listed
        if provider["root_provider_uuid"] in roots
    }
    assert sorted(names.values()) == sorted(wanted)
    # The summaries tell of every provider of every tree with one request.
    summaries = site.get(f"/allocation_candidates?resources={LICENCE}:1")["provider_summaries"]
    actual = {
        names[uuid]: (
            names.get(summary["parent_provider_uuid"]),
            {
                name: (amount["capacity"], amount["used"])
                for name, amount in summary["resources"].items()
            },
            frozenset(summary["traits"]),
        )
        for uuid, summary in summaries.items()
        if uuid in names
    }
    assert actual == wanted


def test_a_fleet_starts_at_once_and_then_sends_no_write(site: Site) -> None:
    """All trees are as expected; afterwards a pass costs a host one request."""
    fleet = SimulatedFleet(HOSTS, site.transport, first=0)
    started = told("the first start", fleet.report(Shape.BY_GPU, startup=True))
    assert_world(site, fleet)
    # A look at the tree, at which traits and at which classes there are, and for each of 4 children
    # whether its name is free; 5 providers, each with traits and an inventory; the 3 names of its
    # own that a host may be the first to ask for.
    assert started.requests.total() - started.put_off <= (3 + 4 + 3 * 5 + 3) * HOSTS
    steady = told("a steady pass", fleet.report(Shape.BY_GPU, startup=False))
    assert steady.requests["GET"] - steady.put_off == HOSTS
    assert steady.writes_count == 0
    again = SimulatedFleet(HOSTS, site.transport, first=0)
    assert told("a second start", again.report(Shape.BY_GPU, startup=True)).writes_count == 0


def test_a_host_that_rests_keeps_no_place(site: Site) -> None:
    """Its connection is closed, and its next request opens another."""
    transport = site.transport()
    client = ReportClient(transport)
    gc.collect()
    of_others = connections_count(site)
    for _ in range(2):
        client.get_providers_in_tree(None, host_uuid(0))
        assert connections_count(site) == of_others + 1
        let_go(transport)
        assert connections_count(site) == of_others


def connections_count(site: Site) -> int:
    """The number of open connections to the service at the clients' side."""
    established, there = "01", f":{site.service.port:04X}"
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(to.endswith(there) and state == established for _, _, to, state, *_ in lines)


class Busy:
    """A service that answers 503 to everything, and says for how long."""

    def __init__(self, asked: str) -> None:
        self._asked = asked

    def request(self, url: str, method: str, **options: Any) -> Answer:
        error = '{"code": "placement.overloaded", "detail": "It is busy."}'
        return Answered(503, f'{{"errors": [{error}]}}', {"retry-after": self._asked})


@pytest.mark.parametrize(
    ("asked", "least"), [("3", 3), ("86400", 60), ("Mon, 23 Nov 2026 12:00:00 GMT", 1), ("", 1)]
)
def test_a_busy_service_is_left_alone_for_as_long_as_it_asks(asked: str, least: int) -> None:
    """At most for a minute, for a second if it names no time, and longer each time; not beyond its
    patience: then the service counts as unreachable."""
    pauses: list[float] = []
    client = ReportClient(Busy(asked), pause=pauses.append)
    with pytest.raises(Unreachable, match=r"^GET /resource_providers.* 503: It is busy\.$"):
        client.get_provider_by_name(None, "cn1")
    assert client.service.put_off == len(pauses) == client.service.requests["GET"] - 1
    assert all(least <= pause <= least + 16 for pause in pauses)
    assert len(set(pauses)) == len(pauses)
