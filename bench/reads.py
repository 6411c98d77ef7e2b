# SPDX-License-Identifier: Apache-2.0
"""Scenario reads: single objects, lists with each filter, usages; and candidates amid claims.

Single objects are read of many hosts in turn, so that no answer is a repetition. A fleet in use has
ten allocations for each host.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
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
from bench.gets import CLIENTS, get_case
from bench.http1 import Requests
from bench.sample import Cost, Round, Sample, Samples, clock, timed
from bench.server import RunningServer

_CLAIM_CLIENTS: Final = 16
_CLAIMS_SHARE: Final = 0.1
#: Objects that are read in turn.
_TURNS: Final = 1000

_AGGREGATES: Final = ",".join(aggregate_uuid(number) for number in range(2))
_OTHER_TRAIT: Final = "HW_CPU_X86_AVX512F"

#: What follows the path of a provider.
_PARTS: Final[Mapping[str, str]] = {
    "a provider": "",
    "inventories of a provider": "/inventories",
    "traits of a provider": "/traits",
    "aggregates of a provider": "/aggregates",
    "usages of a provider": "/usages",
    "allocations of a provider": "/allocations",
}
#: Those that need no more than the index has.
SINGLE_READS: Final = tuple(name for name in _PARTS if name != "allocations of a provider")

#: The query of each list of many providers.
_LISTS: Final[Mapping[str, str]] = {
    "in an aggregate": f"member_of={aggregate_uuid(0)}",
    "in any of two aggregates": f"member_of=in:{_AGGREGATES}",
    "not in an aggregate": f"member_of=!{aggregate_uuid(0)}",
    "with a trait": f"required={TRAIT}",
    "with any of two traits": f"required=in:{TRAIT},{_OTHER_TRAIT}",
    "without a trait": f"required=!{TRAIT}",
    "with resources": "resources=VCPU:1,MEMORY_MB:1024",
    "with resources, trait and aggregate": (
        f"resources=VCPU:1&required={TRAIT}&member_of={aggregate_uuid(0)}"
    ),
}


_ALL: Final = "providers, all"
#: Those that list many.
LISTS: Final = (_ALL, *(f"providers, {name}" for name in _LISTS))


def read_cases(size: int, *, allocations_count: int, crowd: int) -> list[Case]:
    """Every read of a flat fleet in use, by one client and by many; then candidates amid claims.

    Args:
        size: hosts.
        allocations_count: as the fleet has them.
        crowd: consumers of the one provider that has very many; they come first.
    """
    rng = random.Random("reads")
    hosts = [rng.randrange(size) for _ in range(_TURNS)]
    consumers = (allocations_count - crowd) // 3
    paths: dict[str, Sequence[str]] = {"GET /": ["/"]}
    paths |= {
        name: [f"/resource_providers/{host_uuid(host)}{part}" for host in hosts]
        for name, part in _PARTS.items()
    }
    paths["allocations of a consumer"] = [
        f"/allocations/{consumer_uuid(crowd + rng.randrange(consumers))}" for _ in hosts
    ]
    paths |= dict(_lists(hosts))
    paths |= _usages(allocations_count, crowd)
    cases = [
        get_case("reads", name, asked, clients_count=count)
        for count in CLIENTS
        for name, asked in paths.items()
    ]
    return [*cases, _mixed_case()]


def _lists(hosts: Sequence[int]) -> Iterator[tuple[str, Sequence[str]]]:
    """The paths of each list, by the name of its case."""
    uuids = [host_uuid(host) for host in hosts]
    queries: dict[str, Sequence[str]] = {
        "by name": [f"name=bench-host-{host:07}" for host in hosts],
        "by uuid": [f"uuid={uuid}" for uuid in uuids],
        "of a tree": [f"in_tree={uuid}" for uuid in uuids],
        **{name: [query] for name, query in _LISTS.items()},
    }
    yield _ALL, ["/resource_providers"]
    for name, asked in queries.items():
        yield f"providers, {name}", [f"/resource_providers?{query}" for query in asked]


def _usages(allocations_count: int, crowd: int) -> dict[str, Sequence[str]]:
    """Usages of projects, and what one provider with very many consumers has."""
    small, large = (
        f"/usages?project_id={project}&consumer_type=all"
        for project in (SMALL_PROJECT, LARGE_PROJECT)
    )
    return {
        f"usages of a project with 1,000 of {allocations_count:,} allocations": [small],
        f"usages of a project with nearly {allocations_count:,} allocations": [large],
        f"usages of a provider with {crowd:,} consumers": [f"/resource_providers/{CROWDED}/usages"],
        f"allocations of a provider with {crowd:,} consumers": [
            f"/resource_providers/{CROWDED}/allocations"
        ],
    }


def _mixed_case() -> Case:
    def measure(server: RunningServer, wanted: Round) -> Samples:
        loops = [
            ClaimLoop(Requests(server.port), "bench-mixed", random.Random(f"mixed-{seed}"))
            for seed in range(wanted.number * _CLAIM_CLIENTS, (wanted.number + 1) * _CLAIM_CLIENTS)
        ]
        queries = [Sample() for _ in loops]
        scripts = [
            _mixing(loop, sample, wanted.seconds)
            for loop, sample in zip(loops, queries, strict=True)
        ]
        cost = Cost(timed(server, scripts, wanted).elapsed)
        return {
            "candidates": together(queries, cost),
            "claim loops": together([loop.claims for loop in loops], cost),
        }

    return Case("reads", f"90 % candidates, 10 % claims, {_CLAIM_CLIENTS} clients", measure)


def _mixing(loop: ClaimLoop, sample: Sample, seconds: float) -> Script:
    """A client that mostly queries, and sometimes claims."""
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
