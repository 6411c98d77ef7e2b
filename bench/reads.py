# SPDX-License-Identifier: Apache-2.0
"""Scenario reads: what else is asked of a service all day, and candidates amid claims."""

from __future__ import annotations

import random
from typing import Final

from bench.case import Case
from bench.claims import ClaimLoop, together
from bench.driver import Script
from bench.flat import EVERY_HOST, FILTERED, path_of
from bench.fleet import (
    CROWDED,
    LARGE_PROJECT,
    SMALL_PROJECT,
    TRAIT,
    aggregate_uuid,
    consumer_uuid,
    host_uuid,
)
from bench.http1 import Requests
from bench.sample import Round, Sample, Samples, ask, clock, timed
from bench.server import RunningServer

_CLIENTS: Final = 16
_CLAIMS_SHARE: Final = 0.1

_FILTER = f"resources=VCPU:1&required={TRAIT}&member_of={aggregate_uuid(0)}"
_HOST = f"/resource_providers/{host_uuid(0)}"
_CROWDED = f"/resource_providers/{CROWDED}"

_READS: Final = {
    "GET /": "/",
    "providers, one by name": "/resource_providers?name=bench-host-0000000",
    "providers, by resources, trait and aggregate": f"/resource_providers?{_FILTER}",
    "providers, all": "/resource_providers",
    "inventories of a provider": f"{_HOST}/inventories",
    "usages of a provider": f"{_HOST}/usages",
    "allocations of a provider": f"{_HOST}/allocations",
}


def _usages(project: str) -> str:
    return f"/usages?project_id={project}"


#: On a fleet with a million allocations.
_FULL_READS: Final = {
    "providers, one by name": _READS["providers, one by name"],
    "allocations of a consumer": f"/allocations/{consumer_uuid(100_001)}",
    "usages of a project with 1,000 of 1,000,000 allocations": _usages(SMALL_PROJECT),
    "usages of a project with nearly 1,000,000 allocations": _usages(LARGE_PROJECT),
    "usages of a provider with 100,000 consumers": f"{_CROWDED}/usages",
    "allocations of a provider with 100,000 consumers": f"{_CROWDED}/allocations",
}


def read_cases() -> list[Case]:
    """Lists, filters and single things; and nine candidates queries to each claim."""
    return [*(_read_case(name, path) for name, path in _READS.items()), _mixed_case()]


def full_read_cases() -> list[Case]:
    """What must not grow with the number of allocations, and what may."""
    return [*(_read_case(name, path) for name, path in _FULL_READS.items()), _mixed_case()]


def _read_case(name: str, path: str) -> Case:
    def measure(server: RunningServer, wanted: Round) -> Samples:
        return {"": ask(server, Requests(server.port).get(path), wanted)}

    return Case("reads", name, measure)


def _mixed_case() -> Case:
    def measure(server: RunningServer, wanted: Round) -> Samples:
        loops = [
            ClaimLoop(Requests(server.port), "bench-mixed", random.Random(f"mixed-{seed}"))
            for seed in range(wanted.number * _CLIENTS, (wanted.number + 1) * _CLIENTS)
        ]
        queries = [Sample() for _ in loops]
        scripts = [
            _mixing(loop, sample, wanted.seconds)
            for loop, sample in zip(loops, queries, strict=True)
        ]
        elapsed = timed(server, scripts, wanted)
        return {
            "candidates": together(queries, elapsed),
            "claim loops": together([loop.claims for loop in loops], elapsed),
        }

    return Case("reads", f"90 % candidates, 10 % claims, {_CLIENTS} clients", measure)


def _mixing(loop: ClaimLoop, sample: Sample, seconds: float) -> Script:
    """A client that mostly asks, and now and then claims."""
    request = loop.requests.get(path_of(FILTERED, 10))
    end = clock() + seconds
    while True:
        if loop.rng.random() < _CLAIMS_SHARE:
            yield from loop.run(EVERY_HOST, 0.0)
        else:
            start = clock()
            answer = yield request
            sample.take(answer, clock() - start)
        if clock() >= end:
            return
