# SPDX-License-Identifier: Apache-2.0
"""Scenario claims: clients that claim and release, spread over the fleet or all on one host.

A claim loop asks for ten candidates, picks one at random, and puts it for a new consumer; the claim
before last is released. Afterwards each claim that was acknowledged is looked for on record.
"""

from __future__ import annotations

import json
import random
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import msgspec

from bench.case import Case
from bench.client import Client
from bench.driver import Script
from bench.flat import EVERY_HOST, path_of
from bench.fleet import CLAIM, CROWDED, CROWDED_CLASS, Amounts, host_uuid
from bench.http1 import Requests
from bench.sample import Cost, Round, Sample, Samples, clock, timed
from bench.server import RunningServer

CLIENTS: Final = (1, 4, 16, 64)
_HELD_MAX: Final = 2
#: Of claims that are never released, so many are looked for afterwards.
_LOOKED_AT_MAX: Final = 200
_USER: Final = b'"user_id":"bench","consumer_generation":null,"consumer_type":"INSTANCE"'


class _Candidates(msgspec.Struct):
    """The candidates in a response, as text."""

    allocation_requests: list[msgspec.Raw]


#: Decodes the candidates of a response.
decoder = msgspec.json.Decoder(_Candidates)


@dataclass(slots=True)
class ClaimLoop:
    """One client's claims."""

    requests: Requests
    project: str
    rng: random.Random
    claims: Sample = field(default_factory=Sample)
    releases: Sample = field(default_factory=Sample)
    #: Consumers whose claims were acknowledged and that are not released, the oldest first.
    claimed: deque[str] = field(default_factory=deque)

    def run(self, query: str, seconds: float) -> Script:
        """Claim and release for some seconds, and at least once."""
        candidates = self.requests.get(path_of(query, 10))
        end = clock() + seconds
        while True:
            start = clock()
            answer = yield candidates
            if answer.status == 200:
                choices = decoder.decode(answer.body).allocation_requests
                consumer = new_consumer(self.rng)
                answer = yield claim_of(
                    self.requests, bytes(self.rng.choice(choices)), consumer, self.project
                )
                if answer.status == 204:
                    self.claimed.append(consumer)
            now = clock()
            self.claims.take(answer, now - start)
            if now >= end:
                return
            if len(self.claimed) > _HELD_MAX:
                yield from self._release()

    def _release(self) -> Script:
        start = clock()
        answer = yield self.requests.delete(f"/allocations/{self.claimed[0]}")
        if self.releases.take(answer, clock() - start):
            self.claimed.popleft()


def new_consumer(rng: random.Random) -> str:
    """A new uuid."""
    return str(UUID(int=rng.getrandbits(128), version=4))


def claim_of(requests: Requests, candidate: bytes, consumer: str, project: str) -> bytes:
    """The request that claims a candidate, as JSON text, for a new consumer."""
    who = b',"project_id":"%s",%s}' % (project.encode(), _USER)
    return requests.put(f"/allocations/{consumer}", candidate[:-1] + who)


def claim_on(
    requests: Requests, provider: str, amounts: Amounts, consumer: str, project: str
) -> bytes:
    """The request that claims from a given provider, without a query first, for a new consumer."""
    candidate = json.dumps({"allocations": {provider: {"resources": amounts}}}).encode()
    return claim_of(requests, candidate, consumer, project)


def clients(count: int) -> str:
    """The number of clients, as text."""
    return "1 client" if count == 1 else f"{count} clients"


def claim_cases(hosts_count: int) -> list[Case]:
    """The claim loop, spread over the fleet and on one host; then claims without a query first."""
    hot = f"{EVERY_HOST}&in_tree={host_uuid(0)}"
    return [
        *(_loop_case(f"spread, {clients(count)}", EVERY_HOST, count) for count in CLIENTS),
        *(_loop_case(f"one hot provider, {clients(count)}", hot, count) for count in CLIENTS),
        *(_put_case(count, hosts_count) for count in (1, 16, 64)),
    ]


def crowded_cases() -> list[Case]:
    """Claims on a provider that already has very many consumers."""

    def measure(server: RunningServer, wanted: Round) -> Samples:
        return {"": _put(server, wanted, [CROWDED], {CROWDED_CLASS: 1}, clients_count=1)}

    name = "PUT allocations on a provider with 100,000 consumers"
    return [Case("claims", name, measure, for_peer=False)]


