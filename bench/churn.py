# SPDX-License-Identifier: Apache-2.0
"""Scenario churn: the writes of compute hosts, with generations, and releases."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from bench.api import Json
from bench.case import Case
from bench.claims import claim_on, new_consumer, together
from bench.client import Client
from bench.driver import Script
from bench.fleet import CLAIM, TRAIT, aggregate_uuid, flat, host_uuid
from bench.http1 import Requests
from bench.sample import Round, Sample, Samples, clock, timed
from bench.server import RunningServer

#: Hosts that are written, each client has its own.
_HOSTS_EACH: Final = 4


class _Generation(msgspec.Struct):
    """The provider's generation in a response."""

    resource_provider_generation: int


_decoder = msgspec.json.Decoder(_Generation)
_INVENTORIES: Final = next(flat(1).providers()).inventories


def _inventories(turn: int) -> Json:
    """A host's inventories, slightly different each time."""
    disk = {**_INVENTORIES["DISK_GB"], "reserved": turn % 100}
    return {**_INVENTORIES, "DISK_GB": disk}


def _traits(turn: int) -> Json:
    return [TRAIT, "HW_CPU_X86_AVX"] if turn % 2 else [TRAIT]


def _aggregates(turn: int) -> Json:
    return [aggregate_uuid(number) for number in range(1 + turn % 2)]


_PARTS: Final[dict[str, Callable[[int], Json]]] = {
    "inventories": _inventories,
    "traits": _traits,
    "aggregates": _aggregates,
}


def churn_cases() -> list[Case]:
    """Each kind of write by one client, inventories also by many; and releases."""
    return [
        *(_put_case(part, 1) for part in _PARTS),
        _put_case("inventories", 16),
        Case("churn", "DELETE allocations", _measure_releases),
    ]


def _put_case(part: str, clients_count: int) -> Case:
    def measure(server: RunningServer, wanted: Round) -> Samples:
        samples = [Sample() for _ in range(clients_count)]
        generations = {
            host_uuid(number): generation_of(server, host_uuid(number))
            for number in range(clients_count * _HOSTS_EACH)
        }
        hosts = list(generations)
        scripts = [
            _putting(server, part, hosts[client::clients_count], generations, sample, wanted)
            for client, sample in enumerate(samples)
        ]
        return {"": together(samples, timed(server, scripts, wanted))}

    many = "" if clients_count == 1 else f", {clients_count} clients"
    return Case("churn", f"PUT {part}{many}", measure)


def _putting(
    server: RunningServer,
    part: str,
    hosts: Sequence[str],
    generations: dict[str, int],
    sample: Sample,
    wanted: Round,
) -> Script:
    """A client that writes one part of each host in turn, with the last generation."""
    requests = Requests(server.port)
    end = clock() + wanted.seconds
    turn = 0
    while True:
        turn += 1
        host = hosts[turn % len(hosts)]
        body = {
            "resource_provider_generation": generations[host],
            part: _PARTS[part](turn // len(hosts)),
        }
        request = requests.put(f"/resource_providers/{host}/{part}", json.dumps(body).encode())
        start = clock()
        answer = yield request
        now = clock()
        if sample.take(answer, now - start):
            generations[host] = _decoder.decode(answer.body).resource_provider_generation
        if now >= end:
            return


def generation_of(server: RunningServer, provider: str) -> int:
    """The path of a provider."""
    with Client(server) as client:
        answer = client.demand("GET", f"/resource_providers/{provider}/inventories")
    return _decoder.decode(answer).resource_provider_generation


def _measure_releases(server: RunningServer, wanted: Round) -> Samples:
    sample = Sample()
    # No rate: half of the time goes into the claims.
    timed(server, [_releasing(server, wanted, sample)], wanted)
    return {"": sample}


def _releasing(server: RunningServer, wanted: Round, sample: Sample) -> Script:
    """A client that claims and releases; only the release is timed."""
    requests = Requests(server.port)
    rng = random.Random(f"releases-{wanted.number}")
    end = clock() + wanted.seconds
    while True:
        consumer = new_consumer(rng)
        host = host_uuid(rng.randrange(_HOSTS_EACH))
        yield claim_on(requests, host, CLAIM, consumer, "bench-churn")
        start = clock()
        answer = yield requests.delete(f"/allocations/{consumer}")
        now = clock()
        sample.take(answer, now - start)
        if now >= end:
            return
