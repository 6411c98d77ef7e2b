# SPDX-License-Identifier: Apache-2.0
"""A host with two GPUs before and after its reshape, and its reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from keystoneauth1 import exceptions

from berth.hosts.plan import Plan
from berth.hosts.report_client import ReportClient
from berth.hosts.service import Answer, Transport
from berth.hosts.tracker import Driver, Node, Tracker
from tests.hosts.drivers import GPUHost
from tests.hosts.stage import consumer_uuid
from tests.worlds import provider_uuid

BEFORE = """
    cn1  VCPU=16  MEMORY_MB=32768  VGPU=8  COMPUTE_NODE
    i1: cn1 VCPU=2 MEMORY_MB=2048 VGPU=1
    i2: cn1 VCPU=2 MEMORY_MB=2048 VGPU=2
    i3: cn1 VCPU=2 MEMORY_MB=2048 VGPU=1
"""

AFTER = """
    cn1  VCPU=16  MEMORY_MB=32768  COMPUTE_NODE
      cn1_pci_84  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
      cn1_pci_85  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
    i1: cn1 VCPU=2 MEMORY_MB=2048, cn1_pci_84 VGPU=1
    i2: cn1 VCPU=2 MEMORY_MB=2048, cn1_pci_84 VGPU=2
    i3: cn1 VCPU=2 MEMORY_MB=2048, cn1_pci_85 VGPU=1
"""


def gpu_host(**guests: dict[str, int]) -> GPUHost:
    """The host cn1: two GPUs, and guests with vGPUs on them."""
    return GPUHost(
        {"84": 4, "85": 4}, {consumer_uuid(name): devices for name, devices in guests.items()}
    )


def three_guests() -> GPUHost:
    """The host of `BEFORE` and `AFTER`."""
    return gpu_host(i1={"84": 1}, i2={"84": 2}, i3={"85": 1})


def node(name: str = "cn1") -> Node:
    """A node of a drawn world."""
    return Node(provider_uuid(name), name)


def tracker(client: ReportClient, driver: Driver, *, attempts_max: int = 1) -> Tracker:
    """A tracker that does not wait between its attempts."""
    return Tracker(
        client, driver, attempts_max=attempts_max, pause=lambda seconds: None, rng=Random(1)
    )


def start(client: ReportClient, driver: Driver, name: str = "cn1") -> Plan:
    """The first report of a host, with one attempt."""
    return tracker(client, driver).report(node(name), startup=True)


def periodic(client: ReportClient, driver: Driver, name: str = "cn1") -> Plan:
    return tracker(client, driver).report(node(name), startup=False)


@dataclass(frozen=True)
class Answered:
    """A response, as the report client sees it."""

    status_code: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        return json.loads(self.text)


#: How OpenStack Placement answers for a path that it does not have.
NOT_FOUND: Final = Answered(
    404,
    '{"errors": [{"status": 404, "title": "Not Found", "detail": "The resource could not be found.'
    '", "code": "placement.undefined_code"}]}',
)


class Meanwhile:
    """A transport; another client acts before one of its requests, once.

    Args:
        request: its beginning: "PUT /traits".
    """

    def __init__(self, transport: Transport, request: str, somebody: Callable[[], object]) -> None:
        self._transport = transport
        self._before: str | None = request
        self._somebody = somebody

    def request(self, url: str, method: str, **options: Any) -> Answer:
        if self._before is not None and f"{method} {url}".startswith(self._before):
            self._before = None
            self._somebody()
        return self._transport.request(url, method, **options)


class AsPlacement:
    """A transport to a berth that has none of its own routes, like OpenStack Placement.

    Args:
        is_one: whether it has none at present.
    """

    def __init__(self, transport: Transport, *, is_one: bool = True) -> None:
        self._transport = transport
        self.is_one = is_one

    def request(self, url: str, method: str, **options: Any) -> Answer:
        if self.is_one and url.startswith("/berth/"):
            return NOT_FOUND
        return self._transport.request(url, method, **options)


class Interrupted(Exception):
    """The process was killed."""


class Falling:
    """A transport that fails at one of its writes.

    Args:
        at: which write, from 0.
        is_done: whether the service still performs it.
        fault: the error that the caller gets: `Interrupted` if its process is killed, a
            `ConnectFailure` if its connection breaks.
    """

    def __init__(self, transport: Transport, *, at: int, is_done: bool, fault: Exception) -> None:
        self._transport = transport
        self._at = at
        self._is_done = is_done
        self._fault = fault
        self.writes = 0

    def request(self, url: str, method: str, **options: Any) -> Answer:
        """Send a request, unless it is the failing one."""
        if method != "GET":
            self.writes += 1
            if self.writes == self._at + 1:
                if self._is_done:
                    self._transport.request(url, method, **options)
                raise self._fault
        return self._transport.request(url, method, **options)


def lost_connection() -> exceptions.ConnectFailure:
    """The error of keystoneauth for a broken connection."""
    return exceptions.ConnectFailure("the connection broke")
