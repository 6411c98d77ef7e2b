# SPDX-License-Identifier: Apache-2.0
"""What is measured: candidates queries one by one, and claims by one or many clients."""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from bench.client import Client
from bench.fleet import AGGREGATES, TRAIT
from bench.server import RunningServer

_RESOURCES = "resources=VCPU:1,MEMORY_MB:1024,DISK_GB:10"
_FILTERED = f"{_RESOURCES}&required={TRAIT}&member_of={AGGREGATES[0]}"
_WARM_UP_COUNT = 2


@dataclass(frozen=True, slots=True)
class Sample:
    """What one round of a scenario gave on one server."""

    #: Duration of each operation, in seconds.
    durations: Sequence[float]
    #: From the first operation's start to the last one's end, over all clients.
    elapsed: float
    #: Operations that the server refused with 409: another client was faster.
    conflicts_count: int = 0
    #: Operations that the server failed to do (5xx).
    failures_count: int = 0
    #: Claims that were acknowledged and are not on record, or the other way round; 0 is right.
    lost_count: int = 0


class Scenario(ABC):
    """Something to measure, repeatable on the same server."""

    name: str

    @abstractmethod
    def run(self, server: RunningServer, *, seconds: float, seed: int) -> Sample:
        """Measure for about `seconds`, at least one operation."""


class CandidatesScenario(Scenario):
    """One client asks one query again and again."""

    def __init__(self, limit: int | None) -> None:
        self.name = f"candidates {limit or 'all'}"
        self._path = f"/allocation_candidates?{_FILTERED}"
        if limit is not None:
            self._path += f"&limit={limit}"

    def run(self, server: RunningServer, *, seconds: float, seed: int) -> Sample:
        """Time requests from sending to the last byte of the body."""
        durations: list[float] = []
        with Client(server) as client:
            for _ in range(_WARM_UP_COUNT):
                client.demand("GET", self._path)
            start = now = time.perf_counter()
            while now - start < seconds or not durations:
                client.demand("GET", self._path)
                durations.append(-now + (now := time.perf_counter()))
        return Sample(durations, now - start)


class ClaimsScenario(Scenario):
    """Clients claim: ask for ten candidates, pick one at random, put its allocations."""

    def __init__(self, clients_count: int) -> None:
        self.name = f"claims x{clients_count}"
        self._clients_count = clients_count

    def run(self, server: RunningServer, *, seconds: float, seed: int) -> Sample:
        """Time pairs of query and claim; then count what the server has on record."""
        project = f"bench-{self._clients_count}-{seed}"
        context = multiprocessing.get_context("fork")
        with context.Pool(self._clients_count) as pool:
            jobs = [
                (server, project, seconds, f"{project}-{number}")
                for number in range(self._clients_count)
            ]
            start = time.perf_counter()
            parts = pool.starmap(_claim_for, jobs, chunksize=1)
            elapsed = time.perf_counter() - start
        durations = [duration for part in parts for duration in part.durations]
        return Sample(
            durations,
            elapsed,
            conflicts_count=sum(part.conflicts_count for part in parts),
            failures_count=sum(part.failures_count for part in parts),
            lost_count=len(durations) - _claims_on_record(server, project),
        )


def standard_scenarios() -> list[Scenario]:
    """All scenarios, in the order in which they are run on a fleet."""
    return [
        CandidatesScenario(10),
        CandidatesScenario(1000),
        CandidatesScenario(None),
        ClaimsScenario(1),
        ClaimsScenario(16),
    ]


def _claim_for(server: RunningServer, project: str, seconds: float, seed: str) -> Sample:
    """Claim for about `seconds`, in a process of its own; refused ones are counted apart."""
    chance = random.Random(seed)
    durations: list[float] = []
    refused: Counter[int] = Counter()
    with Client(server) as client:
        start = now = time.perf_counter()
        while now - start < seconds:
            status = _claim(client, project, chance)
            duration = -now + (now := time.perf_counter())
            if status == 204:
                durations.append(duration)
            else:
                refused[status] += 1
    failures_count = refused.total() - refused[409]
    return Sample(durations, now - start, refused[409], failures_count)


def _claim(client: Client, project: str, chance: random.Random) -> int:
    """Claim one candidate for a new consumer; 204, or the status of the answer that refused."""
    status, answer = client.request("GET", f"/allocation_candidates?{_RESOURCES}&limit=10")
    if status != 200:
        return status
    candidate = chance.choice(json.loads(answer)["allocation_requests"])
    consumer = UUID(int=chance.getrandbits(128), version=4)
    status, _ = client.request(
        "PUT",
        f"/allocations/{consumer}",
        {
            **candidate,
            "project_id": project,
            "user_id": "bench",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        },
    )
    return status


def _claims_on_record(server: RunningServer, project: str) -> int:
    """How many consumers of the project the server knows, by the VCPU that they hold."""
    with Client(server) as client:
        answer = client.demand("GET", f"/usages?project_id={project}&consumer_type=all")
    usages = json.loads(answer)["usages"]
    return int(usages["all"]["VCPU"]) if usages else 0
