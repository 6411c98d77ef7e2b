# SPDX-License-Identifier: Apache-2.0
"""Scenario reshape: the CPUs of a host with 50 consumers move to its NUMA node, and back."""

from __future__ import annotations

import json
from typing import Final

from bench.case import Case
from bench.churn import generation_of
from bench.client import Client
from bench.fleet import Holding, Inventories, Provider, child_uuid, consumer_uuid, host_uuid
from bench.http1 import Requests
from bench.loading import load_holding, load_provider
from bench.sample import Round, Sample, Samples, asking, timed
from bench.server import RunningServer

CONSUMERS: Final = 50

#: Numbers that no fleet of this scenario's size uses.
_HOST: Final = 5_000_000
_FIRST_CONSUMER: Final = 5_000_000

_ROOT, _NUMA = host_uuid(_HOST), child_uuid(_HOST, 0)
_STAYS: Final[Inventories] = {"DISK_GB": {"total": 4000}}
_MOVES: Final[Inventories] = {
    "VCPU": {"total": 64, "allocation_ratio": 4.0},
    "MEMORY_MB": {"total": 1048576},
}
_HELD: Final = {"VCPU": 2, "MEMORY_MB": 2048}


def reshape_cases() -> list[Case]:
    """Each move is one operation."""
    return [Case("reshape", f"a host with {CONSUMERS} consumers", _measure)]


def _measure(server: RunningServer, wanted: Round) -> Samples:
    sample = Sample()
    with Client(server) as client:
        if client.request("GET", f"/resource_providers/{_ROOT}")[0] == 404:
            _make_host(client)
    # No rate: what is moved has to be read in between.
    requests = Requests(server.port)

    def request() -> bytes:
        # Not timed: in a real upgrade the driver knows all this already.
        return requests.post("/reshaper", _body(server))

    timed(server, [asking(request, sample, wanted.seconds)], wanted)
    return {"": sample}


def _make_host(client: Client) -> None:
    """The host with everything on its root, and its consumers."""
    load_provider(client, Provider(_ROOT, "bench-reshaped", None, {**_STAYS, **_MOVES}))
    load_provider(client, Provider(_NUMA, "bench-reshaped-numa", _ROOT))
    for number in range(CONSUMERS):
        consumer = consumer_uuid(_FIRST_CONSUMER + number)
        load_holding(client, Holding(consumer, "bench-reshape", {_ROOT: _HELD}))


def _body(server: RunningServer) -> bytes:
    """The request that moves everything to the other provider."""
    with Client(server) as client:
        first = json.loads(client.demand("GET", f"/allocations/{consumer_uuid(_FIRST_CONSUMER)}"))
    to_numa = _ROOT in first["allocations"]
    generation = first["consumer_generation"]
    stock = {
        _ROOT: _STAYS if to_numa else {**_STAYS, **_MOVES},
        _NUMA: _MOVES if to_numa else {},
    }
    return json.dumps(
        {
            "inventories": {
                provider: {
                    "resource_provider_generation": generation_of(server, provider),
                    "inventories": inventories,
                }
                for provider, inventories in stock.items()
            },
            "allocations": {
                consumer_uuid(_FIRST_CONSUMER + number): {
                    "allocations": {_NUMA if to_numa else _ROOT: {"resources": _HELD}},
                    "project_id": "bench-reshape",
                    "user_id": "bench",
                    "consumer_generation": generation,
                    "consumer_type": "INSTANCE",
                }
                for number in range(CONSUMERS)
            },
        }
    ).encode()
