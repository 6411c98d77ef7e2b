# SPDX-License-Identifier: Apache-2.0
"""Simulated hosts: many agents in one process, each with a client and a connection of its own.

Every host has two NUMA nodes, each with a GPU, and offers vGPUs in one of two shapes: all of them
on its root, as hosts once did, or those of each GPU on a child. From the first to the second is a
reshape. Everything follows from a host's number.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

from bench.fleet import consumer_uuid, host_uuid
from berth.hosts import ReshapeNeeded
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import Inventory, ProviderTree
from berth.hosts.report_client import ReportClient
from berth.hosts.service import Transport
from berth.hosts.tracker import Node, Tracker

#: NUMA nodes of a host, and with each of them a GPU.
CELLS: Final = 2
VGPUS_PER_GPU: Final = 8

#: Names that all hosts want to make at the same moment.
LICENCE: Final = "CUSTOM_LICENCE"
OWNER: Final = "CUSTOM_OWNER_BERTH"
GPU_MODEL: Final = "CUSTOM_GPU_L40S"

ON_ROOT: Final[Inventory] = {"DISK_GB": {"total": 4000}, LICENCE: {"total": 4}}
ON_CELL: Final[Inventory] = {
    "VCPU": {"total": 32, "reserved": 2},
    "MEMORY_MB": {"total": 131072},
}

#: Attempts of one report; a fleet that starts at once asks for more than a service can give.
_ATTEMPTS_MAX: Final = 10


class Shape(Enum):
    """Where the vGPUs are."""

    FLAT = "on the root"
    BY_GPU = "on one child for each GPU"


def vgpus(count: int) -> Inventory:
    """The inventory for a number of vGPUs."""
    return {"VGPU": {"total": count}}


def cell_name(host: str, cell: int) -> str:
    """The provider of a NUMA node."""
    return f"{host}_NUMA{cell}"


def gpu_name(host: str, cell: int) -> str:
    """The provider of the GPU of a NUMA node."""
    return f"{host}_GPU{cell}"


@dataclass(frozen=True, slots=True)
class SimulatedHost:
    """A numbered host, which is its own driver."""

    number: int
    shape: Shape

    @property
    def node(self) -> Node:
        """The root provider."""
        return Node(host_uuid(self.number), f"host-{self.number}")

    def guests(self) -> dict[str, int]:
        """The uuids of guests with a vGPU, and their NUMA nodes."""
        return {consumer_uuid(self.number * CELLS + cell): cell for cell in range(CELLS)}

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Report the host's resources."""
        root = provider_tree.data(nodename)
        must_move = self.shape is Shape.BY_GPU and "VGPU" in root.inventory
        if must_move and allocations is None:
            raise ReshapeNeeded
        on_root = vgpus(CELLS * VGPUS_PER_GPU) if self.shape is Shape.FLAT else {}
        _offer(provider_tree, nodename, {**ON_ROOT, **on_root}, "COMPUTE_NODE")
        gpus = {}
        for cell in range(CELLS):
            name = _ensure(provider_tree, cell_name(nodename, cell), nodename)
            _offer(provider_tree, name, ON_CELL, "HW_NUMA_ROOT")
            if self.shape is Shape.BY_GPU:
                gpu = _ensure(provider_tree, gpu_name(nodename, cell), name)
                _offer(provider_tree, gpu, vgpus(VGPUS_PER_GPU), GPU_MODEL)
                gpus[cell] = provider_tree.data(gpu).uuid
        if must_move:
            self._move(allocations or {}, root.uuid, gpus)

    def _move(self, allocations: Allocations, root: str, gpus: Mapping[int, str]) -> None:
        for consumer, cell in self.guests().items():
            if consumer in allocations:
                allocation = allocations[consumer]["allocations"]
                allocation[gpus[cell]] = {
                    "resources": {"VGPU": allocation[root]["resources"].pop("VGPU")}
                }


def _ensure(tree: ProviderTree, name: str, parent: str) -> str:
    if not tree.exists(name):
        tree.new_child(name, parent)
    return name


def _offer(tree: ProviderTree, name: str, inventory: Inventory, trait: str) -> None:
    tree.update_inventory(name, inventory)
    tree.add_traits(name, trait, OWNER)


@dataclass(frozen=True, slots=True)
class Reports:
    """The outcome of one report of all hosts."""

    #: From the first one's start to the last one's end.
    elapsed_s: float
    #: How long each that was done took.
    seconds: Sequence[float]
    #: By method.
    requests: Counter[str]
    #: How many of them the service was too busy for.
    put_off: int
    errors: Sequence[BaseException]

    @property
    def writes_count(self) -> int:
        """The number of write requests."""
        return self.requests.total() - self.requests["GET"]


class SimulatedFleet:
    """Hosts that report all at the same moment.

    Args:
        make_transport: for each of them; it has a connection of its own.
        first: the number of the first host.
    """

    def __init__(
        self, size: int, make_transport: Callable[[], Transport], *, first: int = 0
    ) -> None:
        self.numbers = range(first, first + size)
        self._clients = {number: ReportClient(make_transport()) for number in self.numbers}

    def report(self, shape: Shape, *, startup: bool) -> Reports:
        """Let every host report once, each in its own thread."""
        before, put_off_before = self._requests(), self._put_off()
        all_are_there = threading.Barrier(len(self.numbers) + 1)

        def report_one(number: int) -> float:
            all_are_there.wait()
            started_at = time.perf_counter()
            self._report_one(SimulatedHost(number, shape), startup=startup)
            return time.perf_counter() - started_at

        with ThreadPoolExecutor(len(self.numbers)) as pool:
            made = [pool.submit(report_one, number) for number in self.numbers]
            all_are_there.wait()
            started_at = time.perf_counter()
            errors = [error for report in made if (error := report.exception()) is not None]
        return Reports(
            elapsed_s=time.perf_counter() - started_at,
            seconds=[report.result() for report in made if report.exception() is None],
            requests=self._requests() - before,
            put_off=self._put_off() - put_off_before,
            errors=errors,
        )

    def _report_one(self, host: SimulatedHost, *, startup: bool) -> None:
        tracker = Tracker(
            self._clients[host.number],
            host,
            attempts_max=_ATTEMPTS_MAX,
            pause=time.sleep,
            rng=Random(host.number),
        )
        tracker.report(host.node, startup=startup)

    def _requests(self) -> Counter[str]:
        sent: Counter[str] = Counter()
        for client in self._clients.values():
            sent.update(client.service.requests)
        return sent

    def _put_off(self) -> int:
        return sum(client.service.put_off for client in self._clients.values())
