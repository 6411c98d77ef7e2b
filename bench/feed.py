# SPDX-License-Identifier: Apache-2.0
"""Scenario feed: the whole fleet in one answer, its changes as they happen, and drains."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

import msgspec

from bench.case import AloneCase, Case
from bench.claims import claim_on, new_consumer
from bench.client import Client, UnexpectedStatus
from bench.driver import Connection, Script
from bench.flat import EVERY_HOST, path_of
from bench.fleet import CLAIM, host_uuid
from bench.http1 import Answer, Requests
from bench.memory import memory_mib
from bench.processor import processor_s, worker_ids
from bench.sample import Round, Sample, Samples, ask, clock, timed
from bench.server import RunningServer, serve_berth

FEED_SCENARIO: Final = "feed"
WHOLE_FLEET: Final = "whole fleet"
SEEN: Final = "a change through another worker"
POLLERS: Final = 1000
DRAINED: Final = 10_000
DRAIN: Final = f"a drain of {DRAINED:,} hosts"
#: The quantity: how long its deletion takes.
DRAIN_DELETED: Final = "deleted"

_FLEET: Final = "/berth/v1/fleet"
_CHANGES: Final = "/berth/v1/changes"
_DRAIN: Final = "/berth/v1/drains/bench"
_HOSTS: Final = 1000
#: A p99 takes many of them.
_CHANGES_MIN: Final = 200
#: A watcher has waited up to so long when the claim comes: longer than a service looks at its
#: database.
_WAITED_S_MAX: Final = 0.25
_PEAK_EVERY_S: Final = 0.005


class _Line(msgspec.Struct):
    """The first line of a fleet, or the last one of changes."""

    revision: str
    events: int = 0


_line = msgspec.json.Decoder(_Line)


def feed_cases(size: int) -> list[Case]:
    """What those do who keep a copy of the fleet; and drains, where there are enough hosts."""
    drains = [Case(FEED_SCENARIO, DRAIN, _measure_drain, for_peer=False)]
    return [
        Case(FEED_SCENARIO, WHOLE_FLEET, _measure_fleet, for_peer=False),
        Case(FEED_SCENARIO, "unchanged fleet", _measure_unchanged, for_peer=False),
        Case(FEED_SCENARIO, f"{POLLERS:,} watchers poll", _measure_polls, for_peer=False),
        *(drains if size >= DRAINED else ()),
    ]


def seen_case() -> AloneCase:
    """How long it takes until a watcher of one service sees what another one commits."""
    return AloneCase(FEED_SCENARIO, SEEN, _measure_seen)


def _measure_fleet(server: RunningServer, wanted: Round) -> Samples:
    request = Requests(server.port).get(_FLEET)
    with _peak(server) as more:
        sample = ask(server, [request], wanted)
    return {"": sample, "more memory of the workers at the peak": more}


def _measure_unchanged(server: RunningServer, wanted: Round) -> Samples:
    requests = Requests(server.port)
    with Client(server) as client:
        whole = client.exchange(requests.get(_FLEET))
    revision = _line.decode(whole.body.split(b"\n", 1)[0]).revision
    return {"": ask(server, [requests.get(_FLEET, if_none_match=revision)], wanted)}


def _measure_polls(server: RunningServer, wanted: Round) -> Samples:
    """Watchers that do not wait poll as fast as they are answered, while one client claims."""
    requests = Requests(server.port)
    with Client(server) as client:
        revision = _revision_of(client.exchange(requests.get(f"{_FLEET}?include=")))
    polls, claims = Sample(), Sample()
    scripts = [_poll(requests, revision, polls, wanted.seconds) for _ in range(POLLERS)]
    rng = random.Random(f"feed-{wanted.number}")
    cost = timed(server, [*scripts, _claim(requests, rng, claims, wanted.seconds)], wanted)
    polls.elapsed, polls.processor = cost
    claims.elapsed = cost.elapsed
    return {"": polls, "claims meanwhile": claims}


def _measure_drain(server: RunningServer, wanted: Round) -> Samples:
    """Each time until the next search has been answered, which is the first to see the change.

    After a first time that is not counted.
    """
    providers = [host_uuid(number) for number in range(DRAINED)]
    body = json.dumps({"providers": providers, "reason": "measured"}).encode()
    put, deleted = Sample(), Sample()
    with Client(server) as client:
        requests = client.requests
        search = requests.get(path_of(EVERY_HOST, 1))

        def change(request: bytes, sample: Sample) -> None:
            start, processor = clock(), processor_s(server)
            answer = client.exchange(request)
            found = client.exchange(search)
            sample.take(answer, clock() - start)
            sample.processor = (sample.processor or 0.0) + processor_s(server) - processor
            if found.status != 200:
                raise UnexpectedStatus("GET", "/allocation_candidates", found.status, found.body)

        change(requests.put(_DRAIN, body), Sample())
        change(requests.delete(_DRAIN), Sample())
        end = clock() + wanted.seconds
        while True:
            change(requests.put(_DRAIN, body), put)
            change(requests.delete(_DRAIN), deleted)
            if clock() >= end:
                break
    return {"": put, DRAIN_DELETED: deleted}


def _poll(requests: Requests, revision: str, sample: Sample, seconds: float) -> Script:
    end = clock() + seconds
    while True:
        start = clock()
        answer = yield requests.get(f"{_CHANGES}?after={revision}")
        now = clock()
        if sample.take(answer, now - start):
            revision = _closing(answer).revision
        if now >= end:
            return


def _claim(requests: Requests, rng: random.Random, sample: Sample, seconds: float) -> Script:
    end = clock() + seconds
    while True:
        host = host_uuid(rng.randrange(_HOSTS))
        start = clock()
        answer = yield claim_on(requests, host, CLAIM, new_consumer(rng), "bench-feed")
        now = clock()
        sample.take(answer, now - start)
        if now >= end:
            return


def _measure_seen(directory: Path, wanted: Round) -> Samples:
    with (
        serve_berth(directory, workers=1, start_seconds_max=600) as writing,
        serve_berth(directory, workers=1, start_seconds_max=600) as watched,
    ):
        return {"": _seen(writing, watched, wanted)}


def _seen(writing: RunningServer, watched: RunningServer, wanted: Round) -> Sample:
    """From the moment at which a claim has been acknowledged, or earlier if it was seen earlier."""
    sample = Sample()
    rng = random.Random(f"seen-{wanted.number}")
    watching, requests = Connection(watched), Requests(watched.port)
    end = clock() + wanted.seconds
    try:
        revision = _revision_of(_exchanged(watching, requests.get(f"{_FLEET}?include=")))
        with Client(writing) as writer:
            while clock() < end or len(sample.values) < _CHANGES_MIN:
                watching.send(requests.get(f"{_CHANGES}?after={revision}&wait=10"))
                time.sleep(rng.uniform(0, _WAITED_S_MAX))
                host = host_uuid(rng.randrange(_HOSTS))
                claim = claim_on(writer.requests, host, CLAIM, new_consumer(rng), "bench-seen")
                claimed = writer.exchange(claim)
                if claimed.status != 204:
                    raise UnexpectedStatus("PUT", "/allocations", claimed.status, claimed.body)
                committed = clock()
                answer = _received(watching)
                sample.take(answer, clock() - committed)
                closing = _closing(answer)
                sample.lost_count += closing.events != 1
                revision = closing.revision
    finally:
        watching.close()
    return sample


def _exchanged(connection: Connection, request: bytes) -> Answer:
    connection.send(request)
    return _received(connection)


def _received(connection: Connection) -> Answer:
    while (answer := connection.receive()) is None:
        pass
    return answer


def _revision_of(fleet: Answer) -> str:
    return _line.decode(fleet.body.split(b"\n", 1)[0]).revision


def _closing(changes: Answer) -> _Line:
    return _line.decode(changes.body.rstrip(b"\n").rpartition(b"\n")[2])


@contextmanager
def _peak(server: RunningServer) -> Iterator[Sample]:
    """How much more memory of their own the workers have at some moment of the block."""
    sample = Sample(unit="MiB")
    before = _own_mib(server)
    peak = before
    is_over = Event()

    def look() -> None:
        nonlocal peak
        while not is_over.wait(_PEAK_EVERY_S):
            peak = max(peak, _own_mib(server))

    thread = Thread(target=look)
    thread.start()
    try:
        yield sample
    finally:
        is_over.set()
        thread.join()
        sample.values.append(peak - before)


def _own_mib(server: RunningServer) -> float:
    return sum(memory_mib(worker, "Pss") for worker in worker_ids(server.process_id))
