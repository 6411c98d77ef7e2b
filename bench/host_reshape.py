# SPDX-License-Identifier: Apache-2.0
"""Scenario hosts, one of them: its vGPUs move from its root to its GPUs, with 50 consumers.

The whole start of an agent is timed, and the one request in it that moves things; and beside it
the requests that nova's client sends for the same, in nova's order (spec/compute-side.md 2.4, 2.5
and 2.7), from a program that does nothing else. The way back is not timed.
"""

from __future__ import annotations

import time
from random import Random
from typing import Any, Final

from keystoneauth1.adapter import Adapter

from bench.case import Case
from bench.client import Client
from bench.fleet import Holding, Provider, child_uuid, consumer_uuid, host_uuid
from bench.loading import load_holding, load_provider
from bench.sample import Round, Sample, Samples, clock
from bench.server import RunningServer
from berth.hosts import ReshapeNeeded
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from berth.hosts.service import Answer, Service, Transport, named_path, provider_path
from berth.hosts.tracker import Node, Tracker
from berth.hosts.transports import let_go, with_token

CONSUMERS: Final = 50
#: One vGPU for each of the first half of the consumers, and two for each of the others.
_VGPUS: Final = [1 + number * 2 // CONSUMERS for number in range(CONSUMERS)]
_GPUS: Final = 4
_VGPUS_PER_GPU: Final = 24

#: Numbers that no fleet of this scenario's size uses.
_NUMBER: Final = 6_000_000
_ROOT: Final = host_uuid(_NUMBER)
_GPU_UUIDS: Final = [child_uuid(_NUMBER, number) for number in range(_GPUS)]
_NODE: Final = Node(_ROOT, "bench-gpu-host")
_STAYS: Final = {"VCPU": {"total": 256}, "MEMORY_MB": {"total": 1048576}}
_ON_ROOT: Final = {"VGPU": {"total": _GPUS * _VGPUS_PER_GPU}}
_ON_GPU: Final = {"VGPU": {"total": _VGPUS_PER_GPU}}
#: Of each GPU; one that every service knows.
_TRAIT: Final = "HW_GPU_API_VULKAN"


def host_reshape_case() -> Case:
    """Each reshape is one operation."""
    return Case("hosts", f"reshape of a host with {CONSUMERS} consumers", _measure)


class _Closing:
    """A transport with one connection per request, because Placement closes idle ones."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def request(self, url: str, method: str, **options: Any) -> Answer:
        answer: Answer = self._adapter.request(url, method, **options)
        let_go(self._adapter)
        return answer


def transport_to(server: RunningServer) -> Transport:
    """The agent's headers, without authentication."""
    adapter = with_token(server.url, "admin", {"X-Roles": "admin,service"})
    return adapter if server.keeps_connections else _Closing(adapter)


def _measure(server: RunningServer, wanted: Round) -> Samples:
    with Client(server) as client:
        if client.request("GET", f"/resource_providers/{_ROOT}")[0] == 404:
            _make_host(client)
    start, moving, by_nova = Sample(), Sample(), Sample()
    asked, asked_by_nova = Sample(unit="requests"), Sample(unit="requests")
    end = clock() + wanted.seconds
    while not start.values or clock() < end:
        watched = _Watched(transport_to(server))
        began = clock()
        sent = _report(watched, _Split())
        start.values.append(clock() - began)
        moving.values.append(watched.reshaper_s)
        asked.values.append(sent)
        _report(transport_to(server), _Merged())
        service = Service(transport_to(server))
        began = clock()
        _as_nova(service)
        by_nova.values.append(clock() - began)
        asked_by_nova.values.append(service.requests.total())
        _report(transport_to(server), _Merged())
    return {
        "start of an agent": start,
        "POST /reshaper in it": moving,
        "requests in it": asked,
        "the same in nova's order": by_nova,
        "requests in nova's order": asked_by_nova,
    }


def _make_host(client: Client) -> None:
    """The host with everything on its root, and its consumers."""
    load_provider(client, Provider(_ROOT, _NODE.name, None, {**_STAYS, **_ON_ROOT}))
    for number in range(CONSUMERS):
        amounts = {"VCPU": 2, "MEMORY_MB": 2048, "VGPU": _VGPUS[number]}
        load_holding(client, Holding(_consumer(number), "bench-hosts", {_ROOT: amounts}))


def _consumer(number: int) -> str:
    return consumer_uuid(_NUMBER + number)


def _report(transport: Transport, driver: _Split | _Merged) -> int:
    """Start an agent once, and return the requests that it sent."""
    client = ReportClient(transport)
    tracker = Tracker(client, driver, attempts_max=1, pause=time.sleep, rng=Random(1))
    plan = tracker.report(_NODE, startup=True)
    assert plan.is_reshape, "the host had this shape already"
    return client.service.requests.total()


class _Watched:
    """A transport that measures the time of the reshape."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.reshaper_s = 0.0

    def request(self, url: str, method: str, **options: Any) -> Answer:
        began = clock()
        answer = self._transport.request(url, method, **options)
        if url == "/reshaper":
            self.reshaper_s = clock() - began
        return answer


class _Split:
    """vGPUs on one child for each GPU."""

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        if allocations is None:
            raise ReshapeNeeded
        provider_tree.update_inventory(nodename, _STAYS)
        for number, gpu in enumerate(_GPU_UUIDS):
            provider_tree.new_child(_gpu_name(number), nodename, gpu)
            provider_tree.update_inventory(gpu, _ON_GPU)
            provider_tree.add_traits(gpu, _TRAIT)
        _move_to_gpus(allocations)


class _Merged:
    """vGPUs on the root."""

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        if allocations is None:
            raise ReshapeNeeded
        provider_tree.update_inventory(nodename, {**_STAYS, **_ON_ROOT})
        for gpu in _GPU_UUIDS:
            provider_tree.remove(gpu)
        for number in range(CONSUMERS):
            allocation = allocations[_consumer(number)]["allocations"]
            allocation[_ROOT]["resources"] |= allocation.pop(_gpu_of(number))["resources"]


def _gpu_of(number: int) -> str:
    """The path of a consumer."""
    return _GPU_UUIDS[number % _GPUS]


def _gpu_name(number: int) -> str:
    return f"{_NODE.name}-gpu{number}"


def _move_to_gpus(allocations: Allocations) -> None:
    for number in range(CONSUMERS):
        allocation = allocations[_consumer(number)]["allocations"]
        allocation[_gpu_of(number)] = {
            "resources": {"VGPU": allocation[_ROOT]["resources"].pop("VGPU")}
        }


def _as_nova(service: Service) -> None:
    """The split in the requests that nova's client sends, in its order."""
    listed = service.get("/resource_providers", in_tree=_ROOT)["resource_providers"]
    for provider in listed:
        for part in ("inventories", "aggregates", "traits"):
            service.get(provider_path(provider["uuid"], part))
    generations = {provider["uuid"]: provider["generation"] for provider in listed}
    allocations: Allocations = {}
    for provider in listed:
        consumers = service.get(provider_path(provider["uuid"], "allocations"))["allocations"]
        allocations |= {
            consumer: service.get(named_path("/allocations", consumer)) for consumer in consumers
        }
    _move_to_gpus(allocations)
    for number, gpu in enumerate(_GPU_UUIDS):
        service.get("/resource_providers", in_tree=gpu)
        body = {"uuid": gpu, "name": _gpu_name(number), "parent_provider_uuid": _ROOT}
        generations[gpu] = service.post("/resource_providers", body)["generation"]
    stock = {_ROOT: _STAYS, **dict.fromkeys(_GPU_UUIDS, _ON_GPU)}
    inventories = {
        uuid: {"resource_provider_generation": generations[uuid], "inventories": inventory}
        for uuid, inventory in stock.items()
    }
    service.post("/reshaper", {"inventories": inventories, "allocations": allocations})
    for uuid in stock:
        body = service.get(provider_path(uuid, "inventories"))
        generations[uuid] = body["resource_provider_generation"]
    for gpu in _GPU_UUIDS:
        service.get("/traits", name=f"in:{_TRAIT}")
        traits = {"traits": [_TRAIT], "resource_provider_generation": generations[gpu]}
        service.put(provider_path(gpu, "traits"), traits)