def _loop_case(name: str, query: str, clients_count: int) -> Case:
    def measure(server: RunningServer, wanted: Round) -> Samples:
        project = f"bench-loop-{name}-{wanted.number}".replace(" ", "-").replace(",", "")
        loops = [
            ClaimLoop(Requests(server.port), project, random.Random(f"{project}-{number}"))
            for number in range(clients_count)
        ]
        scripts = [loop.run(query, wanted.seconds) for loop in loops]
        cost = timed(server, scripts, wanted)
        claims = together([loop.claims for loop in loops], cost)
        releases = together([loop.releases for loop in loops], Cost(cost.elapsed))
        consumers = [consumer for loop in loops for consumer in loop.claimed]
        unknown = claims.failures.total() + releases.failures.total()
        claims.lost_count = lost_claims(server, consumers, project, unknown_max=unknown)
        return {"claim loop": claims, "DELETE in the loop": releases}

    return Case("claims", name, measure)


def _put_case(clients_count: int, hosts_count: int) -> Case:
    hosts = [host_uuid(number) for number in range(hosts_count)]

    def measure(server: RunningServer, wanted: Round) -> Samples:
        return {"": _put(server, wanted, hosts, CLAIM, clients_count=clients_count)}

    return Case("claims", f"PUT allocations, {clients(clients_count)}", measure)


def _put(
    server: RunningServer,
    wanted: Round,
    providers: Sequence[str],
    amounts: Amounts,
    *,
    clients_count: int,
) -> Sample:
    """Claim from random providers for new consumers, and check the last claims."""
    project = f"bench-put-{clients_count}-{wanted.number}"
    samples = [Sample() for _ in range(clients_count)]
    written: deque[str] = deque(maxlen=_LOOKED_AT_MAX)
    scripts = [
        _putting(
            server,
            providers,
            amounts,
            project,
            random.Random(f"{project}-{number}"),
            sample,
            written,
            wanted.seconds,
        )
        for number, sample in enumerate(samples)
    ]
    sample = together(samples, timed(server, scripts, wanted))
    sample.lost_count = absent(server, written)
    return sample


def _putting(
    server: RunningServer,
    providers: Sequence[str],
    amounts: Amounts,
    project: str,
    rng: random.Random,
    sample: Sample,
    written: deque[str],
    seconds: float,
) -> Script:
    requests = Requests(server.port)
    end = clock() + seconds
    while True:
        consumer = new_consumer(rng)
        request = claim_on(requests, rng.choice(providers), amounts, consumer, project)
        start = clock()
        answer = yield request
        now = clock()
        if sample.take(answer, now - start):
            written.append(consumer)
        if now >= end:
            return


def together(samples: Sequence[Sample], cost: Cost) -> Sample:
    """Merge the counts of several clients."""
    return Sample(
        values=[value for sample in samples for value in sample.values],
        elapsed=cost.elapsed,
        processor=cost.processor,
        answer_bytes=max(sample.answer_bytes for sample in samples),
        conflicts_count=sum(sample.conflicts_count for sample in samples),
        failures=sum((sample.failures for sample in samples), Counter()),
    )


def lost_claims(
    server: RunningServer, consumers: Sequence[str], project: str, *, unknown_max: int
) -> int:
    """How many of the claims that should be on record are not, and how many are that should not.

    Args:
        consumers: the consumers of the project whose claims were acknowledged.
        unknown_max: failed operations, which may have been done or not.
    """
    with Client(server) as client:
        path = f"/usages?project_id={project}&consumer_type=all"
        usages = json.loads(client.demand("GET", path))["usages"]
    on_record = int(usages["all"]["VCPU"]) if usages else 0
    unaccounted = abs(on_record - len(consumers)) - unknown_max
    return max(absent(server, consumers), unaccounted, 0)


def absent(server: RunningServer, consumers: Iterable[str]) -> int:
    """How many of these consumers have no allocations."""
    with Client(server) as client:
        return sum(
            not json.loads(client.demand("GET", f"/allocations/{consumer}"))["allocations"]
            for consumer in consumers
        )
