# SPDX-License-Identifier: Apache-2.0
"""Scenario place: choosing and claiming in one call, beside the same in two.

Each client places new consumers as fast as it is answered; nothing is released. Afterwards the last
placements that were acknowledged are looked for on record.
"""

from __future__ import annotations

import json
import random
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from bench.case import Case
from bench.claims import absent, claim_of, clients, decoder, new_consumer, together
from bench.driver import Script
from bench.flat import EVERY_HOST, path_of
from bench.http1 import Requests
from bench.orders import FLAT
from bench.sample import Round, Sample, Samples, clock, timed
from bench.server import RunningServer

PLACE_SCENARIO: Final = "place"
#: The quantity: how many tries a call takes on average.
TRIES: Final = "tries"

#: Consumers of one call, where it places several.
MANY: Final = 64
#: Candidates of the first of two calls, of which a client picks one by chance.
_LIMIT: Final = 10
_LOOKED_AT_MAX: Final = 200

_CONSUMER: Final = b'{"uuid":"%b","project_id":"%b","user_id":"bench","consumer_type":"INSTANCE"}'


class _Placed(msgspec.Struct):
    """What a measurement needs of an answer."""

    tries: int


_placed = msgspec.json.Decoder(_Placed)


@dataclass(slots=True)
class _Placer:
    """One client."""

    requests: Requests
    project: str
    rng: random.Random
    sample: Sample = field(default_factory=Sample)
    #: How many calls took so many tries.
    tries: Counter[int] = field(default_factory=Counter)
    #: The newest consumers that were placed.
    placed: deque[str] = field(default_factory=lambda: deque(maxlen=_LOOKED_AT_MAX))

    def place(self, order: Mapping[str, Any], count: int, seconds: float) -> Script:
        """Place some consumers in each call; each of them counts."""
        head = json.dumps({"request": FLAT, "order": order})[:-1].encode() + b',"consumers":['
        end = clock() + seconds
        while True:
            consumers = [new_consumer(self.rng) for _ in range(count)]
            owner = self.project.encode()
            sent = b",".join(_CONSUMER % (each.encode(), owner) for each in consumers)
            request = self.requests.post("/berth/v1/place", head + sent + b"]}")
            start = clock()
            answer = yield request
            now = clock()
            for consumer in consumers:
                if self.sample.take(answer, now - start):
                    self.placed.append(consumer)
            if answer.status == 200:
                self.tries[_placed.decode(answer.body).tries] += 1
            if now >= end:
                return

    def ask_and_claim(self, seconds: float) -> Script:
        """Ask for candidates, and claim one of them."""
        end = clock() + seconds
        candidates = self.requests.get(path_of(EVERY_HOST, _LIMIT))
        while True:
            start = clock()
            answer = yield candidates
            if answer.status == 200:
                choices = decoder.decode(answer.body).allocation_requests
                consumer = new_consumer(self.rng)
                choice = bytes(self.rng.choice(choices))
                answer = yield claim_of(self.requests, choice, consumer, self.project)
                if answer.status == 204:
                    self.placed.append(consumer)
            now = clock()
            self.sample.take(answer, now - start)
            if now >= end:
                return


def place_cases() -> list[Case]:
    """One consumer a call, many, and one that is claimed after a query."""
    pack = {"by": "pack"}
    return [
        *(_case(f"one consumer, {clients(count)}", {}, 1, count) for count in (1, 64)),
        *(_case(f"{MANY} consumers, {clients(count)}", {}, MANY, count) for count in (1, 16)),
        _case("one consumer, pack, 64 clients", pack, 1, 64),
        _case("one consumer, pack among all, 64 clients", {**pack, "among": 1_000_000}, 1, 64),
        *(_two_calls(count) for count in (1, 64)),
    ]


def _case(name: str, order: Mapping[str, Any], count: int, clients_count: int) -> Case:
    def measure(server: RunningServer, wanted: Round) -> Samples:
        placers = _placers(server, wanted, name, clients_count)
        scripts = [placer.place(order, count, wanted.seconds) for placer in placers]
        sample = _measured(server, wanted, placers, scripts)
        tries = Counter[int]()
        for placer in placers:
            tries += placer.tries
        each = sum(number * count for number, count in tries.items()) / (tries.total() or 1)
        return {"": sample, TRIES: Sample([each], unit="tries")}

    return Case(PLACE_SCENARIO, name, measure, for_peer=False)


def _two_calls(clients_count: int) -> Case:
    name = f"two calls, {clients(clients_count)}"

    def measure(server: RunningServer, wanted: Round) -> Samples:
        placers = _placers(server, wanted, name, clients_count)
        scripts = [placer.ask_and_claim(wanted.seconds) for placer in placers]
        return {"": _measured(server, wanted, placers, scripts)}

    return Case(PLACE_SCENARIO, name, measure)


def _placers(
    server: RunningServer, wanted: Round, name: str, clients_count: int
) -> Sequence[_Placer]:
    project = f"bench-{name}-{wanted.number}".replace(" ", "-").replace(",", "")
    return [
        _Placer(Requests(server.port), project, random.Random(f"{project}-{number}"))
        for number in range(clients_count)
    ]


def _measured(
    server: RunningServer, wanted: Round, placers: Sequence[_Placer], scripts: Sequence[Script]
) -> Sample:
    cost = timed(server, scripts, wanted)
    sample = together([placer.sample for placer in placers], cost)
    sample.lost_count = absent(server, [each for placer in placers for each in placer.placed][:200])
    return sample
