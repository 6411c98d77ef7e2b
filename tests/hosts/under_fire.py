# SPDX-License-Identifier: Apache-2.0
"""A host that reshapes itself again and again, as a process that can be killed at any moment.

    python -m tests.hosts.under_fire URL

Each line on stdin, `split` or `merge`, starts an agent once, in a forked process, so that it begins
at once. The output is the pid of that process, a line before each write that it sends, and its exit
status.
"""

from __future__ import annotations

import os
import sys
import time
from random import Random
from typing import Any, Final

from berth.hosts import ReshapeNeeded
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from berth.hosts.service import Answer, Transport
from berth.hosts.tracker import Driver, Node, Tracker
from berth.hosts.transports import with_token
from tests.worlds import provider_uuid

HOST = Node(provider_uuid("cn1"), "cn1")

#: The GPUs of the host, with the vGPUs that each can give.
GPUS = {"cn1_gpu0": 4, "cn1_gpu1": 4}

VCPUS = 64

#: The line before a write.
WRITES: Final = "writes"

#: Attempts of one start: clients change the host's consumers all the time.
_ATTEMPTS_MAX = 1000


class Split:
    """vGPUs on one child for each GPU; the order of consumers decides which GPU each gets."""

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Move them there from the root."""
        root = provider_tree.data(nodename)
        if "VGPU" in root.inventory and allocations is None:
            raise ReshapeNeeded
        free = {}
        for name, count in GPUS.items():
            if not provider_tree.exists(name):
                provider_tree.new_child(name, nodename)
            provider_tree.update_inventory(name, {"VGPU": {"total": count}})
            free[provider_tree.data(name).uuid] = count
        provider_tree.update_inventory(nodename, {"VCPU": {"total": VCPUS}})
        for consumer in sorted(allocations or ()):
            parts = (allocations or {})[consumer]["allocations"]
            if parts.get(root.uuid, {"resources": {}})["resources"].pop("VGPU", 0):
                gpu = next(uuid for uuid, count in free.items() if count)
                free[gpu] -= 1
                parts[gpu] = {"resources": {"VGPU": 1}}


class Merged:
    """vGPUs on the root."""

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Move them there from the children, and delete these."""
        root = provider_tree.data(nodename)
        children = provider_tree.get_provider_uuids(nodename)[1:]
        if any(provider_tree.has_inventory(child) for child in children) and allocations is None:
            raise ReshapeNeeded
        for child in children:
            provider_tree.remove(child)
            for body in (allocations or {}).values():
                if body["allocations"].pop(child, None):
                    part = body["allocations"].setdefault(root.uuid, {"resources": {}})
                    part["resources"]["VGPU"] = 1
        provider_tree.update_inventory(
            nodename, {"VCPU": {"total": VCPUS}, "VGPU": {"total": sum(GPUS.values())}}
        )


SHAPES: dict[str, Driver] = {"split": Split(), "merge": Merged()}


def over_http(url: str) -> Transport:
    """A transport for a service without authentication."""
    return with_token(url, "admin", {"X-Roles": "admin,service"})


class Announced:
    """A transport that prints a line before each write."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def request(self, url: str, method: str, **options: Any) -> Answer:
        if method != "GET":
            print(WRITES, flush=True)
        return self._transport.request(url, method, **options)


def start(transport: Transport, shape: str) -> None:
    """One start of an agent."""
    Tracker(
        ReportClient(transport),
        SHAPES[shape],
        attempts_max=_ATTEMPTS_MAX,
        pause=lambda seconds: time.sleep(min(seconds, 0.05)),
        rng=Random(),
    ).report(HOST, startup=True)


def main(url: str) -> None:
    """Start whenever a line says so."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            print(os.getpid(), flush=True)
            start(Announced(over_http(url)), line.strip())
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(status, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
