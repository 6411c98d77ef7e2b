# SPDX-License-Identifier: Apache-2.0
"""Scenario coherence: what it costs to read through one worker what another has written.

Two services with one worker each stand on the same database. A claim through the first is followed
by a read through the second, which must show it; then the second is read once more. What the first
of the two reads took longer is what the foreign write has cost.
"""

from __future__ import annotations

import random
from pathlib import Path

import msgspec

from bench.case import AloneCase, Case
from bench.claims import claim_on, new_consumer
from bench.client import Client, UnexpectedStatus
from bench.flat import EVERY_HOST, path_of
from bench.fleet import CLAIM, host_uuid
from bench.http1 import Answer
from bench.sample import Round, Sample, Samples, clock
from bench.server import RunningServer, serve_berth

_HOSTS = 1000
#: The difference of two short times takes many of them to see.
_PAIRS_MIN = 100


class _Resource(msgspec.Struct):
    used: int


class _Summary(msgspec.Struct):
    resources: dict[str, _Resource]


class _Candidates(msgspec.Struct):
    provider_summaries: dict[str, _Summary]


_decoder = msgspec.json.Decoder(_Candidates)


def coherence_case() -> AloneCase:
    """Claims on random hosts, each read back at once through the other service."""
    return AloneCase("coherence", "read after a write through another worker", _measure)


def pair_case(scenario: str) -> Case:
    """The same on a server and the first of its peers."""

    def measure(server: RunningServer, wanted: Round) -> Samples:
        return _claim_and_read(server, server.others[0], wanted)

    return Case(scenario, "read after a write through another worker", measure)


def _measure(directory: Path, wanted: Round) -> Samples:
    with (
        serve_berth(directory, workers=1, start_seconds_max=600) as writing,
        serve_berth(directory, workers=1, start_seconds_max=600) as reading,
    ):
        return _claim_and_read(writing, reading, wanted)


def _claim_and_read(writing: RunningServer, reading: RunningServer, wanted: Round) -> Samples:
    foreign, own = Sample(), Sample()
    with Client(writing) as writer, Client(reading) as reader:
        rng = random.Random(f"coherence-{wanted.number}")
        end = clock() + wanted.seconds
        while clock() < end or len(own.values) < _PAIRS_MIN:
            host = host_uuid(rng.randrange(_HOSTS))
            read = reader.requests.get(path_of(f"{EVERY_HOST}&in_tree={host}", 10))
            before = _used(reader.exchange(read), host)
            claim = claim_on(writer.requests, host, CLAIM, new_consumer(rng), "bench-coherence")
            claimed = writer.exchange(claim)
            if claimed.status != 204:
                raise UnexpectedStatus("PUT", "/allocations", claimed.status, claimed.body)
            for sample in (foreign, own):
                start = clock()
                answer = reader.exchange(read)
                sample.take(answer, clock() - start)
                if _used(answer, host) != before + CLAIM["VCPU"]:
                    sample.lost_count += 1
    cost = [first - second for first, second in zip(foreign.values, own.values, strict=True)]
    return {
        "first read after the write": foreign,
        "second read": own,
        "cost of a foreign write": Sample(cost),
    }


def _used(answer: Answer, host: str) -> int:
    """A host's VCPU usage in a response."""
    summaries = _decoder.decode(answer.body).provider_summaries
    return summaries[host].resources["VCPU"].used
